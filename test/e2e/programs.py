#!/usr/bin/python3
"""Programs that people run, on a mount: what they leave there is compared, and timed.

Usage: programs.py SHOAL [--full] [NAME]

--full takes the kernel's source (Debian's linux-source) instead of a small tree of /usr, and
1,000,000 entries in one directory instead of 100,000. NAME runs the rows whose name begins so. The
last line counts the rows.
"""

import glob
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import time

import cluster as clusters
from cluster import GIB, MIB

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
# Modules of perl, which git brings along: 1,200 files, symbolic links among them.
SMALL_TREE = "/usr/share/perl"
KERNEL = "/usr/src/linux-source-*.tar.xz"
LIMIT_S = 1800
COUNT_LIMIT_S = 20
SIZES = {"mdt_ring_bytes": 8 * MIB, "ost_ring_bytes": 4 * MIB, "ost_ring_data_bytes": 16 * MIB,
         "disk_log_bytes": 128 * MIB, "mdt_changes_bytes": 256 * MIB, "ost_changes_bytes": 64 * MIB,
         "base_memory_bytes": GIB, "data_bytes_max": 4 * GIB}
ROWS = []


def row(prepare):
    ROWS.append((prepare.__name__.replace("_", "-"), prepare))
    return prepare


class Place:
    """A cluster that is mounted, a folder on the mount for this row, one on the local disk."""

    def __init__(self, cluster, name, full):
        self.cluster = cluster
        self.full = full
        self.here = os.path.join(cluster.mount, name)
        self.local = os.path.join(cluster.top, "local-" + name)
        self.times = []
        os.mkdir(self.here)
        os.mkdir(self.local)

    def path(self, name):
        return os.path.join(self.here, name)

    def run(self, *words, shell=False):
        """What the command prints; a failure of it is one of ours."""
        try:
            result = subprocess.run(words[0] if shell else words, shell=shell, cwd=self.here,
                                    stdin=subprocess.DEVNULL, text=True, timeout=LIMIT_S,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        except subprocess.TimeoutExpired:
            raise clusters.Failed(f"{words[0]} did not end in {LIMIT_S} s") from None
        if result.returncode != 0:
            said = " | ".join(result.stdout.strip().split("\n")[-5:])
            raise clusters.Failed(f"{' '.join(words)}: status {result.returncode}: {said}")
        return result.stdout

    def timed(self, what, *words, **options):
        started = time.monotonic()
        output = self.run(*words, **options)
        self.times.append(f"{what} {time.monotonic() - started:.1f} s")
        return output

    def tree(self):
        """A real tree on the local disk."""
        if not self.full:
            return SMALL_TREE
        archives = sorted(glob.glob(KERNEL))
        if not archives:
            raise clusters.Failed("install linux-source, whose archive is used")
        self.run("tar", "xf", archives[-1], "-C", self.local)
        return os.path.join(self.local, os.listdir(self.local)[0])

    def cold(self):
        """What is read from now on comes from the daemon, which has started anew."""
        self.cluster.stop()
        self.cluster.start()

    def takes(self, name, used):
        """What stat says: the daemon counts behind the last close where a size was set, and the
        kernel keeps attributes for a second."""
        end_s = time.monotonic() + COUNT_LIMIT_S
        while (said := os.stat(self.path(name)).st_blocks * 512) != used:
            self.must(time.monotonic() < end_s, f"{name} takes {said} bytes, not {used}")
            time.sleep(0.02)

    def must(self, holds, what):
        if not holds:
            raise clusters.Failed(what)


@row
def tar(place):
    """Out of an archive, compared cold, into an archive again."""
    tree = place.tree()
    archive = os.path.join(place.local, "archive")
    place.run("tar", "cf", archive, "-C", os.path.dirname(tree), os.path.basename(tree))
    place.timed("tar x", "tar", "xf", archive)
    place.cold()
    ours = place.path(os.path.basename(tree))
    place.timed("diff -r", "diff", "-r", "--no-dereference", tree, ours)
    place.timed("tar d", "tar", "df", archive)
    place.timed("tar c", "tar", "cf", place.path("again.tar"), os.path.basename(tree))
    place.run("tar", "df", place.path("again.tar"), "-C", os.path.dirname(tree))


@row
def git(place):
    """This repository: cloned, checked, repacked, checked out."""
    safe = ["-c", "safe.directory=*"]
    place.timed("clone", "git", *safe, "clone", "-q", "--no-local", ROOT, "clone")
    clone = ["git", *safe, "-C", place.path("clone")]
    place.timed("fsck", *clone, "fsck", "--full", "--strict")
    place.must(place.run(*clone, "status", "--porcelain") == "", "a fresh clone has changes")
    place.timed("gc", *clone, "gc", "-q", "--prune=now")
    place.cold()
    place.run(*clone, "fsck", "--full", "--strict")
    for name in os.listdir(place.path("clone")):
        if name != ".git":
            clusters.remove(os.path.join(place.path("clone"), name))
    place.timed("checkout", *clone, "checkout", "-q", "-f", "HEAD")
    place.must(place.run(*clone, "status", "--porcelain") == "", "a checkout has changes")


@row
def rsync(place):
    """The second time there is nothing to transfer, as times, sizes and modes were kept."""
    tree = place.tree()
    words = ["rsync", "-aH", "--itemize-changes", tree + "/", place.path("copy")]
    place.must(place.timed("first", *words) != "", "nothing was transferred")
    place.cold()
    again = place.timed("second", *words)
    place.must(again == "", f"transferred again: {again[:200]}")
    again = place.run(*words[:2], "--checksum", *words[2:])
    place.must(again == "", f"other content: {again[:200]}")


ACCOUNTS = 64
TOTAL = 1000 * ACCOUNTS
WORK_LIMIT_S = 120
READ_EVERY_S = 0.001
WRITE_EVERY_S = 0.005


def bank(path):
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def transfer_until_killed(path, writer, acknowledged):
    """Moves money, and counts what was committed: each commit is synced before."""
    connection = bank(path)
    seed = writer
    try:
        while True:
            seed = seed * 1103515245 + 12345 & 0x7fffffff
            connection.execute("BEGIN IMMEDIATE")
            for account, amount in ((seed >> 8, -7), (seed >> 16, 7)):
                connection.execute("UPDATE account SET money = money + ? WHERE id = ?",
                                   (amount, account % ACCOUNTS))
            connection.execute("INSERT INTO history (writer, number) VALUES (?, ?)",
                               (writer, acknowledged.value + 1))
            connection.execute("COMMIT")
            acknowledged.value += 1
            # sqlite waits for a lock by sleeping longer and longer: the other one needs a gap.
            time.sleep(WRITE_EVERY_S)
    except sqlite3.Error:
        pass


def read_until_killed(path, reads, wrong):
    """Never sees money between two accounts."""
    try:
        connection = bank(path)
        while True:
            total, = connection.execute("SELECT sum(money) FROM account").fetchone()
            wrong.value += total != TOTAL
            reads.value += 1
            # Leaves the writers their share where processors are few.
            time.sleep(READ_EVERY_S)
    except sqlite3.Error:
        pass


@row
def sqlite(place):
    """In WAL mode: two writers and two readers, killed while they work."""
    path = place.path("bank.db")
    connection = bank(path)
    mode, = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    place.must(mode == "wal", f"journal mode {mode}")
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, money INTEGER)")
    connection.execute("CREATE TABLE history (writer INTEGER, number INTEGER)")
    connection.executemany("INSERT INTO account VALUES (?, ?)",
                           [(id, 1000) for id in range(ACCOUNTS)])
    connection.close()
    counts = [multiprocessing.Value("q", 0) for _ in range(4)]
    wrong = multiprocessing.Value("q", 0)
    work = [multiprocessing.Process(target=transfer_until_killed, args=(path, 0, counts[0])),
            multiprocessing.Process(target=transfer_until_killed, args=(path, 1, counts[1])),
            multiprocessing.Process(target=read_until_killed, args=(path, counts[2], wrong)),
            multiprocessing.Process(target=read_until_killed, args=(path, counts[3], wrong))]
    for process in work:
        process.start()
    end_s = time.monotonic() + WORK_LIMIT_S
    # The writers wait for each other as sqlite does it, by sleeping, so one may get little.
    while (min(count.value for count in counts) < 20 or counts[0].value + counts[1].value < 150) \
            and time.monotonic() < end_s:
        time.sleep(0.02)
    place.cluster.kill()
    for process in work:
        process.join(30)
        process.kill()
        process.join()
    place.must(min(count.value for count in counts) >= 20,
               f"only {[count.value for count in counts]} transactions in {WORK_LIMIT_S} s")
    place.must(wrong.value == 0, "a reader saw half a transaction")
    place.cluster.start()
    said = place.run("sqlite3", path, "PRAGMA integrity_check").strip()
    place.must(said == "ok", f"integrity_check: {said}")
    connection = bank(path)
    total, = connection.execute("SELECT sum(money) FROM account").fetchone()
    place.must(total == TOTAL, f"{total} money, not {TOTAL}")
    for writer in range(2):
        kept, = connection.execute("SELECT max(number) FROM history WHERE writer = ?",
                                   (writer,)).fetchone()
        acknowledged = counts[writer].value
        place.must(kept in (acknowledged, acknowledged + 1),
                   f"writer {writer} was told of {acknowledged} commits, {kept} are there")
    connection.close()
    place.times.append(f"{counts[0].value + counts[1].value} commits, "
                       f"{counts[2].value + counts[3].value} reads")


@row
def fio(place):
    """Every block has the checksum it was written with, direct and from the page cache."""
    for direct in (1, 0):
        for pattern, block in (("write", "256k"), ("randwrite", "4k"), ("randwrite", "3k-70k")):
            if "-" in block and direct:
                continue
            blocks = ["--bs=" + block]
            if "-" in block:
                blocks = ["--bsrange=" + block, "--bs_unaligned"]
            name = f"{'direct' if direct else 'buffered'} {pattern} {block}"
            place.timed(name, "fio", "--name=job", f"--directory={place.here}", "--numjobs=3",
                        "--size=64m" if place.full else "--size=16m", f"--rw={pattern}", *blocks,
                        f"--direct={direct}", "--ioengine=libaio", "--iodepth=8",
                        "--fallocate=none", "--verify=crc32c", "--do_verify=1", "--verify_fatal=1",
                        "--end_fsync=1", "--invalidate=1", "--output-format=terse")
            for path in glob.glob(place.path("job*")):
                os.unlink(path)


def count_entries(path):
    return sum(len(folders) + len(files) for _, folders, files in os.walk(path))


@row
def tools(place):
    """cp, ln, mv, find, du, chmod, rm on a tree."""
    tree = place.tree()
    entries = count_entries(tree)
    place.timed("cp -a", "cp", "-a", tree, "copy")
    place.timed("cp -al", "cp", "-al", "copy", "links")
    place.run("mv", "links", "moved")
    found = place.timed("find", "find", "moved", "-mindepth", "1").count("\n")
    place.must(found == entries, f"find names {found} of {entries}")
    linked = place.run("find", "copy", "-type", "f", "-links", "-2").count("\n")
    place.must(linked == 0, f"{linked} files have no second link")
    size, both = (int(place.run("du", "-s", "--apparent-size", "-B1", *names).split()[0])
                  for names in (["copy"], ["copy", "moved"]))
    place.must(size > 0 and size == both, f"du counts {size} for the tree, {both} with its links")
    place.run("chmod", "-R", "go-rwx", "copy")
    place.run("find", "moved", "-type", "f", "-perm", "/077", "-exec", "false", "{}", "+")
    place.timed("rm -rf", "rm", "-rf", "copy")
    place.cold()
    place.run("diff", "-r", "--no-dereference", tree, "moved")
    place.timed("rm -rf", "rm", "-rf", "moved")
    place.must(os.listdir(place.here) == [], "something stayed")


# cp looks for zeros a buffer at a time, which is as large as stat says (st_blksize).
PIECE = MIB
PIECES = 100
WRITTEN_OF = 10


def holes_make(path, pieces):
    """Every tenth of these is written; the size is set at last."""
    with open(path, "wb") as file:
        for number in range(0, PIECES, WRITTEN_OF):
            file.seek(number * PIECE)
            file.write(pieces[number])
        file.truncate(PIECES * PIECE)


@row
def sparse(place):
    """du, cp, tar and rsync on files with holes: what they take, and what is in them."""
    local = os.path.join(place.local, "holes")
    pieces = {number: os.urandom(PIECE) for number in range(0, PIECES, WRITTEN_OF)}
    used = len(pieces) * PIECE
    holes_make(local, pieces)
    holes_make(place.path("ours"), pieces)
    copies = {"ours": None,
              "cp": ["cp", "--sparse=always", local, "cp"],
              "again": ["cp", "--sparse=always", "ours", "again"],
              "dense": ["cp", "--sparse=never", "ours", "dense"]}
    if shutil.which("rsync"):
        copies["rsync"] = ["rsync", "-S", "ours", "rsync"]
    for name, words in copies.items():
        if words:
            place.timed(name, *words)
        place.run("cmp", local, name)
        want = PIECES * PIECE if name == "dense" else used
        place.takes(name, want)
    said = int(place.run("du", "-B1", "ours").split()[0])
    place.must(said == used, f"du counts {said} bytes, not {used}")
    place.timed("tar -S", "tar", "cSf", "archive", "ours")
    place.must(os.stat(place.path("archive")).st_size < 2 * used, "the archive has the holes")
    os.rename(place.path("ours"), place.path("before"))
    place.timed("tar x", "tar", "xSf", "archive")
    place.run("cmp", local, "ours")
    place.cold()
    for name in (*copies, "before"):
        place.takes(name, PIECES * PIECE if name == "dense" else used)


IMAGE = 96 * MIB


def written_by_dd(place, image):
    """Pieces of any size at any place of an image that truncate has made, as dd writes them; it is
    compared with one on the local disk."""
    local = os.path.join(place.local, "raw")
    source = os.path.join(place.local, "source")
    with open(source, "wb") as file:
        file.write(os.urandom(2 * MIB))
    used = 0
    for path in (local, image):
        place.run("truncate", "-s", str(IMAGE), path)
    for block, seek, count, flag in ((4096, 1, 1, ""), (65536, 16, 16, "oflag=direct"),
                                     (3000, 20000, 100, ""), (MIB, 90, 2, ""),
                                     (512, 131072, 9, "conv=notrunc,fsync")):
        first, end = block * seek // 4096, -(-block * (seek + count) // 4096)
        used += (end - first) * 4096
        for path in (local, image):
            # The direct one is of the mount: the local disk may want other blocks.
            words = [flag] if flag and (path == image or "direct" not in flag) else []
            place.run("dd", f"if={source}", f"of={path}", f"bs={block}", f"seek={seek}",
                      f"count={count}", "conv=notrunc", "status=none", *words)
        place.run("cmp", local, image)
    place.takes(image, used)


@row
def image(place):
    """A disk image: truncate and dd; a file system in it, filled, checked, made larger."""
    written_by_dd(place, "raw")
    place.times.append(f"{IMAGE // MIB} MiB by dd")
    if not shutil.which("mkfs.ext4") or not shutil.which("e2fsck"):
        place.times.append("no mkfs.ext4")
    else:
        tree = place.tree()
        size = GIB * 4 if place.full else IMAGE
        place.run("truncate", "-s", str(size), "disk")
        place.timed("mkfs.ext4 -d", "mkfs.ext4", "-q", "-F", "-d", tree, "disk")
        place.run("e2fsck", "-fn", "disk")
        place.run("truncate", "-s", str(size + 32 * MIB), "disk")
        if shutil.which("resize2fs"):
            place.timed("resize2fs", "resize2fs", "disk")
        place.cold()
        place.timed("e2fsck", "e2fsck", "-fn", "disk")
        said = int(place.run("du", "-B1", "disk").split()[0])
        place.must(0 < said < size, f"du counts {said} bytes of an image of {size}")
    if not shutil.which("qemu-img"):
        place.times.append("no qemu-img")
        return
    place.run("qemu-img", "convert", "-f", "raw", "-O", "qcow2", "raw", "qcow2")
    place.run("qemu-img", "check", "qcow2")
    place.run("qemu-img", "convert", "-f", "qcow2", "-O", "raw", "qcow2", "again")
    place.timed("qemu-img", "qemu-img", "compare", "-f", "raw", "-F", "raw", "raw", "again")
    place.run("cmp", "raw", "again")


@row
def ranges(place):
    """fallocate of util-linux: what it leaves there, and what the file takes."""
    want = bytearray()
    path = place.path("file")

    def must_be(what, used):
        with open(path, "rb") as file:
            place.must(file.read() == want, f"other bytes after fallocate {what}")
        place.takes("file", used)

    def change(used, *words):
        place.run("fallocate", *words, "file")
        must_be(" ".join(words), used)

    want += bytes(8 * MIB)
    change(0, "-l", str(8 * MIB))
    want[:4 * MIB] = os.urandom(4 * MIB)
    with open(path, "r+b") as file:
        file.write(want[:4 * MIB])
    must_be("and a write", 4 * MIB)
    change(4 * MIB, "-n", "-o", str(6 * MIB), "-l", str(8 * MIB))
    want[MIB:2 * MIB] = bytes(MIB)
    change(3 * MIB, "-p", "-o", str(MIB), "-l", str(MIB))
    want[3 * MIB - 100:3 * MIB + 100] = bytes(200)
    change(3 * MIB, "-p", "-o", str(3 * MIB - 100), "-l", "200")
    want[2 * MIB:2 * MIB + 65536] = bytes(65536)
    change(3 * MIB - 65536, "-z", "-o", str(2 * MIB), "-l", "65536")
    want += bytes(MIB)
    change(3 * MIB - 65536, "-z", "-o", str(8 * MIB), "-l", str(MIB))
    change(3 * MIB - 65536, "-z", "-n", "-o", str(9 * MIB), "-l", str(MIB))
    with open(path, "r+b") as file:
        file.seek(5 * MIB)
        file.write(bytes(MIB))
    must_be("and zeros", 4 * MIB - 65536)
    change(3 * MIB - 65536, "-d")
    place.cold()
    must_be("and a start", 3 * MIB - 65536)
    place.times.append("-l, -n, -p, -z, -d")


@row
def entries(place):
    """Very many names in one directory."""
    count = 1_000_000 if place.full else 100_000
    folder = place.path("many")
    os.mkdir(folder)
    started = time.monotonic()
    for number in range(count):
        os.close(os.open(f"{folder}/{number:07d}", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    seconds = time.monotonic() - started
    place.times.append(f"create {seconds:.1f} s ({count / seconds:.0f}/s)")
    place.cold()
    names = place.timed("ls -f", "ls", "-f", "many").split("\n")[:-1]
    place.must(len(names) == count + 2 and len(set(names)) == len(names),
               f"{len(set(names))} different of {len(names)} names, not {count + 2}")
    place.timed("ls -l", "ls -l many | tail -n 1", shell=True)
    found = place.timed("find", "find", "many", "-type", "f", "-name", "*7").count("\n")
    place.must(found == count // 10, f"find names {found}, not {count // 10}")
    place.timed("rm -rf", "rm", "-rf", "many")
    place.must(os.listdir(place.here) == [], "something stayed")


def run_row(cluster, name, do, full):
    started = time.monotonic()
    place = Place(cluster, name, full)
    problem = None
    try:
        do(place)
        clusters.remove(place.here)
    except (clusters.Failed, OSError) as failed:
        problem = str(failed)
    if problem is None and cluster.process() is None:
        problem = f"the daemon died; the log ends: {cluster.log_end()}"
    verdict = f"FAILED: {problem}" if problem else ", ".join(place.times)
    print(f"{name:8} {time.monotonic() - started:6.1f} s  {verdict}", flush=True)
    shutil.rmtree(place.local, ignore_errors=True)
    return problem is None


def main():
    words = [word for word in sys.argv[1:] if word != "--full"]
    if len(words) not in (1, 2):
        print(__doc__.split("\n")[2], file=sys.stderr)
        return 2
    rows = [(name, do) for name, do in ROWS if len(words) == 1 or name.startswith(words[1])]
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, {len(rows)} skipped")
        return 0
    passed = 0
    for name, do in rows:
        try:
            with clusters.Cluster(words[0], sizes=SIZES) as cluster:
                cluster.start()
                passed += run_row(cluster, name, do, "--full" in sys.argv)
        except clusters.Failed as failed:
            print(f"{name:8} FAILED: {failed}", flush=True)
    print(f"{passed} passed, {len(rows) - passed} failed")
    return 0 if passed == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
