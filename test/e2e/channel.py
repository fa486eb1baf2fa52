#!/usr/bin/python3
"""What the requests of a mount come by: `shoal status` tells it of each mount, and where io_uring
was wanted and can't be had a line of the log says why, and the mount is served by /dev/fuse. And
what the data files of storage targets are read and written by.

Usage: channel.py SHOAL [TEST...]

SHOAL is the command. The last line counts.
"""

import contextlib
import errno
import json
import mmap
import os
import re
import subprocess
import sys
import threading
import time

import cluster as clusters
from cluster import Failed
from driver import Skipped, drive

WAYS = ("inside", "apart")
LOGS = {"inside": "shoal.log", "apart": "mount.log"}
LIMIT_S = 60
ASIDE_WAIT_S = 20
FORGOTTEN = 6
CONNECTIONS, MANY_MOUNTS, MANY_READS = 64, 18, 2000
PIECE_BYTES = 1 << 20


def configure(cluster, way, channel, *more):
    """Of [mount] in shoal.conf, and what may stand in other sections."""
    with open(cluster.path("shoal.conf"), encoding="ascii") as file:
        text = re.sub(r"(?ms)^\[mount\]$.*\Z", "", file.read())
    lines = [text, "[mount]", f"mount = {way}", f"channel = {channel}", *more]
    with open(cluster.path("shoal.conf"), "w", encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


def status_of(cluster):
    """Of its only mount: the row of JSON, and the lines about it."""
    result = cluster.run("status", cluster.directory, "--json")
    mounts = json.loads(result.stdout)["mounts"] if result.returncode == 0 else []
    text = cluster.run("status", cluster.directory).stdout
    if len(mounts) != 1 or f"mounted    {cluster.mount}\n" not in text:
        raise Failed(f"status: {result.stdout}{result.stderr}{text}")
    return mounts[0], text


def expect_channel(cluster, way, name, why):
    """why: "" where nothing else was wanted, else a part of the reason."""
    row, text = status_of(cluster)
    if row["channel"] != name or why not in (row["channel_why"] or "") or \
            bool(row["channel_why"]) != bool(why):
        raise Failed(f"{way}: status --json tells {row}")
    said = f"\nchannel    {name}" + (f": {row['channel_why']}" if why else "") + "\n"
    if said not in text:
        raise Failed(f"{way}: status tells {text}")
    with open(cluster.path(LOGS[way]), encoding="utf-8") as file:
        lines = [line for line in file if "requests come by /dev/fuse: " in line]
    if len(lines) != bool(why) or why not in "".join(lines):
        raise Failed(f"{way}: the log says {lines}")


def uring_needed():
    if not clusters.uring_enable():
        raise Skipped(f"{clusters.ENABLE_URING}, which is Linux 6.14's")


def what_was_asked_for_is_told(cluster, way):
    """By itself, without a reason."""
    uring_needed()
    for channel, name in (("dev", "/dev/fuse"), ("uring", "io_uring"), ("any", "io_uring")):
        configure(cluster, way, channel)
        cluster.start()
        expect_channel(cluster, way, name, "")
        cluster.stop()


def too_few_requests_are_told(cluster, way):
    """A mount with fewer than io_uring needs; it serves all the same. Who asks for io_uring and
    nothing else gets the reason instead of a mount."""
    uring_needed()
    few = f"[limits]\nmount_requests_max = {2 * (os.cpu_count() or 1) + 1}"
    configure(cluster, way, "any", few)
    cluster.start()
    expect_channel(cluster, way, "/dev/fuse", "set mount_requests_max")
    for number in range(100):
        with open(os.path.join(cluster.mount, str(number)), "wb") as file:
            file.write(b"x")
    if len(os.listdir(cluster.mount)) != 100:
        raise Failed("files are missing")
    cluster.stop()
    configure(cluster, way, "uring", few)
    result = cluster.run("up", cluster.directory, "--mount", cluster.mount)
    if result.returncode != 1 or "set mount_requests_max" not in result.stderr or \
            os.path.ismount(cluster.mount):
        raise Failed(f"{way}, uring: {result.returncode}, {result.stderr.strip()}")


def up_beneath(cluster, setting):
    """The file lies over the kernel's setting, for this start alone."""
    script = f"mount --bind {setting} {clusters.ENABLE_URING} && exec \"$@\""
    result = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh",
         cluster.shoal, "up", cluster.directory, "--mount", cluster.mount],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return result.returncode, result.stdout, result.stderr


def a_setting_that_is_left_is_told(cluster, way):
    """Where the kernel does not offer it, and the mount may not change that: it is served by
    /dev/fuse. Who asks for io_uring and nothing else gets the reason instead of a mount."""
    setting = os.path.join(cluster.top, "setting")
    with open(setting, "w", encoding="ascii") as file:
        file.write("N\n")
    if not os.path.exists(clusters.ENABLE_URING):
        raise Skipped(clusters.ENABLE_URING)
    configure(cluster, way, "any", "tune = no")
    code, _, error = up_beneath(cluster, setting)
    if code != 0:
        raise Failed(f"up: {error}")
    expect_channel(cluster, way, "/dev/fuse", "is N, and tune=no leaves it")
    cluster.stop()
    configure(cluster, way, "uring", "tune = no")
    code, _, error = up_beneath(cluster, setting)
    if code != 1 or "is N, and tune=no leaves it as it is" not in error or \
            error.count("\n") != 1 or os.path.ismount(cluster.mount):
        raise Failed(f"{way}, uring: {code}, {error}")
    with open(setting, encoding="ascii") as file:
        if file.read() != "N\n":
            raise Failed("tune = no has changed the setting")


# A filter of seccomp(2), then exec: each io_uring_setup, 425 on all machines, is answered EPERM.
REFUSING = """
import ctypes, os, struct, sys
LOAD_NUMBER, EQUAL, ANSWER, ALLOW, ERRNO = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050000
steps = [(LOAD_NUMBER, 0, 0, 0), (EQUAL, 0, 1, 425), (ANSWER, 0, 0, ERRNO | 1),
         (ANSWER, 0, 0, ALLOW)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(code)))
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) != 0:
    sys.exit(f"no seccomp: {os.strerror(ctypes.get_errno())}")
if libc.syscall(425, 1, None) != -1 or ctypes.get_errno() != 1:
    sys.exit("no seccomp: io_uring_setup is not refused")
os.execv(sys.argv[1], sys.argv[1:])
"""


def up_without_uring(cluster):
    """No process of this start gets io_uring."""
    result = subprocess.run(
        [sys.executable, "-c", REFUSING, cluster.shoal, "up", cluster.directory, "--mount",
         cluster.mount],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if result.stderr.startswith("no seccomp"):
        raise Skipped(f"seccomp: {result.stderr.strip()}")
    return result.returncode, result.stderr


def a_process_without_uring_is_told(cluster, way):
    """All of it works by system calls that block. Who asks for io_uring and nothing else gets the
    reason instead of a mount."""
    uring_needed()
    why = "this process gets no io_uring for it"
    configure(cluster, way, "any")
    code, error = up_without_uring(cluster)
    if code != 0:
        raise Failed(f"up: {error}; the log ends: {cluster.log_end()}")
    expect_channel(cluster, way, "/dev/fuse", why)
    expect_ways(cluster, "copies" if in_memory(cluster.directory) else "threads", "threads")
    data = os.urandom(3 * PIECE_BYTES + 1)
    path = os.path.join(cluster.mount, "file")
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    cluster.stop()
    code, error = up_without_uring(cluster)
    with open(path, "rb") as file:
        if code != 0 or file.read() != data:
            raise Failed(f"up: {error}; or the file is not as it was written")
    cluster.stop()
    configure(cluster, way, "uring")
    code, error = up_without_uring(cluster)
    if code != 1 or why not in error or error.count("\n") != 1 or os.path.ismount(cluster.mount):
        raise Failed(f"{way}, uring: {code}, {error}")


def threads_that_stand_aside_are_counted(cluster, way):
    """One program that asks one thing after another is served so, where that is worth it."""
    configure(cluster, way, "dev")
    cluster.start()
    row, _ = status_of(cluster)
    if not row["may_stand_aside"]:
        raise Skipped("the right to stand aside")
    end_s = time.monotonic() + ASIDE_WAIT_S
    text = ""
    while row["served_aside"] == 0 and time.monotonic() < end_s:
        for number in range(1000):
            os.close(os.open(os.path.join(cluster.mount, str(number)), os.O_CREAT | os.O_WRONLY))
        # What a process of its own has counted comes to the daemon a while later.
        row, text = status_of(cluster)
    if row["served_aside"] == 0:
        raise Skipped("CPUs that are dear to wake")
    if row["stood_aside"] < 1 or \
            not re.search(r"stood aside [1-9][0-9]* times, and served [1-9]", text):
        raise Failed(f"status tells {row}, {text}")


def removed_files_are_heard_of(cluster, way):
    """What the kernel has forgotten comes by /dev/fuse also where all else comes by io_uring."""
    uring_needed()
    configure(cluster, way, "uring")
    cluster.start()
    end_s = time.monotonic() + LIMIT_S
    heard = 0
    for number in range(FORGOTTEN):
        path = os.path.join(cluster.mount, str(number))
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.unlink(path)
        # Each one by itself, when the thread that reads them sleeps behind the one before.
        while heard <= number and time.monotonic() < end_s:
            told = json.loads(cluster.run("stats", cluster.directory, "--json").stdout)
            heard = sum(row["count"] for row in told["operations"]
                        if row["target"] == "mount" and "FORGET" in row["operation"])
    if heard < FORGOTTEN:
        raise Failed(f"of {FORGOTTEN} files removed one after another {heard} were heard of")


def read_whole(path, times, done):
    """By itself: one read after another, past the kernel's cache."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, PIECE_BYTES) as space:
            for number in range(times):
                at = number * PIECE_BYTES % os.fstat(file).st_size
                if os.preadv(file, [space], at) != PIECE_BYTES:
                    return
                done.append(number)
    finally:
        os.close(file)


def one_program_beside_many_mounts(cluster, way):
    """The last of so many mounts that each may have fewer connections than it has threads: these
    call by one another's, and are heard also where nobody else asks anything."""
    configure(cluster, way, "dev", "[limits]", f"connections_max = {CONNECTIONS}")
    cluster.start()
    for number in range(MANY_MOUNTS):
        last = os.path.join(cluster.top, f"mount{number}")
        os.mkdir(last)
        cluster.mount_apart(last, "-o", "channel=dev")
        os.listdir(last)
    path = os.path.join(last, "large")
    with open(path, "wb") as file:
        file.write(bytes(16 * PIECE_BYTES))
    done = []
    reader = threading.Thread(target=read_whole, args=(path, MANY_READS, done), daemon=True)
    reader.start()
    before = -1
    while reader.is_alive() and len(done) > before:
        before = len(done)
        reader.join(LIMIT_S / 3)
    if reader.is_alive() or len(done) < MANY_READS:
        # Any other request is heard by whoever sleeps, so that the mount can be taken away.
        for number in range(64):
            with contextlib.suppress(OSError):
                os.stat(os.path.join(last, f"nothing{number}"))
        raise Failed(f"one read hangs behind {len(done)} others")


def expect_ways(cluster, read_by, written_by):
    """Of the data file of each storage target."""
    told = json.loads(cluster.run("status", cluster.directory, "--json").stdout)["targets"]
    rows = [row for row in told if row["kind"] == "ost"]
    text = cluster.run("status", cluster.directory).stdout
    direct = takes_direct(cluster.directory)
    want = {"data_read_by": read_by, "data_written_by": written_by, "data_direct": direct}
    line = rf"(?m)^{{}} +{read_by} +{written_by} +{'yes' if direct else 'no'}$"
    for row in rows:
        if not want.items() <= row.items() or not re.search(line.format(row["id"]), text):
            raise Failed(f"for {want} status tells {row}, {text}")
    if not rows:
        raise Failed("status tells of no storage target")


def takes_direct(folder):
    try:
        os.close(os.open(os.path.join(folder, "ost0/data"), os.O_RDONLY | os.O_DIRECT))
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return False
    return True


def in_memory(folder):
    words = ["stat", "-f", "-c", "%T", folder]
    return subprocess.check_output(words, text=True).strip() in ("tmpfs", "ramfs")


def what_data_comes_by_is_told(cluster, _):
    """On a disk by io_uring; what lies in memory is copied by who reads it."""
    if not in_memory("/dev/shm"):
        raise Skipped("a file system in memory at /dev/shm")
    cluster.start()
    expect_ways(cluster, "copies" if in_memory(cluster.directory) else "io_uring", "io_uring")
    with clusters.Cluster(sys.argv[1], within="/dev/shm") as other:
        other.start()
        expect_ways(other, "copies", "io_uring")


ONCE = (what_data_comes_by_is_told, removed_files_are_heard_of, one_program_beside_many_mounts)
BOTH_WAYS = (what_was_asked_for_is_told, too_few_requests_are_told, a_setting_that_is_left_is_told,
             a_process_without_uring_is_told, threads_that_stand_aside_are_counted)
TESTS = [(test, "inside") for test in ONCE] + [(test, way) for test in BOTH_WAYS for way in WAYS]


def main():
    def play(of):
        test, way = of
        with clusters.Cluster(sys.argv[1]) as cluster:
            test(cluster, way)

    return drive(__doc__, TESTS, play, name=lambda of: f"{of[0].__name__} {of[1]}")


sys.exit(main())
