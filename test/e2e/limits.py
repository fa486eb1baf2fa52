#!/usr/bin/python3
"""Limits that a user can reach, brought about through a mount: while one holds each call has its
own answer and nothing hangs; through a clean stop, a kill and a start with the setting made smaller
it is so still; and once it has ended everything goes on. test/house/limits.def has the others.

Usage: limits.py SHOAL ATTACK [TEST...]

SHOAL is the command, ATTACK the program of attack.c. The last line counts.
"""

import contextlib
import errno
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import threading
import time

import cluster as clusters
from cluster import KIB, MIB, Failed
from driver import drive
from files_load import wait_until

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
# No answer takes longer while a limit holds, and when it has ended all goes on within the other.
ANSWER_LIMIT_S = 5
# That runs nothing else.
THREADS_USER = 64321
AGAIN_LIMIT_S = 20
SMALL = {"mdt_ring_bytes": MIB, "ost_ring_bytes": MIB, "disk_log_bytes": 8 * MIB,
         "mdt_changes_bytes": 8 * MIB, "ost_changes_bytes": 8 * MIB}


def expect(condition, what):
    if not condition:
        raise Failed(what)


def answer(do, *words):
    """The errno of a call that must not hang; 0: it succeeds."""
    return clusters.answer(ANSWER_LIMIT_S, do, *words)


def refused(number, do, *words):
    got = answer(do, *words)
    expect(got == number, f"{do.__name__} answers {errno.errorcode.get(got, got)}, not "
                          f"{errno.errorcode[number]}")


def goes(do, *words):
    got = answer(do, *words)
    expect(got == 0, f"{do.__name__} answers {errno.errorcode.get(got, got)}")


def again(do, *words):
    """What goes on within a time, as its limit has ended."""
    end = time.monotonic() + AGAIN_LIMIT_S
    while (got := answer(do, *words)) != 0:
        expect(time.monotonic() < end, f"{do.__name__} still answers {errno.errorcode[got]}")
        time.sleep(0.05)


def set_to(cluster, key, value):
    """Sets a key of shoal.conf, which may be there already."""
    section = "limits" if not key.endswith("_bytes") and key != "data_bytes_max" else "sizes"
    with open(cluster.path("shoal.conf"), encoding="ascii") as file:
        text = file.read()
    text, count = re.subn(rf"^{key} = .*$", f"{key} = {value}", text, flags=re.M)
    if count == 0 and f"[{section}]\n" in text:
        text = text.replace(f"[{section}]\n", f"[{section}]\n{key} = {value}\n")
    elif count == 0:
        text += f"[{section}]\n{key} = {value}\n"
    with open(cluster.path("shoal.conf"), "w", encoding="ascii") as file:
        file.write(text)


def status(cluster):
    result = cluster.run("status", cluster.directory)
    expect(result.returncode == 0, f"status: {result.stderr.strip()}")
    return result.stdout


def is_full(cluster, target):
    """status says since when its log waits for room below."""
    return re.search(rf"^{target} .* full: ENOSPC since", status(cluster), flags=re.M) is not None


def targets(cluster):
    """Name -> its row of status --json."""
    rows = json.loads(cluster.run("status", cluster.directory, "--json").stdout)["targets"]
    return {row["id"]: row for row in rows}


def put(path, data):
    """A file that is on disk."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def make(path, data):
    """A file that is on disk later."""
    with open(path, "wb") as file:
        file.write(data)


def overwrite(path, data):
    with open(path, "r+b") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def content(path):
    with open(path, "rb") as file:
        return file.read()


def disk(cluster, name, megabytes):
    """A file system of its own, which goes with the cluster."""
    path = os.path.join(cluster.top, name)
    os.makedirs(path, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=755,size={megabytes}M", "none", path],
                   check=True)
    return path


def move_to(cluster, place):
    """Where the cluster lies, before its first start."""
    cluster.directory = os.path.join(place, "data")
    os.mkdir(cluster.directory)
    shutil.move(os.path.join(cluster.top, "data", "shoal.conf"), cluster.directory)


def fill(path):
    """Until nothing fits any more."""
    with open(os.path.join(path, "filler"), "wb") as file:
        for size in (MIB, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    os.write(file.fileno(), bytes(size))


def write_until_full(folder, size, most):
    """Paths of files of that size; the last one's write has met ENOSPC, and is taken away."""
    paths = []
    for number in range(most):
        path = os.path.join(folder, f"file{number}")
        got = answer(put, path, bytes([number % 251]) * size)
        if got:
            expect(got == errno.ENOSPC, f"a write answers {errno.errorcode[got]}")
            if os.path.exists(path):
                goes(os.unlink, path)
            return paths
        paths.append(path)
    raise Failed(f"{most} files of {size} bytes fill nothing")


def same(paths, size):
    for number, path in enumerate(paths):
        expect(content(path) == bytes([number % 251]) * size, f"{path} has other bytes")


# Data.

def data_is_full(cluster):
    """data_bytes_max: new data gets ENOSPC; overwriting, names and reading go on, and so does
    everything once a file was removed; also when it is made smaller than what there is."""
    set_to(cluster, "data_bytes_max", 48 * MIB)
    cluster.start()
    paths = write_until_full(cluster.mount, MIB, 100)
    expect(len(paths) > 30, f"{len(paths)} MiB fill 48 MiB")
    new = os.path.join(cluster.mount, "new")
    for turn in ("at first", cluster.stop, cluster.kill, "smaller", "larger"):
        if turn in (cluster.stop, cluster.kill):
            turn()
            cluster.start()
        elif turn == "smaller":
            cluster.stop()
            set_to(cluster, "data_bytes_max", 16 * MIB)
            cluster.start()
        elif turn == "larger":
            break
        refused(errno.ENOSPC, put, new, bytes(8 * MIB))
        goes(os.unlink, new)
        goes(overwrite, paths[0], bytes(MIB))
        goes(overwrite, paths[0], bytes([0]) * MIB)
        goes(put, new, b"small")
        goes(os.rename, new, new + "2")
        goes(os.mkdir, new)
        goes(os.rmdir, new)
        goes(os.unlink, new + "2")
        same(paths, MIB)
        room = os.statvfs(cluster.mount)
        expect(room.f_bavail * room.f_frsize <= 2 * MIB, f"{room.f_bavail} blocks are told as free")
        row = targets(cluster)["ost0"]
        expect(row["bytes_total"] >= row["bytes_limit"] and row["bytes_free"] < 8 * MIB and
               row["full_seconds"] == 0, f"status has {row}")
    for path in paths[20:]:
        goes(os.unlink, path)
    again(put, new, bytes(8 * MIB))
    cluster.stop()
    set_to(cluster, "data_bytes_max", 128 * MIB)
    cluster.start()
    goes(put, new, bytes(64 * MIB))
    same(paths[:20], MIB)


def cut_and_remove_go_on(cluster):
    """Of a target that is full, ends of files can be cut off and files removed, until the last; a
    hole can be punched; and what was promised to a file is there for it."""
    set_to(cluster, "data_bytes_max", 32 * MIB)
    cluster.start()
    promised = os.path.join(cluster.mount, "promised")
    handle = os.open(promised, os.O_RDWR | os.O_CREAT)
    os.posix_fallocate(handle, 0, 8 * MIB)
    paths = write_until_full(cluster.mount, MIB, 100)
    expect(len(paths) < 26, f"{len(paths)} MiB fit beside 8 MiB that are promised")
    goes(os.pwrite, handle, bytes(8 * MIB), 0)
    goes(os.fsync, handle)
    os.close(handle)
    goes(os.truncate, paths[-1], 4096)
    goes(os.truncate, paths[-2], 10)
    cluster.kill()
    cluster.start()
    for path in paths:
        goes(os.unlink, path)
    again(put, os.path.join(cluster.mount, "new"), bytes(16 * MIB))
    expect(content(promised) == bytes(8 * MIB), "what was promised has other bytes")


def free_bytes(path):
    room = os.statvfs(path)
    return room.f_bavail * room.f_frsize


def kept_room_is_met(cluster):
    """keep_free_bytes: new data gets ENOSPC while as much is free below; what metadata needs to
    grow is taken of it; also when it is made more than there is, until it is made less or files are
    removed."""
    keep = 64 * MIB
    place = disk(cluster, "mount-disk", 300)
    move_to(cluster, place)
    set_to(cluster, "data_bytes_max", 4096 * MIB)
    set_to(cluster, "keep_free_bytes", keep)
    cluster.start()
    paths = write_until_full(cluster.mount, 2 * MIB, 150)
    left = free_bytes(place)
    expect(len(paths) > 40 and left >= keep * 9 // 10, f"{len(paths)} files, {left} bytes left")
    new = os.path.join(cluster.mount, "new")
    for turn, end in enumerate((None, cluster.stop, cluster.kill, cluster.stop)):
        if end:
            end()
            set_to(cluster, "keep_free_bytes", keep if turn < 3 else 4 * keep)
            cluster.start()
        refused(errno.ENOSPC, put, new, bytes(16 * MIB))
        goes(os.unlink, new)
        goes(overwrite, paths[0], bytes([0]) * 2 * MIB)
        folder = os.path.join(cluster.mount, f"names{turn}")
        os.mkdir(folder)
        for number in range(500):
            goes(put if number % 100 == 0 else make, os.path.join(folder, f"{number}"), b"i" * 1800)
        if turn == 0:
            with open(cluster.path("shoal.log"), encoding="utf-8") as file:
                expect("of which keep_free_bytes keeps" in file.read(), "no line in the log")
    for turn in range(4):
        expect(len(os.listdir(os.path.join(cluster.mount, f"names{turn}"))) == 500, "lost names")
    same(paths, 2 * MIB)
    for path in paths[-10:]:
        goes(os.unlink, path)
    again(put, new, bytes(16 * MIB))
    goes(os.unlink, new)
    cluster.kill()
    set_to(cluster, "keep_free_bytes", 16 * MIB)
    cluster.start()
    again(put, new, bytes(40 * MIB))
    same(paths[:-10], 2 * MIB)


# Logs, memory and the base, on a disk that is full.

def until_full(do, most):
    """Calls do(number) until ENOSPC."""
    for number in range(most):
        got = answer(do, number)
        if got:
            expect(got == errno.ENOSPC, f"{do.__name__} answers {errno.errorcode.get(got, got)}")
            return number
    raise Failed(f"{most} calls of {do.__name__} meet no limit")


def storage_disk_is_full(cluster):
    """The disk of a storage target's log and base: writes get ENOSPC when memory or log are spent,
    `shoal status` says since when; reading goes on; and all does once there is room, through a stop
    and a kill, and a start with less memory."""
    place = disk(cluster, "data/ost0", 110)
    set_to(cluster, "data_bytes_max", 64 * MIB)
    set_to(cluster, "ost_changes_bytes", 16 * MIB)
    cluster.start()
    path = os.path.join(cluster.mount, "file")
    small = os.path.join(cluster.mount, "small")
    put(path, bytes(32 * MIB))
    goes(put, small, b"s" * 10000)
    fill(place)
    handle = os.open(path, os.O_RDWR)

    def write_one(number):
        os.pwrite(handle, b"w" * 4096, number * 8192 % (32 * MIB))

    until_full(write_one, 400000)
    os.close(handle)
    wait_until(lambda: is_full(cluster, "ost0"), "a line of status")
    for end in (cluster.stop, cluster.kill, None):
        expect(content(small) == b"s" * 10000, "a small file has other bytes")
        with open(path, "rb") as file:
            expect(len(file.read()) == 32 * MIB, "a file is shorter")
        goes(put, small + "2", b"inline")
        goes(os.unlink, small + "2")
        if end:
            end()
            if end == cluster.kill:
                set_to(cluster, "ost_changes_bytes", 8 * MIB)
            cluster.start()
    os.unlink(os.path.join(place, "filler"))
    again(overwrite, path, b"w" * MIB)
    wait_until(lambda: not is_full(cluster, "ost0"), "the end of a line of status")
    again(put, small + "3", bytes(MIB))


def metadata_disk_is_full(cluster):
    """Likewise of a metadata target: ENOSPC for names and attributes, none for reading and for
    what is removed a while longer; `shoal status` says so. Through a stop, a kill, and a start with
    less memory."""
    place = disk(cluster, "data/mdt0", 48)
    set_to(cluster, "mdt_changes_bytes", 16 * MIB)
    cluster.start()
    kept = os.path.join(cluster.mount, "kept")
    put(kept, b"k" * 100000)
    fill(place)

    def make_one(number):
        with open(os.path.join(cluster.mount, f"name{number}"), "wb") as file:
            file.write(b"inline" * 300)

    def make_directory(_):
        os.mkdir(os.path.join(cluster.mount, f"directory{len(made)}"))
        made.append(None)

    made = []
    count = until_full(make_one, 200000)
    wait_until(lambda: is_full(cluster, "mdt0"), "a line of status")
    for end in (cluster.stop, cluster.kill, None):
        until_full(make_directory, 10000)
        expect(content(kept) == b"k" * 100000, "a file has other bytes")
        expect(len(os.listdir(cluster.mount)) >= count + len(made), "names are lost")
        if end:
            end()
            if end == cluster.kill:
                set_to(cluster, "mdt_changes_bytes", 8 * MIB)
            cluster.start()
    os.unlink(os.path.join(place, "filler"))
    again(make_directory, 0)
    again(overwrite, kept, b"K" * 100000)
    wait_until(lambda: not is_full(cluster, "mdt0"), "the end of a line of status")


def all_is_full_at_a_kill(cluster):
    """The data, the disk below with all logs and bases on it, and the memory: each at its limit at
    the same time when the daemon is killed, and again when it is killed during what follows."""
    move_to(cluster, disk(cluster, "mount-disk", 200))
    set_to(cluster, "data_bytes_max", 32 * MIB)
    set_to(cluster, "keep_free_bytes", MIB)
    cluster.start()
    paths = write_until_full(cluster.mount, MIB, 100)
    fill(os.path.dirname(cluster.directory))
    folder = os.path.join(cluster.mount, "names")
    os.mkdir(folder)

    def make_one(number):
        with open(os.path.join(folder, f"name{number}"), "wb") as file:
            file.write(b"inline" * 300)

    handles = [os.open(path, os.O_RDWR) for path in paths]

    def write_one(number):
        which = number % len(paths)
        os.pwrite(handles[which], bytes([which]) * 4096, number // len(paths) % 256 * 4096)

    count = until_full(make_one, 200000)
    until_full(write_one, 400000)
    for handle in handles:
        os.close(handle)
    for _ in range(2):
        cluster.kill()
        cluster.start()
        same(paths, MIB)
        expect(len(os.listdir(folder)) >= count, "names are lost")
        until_full(make_one, 200000)
    os.unlink(os.path.join(os.path.dirname(cluster.directory), "filler"))
    again(os.mkdir, os.path.join(cluster.mount, "more"))
    again(overwrite, paths[0], bytes(MIB))
    goes(os.unlink, paths.pop())
    goes(os.unlink, paths.pop())
    again(put, os.path.join(cluster.mount, "new"), bytes(MIB))
    cluster.stop()
    cluster.start()
    same(paths, MIB)


def manager_disk_is_full(cluster):
    """The disk of the manager's log and base: sessions come and go while the log has room, through
    a stop and a kill, and all that needs no session goes on."""
    place = disk(cluster, "data/manager", 20)
    cluster.start()
    path = os.path.join(cluster.mount, "file")
    put(path, b"bytes")
    fill(place)
    more = os.path.join(cluster.top, "mount-more")
    os.mkdir(more)
    for end in (cluster.stop, cluster.kill, None):
        cluster.mount_apart(more)
        goes(overwrite, os.path.join(more, "file"), b"Bytes")
        result = cluster.run("umount", more)
        expect(result.returncode == 0, f"umount: {result.stderr.strip()}")
        goes(overwrite, path, b"bytes")
        expect(content(path) == b"bytes", "a file has other bytes")
        if end:
            end()
            cluster.start()
    os.unlink(os.path.join(place, "filler"))
    cluster.mount_apart(more)
    expect(content(os.path.join(more, "file")) == b"bytes", "another mount has other bytes")


# What a mount may have.

def open_files_made_smaller(cluster):
    """What is open stays so when the metadata target may have fewer; new ones get ENFILE until
    there are, and the mount goes on."""
    set_to(cluster, "open_files_max", 4096)
    cluster.start()
    for number in range(2200):
        with open(os.path.join(cluster.mount, f"file{number}"), "wb") as file:
            file.write(b"%d" % number)
    resource.setrlimit(resource.RLIMIT_NOFILE,
                       (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    held = [os.open(os.path.join(cluster.mount, f"file{number}"), os.O_RDWR)
            for number in range(2150)]
    another = os.path.join(cluster.mount, "file2190")

    def open_one():
        os.close(os.open(another, os.O_RDWR))

    for end in (cluster.stop, cluster.kill):
        end()
        set_to(cluster, "open_files_max", 1024)
        cluster.start()
        for number in (0, 1000, 2149):
            expect(os.pread(held[number], 10, 0) == b"%d" % number, "an open file has other bytes")
        refused(errno.ENFILE, open_one)
        goes(os.stat, another)
        goes(os.mkdir, another + "-directory")
        goes(os.rmdir, another + "-directory")
    while len(held) > 2000:
        os.close(held.pop())
    again(open_one)
    for handle in held:
        os.close(handle)


def open_files_of_a_mount(cluster):
    """Root's ENFILE, the end by a close, and likewise after a kill of the daemon."""
    set_to(cluster, "open_files_max", 1024)
    cluster.start()
    path = os.path.join(cluster.mount, "file")
    put(path, b"bytes")

    def open_one():
        os.close(os.open(path, os.O_RDONLY))

    held = []
    with contextlib.suppress(OSError):
        while len(held) < 2000:
            held.append(os.open(path, os.O_RDONLY))
    expect(900 <= len(held) <= 1024, f"{len(held)} files are open")
    for turn in range(2):
        refused(errno.ENFILE, open_one)
        refused(errno.ENFILE, os.listdir, cluster.mount)
        goes(os.stat, path)
        goes(os.rename, path, path + "2")
        goes(os.rename, path + "2", path)
        os.close(held.pop())
        goes(open_one)
        held.append(os.open(path, os.O_RDONLY))
        if turn == 0:
            cluster.kill()
            cluster.start()
            expect(os.pread(held[0], 10, 0) == b"bytes", "an open file has other bytes")
    for handle in held:
        os.close(handle)
    goes(os.listdir, cluster.mount)


def requests_wait(cluster, end):
    """More calls than a mount works on at a time, which begin while no daemon answers."""
    count = 4 * (os.cpu_count() or 1) + 16
    for number in range(count):
        put(os.path.join(cluster.mount, f"file{number}"), b"%d" % number)

    def read_one(number, answers):
        try:
            answers[number] = content(os.path.join(cluster.mount, f"file{number}"))
        except OSError as error:
            answers[number] = error

    end()
    answers = {}
    threads = [threading.Thread(target=read_one, args=(number, answers), daemon=True)
               for number in range(count)]
    for thread in threads:
        thread.start()
    cluster.start()
    for thread in threads:
        thread.join(AGAIN_LIMIT_S)
    expect(answers == {number: b"%d" % number for number in range(count)}, f"answers: {answers}")


def requests_wait_their_turn(cluster):
    """None is refused, each is answered when the daemon does. Likewise by a mount that may have
    fewer than the one before."""
    set_to(cluster, "mount_requests_max", 2 * (os.cpu_count() or 1) + 1)
    cluster.start()
    for end in (cluster.stop, cluster.kill, cluster.kill):
        requests_wait(cluster, end)
        set_to(cluster, "mount_requests_max", (os.cpu_count() or 1) + 1)
        result = cluster.run("umount", cluster.mount)
        expect(result.returncode == 0, f"umount: {result.stderr.strip()}")
        cluster.mount_apart(cluster.mount)


def requests_of_one_mount_wait(cluster):
    """The same of a mount that stays, as where no other one could begin."""
    set_to(cluster, "mount_requests_max", (os.cpu_count() or 1) + 1)
    cluster.start()
    for end in (cluster.stop, cluster.kill):
        requests_wait(cluster, end)


def sessions_made_smaller(cluster):
    """Those that are there stay, a mount more is refused by its own error, and comes in when there
    are fewer than the limit."""
    set_to(cluster, "sessions_max", 20)
    cluster.start()
    mounted = []
    for number in range(18):
        place = os.path.join(cluster.top, f"mount{number}")
        os.mkdir(place)
        cluster.mount_apart(place)
        mounted.append(place)
    put(os.path.join(cluster.mount, "file"), b"bytes")
    last = os.path.join(cluster.top, "mount-last")
    os.mkdir(last)
    for end in (cluster.stop, cluster.kill):
        end()
        set_to(cluster, "sessions_max", 16)
        cluster.start()
        for place in mounted:
            expect(content(os.path.join(place, "file")) == b"bytes", "a mount has other bytes")
        result = cluster.run("mount", cluster.directory, last, "-o", "patience=2")
        expect(result.returncode == 1 and result.stderr.count("\n") == 1 and
               "raise sessions_max" in result.stderr and not os.path.ismount(last),
               f"a mount beyond sessions_max: {result.returncode}, {result.stderr.strip()}")
    for place in mounted[:6]:
        result = cluster.run("umount", place)
        expect(result.returncode == 0, f"umount: {result.stderr.strip()}")
    cluster.mount_apart(last)
    expect(content(os.path.join(last, "file")) == b"bytes", "the last mount has other bytes")


# What the machine gives.

def descriptors_run_out(cluster):
    """Connections that take all of the daemon's descriptors: a line says so, who has some goes on,
    who asks for the status is answered, and others come in as those end that say nothing."""
    command = ["prlimit", "--nofile=128:128", cluster.shoal, "up", cluster.directory]
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            timeout=clusters.START_LIMIT_S, stdin=subprocess.DEVNULL)
    expect(result.returncode == 0, f"up: {result.stderr.strip()}")
    cluster.note_regions()
    cluster.mount_apart(cluster.mount)
    path = os.path.join(cluster.mount, "file")
    put(path, bytes(MIB))
    host, _, port = cluster.source.rpartition(":")
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection((host, int(port)), timeout=20))
        with open(cluster.path("shoal.log"), encoding="utf-8") as log:
            words = "there are as many connections as this process may have"
            wait_until(lambda: words in (log.seek(0), log.read())[1], "a line in the log")
        # A thread of the mount that has no connection yet waits until strangers' are closed.
        end = time.monotonic() + AGAIN_LIMIT_S
        for _ in range(20):
            overwrite(path, os.urandom(MIB))
            put(path + "2", b"inline")
        expect(time.monotonic() < end, "a mount waits for strangers")
        expect("mdt0" in status(cluster), "status shows no target")
    last = os.path.join(cluster.top, "mount-last")
    os.mkdir(last)
    cluster.mount_apart(last)
    expect(len(content(os.path.join(last, "file"))) == MIB, "the last mount has other bytes")


def start_with(cluster, descriptors):
    """Of so many that may be open: the result of `up`."""
    command = ["prlimit", f"--nofile={descriptors}:{descriptors}", cluster.shoal, "up",
               cluster.directory]
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            timeout=clusters.START_LIMIT_S, stdin=subprocess.DEVNULL)
    cluster.note_regions()
    return result


def start_with_mounts(cluster):
    """Six mounts, and of each a file that is open, with its number in it."""
    cluster.start()
    mounts = [cluster.mount]
    for number in range(5):
        mounts.append(os.path.join(cluster.top, f"mount{number}"))
        os.mkdir(mounts[-1])
        cluster.mount_apart(mounts[-1])
    handles = []
    for number, mount in enumerate(mounts):
        put(os.path.join(mount, f"file{number}"), b"%d" % number)
        handles.append(os.open(os.path.join(mount, f"file{number}"), os.O_RDWR))
    return mounts, handles


def fewer_descriptors_at_a_start(cluster):
    """Mounts that a daemon with more served: one with too few is refused by its line, one with few
    serves them all, and a start with more has nothing left of that."""
    mounts, handles = start_with_mounts(cluster)
    for end in (cluster.stop, cluster.kill):
        end()
        result = start_with(cluster, 60)
        expect(result.returncode == 1 and result.stderr.count("\n") == 1 and
               "60 files may be open at a time" in result.stderr,
               f"a start with 60 descriptors: {result.returncode}, {result.stderr.strip()}")
        expect(cluster.process() is None, "something runs")
        result = start_with(cluster, 128)
        expect(result.returncode == 0, f"up: {result.stderr.strip()}")
        for number, handle in enumerate(handles):
            expect(os.pread(handle, 10, 0) == b"%d" % number, "an open file has other bytes")
            goes(os.pwrite, handle, b"%d" % number, 0)
            goes(os.fsync, handle)
        for mount in mounts:
            goes(put, os.path.join(mount, "more"), bytes(MIB))
        expect("mdt0" in status(cluster), "status shows no target")
    cluster.kill()
    cluster.start()
    for number, handle in enumerate(handles):
        expect(os.pread(handle, 10, 0) == b"%d" % number, "an open file has other bytes")
        os.close(handle)


def connections_made_smaller(cluster):
    """Mounts that have had more are all served by fewer, of which each has its share, and so is one
    that comes then; status tells how many there are."""
    def connections():
        text = cluster.run("status", cluster.directory, "--json").stdout
        return json.loads(text)["node"]["connections"]

    def overwrite_all():
        path = os.path.join(cluster.mount, "more")
        threads = [threading.Thread(target=overwrite,
                                    args=(path.replace(cluster.mount, mount), bytes(MIB)))
                   for mount in mounts for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(AGAIN_LIMIT_S)
            expect(not thread.is_alive(), "a write hangs")

    mounts, handles = start_with_mounts(cluster)
    goes(put, os.path.join(cluster.mount, "more"), bytes(MIB))
    overwrite_all()
    before = connections()
    least = least_of_all()["connections_max"]
    for end in (cluster.stop, cluster.kill):
        end()
        set_to(cluster, "connections_max", least)
        cluster.start()
        for number, handle in enumerate(handles):
            expect(os.pread(handle, 10, 0) == b"%d" % number, "an open file has other bytes")
            goes(os.pwrite, handle, b"%d" % number, 0)
            goes(os.fsync, handle)
        overwrite_all()
        now = connections()
        expect(now["most"] == least and now["open"] <= least and
               now["of_a_process"] < before["of_a_process"], f"{before}, then {now}")
    mounts.append(os.path.join(cluster.top, "mount-last"))
    os.mkdir(mounts[-1])
    cluster.mount_apart(mounts[-1])
    expect(len(content(os.path.join(mounts[-1], "more"))) == MIB, "the last mount has other bytes")
    for handle in handles:
        os.close(handle)


def shared_memory_is_short(cluster):
    """/dev/shm without room for rings: those that a kill has left are found, and none is lost; for
    new ones a start is refused by its line, until there is room."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16M", "none", "/dev/shm"], check=True)
    try:
        cluster.start()
        path = os.path.join(cluster.mount, "file")
        put(path, b"first")
        fill("/dev/shm")
        for _ in range(2):
            goes(overwrite, path, b"again")
            goes(make, path + "2", b"in the ring alone")
            cluster.kill()
            cluster.start()
            expect(content(path) == b"again" and content(path + "2") == b"in the ring alone",
                   "a file has other bytes")
        cluster.stop()
        with open("/dev/shm/more", "wb") as file, contextlib.suppress(OSError):
            while True:
                os.write(file.fileno(), bytes(4096))
        for _ in range(2):
            result = cluster.run("up", cluster.directory, "--mount", cluster.mount)
            expect(result.returncode == 1 and result.stderr.count("\n") == 1 and
                   "MiB of shared memory, /dev/shm has 0 MiB free" in result.stderr,
                   f"a start without room: {result.returncode}, {result.stderr.strip()}")
            expect(cluster.process() is None, "something runs")
        os.unlink("/dev/shm/more")
        cluster.start()
        expect(content(path) == b"again", "the file has other bytes")
        cluster.stop()
    finally:
        process = cluster.process()
        if process is not None:
            clusters.end_process(process)
        clusters.unmount(cluster.mount)
        subprocess.run(["umount", "-l", "/dev/shm"], check=False)


def memory_is_short(cluster):
    """A start that can't have its memory says how much it needs, and changes nothing; with enough
    all is there."""
    cluster.start()
    put(os.path.join(cluster.mount, "file"), b"bytes")
    cluster.stop()
    clusters.unmount(cluster.mount)
    for limit, words in ((600 * MIB, "MiB of memory"), (12 << 30, "GiB of address space")):
        result = subprocess.run(
            ["prlimit", f"--as={limit}", cluster.shoal, "up", cluster.directory, "--mount",
             cluster.mount], capture_output=True, text=True, check=False,
            timeout=clusters.START_LIMIT_S, stdin=subprocess.DEVNULL)
        expect(result.returncode == 1 and result.stderr.count("\n") == 1 and
               words in result.stderr and "ulimit -v" in result.stderr,
               f"a start with {limit} bytes: {result.returncode}, {result.stderr.strip()}")
        expect(cluster.process() is None, "something runs")
    cluster.start()
    expect(content(os.path.join(cluster.mount, "file")) == b"bytes", "the file has other bytes")


def owned_by(cluster, user):
    for folder, folders, names in os.walk(cluster.directory):
        for name in [".", *folders, *names]:
            os.chown(os.path.join(folder, name), user, user)


def with_threads(cluster, threads, verb):
    """A verb by a user of his own, as root's threads have no limit but that of a container."""
    result = subprocess.run(
        ["setpriv", f"--reuid={THREADS_USER}", f"--regid={THREADS_USER}", "--clear-groups",
         "prlimit", f"--nproc={threads}:{threads}",
         clusters.for_everybody(cluster.shoal, cluster.top), verb, cluster.directory],
        capture_output=True, text=True, check=False, timeout=clusters.START_LIMIT_S,
        stdin=subprocess.DEVNULL)
    cluster.note_regions()
    return result


def serves_with_threads(cluster, threads):
    result = with_threads(cluster, threads, "up")
    expect(result.returncode == 0, f"a start with {threads}: {result.stderr.strip()}")
    result = with_threads(cluster, threads, "status")
    expect(result.returncode == 0 and "mdt0" in result.stdout, "status shows no target")


def threads_are_short(cluster):
    """A start that can't have its threads is refused by its line, behind a stop and a kill, too,
    and changes nothing; with enough all is there."""
    cluster.start()
    put(os.path.join(cluster.mount, "file"), b"bytes")
    cluster.stop()
    clusters.unmount(cluster.mount)
    os.chmod(cluster.top, 0o755)
    owned_by(cluster, THREADS_USER)
    enough = 64 + 2 * os.cpu_count()
    for end in (None, "kill", "stop"):
        if end:
            serves_with_threads(cluster, enough)
        if end == "kill":
            cluster.kill()
        elif end == "stop":
            result = with_threads(cluster, enough, "down")
            expect(result.returncode == 0, f"down: {result.stderr.strip()}")
        before = {name: os.stat(cluster.path(name)).st_mtime_ns
                  for name in os.listdir(cluster.directory)}
        for few in (1, 20):
            result = with_threads(cluster, few, "up")
            expect(result.returncode == 1 and result.stderr.count("\n") == 1 and
                   "threads cannot be had: raise the limit (ulimit -u" in result.stderr,
                   f"a start with {few} threads: {result.returncode}, {result.stderr.strip()}")
            expect(cluster.process() is None, "something runs")
        expect(before == {name: os.stat(cluster.path(name)).st_mtime_ns
                          for name in os.listdir(cluster.directory)}, "a refusal has changed DIR")
    owned_by(cluster, 0)
    cluster.start()
    expect(content(os.path.join(cluster.mount, "file")) == b"bytes", "the file has other bytes")


# Each setting.

def least_of_all():
    """Key -> the least that docs/reference/configuration.md tells, of [sizes] and [limits]."""
    with open(os.path.join(ROOT, "docs/reference/configuration.md"), encoding="utf-8") as file:
        text = file.read()
    units = {"": 1, "KiB": KIB, "MiB": MIB}
    rows = re.findall(r"^\| `(\w+)` \| (\d+) ?([KM]iB)? \| \d+", text, flags=re.M)
    return {key: int(number) * units[unit] for key, number, unit in rows}


def each_setting_at_its_least(cluster):
    """A cluster that was used with larger ones serves what it has when each is at its least; only
    the length of a log stays, and is refused by its name."""
    cluster.start()
    folder = os.path.join(cluster.mount, "folder")
    os.mkdir(folder)
    for number in range(300):
        put(os.path.join(folder, f"small{number}"), b"%d" % number)
    paths = [os.path.join(folder, f"large{number}") for number in range(20)]
    for path in paths:
        put(path, path.encode() * 20000)
    cluster.stop()
    least = least_of_all()
    expect(len(least) >= 15, f"the page has {sorted(least)}")
    log_bytes = clusters.SIZES["disk_log_bytes"]
    for key, value in least.items():
        set_to(cluster, key, value)
    result = cluster.run("up", cluster.directory, "--mount", cluster.mount)
    expect(result.returncode == 1 and "log has " in result.stderr and
           " bytes, configured are" in result.stderr,
           f"another length of the log: {result.returncode}, {result.stderr.strip()}")
    set_to(cluster, "disk_log_bytes", log_bytes)
    for end in (cluster.stop, cluster.kill, cluster.stop):
        cluster.start()
        for number in range(300):
            expect(content(os.path.join(folder, f"small{number}")) == b"%d" % number, "lost bytes")
        for path in paths:
            expect(content(path) == path.encode() * 20000, f"{path} has other bytes")
        goes(put, os.path.join(folder, "again"), b"a" * 5000)
        goes(overwrite, paths[0], paths[0].encode() * 20000)
        end()


# The manager's log is full besides.

class ManagerFull(clusters.Cluster):
    """Behind its first start the manager's log is full, as the disk below it is, and stays so: it
    takes no session's beginning any more, and where `ends` says so, no end."""

    def __init__(self, *words, ends=False, **shape):
        super().__init__(*words, afar=True, **shape)
        self.address = self.source
        self.attack_key = self.mount_key("attack.key")
        # Mounts are this machine's, which know shoal.conf.
        self.afar = False
        self.ends = ends
        self.place = None
        self.other = os.path.join(self.top, "mount-other")
        os.mkdir(self.other)
        set_to(self, "session_timeout_ms", 600000)

    def mount_apart(self, mount, *words):
        self.source = self.directory
        super().mount_apart(mount, *words)

    def start(self):
        if self.place:
            super().start()
            return
        os.mkdir(self.path("manager"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755,size=20M", "none",
                        self.path("manager")], check=True)
        super().start()
        self.place = self.path("manager")
        fill(self.place)
        self.fill_log("end" if self.ends else "begin",
                      f"begin NO_SPACE\nend {'NO_SPACE' if self.ends else 0}\n")

    def fill_log(self, word, says):
        result = subprocess.run([sys.argv[2], self.attack_key, self.address, "sessions", word],
                                capture_output=True, text=True, check=False,
                                timeout=clusters.START_LIMIT_S)
        expect(result.stdout.startswith(says),
               f"the manager's log is not full: {result.stdout.strip()} {result.stderr.strip()}")

    def is_told(self):
        """By its own row of status."""
        wait_until(lambda: is_full(self, "manager"), "a line of status")
        row = json.loads(self.run("status", self.directory, "--json").stdout)["managers"][0]
        expect(row["fill_percent"]["log"] > 70, f"status has {row}")

    def no_mount_begins(self):
        """It is told why at once, and does not wait for its patience."""
        # A start has packed some closer.
        self.fill_log("begin", "begin NO_SPACE\n")
        begin = time.monotonic()
        result = self.run("mount", self.directory, self.other, "-o", "patience=60")
        took_s = time.monotonic() - begin
        expect(result.returncode == 1 and result.stderr.count("\n") == 1 and
               "the file system of the first node's DIR is full" in result.stderr and
               not os.path.ismount(self.other) and took_s < ANSWER_LIMIT_S,
               f"a mount while the manager's log is full: {result.returncode}, "
               f"{result.stderr.strip()}, {took_s:.1f} s")

    def make_room(self):
        os.unlink(os.path.join(self.place, "filler"))
        wait_until(lambda: not is_full(self, "manager"), "the end of a line of status")
        self.mount_apart(self.other)
        expect(os.listdir(self.other) == os.listdir(self.mount), "another mount has other names")


def beside_a_full_manager(test):
    """The same limit, with the same answers, while the manager's log is full, which is told besides
    and ends when there is room."""
    def both(cluster):
        test(cluster)
        cluster.is_told()
        cluster.no_mount_begins()
        cluster.make_room()

    both.__name__ = f"{test.__name__} beside a full manager"
    return both


def data_and_the_managers_log_are_full(cluster):
    """The session of a daemon that stops or dies can't be ended, and might have files open: what is
    removed is gone, and gives its room back when the manager has some."""
    set_to(cluster, "data_bytes_max", 32 * MIB)
    cluster.start()
    paths = write_until_full(cluster.mount, MIB, 100)
    new = os.path.join(cluster.mount, "new")
    for end in (cluster.stop, cluster.kill):
        end()
        cluster.start()
        refused(errno.ENOSPC, put, new, bytes(16 * MIB))
        for path in [paths.pop() for _ in range(10)]:
            goes(os.unlink, path)
        goes(overwrite, paths[0], bytes(MIB))
        goes(os.truncate, new, 0)
        cluster.is_told()
        cluster.no_mount_begins()
    cluster.make_room()
    again(put, new, bytes(16 * MIB))


TESTS = [(data_is_full, {"osts": 1, "sizes": SMALL}),
         (cut_and_remove_go_on, {"osts": 1, "sizes": SMALL}),
         (kept_room_is_met, {"osts": 1, "sizes": SMALL}),
         (storage_disk_is_full, {"osts": 1, "sizes": SMALL}),
         (metadata_disk_is_full, {"osts": 1, "sizes": SMALL}),
         (all_is_full_at_a_kill, {"osts": 1, "sizes": SMALL}),
         (manager_disk_is_full, {"osts": 1, "apart": True, "sizes": SMALL}),
         (open_files_made_smaller, {"osts": 1, "apart": True}),
         (open_files_of_a_mount, {"osts": 1, "apart": True}),
         (requests_wait_their_turn, {"osts": 1, "apart": True}),
         (sessions_made_smaller, {"osts": 1, "apart": True}),
         (descriptors_run_out, {"osts": 1, "afar": True}),
         (fewer_descriptors_at_a_start, {"osts": 1, "afar": True}),
         (connections_made_smaller, {"osts": 1, "afar": True}),
         (shared_memory_is_short, {"osts": 1, "sizes": SMALL}),
         (memory_is_short, {"osts": 1}),
         (threads_are_short, {"osts": 1}),
         (each_setting_at_its_least, {"osts": 2})]
FULL = [(beside_a_full_manager(test), {"osts": 1, "sizes": SMALL})
        for test in (cut_and_remove_go_on, kept_room_is_met, storage_disk_is_full,
                     metadata_disk_is_full, open_files_of_a_mount, open_files_made_smaller,
                     requests_of_one_mount_wait)] + \
       [(data_and_the_managers_log_are_full, {"osts": 1, "sizes": SMALL, "ends": True})]


def main():
    def play(of):
        test, shape = of
        kind = ManagerFull if of in FULL else clusters.Cluster
        with kind(sys.argv[1], **shape) as cluster:
            try:
                test(cluster)
            finally:
                # Disks of a target are below the directory, where close() looks for no mounts.
                process = cluster.process()
                if process is not None:
                    cluster.note_regions()
                    clusters.end_process(process)
                for name in ("mdt0", "ost0", "manager"):
                    clusters.unmount(cluster.path(name))

    # A /dev/shm of our own is nobody else's.
    if os.geteuid() == 0 and "SHOAL_LIMITS_APART" not in os.environ:
        os.environ["SHOAL_LIMITS_APART"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable,
                              *sys.argv])
    return drive(__doc__, TESTS + FULL, play, words=2, name=lambda of: of[0].__name__)


sys.exit(main())
