#!/usr/bin/python3
"""What `shoal fsck` finds: nothing in a cluster that is well, and each way in which one is not.

Usage: fsck.py SHOAL FSCK_EDIT

SHOAL is the command, FSCK_EDIT the program that spoils stores (fsck_edit.c). The last line counts.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import cluster as clusters
from cluster import Failed, KIB, MIB

LIMIT_S = 60
BLOCK = 4 * KIB
GENERATIONS_A_START = 1 << 20
LIMIT = 64 * MIB  # of each data file


class Check:
    """A cluster with some files, and what the rows of the table do with it."""

    def __init__(self, cluster, edit):
        self.cluster = cluster
        self.edit_program = edit
        self.inos = {}
        self.appended = {}  # bytes of files of which power loss takes the sizes

    def path(self, name):
        return os.path.join(self.cluster.mount, name)

    def fill(self):
        for folder in ("dir", "dir/sub", "empty"):
            os.mkdir(self.path(folder))
        for name, size in (("big", 5 * MIB + 123), ("dir/medium", 300 * KIB), ("dir/small", 999),
                           ("dir/sub/deep", 70 * KIB), ("none", 0)):
            with open(self.path(name), "wb") as file:
                file.write(os.urandom(size))
        for name in ("big", "dir/medium"):
            with open(self.path(name), "rb") as file:
                self.appended[name] = file.read()
        os.link(self.path("big"), self.path("dir/link"))
        os.symlink("big", self.path("dir/symlink"))
        with open(self.path("sparse"), "wb") as file:
            file.truncate(50 * MIB)
            file.seek(33 * MIB)
            file.write(b"x" * 10000)
            file.flush()
        with open(self.path("cut"), "wb") as file:
            file.write(os.urandom(3 * MIB))
            file.truncate(MIB + 77)
        for name in ("big", "dir", "dir/medium", "dir/small", "dir/sub", "dir/sub/deep", "cut"):
            self.inos[name] = os.stat(self.path(name)).st_ino

    def fsck(self, *words):
        return self.cluster.run("fsck", self.cluster.directory, *words, limit_s=LIMIT_S)

    def edit(self, target, *words):
        result = subprocess.run([self.edit_program,
                                 self.cluster.path(os.path.join(target, "base.mdb")),
                                 *map(str, words)],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                timeout=LIMIT_S, check=False)
        if result.returncode != 0:
            raise Failed(result.stderr.strip())
        return result.stdout.strip()

    def flip(self, target, block):
        """One bit of a block's bytes."""
        with open(self.cluster.path(os.path.join(target, "data")), "r+b") as file:
            file.seek(block * BLOCK + 1234)
            byte = file.read(1)[0]
            file.seek(block * BLOCK + 1234)
            file.write(bytes([byte ^ 4]))


def expect(result, status, *parts):
    """The status, and one line of the findings that has all parts."""
    text = result.stdout + result.stderr
    if result.returncode != status:
        raise Failed(f"status {result.returncode}, not {status}: {text}")
    if parts and not any(all(part in line for part in parts) for line in text.split("\n")):
        raise Failed(f"no line with {parts} in: {text}")


def expect_clean(result):
    expect(result, 0, ": clean")
    if result.stdout.count("\n") != 1:
        raise Failed(f"more than a summary: {result.stdout}")


def is_clean(check):
    """A cluster that is well, in use: files open, one of them without a name, and sizes owed."""
    with open(check.path("unlinked"), "wb") as unlinked, open(check.path("owed"), "wb") as owed:
        unlinked.write(os.urandom(3 * MIB))
        unlinked.flush()
        owed.write(os.urandom(2 * MIB))
        owed.flush()
        os.unlink(check.path("unlinked"))
        expect_clean(check.fsck())
        expect_clean(check.cluster.run("fsck", check.path("dir"), limit_s=LIMIT_S))
    os.unlink(check.path("owed"))
    expect_clean(check.fsck("--no-data"))
    told = json.loads(check.fsck("--json").stdout)
    if not told["clean"] or not told["finished"] or told["problems"] or told["files"] < 8:
        raise Failed(f"JSON says {told}")
    result = check.fsck("--progress")
    expect(result, 0, "checking the data of ost0")


def churn(check, number, ends, failures):
    """Makes, grows, overwrites, moves, cuts and removes files, without end."""
    folder = check.path(f"churn{number}")
    os.makedirs(folder, exist_ok=True)
    turn = 0
    try:
        while not ends.is_set():
            name = os.path.join(folder, str(turn % 7))
            with open(name, "wb") as file:
                file.write(b"a" * (turn % 5000))
                file.write(os.urandom((turn % 9) * 100 * KIB))
                file.truncate(turn % 200 * KIB)
            with open(name, "r+b") as file:
                file.write(os.urandom(BLOCK * (turn % 40)))
            os.rename(name, name + "moved")
            os.mkdir(name + "dir")
            os.rename(name + "moved", name + "dir/file")
            if turn % 3 == 0:
                os.link(name + "dir/file", name + "link")
                os.unlink(name + "link")
            os.unlink(name + "dir/file")
            os.rmdir(name + "dir")
            turn += 1
    except OSError as error:
        failures.append(f"the load got {error}")


def is_clean_under_load(check):
    """No finding while everything changes."""
    ends = threading.Event()
    failures = []
    threads = [threading.Thread(target=churn, args=(check, number, ends, failures))
               for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            expect(check.fsck(), 0, ": clean")
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    if failures:
        raise Failed(failures[0])


def is_clean_when_stopped(check):
    """Opened for the check when nothing runs, after a clean end and after a kill."""
    check.cluster.stop()
    expect_clean(check.fsck())
    check.cluster.start()
    with open(check.path("dir/small"), "r+b") as file:
        file.write(b"changed")
    check.cluster.kill()
    clusters.unmount(check.cluster.mount)
    expect_clean(check.fsck())
    check.cluster.start()
    expect_clean(check.fsck())


def row(target, how, ino, number, kind, *parts):
    """A row of the table: the edit, and what its line has to say."""
    name = ino if isinstance(ino, str) else "nobody's"

    def run(check):
        check.edit(target, how, check.inos.get(ino, ino), number)
        expect(check.fsck(), 1, f"{kind}: ", *parts)
    run.__doc__ = f"{how} of {name} on {target} is {kind}."
    return run


def flipped_bit(check):
    """A flipped bit of data is found, with the file's name; not when data are left out."""
    block = int(check.edit("ost0", "block", check.inos["big"]))
    check.flip("ost0", block)
    expect(check.fsck(), 1, "damaged-block: ", "/big)", "ost0", f"block {block}")
    expect_clean(check.fsck("--no-data"))
    told = json.loads(check.fsck("--json").stdout)
    if told["clean"] or told["problem_count"] != 1 or "big" not in told["problems"][0]["where"]:
        raise Failed(f"JSON says {told}")
    check.cluster.start()
    expect(check.fsck(), 1, "damaged-block: ", "/big)")
    check.cluster.stop()


def free_block(check):
    """A block of a file that the bitmap has as free."""
    block = int(check.edit("ost0", "block", check.inos["big"]))
    check.edit("ost0", "clear-bit", 0, block)
    expect(check.fsck(), 1, "free-block: ", "/big)", f"block {block}")


def data_behind_end(check):
    """Data behind a file's end are counted, and are no problem."""
    check.edit("mdt0", "size", check.inos["cut"], 1000)
    expect(check.fsck(), 0, "clean; 1 file has data behind the end")


def scrubbed(check):
    """A chunk of a file that power loss took back is taken away after it, and only then."""
    check.cluster.start()
    with open(check.path("last"), "wb"):
        pass
    ino = os.stat(check.path("last")).st_ino + 1000
    os.sync()
    check.cluster.kill()
    clusters.unmount(check.cluster.mount)
    check.cluster.lose_rings()
    check.edit("ost1", "orphan", ino)
    check.cluster.start()
    expect_clean(check.fsck())
    check.cluster.stop()
    if os.path.exists(check.cluster.path("in-use")):
        raise Failed("in-use is there after a clean end")
    expect_clean(check.fsck())


def moves_scrubbed(check):
    """What power loss left of small files' moves to chunks is taken away, of files that are there,
    and of files that were removed, when it had taken back what was known of the move."""
    check.cluster.start()
    with open(check.path("late"), "wb") as file:
        file.write(os.urandom(3 * MIB))
    ino = os.stat(check.path("late")).st_ino
    check.cluster.stop()
    generation = int(check.edit("ost1", "chunk-generation", ino))
    check.cluster.start()
    check.cluster.kill()
    clusters.unmount(check.cluster.mount)
    check.cluster.lose_rings()
    check.edit("ost0", "orphan", check.inos["dir/small"], generation + 1)
    check.edit("ost1", "orphan", 123456789, generation + GENERATIONS_A_START + 1000)
    check.cluster.start()
    expect_clean(check.fsck())
    check.cluster.stop()
    expect_clean(check.fsck())


@contextlib.contextmanager
def appends_lost(check):
    """Power loss that has taken the record of what the files' writers appended to them. Another
    mount that was there stands still behind it: it might be one of them, until it is evicted."""
    for name in check.appended:
        check.edit("mdt0", "size", check.inos[name], 70 * KIB)
    check.cluster.start()
    place = os.path.join(check.cluster.top, "mount-that-stops")
    os.makedirs(place, exist_ok=True)
    check.cluster.mount_apart(place)
    process = check.cluster.mount_process(place)
    try:
        os.listdir(place)
        if check.cluster.run("sync", check.cluster.directory).returncode != 0:
            raise Failed("nothing was synced")
        os.kill(process, signal.SIGSTOP)
        check.cluster.kill()
        clusters.unmount(check.cluster.mount)
        check.cluster.lose_rings()
        check.cluster.start()
        yield
    finally:
        clusters.end_process(process)
        clusters.unmount(place)


def grow(check):
    """Grows the files: what was written is in them, and behind it nothing but zeros."""
    for name, written in check.appended.items():
        end = len(written) + 100 * KIB
        if name == "big":
            with open(check.path(name), "r+b") as file:
                file.seek(end - 1)
                file.write(b"x")
        else:
            os.truncate(check.path(name), end)
        with open(check.path(name), "rb") as file:
            data = file.read()
        behind = data[len(written):].rstrip(b"x")
        if data[:len(written)] != written:
            raise Failed(f"{name} has lost what was written")
        if len(data) != end or behind.strip(b"\0"):
            raise Failed(f"{name}: {len(data)} bytes, {end} expected, "
                         f"{len(behind) - behind.count(0)} of old ones behind its end")
    check.cluster.stop()
    expect_clean(check.fsck())


def grown_after_power_loss(check):
    """What a mount that has not come back may have appended is not cut off when a file grows."""
    with appends_lost(check):
        grow(check)


def size_when_opened(path):
    """As the metadata target says now, not as the kernel has remembered for a second."""
    with open(path, "rb") as file:
        return os.fstat(file.fileno()).st_size


def told_after_power_loss(check):
    """What a mount that died may have appended becomes part of the files once it is cut off."""
    with open(check.cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write("[limits]\nsession_timeout_ms = 5000\n")
    with appends_lost(check):
        ends = time.monotonic() + LIMIT_S
        while any(size_when_opened(check.path(name)) != len(written)
                  for name, written in check.appended.items()):
            if time.monotonic() > ends:
                raise Failed("the sizes are as they were")
            time.sleep(0.01)
        grow(check)


def spared(check):
    """Chunks whose inode is gone in another way are named after an unclean end, and stay."""
    check.edit("ost1", "orphan", 123456789)
    check.cluster.start()
    check.cluster.kill()
    clusters.unmount(check.cluster.mount)
    check.cluster.lose_rings()
    check.cluster.start()
    expect(check.fsck(), 1, "orphan-chunk: ", "inode 123456789")
    with open(check.cluster.path("shoal.log"), encoding="utf-8") as file:
        if "ost1 has chunks of inode 123456789," not in file.read():
            raise Failed("shoal.log does not name what stays")
    check.cluster.stop()


def is_clean_with_smaller_limit(check):
    """A data file that is larger than data_bytes_max allows by now: all of it is looked at."""
    conf = check.cluster.path("shoal.conf")
    with open(conf, encoding="ascii") as file:
        text = file.read()
    blocks = os.urandom(40 * MIB)
    with open(check.path("large"), "wb") as file:
        file.write(blocks)
    check.cluster.stop()
    smaller = text.replace(f"data_bytes_max = {LIMIT}", f"data_bytes_max = {16 * MIB}")
    try:
        with open(conf, "w", encoding="ascii") as file:
            file.write(smaller)
        check.cluster.start()
        expect_clean(check.fsck())
        with open(check.path("large"), "rb") as file:
            if smaller == text or file.read() != blocks:
                raise Failed("other bytes come back, or the limit is as it was")
        os.unlink(check.path("large"))
        check.cluster.stop()
    finally:
        with open(conf, "w", encoding="ascii") as file:
            file.write(text)
    check.cluster.start()


CLEAN = [is_clean, is_clean_under_load, is_clean_when_stopped, is_clean_with_smaller_limit]
SPOILT = [
    flipped_bit,
    free_block,
    data_behind_end,
    grown_after_power_loss,
    told_after_power_loss,
    scrubbed,
    moves_scrubbed,
    spared,
    row("ost0", "drop-head", "big", 0, "index", "/big)", "ost0"),
    row("ost0", "drop-segment", "big", 0, "index", "/big)", "ost0"),
    row("ost1", "drop-segment", "big", 0, "lost-blocks", "ost1"),
    row("ost1", "orphan", 123456789, 0, "orphan-chunk", "inode 123456789", "ost1"),
    row("ost0", "share", "big", 0, "shared-block", "/big)"),
    row("ost1", "spoil-chunk", "big", 0, "index", "/big)", "ost1"),
    row("ost1", "promised", "big", 9, "promised", "ost1", "9 blocks"),
    row("mdt0", "spoil-inode", "dir/medium", 0, "bad-row", "mdt0"),
    row("mdt0", "drop-inode", "dir/small", 0, "missing-inode", "small", "(/dir)"),
    row("mdt0", "drop-inode", "dir/medium", 0, "orphan-chunk", "ost"),
    row("mdt0", "drop-name", "dir/sub/deep", 0, "orphan", "inode "),
    row("mdt0", "drop-name", "dir/sub", 0, "entry-count", "(/dir)"),
    row("mdt0", "drop-partition", "dir/sub", 0, "lost-directory", "(/dir/sub)"),
    row("mdt0", "links", "big", 7, "link-count", "/big)"),
    row("mdt0", "count", "dir", 7, "entry-count", "(/dir)"),
    row("mdt0", "parent", "dir/sub", 1, "wrong-parent", "inode "),
    row("mdt0", "generation", "big", 77777777, "orphan-chunk", "/big)", "another generation"),
    row("mdt0", "inline", "big", 0, "inline", "/big)"),
]


def refusals(shoal, cluster):
    """(what, words, status, part of the line) of bad input."""
    foreign = os.path.join(cluster.top, "foreign")
    os.mkdir(foreign)
    file = os.path.join(cluster.top, "file")
    for path in (file, os.path.join(foreign, "file")):
        with open(path, "w", encoding="ascii") as made:
            made.write("text")
    newer = os.path.join(cluster.top, "newer")
    os.mkdir(newer)
    with open(os.path.join(newer, "shoal.conf"), "w", encoding="ascii") as made:
        made.write("[cluster]\nformat = 99\n")
    return [
        ("no such directory", [os.path.join(cluster.top, "missing")], 1, "no such file"),
        ("a directory that is not ours", [foreign], 1, "neither a Shoal directory"),
        ("a file", [file], 1, "neither a Shoal directory"),
        ("a newer format", [newer], 1, "format"),
        ("an unknown option", [cluster.directory, "--repair"], 2, "no option --repair"),
        ("two directories", [cluster.directory, foreign], 2, foreign),
    ]


def refused(shoal, cluster):
    """How many rows of bad input passed and failed: one line, the status, nothing changed."""
    passed = failed = 0
    for what, words, status, part in refusals(shoal, cluster):
        before = contents(cluster.top)
        result = cluster.run("fsck", *words, limit_s=LIMIT_S)
        lines = result.stderr.strip().split("\n")
        good = (result.returncode == status and part in lines[0] and not result.stdout and
                len(lines) == 1 and contents(cluster.top) == before)
        passed += good
        failed += not good
        if not good:
            print(f"FAILED: {what}: status {result.returncode}, {result.stdout}{result.stderr}")
    return passed, failed


def contents(top):
    """Names, sizes and times of all below."""
    return {os.path.join(folder, name): (os.lstat(os.path.join(folder, name)).st_size,
                                         os.lstat(os.path.join(folder, name)).st_mtime_ns)
            for folder, _, files in os.walk(top) for name in files}


def run_row(function, check):
    try:
        function(check)
        return True
    except Failed as failure:
        print(f"FAILED: {function.__doc__} {failure}", flush=True)
        return False


def clean_up(cluster):
    """So that the next row does not fail for this one."""
    if cluster.process() is not None:
        cluster.kill()
    clusters.unmount(cluster.mount)
    cluster.lose_rings()


def run(shoal, edit):
    """The rows on one cluster: those that spoil it find it as it was, each time."""
    results = []
    with clusters.Cluster(shoal, 2, {"data_bytes_max": LIMIT, "disk_log_bytes": 32 * MIB}
                          ) as cluster:
        check = Check(cluster, edit)
        cluster.start()
        check.fill()
        results += [run_row(function, check) for function in CLEAN]
        cluster.stop()
        kept = os.path.join(cluster.top, "kept")
        shutil.copytree(cluster.directory, kept)
        for function in SPOILT:
            shutil.rmtree(cluster.directory)
            shutil.copytree(kept, cluster.directory)
            results.append(run_row(function, check))
            if not results[-1]:
                clean_up(cluster)
        passed, failed = refused(shoal, cluster)
    return passed + results.count(True), failed + results.count(False)


def main():
    if len(sys.argv) != 3:
        print(__doc__.split("\n")[2], file=sys.stderr)
        return 2
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, 1 skipped")
        return 0
    passed, failed = run(sys.argv[1], os.path.abspath(sys.argv[2]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
