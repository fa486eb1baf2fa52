#!/usr/bin/python3
"""What the commands refuse: each with its exit status, one line on standard error that says what is
wrong and what to do, nothing on standard output, and nothing changed in DIR, in the mounts, in what
runs.

Usage: refusals.py SHOAL [NAME]

Runs in a mount namespace and a registry of its own, so that it meets no other cluster. NAME runs
the rows whose name begins so. The last line counts the rows.
"""

import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import tempfile
import threading
import time

import cluster as clusters
from cluster import MIB

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))

LIMIT_S = 20
KILLS_MAX = 20
# Of a disk log: fixed fields, 16 starts of 16 bytes, an id.
SUPERBLOCK_BYTES = 88 + 16 * 16 + 16
LOG_CHANGED = "/log is changed"
AGAIN_MAX = 2
SETTLE_LIMIT = 50
SETTLE_S = 0.1
# Where a daemon that did not come up says so too; the only thing that a refusal may write.
LOG_NAME = "shoal.log"
INSIDE = "SHOAL_REFUSALS_INSIDE"
NOBODY = 65534
ROWS = []


def row(name, status, *words):
    """A row: the function prepares a Scene and answers the command's words; the line must hold all
    the words given here, and DIR where the scene names one."""
    def keep(prepare):
        ROWS.append((name, status, words, prepare))
        return prepare
    return keep


def is_below(path, folder):
    return os.path.commonpath([path, folder]) == folder


def mount_points(top):
    """All but those of tests that ran beside this one when it began: a mount is gone here, too,
    when its folder is removed."""
    others = [tempfile.gettempdir(), os.path.join(ROOT, "build")]

    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        points = [line.split()[4] for line in file]
    return sorted(point for point in points
                  if is_below(point, top) or not any(is_below(point, one) for one in others))


def entry_of(path):
    """Type, mode, owner, and size and checksum of a file's content."""
    status = os.lstat(path)
    entry = [oct(status.st_mode), status.st_uid, status.st_gid]
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            entry += [status.st_size, hashlib.file_digest(file, "blake2b").hexdigest()]
    elif stat.S_ISLNK(status.st_mode):
        entry.append(os.readlink(path))
    return entry


def listing(top, mounted, started):
    """Everything below the folder, but what Shoal has mounted there, as its daemon may be the one
    that is asked. What is found only when targets are opened, one after the other, is refused when
    the first have noted their new term: then types, owners and sizes are compared, not contents."""
    found = {}
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if os.path.join(folder, name) not in mounted]
        for name in folders + names:
            path = os.path.join(folder, name)
            if os.path.basename(path) != LOG_NAME:
                entry = entry_of(path)
                found[os.path.relpath(path, top)] = entry[:4] if started else entry
    return found


CLOCKS_DIFFER_S = 0.02  # A tick, and that of file times.


def is_process(name):
    """Any verb may take away the entry of a daemon that was killed. Whoever has its number by now
    has begun behind the entry."""
    try:
        with open(f"/proc/{name}/stat", "rb") as file:
            state, *numbers = file.read().rpartition(b")")[2].split()
        ticks = int(numbers[18])
        written_s = os.stat(f"/run/shoal/{name}").st_mtime
    except OSError:
        return False
    running_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return state != b"Z" and time.time() - running_s <= written_s + CLOCKS_DIFFER_S


def state(scene):
    """What a refusal must leave as it is."""
    points = mount_points(scene.top)
    ours = [path for path in points if path == scene.mount]
    return {"files": listing(scene.top, ours, scene.started), "mounts": points,
            "registry": sorted(filter(is_process, os.listdir("/run/shoal")))}


def settled_state(scene):
    """The state once a daemon that runs has written what it had to write."""
    if scene.process() is None:
        return state(scene)
    # What the first makes room for is written with the second.
    for _ in range(2):
        scene.run("sync", scene.directory)
    before = state(scene)
    for _ in range(SETTLE_LIMIT):
        time.sleep(SETTLE_S)
        after = state(scene)
        if after == before:
            return after
        before = after
    raise clusters.Failed("the daemon writes on, though it has nothing to do")


def difference(before, after):
    for key, was in before.items():
        if key == "files":
            for path in sorted(set(was) | set(after[key])):
                if was.get(path) != after[key].get(path):
                    what = ("changed" if path in was and path in after[key] else
                            "gone" if path in was else "new")
                    return f"{path} is {what}"
        elif was != after[key]:
            return f"{key}: {sorted(set(was) ^ set(after[key]))}"
    return None


# The least, as each is made and read several times.
SMALL = {"mdt_ring_bytes": MIB, "ost_ring_bytes": MIB, "disk_log_bytes": 8 * MIB,
         "data_bytes_max": 16 * MIB}


class Scene(clusters.Cluster):
    """A cluster that need not run, and what else a row wants to take away afterwards."""

    def __init__(self, shoal):
        super().__init__(shoal, osts=1, sizes=SMALL)
        self.before_close = []
        self.user = None
        self.must_name = None
        self.started = False
        self.written = 0
        self.command = shoal
        self.environment = {}
        self.limits = []

    def sh(self, *words):
        subprocess.run(words, check=True, capture_output=True)

    def write(self, path, data):
        with open(path, "wb") as file:
            file.write(data)

    def new_directory(self):
        """Another directory, empty."""
        return tempfile.mkdtemp(dir=self.top)

    def mount_at(self, path, *words):
        self.sh("mount", *words, path)
        # Once: below may be something that was there before.
        self.before_close.append(
            lambda: subprocess.run(["umount", "-l", path], capture_output=True, check=False))

    def disk(self, megabytes):
        """A file system of its own, of a size."""
        path = self.new_directory()
        self.mount_at(path, "-t", "tmpfs", "-o", f"mode=755,size={megabytes}M", "none")
        return path

    def configure(self, old, new):
        """Changes a line of shoal.conf."""
        with open(self.path("shoal.conf"), encoding="ascii") as file:
            text = file.read()
        if old not in text:
            raise clusters.Failed(f"shoal.conf does not hold {old}")
        self.write(self.path("shoal.conf"), text.replace(old, new).encode())

    def run_once(self):
        """Makes everything that a cluster keeps, with a file in it, and stops it."""
        self.start()
        with open(os.path.join(self.mount, "file"), "wb") as file:
            file.write(b"x" * 100000)
        self.stop()

    def close(self):
        process = self.process()
        if process is not None:
            clusters.end_process(process)
        clusters.unmount(self.mount)
        for undo in reversed(self.before_close):
            undo()
        super().close()


def up(scene, *words):
    return ["up", scene.directory, *words]


def up_mounted(scene, *words):
    return ["up", scene.directory, "--mount", scene.mount, *words]


# A directory that is not its own.

@row("foreign-directory", 1, "not empty", "name an empty one")
def _(scene):
    path = scene.new_directory()
    scene.write(os.path.join(path, "thesis.tex"), b"mine")
    scene.must_name = path
    return ["up", path, "--mount", scene.mount]


@row("foreign-hidden-file", 1, "not empty", "name an empty one")
def _(scene):
    path = scene.new_directory()
    scene.write(os.path.join(path, ".hidden"), b"mine")
    return ["up", path]


@row("foreign-subdirectory", 1, "not empty", "name an empty one")
def _(scene):
    path = scene.new_directory()
    os.makedirs(os.path.join(path, "mdt0", "deeper"))
    return ["up", path]


@row("foreign-conf", 1, "shoal.conf")
def _(scene):
    path = scene.new_directory()
    scene.write(os.path.join(path, "shoal.conf"), b"[server]\nlisten = 80\n")
    scene.must_name = path
    return ["up", path]


@row("foreign-empty-conf", 1, "shoal.conf", "lacks")
def _(scene):
    scene.write(scene.path("shoal.conf"), b"")
    return up(scene)


@row("foreign-binary-conf", 1, "shoal.conf")
def _(scene):
    scene.write(scene.path("shoal.conf"), bytes(range(256)) * 100)
    return up(scene)


@row("directory-is-file", 1, "not a directory")
def _(scene):
    path = os.path.join(scene.top, "file")
    scene.write(path, b"")
    scene.must_name = path
    return ["up", path]


@row("directory-missing", 1, "mkdir")
def _(scene):
    path = os.path.join(scene.top, "absent", "data")
    scene.must_name = path
    return ["up", path]


@row("directory-made-in-vain", 1, "--key")
def _(scene):
    return ["up", os.path.join(scene.top, "absent"), "--listen", "127.0.0.1:7999"]


@row("directory-not-ours-to-read", 1, "permission")
def _(scene):
    scene.user = NOBODY
    os.chmod(scene.top, 0o755)
    os.chmod(scene.directory, 0o700)
    return up(scene)


@row("directory-read-only", 1, "read-only")
def _(scene):
    path = scene.disk(4096)
    scene.sh("mount", "-o", "remount,ro", path)
    return ["up", path, "--size", "16M", "--osts", "1"]


# What the kernel answers where the data lies on btrfs, which few machines can mount.
COPYING_DISK = """
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
int fstatfs(int fd, struct statfs *found) {
    long r = syscall(SYS_fstatfs, fd, found);
    found->f_type = 0x9123683e;
    return (int)r;
}
int fstatfs64(int fd, struct statfs64 *found) __attribute__((alias("fstatfs")));
"""


def on_copying_disk(name, prepare):
    @row("copying-disk-" + name, 1, "lies on btrfs", "use ext4 or xfs")
    def _(scene):
        path = prepare(scene)
        library = os.path.join(scene.top, "copying.so")
        subprocess.run(["gcc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-xc", "-", "-o", library],
                       input=COPYING_DISK.encode(), check=True, capture_output=True)
        scene.environment = {"LD_PRELOAD": library}
        scene.must_name = path
        return ["up", path]


def used_once(scene):
    scene.run_once()
    return scene.directory


on_copying_disk("empty", Scene.new_directory)
on_copying_disk("with-conf", lambda scene: scene.directory)
on_copying_disk("moved-there", used_once)


# A second start.

@row("second-start", 1, "in use by process", "mounted at", "shoal down")
def _(scene):
    scene.start()
    return up(scene)


@row("second-start-of-unmounted", 1, "in use by process", "shoal down")
def _(scene):
    scene.start()
    scene.run("umount", scene.mount)
    return up(scene)


def second_start_with(*options):
    @row("second-start" + options[0], 1, "in use by process", "shoal down")
    def _(scene):
        scene.start()
        scene.run("umount", scene.mount)
        return up_mounted(scene, *options)


second_start_with("--osts", "1")
second_start_with("--size", "16M")
second_start_with("--foreground")


@row("mount-running-at-file", 1, "not a directory")
def _(scene):
    scene.start()
    scene.run("umount", scene.mount)
    path = os.path.join(scene.top, "file")
    scene.write(path, b"")
    return up(scene, "--mount", path)


@row("mount-running-within", 1, "must not lie within each other")
def _(scene):
    scene.start()
    scene.run("umount", scene.mount)
    return up(scene, "--mount", scene.path("mdt0"))


@row("mount-within-new-directory", 1, "must not lie within each other")
def _(scene):
    path = scene.new_directory()
    os.mkdir(os.path.join(path, "mnt"))
    return ["up", path, "--mount", os.path.join(path, "mnt")]


@row("second-start-mounted", 1, "in use by process", "mounted at", "shoal down")
def _(scene):
    scene.start()
    other = scene.new_directory()
    return up(scene, "--mount", other)


@row("second-start-same-mount", 1, "in use by process", "shoal down")
def _(scene):
    scene.start()
    return up_mounted(scene)


@row("second-start-by-link", 1, "in use by process", "shoal down")
def _(scene):
    scene.start()
    link = os.path.join(scene.top, "link")
    os.symlink(scene.directory, link)
    return ["up", link]


@row("second-start-foreground", 1, "in use by process", "shoal down")
def _(scene):
    scene.start()
    return up(scene, "--foreground")


@row("foreign-lock", 1, "not empty", "name an empty one")
def _(scene):
    path = scene.new_directory()
    scene.write(os.path.join(path, "lock"), b"mine")
    return ["up", path]


# A newer format, and a damaged one.

@row("newer-conf", 1, "format 4", "reads up to 3", "newer")
def _(scene):
    scene.configure("format = 3", "format = 4")
    return up_mounted(scene)


@row("newer-conf-unknown-keys", 1, "format 7", "newer")
def _(scene):
    scene.run_once()
    scene.configure("format = 3", "format = 7\nreplicas = 3")
    return up_mounted(scene)


@row("older-conf", 1, "format 2", "this version reads 3", "the version that made it")
def _(scene):
    scene.run_once()
    scene.configure("format = 3", "format = 2")
    return up_mounted(scene)


def crc32c(data):
    value = 0xffffffff
    for byte in data:
        value ^= byte
        for _ in range(8):
            value = value >> 1 ^ (0x82f63b78 if value & 1 else 0)
    return value ^ 0xffffffff


def set_log_format(scene, target, number):
    """Both superblocks of a disk log say another format, with a checksum that is right."""
    with open(scene.path(os.path.join(target, "log")), "r+b") as file:
        for offset in (0, 4096):
            file.seek(offset)
            block = bytearray(file.read(SUPERBLOCK_BYTES))
            if block[:8] != b"SHOALBLK":
                continue
            struct.pack_into("<II", block, 8, number, 0)
            struct.pack_into("<I", block, 12, crc32c(bytes(block)))
            file.seek(offset)
            file.write(block)


def newer_log(target):
    @row("newer-log-" + target, 1, target, "newer")
    def _(scene):
        scene.run_once()
        set_log_format(scene, target, 3)
        return up_mounted(scene)


for _target in ("manager", "mdt0", "ost0"):
    newer_log(_target)


def lost_log(target):
    @row("lost-log-" + target, 1, target + "/log is missing")
    def _(scene):
        scene.run_once()
        os.unlink(scene.path(os.path.join(target, "log")))
        return up_mounted(scene)


def blank_log(target):
    @row("blank-log-" + target, 1, target, "log")
    def _(scene):
        scene.run_once()
        with open(scene.path(os.path.join(target, "log")), "r+b") as file:
            file.write(bytes(8192))
        return up_mounted(scene)


def lost_target(target):
    @row("lost-target-" + target, 1, target, "is missing")
    def _(scene):
        scene.run_once()
        shutil.rmtree(scene.path(target))
        return up_mounted(scene)


def lost_base(target):
    @row("lost-base-" + target, 1, target + "/base.mdb is missing")
    def _(scene):
        scene.run_once()
        os.unlink(scene.path(os.path.join(target, "base.mdb")))
        return up_mounted(scene)


def broken_base(target):
    @row("broken-base-" + target, 1, target)
    def _(scene):
        scene.run_once()
        scene.write(scene.path(os.path.join(target, "base.mdb")), b"no database" * 1000)
        scene.started = True
        return up_mounted(scene)


@row("older-base", 1, "mdt0", "some are missing")
def _(scene):
    scene.run_once()
    shutil.copy(scene.path("mdt0/base.mdb"), scene.top)
    scene.run_once()
    shutil.copy(os.path.join(scene.top, "base.mdb"), scene.path("mdt0"))
    scene.started = True
    return up_mounted(scene)


@row("swapped-log", 1, "ost0/log", "another target")
def _(scene):
    scene.run_once()
    scene.sh("cp", scene.path("mdt0/log"), scene.path("ost0/log"))
    return up_mounted(scene)


@row("target-of-another-cluster", 1, "ost0")
def _(scene):
    scene.run_once()
    shutil.move(scene.path("ost0"), os.path.join(scene.top, "ours"))
    other = clusters.Cluster(scene.command, osts=1, sizes=SMALL)
    try:
        other.start()
        other.stop()
        scene.sh("cp", "-a", other.path("ost0"), scene.path("ost0"))
    finally:
        other.close()
    return up_mounted(scene)


for _target in ("manager", "mdt0", "ost0"):
    lost_log(_target)
    blank_log(_target)
    lost_target(_target)
    lost_base(_target)
    broken_base(_target)


@row("lost-data", 1, "ost0/data is missing")
def _(scene):
    scene.run_once()
    os.unlink(scene.path("ost0/data"))
    return up_mounted(scene)


@row("log-size-changed", 1, "the disk log mdt0/log", "bytes", "put disk_log_bytes back")
def _(scene):
    scene.run_once()
    scene.configure("disk_log_bytes = 8388608", "disk_log_bytes = 67108864")
    return up_mounted(scene)


@row("unknown-role", 2, "--roles takes manager,meta,store", "not meta,data")
def _(scene):
    return up(scene, "--roles", "meta,data")


@row("role-twice", 2, "--roles takes manager,meta,store")
def _(scene):
    return up(scene, "--roles", "meta,meta")


@row("first-node-without-all-roles", 1, "the first node of a cluster has all roles", "--join")
def _(scene):
    return ["up", scene.new_directory(), "--roles", "store"]


@row("other-roles", 1, "has other roles, and keeps them", "leave --roles out")
def _(scene):
    scene.run_once()
    return up(scene, "--roles", "store")


@row("other-number-of-targets", 1, "osts = 3", "the numbers it was made with")
def _(scene):
    scene.run_once()
    scene.configure("osts = 1", "osts = 3")
    return up_mounted(scene)


@row("other-cluster-id", 1, "another")
def _(scene):
    scene.run_once()
    with open(scene.path("shoal.conf"), encoding="ascii") as file:
        line = next(line for line in file if line.startswith("id = "))
    scene.configure(line, f"id = {'ab' * 16}\n")
    return up_mounted(scene)


def bad_setting(name, old, new, *words):
    @row("setting-" + name, 1, "shoal.conf", *words)
    def _(scene):
        scene.configure(old, new)
        return up_mounted(scene)


bad_setting("unknown", "[sizes]", "[sizes]\nfrobs = 3", "frobs")
bad_setting("no-number", "cache_bytes = 16777216", "cache_bytes = much", "cache_bytes", "number")
bad_setting("too-small", "mdt_ring_bytes = 1048576", "mdt_ring_bytes = 17", "mdt_ring_bytes",
            "at least")
for _key in SMALL:
    bad_setting("too-large-" + _key, f"{_key} = {SMALL[_key]}", f"{_key} = {1 << 60}", _key,
                "at most")
bad_setting("beyond-all-numbers", "cache_bytes = 16777216", "cache_bytes = " + "9" * 30,
            "cache_bytes", "at most")
bad_setting("changes-too-large", "mdt_changes_bytes = 67108864", "mdt_changes_bytes = 68719476736",
            "mdt_changes_bytes", "at most 34359738368")
bad_setting("log-below-ring", "mdt_ring_bytes = 1048576", "mdt_ring_bytes = 20971520",
            "disk_log_bytes", "at least")
bad_setting("no-targets", "osts = 1", "osts = 0", "osts")
bad_setting("too-many-targets", "osts = 1", "osts = 65", "osts")
bad_setting("bad-id", "id = ", "id = xyz", "id")
bad_setting("no-assignment", "[sizes]", "[sizes]\nnonsense", "line")


def write_until_gone(scene, enough):
    """New files and small overwrites, one after the other, as long as there is a daemon."""
    count = 0
    try:
        while True:
            path = os.path.join(scene.mount, f"file{count}")
            scene.write(path, b"x" * 100000)
            with open(path, "r+b") as file:
                file.write(b"y" * 4096)
            count += 1
            scene.written = count
            if count == 20:
                enough.set()
    except OSError:
        enough.set()


def kill_at_work(scene):
    scene.start()
    enough = threading.Event()
    writer = threading.Thread(target=write_until_gone, args=(scene, enough))
    writer.start()
    enough.wait()
    scene.kill()
    writer.join()
    clusters.unmount(scene.mount)


def resized_ring(key, old, new):
    """Killed with operations in shared memory alone, as it writes on: another size would lose
    them."""
    @row("resized-" + key, 1, f"set {key} back to {old}", "start and stop once")
    def _(scene):
        scene.configure(f"disk_log_bytes = {8 * MIB}", f"disk_log_bytes = {32 * MIB}")
        scene.configure(f"data_bytes_max = {16 * MIB}", f"data_bytes_max = {1024 * MIB}")
        scene.started = True
        for _ in range(KILLS_MAX):
            kill_at_work(scene)
            scene.configure(f"{key} = {old}", f"{key} = {new}")
            if scene.run(*up_mounted(scene)).returncode != 0:
                break
            # A sync point came right before the kill: with nothing in that ring nothing is lost.
            for number in range(scene.written):
                if os.path.getsize(os.path.join(scene.mount, f"file{number}")) != 100000:
                    raise clusters.Failed(f"file{number} is lost: {scene.log_end()}")
            scene.stop()
            scene.configure(f"{key} = {new}", f"{key} = {old}")
        return up_mounted(scene)


resized_ring("mdt_ring_bytes", MIB, 2 * MIB)
resized_ring("ost_ring_bytes", MIB, 2 * MIB)
resized_ring("ost_ring_data_bytes", 4 * MIB, 2 * MIB)


# Something else where a file belongs.

def no_file(name, make, *words):
    @row(f"{make.__name__}-as-{name.replace('/', '-')}", 1, *words)
    def _(scene):
        scene.run_once()
        path = scene.path(name)
        if os.path.exists(path):
            clusters.remove(path)
        make(path)
        scene.must_name = scene.directory
        scene.started = name == "in-use"
        # Nothing runs, and the lock is nothing to be read.
        scene.process = lambda: None
        return up_mounted(scene)


for _name in ("lock", "shoal.conf", "targets", "in-use", "shoal.log", "manager/log", "mdt0/log",
              "mdt0/base.mdb", "ost0/data"):
    no_file(_name, os.mkfifo, _name, "not a regular file")
for _name in ("lock", "shoal.conf", "targets", "in-use", "mdt0/log", "mdt0/base.mdb", "ost0/data"):
    no_file(_name, os.mkdir, _name, "is a directory")


@row("link-as-lock", 1, "lock cannot be used: not a regular file: remove it")
def _(scene):
    scene.run_once()
    os.unlink(scene.path("lock"))
    os.symlink("/dev/null", scene.path("lock"))
    return up(scene)


# Rings.

@row("rings-too-large", 1, "need 7 MiB", "/dev/shm has 4 MiB free", "lower mdt_ring_bytes")
def _(scene):
    scene.run_once()
    scene.mount_at("/dev/shm", "-t", "tmpfs", "-o", "size=4M", "none")
    scene.must_name = scene.directory
    return up_mounted(scene)


@row("rings-too-large-for-new", 1, "need 73 MiB", "/dev/shm has 60 MiB free", "use fewer --osts")
def _(scene):
    scene.mount_at("/dev/shm", "-t", "tmpfs", "-o", "size=60M", "none")
    scene.must_name = scene.new_directory()
    return ["up", scene.must_name, "--osts", "1", "--size", "16M"]


@row("ring-of-another-user", 1, "/dev/shm/shoal-", f"taken by user {NOBODY}",
     "start it as that user")
def _(scene):
    scene.start()
    scene.kill()
    clusters.unmount(scene.mount)
    for path in scene.regions:
        os.chown(path, NOBODY, NOBODY)
    scene.started = True
    return up_mounted(scene)


# Limits of the process.

@row("few-descriptors", 1, "32 files may be open at a time", "raise the limit (ulimit -Hn)")
def _(scene):
    scene.run_once()
    scene.limits = ["--nofile=32"]
    return up_mounted(scene)


def too_few_threads(name, count):
    """No root: of his threads there is no such limit."""
    @row(name, 1, "threads cannot be had", "raise the limit (ulimit -u")
    def _(scene):
        path = scene.new_directory()
        os.chown(path, NOBODY, NOBODY)
        os.chmod(scene.top, 0o755)
        scene.user = NOBODY
        scene.limits = [f"--nproc={count}"]
        scene.must_name = path
        return ["up", path]


too_few_threads("few-threads", 20)
too_few_threads("fewest-threads", 1)  # not even those that look at DIR


@row("small-files", 1, "cannot be started", "would be larger than a limit allows")
def _(scene):
    scene.run_once()
    scene.configure(f"data_bytes_max = {16 * MIB}", f"data_bytes_max = {32 * MIB}")
    scene.limits = [f"--fsize={24 * MIB}"]
    scene.started = True
    return up_mounted(scene)


# /dev/fuse and mount points.

@row("fuse-missing", 1, "/dev/fuse")
def _(scene):
    path = scene.new_directory()
    scene.mount_at("/dev", "-t", "tmpfs", "none")
    os.mknod("/dev/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    return ["up", path, "--mount", scene.mount]


@row("fuse-is-something-else", 1, "/dev/fuse")
def _(scene):
    scene.mount_at("/dev/fuse", "--bind", "/dev/null")
    path = scene.new_directory()
    return ["up", path, "--mount", scene.mount]


@row("mount-missing", 1, "doesn't exist", "mkdir -p")
def _(scene):
    return up(scene, "--mount", os.path.join(scene.top, "absent"))


@row("mount-is-file", 1, "not a directory")
def _(scene):
    path = os.path.join(scene.top, "file")
    scene.write(path, b"")
    scene.must_name = path
    return up(scene, "--mount", path)


@row("mount-busy", 1, "mounted there already", "unmount")
def _(scene):
    scene.mount_at(scene.mount, "-t", "tmpfs", "none")
    scene.must_name = scene.mount
    return up_mounted(scene)


@row("mount-busy-by-ours", 1, "mounted there already", "unmount")
def _(scene):
    scene.start()
    return ["up", scene.new_directory(), "--mount", scene.mount, "--osts", "1", "--size", "16M"]


@row("mount-busy-below-dead", 1, "type tmpfs is mounted there already", "unmount")
def _(scene):
    scene.start()
    scene.kill()
    wait_for_death(scene.mount)
    other = scene.new_directory()
    scene.sh("mount", "--bind", scene.mount, other)
    clusters.unmount(scene.mount)
    scene.mount_at(scene.mount, "-t", "tmpfs", "none")
    scene.mount_at(scene.mount, "--bind", other)
    scene.sh("umount", other)
    return up_mounted(scene)


@row("mount-on-directory", 1, "--mount")
def _(scene):
    return up(scene, "--mount", scene.directory)


@row("mount-within-directory", 1, "--mount")
def _(scene):
    scene.run_once()
    return up(scene, "--mount", scene.path("mdt0"))


@row("mount-above-directory", 1, "--mount")
def _(scene):
    return up(scene, "--mount", scene.top)


@row("mount-without-root", 1, "root")
def _(scene):
    scene.user = NOBODY
    os.chmod(scene.top, 0o755)
    for path in (scene.directory, scene.path("shoal.conf"), scene.mount):
        os.chown(path, NOBODY, NOBODY)
    return up_mounted(scene)


@row("mount-without-root-open-device", 1, "root")
def _(scene):
    """Where anybody may open /dev/fuse, as udev has it."""
    device = os.path.join(scene.top, "fuse")
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(10, 229))
    os.chmod(device, 0o666)
    scene.mount_at("/dev/fuse", "--bind", device)
    scene.user = NOBODY
    os.chmod(scene.top, 0o755)
    for path in (scene.directory, scene.path("shoal.conf"), scene.mount):
        os.chown(path, NOBODY, NOBODY)
    return up_mounted(scene)


@row("mount-path-empty", 1, "mount point")
def _(scene):
    return up(scene, "--mount", "")


# A full disk.

@row("disk-too-small", 1, "MiB free", "free some")
def _(scene):
    path = scene.disk(64)
    scene.must_name = path
    return ["up", path, "--mount", scene.mount]


@row("disk-full", 1, "MiB free", "free some")
def _(scene):
    path = scene.disk(16)
    folder = os.path.join(path, "data")
    os.mkdir(folder)
    fill(path)
    return ["up", folder, "--osts", "1", "--size", "16M"]


@row("disk-too-small-tmpfs", 1, "MiB free", "free some")
def _(scene):
    path = scene.new_directory()
    scene.mount_at(path, "-t", "tmpfs", "-o", "mode=755,size=100M", "none")
    return ["up", path]


@row("disk-too-small-by-conf", 1, "MiB free", "free some")
def _(scene):
    path = scene.disk(30)
    scene.sh("cp", scene.path("shoal.conf"), path)
    return ["up", path]


def fill(path):
    """Until nothing fits any more."""
    with open(os.path.join(path, "filler"), "wb") as file:
        for size in (MIB, 4096, 1):
            try:
                while True:
                    os.write(file.fileno(), bytes(size))
            except OSError:
                pass


# Bad input of every verb.

def usage(name, words, *expected):
    @row("usage-" + name, 2, *expected)
    def _(scene):
        return [scene.directory if word == "DIR" else scene.mount if word == "MNT" else word
                for word in words]


usage("unknown-verb", ["frobnicate"], "frobnicate", "shoal help")
usage("unknown-option", ["--frob"], "--frob", "shoal help")
usage("help-of-unknown", ["help", "frobnicate"], "frobnicate", "shoal help")
usage("empty-verb", [""], "shoal help")
usage("up-nothing", ["up"], "directory", "usage")
usage("up-empty", ["up", ""], '""', "usage")
usage("up-option", ["up", "DIR", "--frob"], "--frob", "usage")
usage("up-short-option", ["up", "-f", "DIR"], "-f", "usage")
usage("up-two", ["up", "DIR", "DIR"], "usage")
for _words in ([], ["DIR", "--frob"], ["--help-me"], ["DIR", "--osts", "0"]):
    usage("shoald-" + "-".join(["start", *_words]), ["shoald", *_words], "shoald: ",
          "(usage: shoald ")
for _option in ("--mount", "--osts", "--size", "--listen", "--key", "--without"):
    usage(f"up{_option}-nothing", ["up", "DIR", _option], f"the value of {_option} is missing",
          "usage")
for _value in ("0", "65", "-1", "x", "", "4x", "99999999999999999999", "1.5", " 2"):
    usage(f"up-osts={_value}", ["up", "DIR", "--osts", _value], "--osts", "1 to 64")
for _value in ("0", "1M", "-5G", "x", "", "16m", "16MB", "99999999T", "1e9",
               "18446744073709551615T"):
    usage(f"up-size={_value}", ["up", "DIR", "--size", _value], "--size", "16M")
for _verb in ("down", "status", "df", "stats", "sync", "stat", "umount", "fsck", "version"):
    usage(f"{_verb}-option", [_verb, "--frob"], "--frob", "usage")
for _verb in ("down", "status", "df", "stats", "sync", "umount", "stat", "fsck"):
    usage(f"{_verb}-two", [_verb, "DIR", "MNT"], "usage")
usage("stats-clients-option", ["stats", "--clients", "--frob"], "--frob", "usage")
usage("df-clients", ["df", "--clients"], "--clients", "usage")
for _words in ([], ["fish"], ["bash", "zsh"], ["--frob"]):
    usage("-".join(["completion", *_words]), ["completion", *_words], "usage: shoal completion")
for _words in (["frobnicate"], ["up", "down"], ["--frob"]):
    usage("-".join(["manual", *_words]), ["manual", *_words], _words[-1], "usage: shoal manual")
usage("shoald-version-more", ["shoald", "DIR", "--version"], "--version", "usage: shoald")
usage("version-word", ["version", "now"], "now", "usage")
usage("umount-nothing", ["umount"], "mount point", "usage")
usage("stat-nothing", ["stat"], "path", "usage")
usage("stripe-nothing", ["stripe"], "get or set", "usage")
usage("stripe-unknown", ["stripe", "show", "MNT"], "get or set", "usage")
usage("stripe-get-nothing", ["stripe", "get"], "path", "usage")
usage("stripe-two", ["stripe", "get", "MNT", "MNT"], "usage")
usage("stripe-option", ["stripe", "get", "MNT", "--frob"], "--frob", "usage")
for _value in ("0", "x", "-2", "70000", ""):
    usage(f"stripe-count={_value}", ["stripe", "set", "MNT", "--count", _value], "--count", "1 to")
for _value in ("0", "1000", "100K", "65M", "x", "", "-64K"):
    usage(f"stripe-size={_value}", ["stripe", "set", "MNT", "--size", _value], "--size", "64K")
usage("stripe-get-count", ["stripe", "get", "MNT", "--count", "1"], "--count", "usage")
usage("stripe-count-nothing", ["stripe", "set", "MNT", "--count"], "--count", "usage")
usage("stripe-set-nothing", ["stripe", "set", "MNT"], "--count", "usage")


for _words in ([], ["make"], ["new"], ["new", "--frob"], ["new", "FILE", "OUT"], ["mount"],
               ["mount", "FILE"], ["mount", "FILE", "OUT", "--frob"], ["mount", "FILE", "OUT", "x"],
               ["mount", "FILE", "OUT", "--squash"], ["mount", "FILE", "OUT", "--squash", "all"],
               ["add", "FILE"], ["add", "FILE", "--frob"], ["revoke"], ["revoke", "--frob"],
               ["revoke", "0123456789abcde"], ["revoke", "0123456789ABCDEF"],
               ["revoke", "0000000000000000"], ["revoke", "0123456789abcdef", "DIR", "DIR"],
               ["revoke", "0123456789abcdef", "--frob"], ["renew", "--frob"],
               ["renew", "DIR", "DIR"], ["renew", "--key"]):
    usage("-".join(["key", *_words]), ["key", *_words], "usage")


usage("bench-nothing", ["bench"], "meta, small, big or checkpoint", "usage")
usage("bench-unknown", ["bench", "fast", "MNT"], "meta, small, big or checkpoint", "usage")
usage("bench-no-path", ["bench", "meta"], "directory", "usage")
usage("bench-two", ["bench", "meta", "MNT", "DIR"], "one path", "usage")
usage("bench-option", ["bench", "meta", "MNT", "--frob", "1"], "--frob", "usage")
usage("bench-phases", ["bench", "small", "MNT", "--phases", "fly"],
      "--phases of small takes some of write,read,delete, not fly",
      "(usage: shoal bench meta|small|big|checkpoint PATH ...: `shoal bench --help` tells more)")
usage("bench-direct-native", ["bench", "big", "MNT", "--direct", "--native"], "--direct", "usage")
for _option in ("--threads", "--files", "--dirs", "--seconds", "--size"):
    usage(f"bench{_option}-nothing", ["bench", "small", "MNT", _option], _option, "usage")
    for _value in ("0", "x", "-1", "", "99999999999999999999"):
        usage(f"bench{_option}={_value}", ["bench", "small", "MNT", _option, _value], _option,
              "usage")
usage("bench-size-small", ["bench", "big", "MNT", "--size", "100K"], "--size", "usage")


@row("bench-absent", 1, "no such")
def _(scene):
    scene.must_name = os.path.join(scene.top, "absent")
    return ["bench", "meta", scene.must_name]


def bench_without_files(kind, phase, *options):
    @row(f"bench-{kind}-{phase}" + "".join(options), 1, "is not there: another phase makes it")
    def _(scene):
        scene.start()
        scene.started = True
        return ["bench", kind, scene.mount, "--phases", phase, *options]


bench_without_files("small", "read")
bench_without_files("small", "read", "--native")
bench_without_files("meta", "stat")


@row("bench-native-outside", 1, "neither a Shoal directory nor in a Shoal mount")
def _(scene):
    scene.start()
    return ["bench", "meta", "/etc", "--native"]


# Key files.

def key_file(scene, name, text=None, mode=0o600):
    """A members' key file in the scene, or this text as one."""
    path = os.path.join(scene.top, name)
    if text is None:
        scene.run("key", "new", path)
    else:
        scene.write(path, text)
    os.chmod(path, mode)
    return path


def mount_key_file(scene, members):
    path = os.path.join(scene.top, "mount.key")
    scene.run("key", "mount", members, path)
    return path


for _value in ("7400", "10.0.0.1", "10.0.0.1:0", "10.0.0.1:70000", "unix:/tmp/x", ":7400",
               "1.2.3:7400"):
    @row(f"up-listen={_value}", 1, "--listen takes ADDRESS:PORT", _value)
    def _(scene, value=_value):
        return ["up", scene.new_directory(), "--listen", value, "--key", key_file(scene, "key")]


@row("up-listen-no-key", 1, "--listen needs --key")
def _(scene):
    return ["up", scene.new_directory(), "--listen", "127.0.0.1:7400"]


@row("up-key-missing", 1, "no such name")
def _(scene):
    scene.must_name = os.path.join(scene.top, "key")
    return ["up", scene.new_directory(), "--listen", "127.0.0.1:7400", "--key", scene.must_name]


@row("up-key-of-a-mount", 1, "the key of a mount")
def _(scene):
    scene.must_name = mount_key_file(scene, key_file(scene, "key"))
    return ["up", scene.new_directory(), "--listen", "127.0.0.1:7400", "--key", scene.must_name]


@row("up-key-open-to-others", 1, "others may read or change it")
def _(scene):
    scene.must_name = key_file(scene, "key", mode=0o644)
    return ["up", scene.new_directory(), "--listen", "127.0.0.1:7400", "--key", scene.must_name]


@row("key-new-over", 1, "is there already and stays")
def _(scene):
    scene.must_name = key_file(scene, "key")
    return ["key", "new", scene.must_name]


@row("key-new-over-link", 1, "is there already and stays")
def _(scene):
    scene.must_name = os.path.join(scene.top, "link")
    os.symlink("nowhere", scene.must_name)
    return ["key", "new", scene.must_name]


@row("key-new-nowhere", 1, "cannot be written", "no such name")
def _(scene):
    scene.must_name = os.path.join(scene.top, "absent", "key")
    return ["key", "new", scene.must_name]


@row("key-mount-over", 1, "is there already and stays")
def _(scene):
    members = key_file(scene, "key")
    scene.must_name = mount_key_file(scene, members)
    return ["key", "mount", members, scene.must_name]


@row("key-mount-of-mount", 1, "the key of a mount", "members' key")
def _(scene):
    scene.must_name = mount_key_file(scene, key_file(scene, "key"))
    return ["key", "mount", scene.must_name, os.path.join(scene.top, "other")]


for _mode in (0o640, 0o604, 0o620):
    @row(f"key-mode-{_mode:o}", 1, "others may read or change it", "chmod 600")
    def _(scene, mode=_mode):
        scene.must_name = key_file(scene, "key", mode=mode)
        return ["key", "mount", scene.must_name, os.path.join(scene.top, "other")]


@row("key-missing", 1, "there is no such file")
def _(scene):
    scene.must_name = os.path.join(scene.top, "absent")
    return ["key", "mount", scene.must_name, os.path.join(scene.top, "other")]


@row("key-is-directory", 1, "cannot be read", "not a regular file")
def _(scene):
    scene.must_name = scene.new_directory()
    return ["key", "mount", scene.must_name, os.path.join(scene.top, "other")]


@row("key-is-fifo", 1, "cannot be read", "not a regular file")
def _(scene):
    scene.must_name = os.path.join(scene.top, "fifo")
    os.mkfifo(scene.must_name, 0o600)
    return ["key", "mount", scene.must_name, os.path.join(scene.top, "other")]


for _name, _text, _word in (("empty", b"", "it is empty"),
                            ("foreign", b"-----BEGIN PRIVATE KEY-----\n", "not a key file"),
                            ("binary", bytes(range(256)), "not a key file"),
                            ("newer", b"shoal-key 2\n", "a newer version"),
                            ("long", b"#" * 5000, "too long")):
    @row("key-file-" + _name, 1, _word)
    def _(scene, text=_text):
        scene.must_name = key_file(scene, "key", text)
        return ["key", "mount", scene.must_name, os.path.join(scene.top, "other")]


@row("key-file-cut", 1, "its end is missing")
def _(scene):
    scene.must_name = key_file(scene, "key")
    with open(scene.must_name, "r+b") as file:
        file.truncate(os.path.getsize(scene.must_name) - len("check 0123456789abcdef\n"))
    return ["key", "mount", scene.must_name, os.path.join(scene.top, "other")]


@row("key-add-same", 1, "it has this key already")
def _(scene):
    scene.must_name = key_file(scene, "key")
    return ["key", "add", scene.must_name, scene.must_name]


@row("key-add-third", 1, "it has two keys already")
def _(scene):
    scene.must_name = key_file(scene, "key")
    scene.run("key", "add", scene.must_name, key_file(scene, "second"))
    return ["key", "add", scene.must_name, key_file(scene, "third")]


@row("key-add-mount", 1, "another identity")
def _(scene):
    scene.must_name = key_file(scene, "key")
    return ["key", "add", scene.must_name, mount_key_file(scene, scene.must_name)]


@row("key-add-to-nothing", 1, "there is no such file")
def _(scene):
    scene.must_name = os.path.join(scene.top, "absent")
    return ["key", "add", scene.must_name, key_file(scene, "key")]


@row("key-revoke-nobody-s", 1, "has no key, so nobody comes by one")
def _(scene):
    scene.start()
    return ["key", "revoke", "0123456789abcdef", scene.directory]


@row("key-revoke-by-a-mount", 1, "the key of a mount", "members' key")
def _(scene):
    key = mount_key_file(scene, key_file(scene, "key"))
    scene.must_name = key
    return ["key", "revoke", "0123456789abcdef", "--join", "127.0.0.1:7400", "--key", key]


@row("key-revoke-not-running", 1, "nothing runs on", "shoal up")
def _(scene):
    scene.run_once()
    return ["key", "revoke", "0123456789abcdef", scene.directory]


@row("key-renew-nobody-s", 1, "has no key, so capabilities are signed by none")
def _(scene):
    scene.start()
    return ["key", "renew", scene.directory]


@row("key-renew-by-a-mount", 1, "the key of a mount", "members' key")
def _(scene):
    key = mount_key_file(scene, key_file(scene, "key"))
    scene.must_name = key
    return ["key", "renew", "--join", "127.0.0.1:7400", "--key", key]


for _verb in ("status", "stats", "df", "sync", "fsck"):
    for _name, _join in (("port", "10.0.0.1"), ("commas", "10.0.0.1:7400,,10.0.0.2:7400")):
        usage(f"{_verb}-join-without-{_name}", [_verb, "--join", _join],
              "--join takes ADDRESS:PORT", f"not {_join}", "usage")


@row("key-renew-not-running", 1, "nothing runs on", "shoal up")
def _(scene):
    scene.run_once()
    return ["key", "renew", scene.directory]


# Verbs that find no cluster.

CLUSTER_VERBS = (["down"], ["status"], ["df"], ["stats"], ["sync"], ["fsck"])
PATH_VERBS = (["stat"], ["stripe", "get"], ["umount"])


def none_runs(words):
    @row("none-runs-" + "-".join(words), 1, "no cluster runs here", "shoal up")
    def _(scene):
        del scene
        return words


def not_running(words):
    @row("not-running-" + "-".join(words), 1, "nothing runs on", "shoal up")
    def _(scene):
        scene.run_once()
        scene.must_name = scene.directory
        return words + [scene.directory]


def killed(words):
    @row("killed-" + "-".join(words), 1, "nothing runs on", "shoal up")
    def _(scene):
        scene.start()
        scene.kill()
        scene.must_name = scene.directory
        return words + [scene.directory]


def outside(words):
    @row("outside-" + "-".join(words), 1, "neither a Shoal directory nor in a Shoal mount")
    def _(scene):
        scene.start()
        return words + ["/etc"]


def absent(words):
    @row("absent-" + "-".join(words), 1, "no such file or directory")
    def _(scene):
        scene.start()
        scene.must_name = os.path.join(scene.mount, "absent")
        return words + [scene.must_name]


def several(words):
    @row("several-" + "-".join(words), 1, "2 clusters run here", "name one")
    def _(scene):
        second = Scene(scene.shoal)
        scene.before_close.append(second.close)
        scene.start()
        second.start()
        return words


for _words in CLUSTER_VERBS:
    none_runs(_words)
    several(_words)
    # fsck checks one that is stopped.
    if _words != ["fsck"]:
        not_running(_words)
for _words in CLUSTER_VERBS + PATH_VERBS:
    outside(_words)
    absent(_words)
killed(["status"])
killed(["down"])


@row("killed-tells-of-death", 1, "its daemon has died", "shoal up")
def _(scene):
    scene.start()
    scene.kill()
    return ["status", scene.directory]


def dead_mount(words, *below):
    @row("dead-mount-" + "-".join([*words, *below]), 1, "is dead", "shoal up DIR --mount",
         "umount -l")
    def _(scene):
        scene.start()
        scene.kill()
        wait_for_death(scene.mount)
        scene.must_name = scene.mount
        return [*words, os.path.join(scene.mount, *below)]


def wait_for_death(mount):
    """The kernel answers for a killed daemon for a moment still."""
    for _ in range(SETTLE_LIMIT):
        try:
            os.statvfs(mount)
        except OSError:
            return
        time.sleep(SETTLE_S)


dead_mount(["df"])
dead_mount(["status"])
dead_mount(["umount"])


@row("umount-other", 1, "neither a Shoal directory nor in a Shoal mount")
def _(scene):
    scene.start()
    return ["umount", "/proc"]


@row("umount-not-mounted", 1, "is not mounted")
def _(scene):
    result = scene.run("up", scene.directory)
    if result.returncode != 0:
        raise clusters.Failed(result.stderr)
    return ["umount", scene.directory]


def busy(verb):
    @row(verb + "-busy", 1, "in use", "end what uses it")
    def _(scene):
        scene.start()
        with open(os.path.join(scene.mount, "file"), "wb"):
            pass
        file = open(os.path.join(scene.mount, "file"), "rb")
        scene.before_close.append(file.close)
        scene.started = True
        return [verb, scene.mount]


busy("umount")
busy("down")


@row("umount-after-umount", 1, "is not mounted")
def _(scene):
    scene.start()
    scene.sh("umount", scene.mount)
    result = scene.run("status", scene.directory)
    if "mounted    -" not in result.stdout:
        raise clusters.Failed(result.stdout)
    return ["umount", scene.directory]


def other_user(words):
    @row("other-user-" + "-".join(words), 1, "permission denied", "run it as root")
    def _(scene):
        scene.start()
        os.chmod(scene.top, 0o755)
        scene.user = NOBODY
        scene.must_name = scene.directory
        return words + [scene.directory]


for _words in CLUSTER_VERBS:
    other_user(_words)


@row("other-user-closed-directory", 1, "permission denied", "run it as root")
def _(scene):
    scene.start()
    os.chmod(scene.top, 0o755)
    os.chmod(scene.directory, 0o700)
    scene.user = NOBODY
    scene.must_name = scene.directory
    return ["status", scene.directory]


@row("other-user-names-none", 1, "permission denied", "run it as root")
def _(scene):
    scene.start()
    os.chmod("/run/shoal", 0o700)
    scene.user = NOBODY
    return ["status"]


@row("up-other-osts", 1, "has 1 storage target, not 2", "leave --osts out")
def _(scene):
    scene.run_once()
    scene.must_name = scene.directory
    return up_mounted(scene, "--osts", "2")


@row("up-other-size", 1, f"up to {16 * MIB} bytes, not {32 * MIB}", "data_bytes_max")
def _(scene):
    scene.run_once()
    return up_mounted(scene, "--size", "32M")


def changed_osts(name, number, prepare):
    @row("conf-osts-" + name, 1, f"osts = {number}", "keeps the number")
    def _(scene):
        prepare(scene)
        scene.configure("osts = 1", f"osts = {number}")
        return up_mounted(scene)


def start_and_kill(scene):
    scene.start()
    scene.kill()
    clusters.unmount(scene.mount)


changed_osts("raised", 3, lambda scene: scene.run_once())
changed_osts("raised-after-kill", 64, start_and_kill)


@row("conf-osts-lowered", 1, "osts = 1", "keeps the number")
def _(scene):
    scene.configure("osts = 1", "osts = 3")
    scene.run_once()
    scene.configure("osts = 3", "osts = 1")
    return up_mounted(scene)


@row("conf-mdts-lowered", 1, "mdts = 1", "keeps the number")
def _(scene):
    scene.configure("mdts = 1", "mdts = 2")
    scene.run_once()
    scene.configure("mdts = 2", "mdts = 1")
    return up_mounted(scene)


@row("umount-within", 1, "mount point")
def _(scene):
    scene.start()
    path = os.path.join(scene.mount, "directory")
    os.mkdir(path)
    return ["umount", path]


@row("stripe-set-with-data", 1, "keeps its layout")
def _(scene):
    scene.start()
    path = os.path.join(scene.mount, "file")
    scene.write(path, bytes(MIB))
    return ["stripe", "set", path, "--count", "1"]


@row("stripe-set-fifo", 1, "directory")
def _(scene):
    scene.start()
    path = os.path.join(scene.mount, "fifo")
    os.mkfifo(path)
    return ["stripe", "set", path, "--count", "1"]


# File systems below DIR that are not a disk's, and do.

def serves(scene, directory):
    """What is wrong with a cluster there that is stopped, started and killed once."""
    shutil.move(scene.path("shoal.conf"), directory)
    scene.directory = directory
    path = os.path.join(scene.mount, "file")
    content = os.urandom(3 * MIB + 17)
    scene.start()
    with open(path, "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    for end in (scene.stop, scene.kill, scene.stop):
        end()
        scene.start()
        with open(path, "rb") as file:
            if file.read() != content:
                return "the file has other bytes"
    return None


def on_tmpfs(scene):
    """It serves, and each start says what that is worth."""
    problem = serves(scene, scene.disk(200))
    if problem:
        return problem
    scene.stop()
    result = scene.run("up", scene.directory)
    line = f"shoal up: note: {scene.directory} lies on tmpfs, in memory: a restart of the machine"
    return None if result.stderr.startswith(line) and result.stderr.count("\n") == 1 else \
        f"it says {result.stderr}"


def on_notes(scene):
    """What is no refusal, but should be known: said once, and the cluster serves."""
    disk = os.path.join(scene.top, "disk")
    with open(disk, "wb") as file:
        file.truncate(4096 * MIB)
    scene.sh("mkfs.ext4", "-q", disk)
    scene.directory = scene.new_directory()
    scene.mount_at(scene.directory, "-o", "loop", disk)
    for path in (scene.mount, other := scene.new_directory()):
        scene.write(os.path.join(path, "mine"), b"mine")
    result = scene.run("up", scene.directory, "--mount", scene.mount)
    room = int(re.search(r"has room for (\d+) MiB of data", result.stderr).group(1))
    lines = [f"shoal up: note: the new cluster has room for {room} MiB of data: half of what is "
             f"free on the file system of {scene.directory} beyond logs and keep_free_bytes",
             f"shoal up: note: {scene.mount} is not empty: what is in it is hidden while Shoal is "
             "mounted there"]
    if result.returncode or result.stderr.splitlines() != lines or not 200 < room < 1024:
        return f"it answers {result.returncode}: {result.stderr}"
    scene.run("umount", scene.mount)
    scene.mount = other
    result = scene.run("up", scene.directory, "--mount", other)
    if result.returncode or result.stderr.count("is not empty") != 1:
        return f"it answers {result.returncode}: {result.stderr}"
    scene.stop()
    os.unlink(os.path.join(other, "mine"))
    result = scene.run("up", scene.directory, "--mount", other)
    scene.stop()
    return f"it says {result.stderr}" if result.stderr else None


def on_overlay(scene):
    lower, upper, work, top = (scene.new_directory() for _ in range(4))
    scene.mount_at(top, "-t", "overlay", "-o",
                   f"lowerdir={lower},upperdir={upper},workdir={work}", "none")
    return serves(scene, top)


def write_until_full(scene):
    """Files of 1 MiB, until the mount says that it is full; answers their paths."""
    paths = []
    try:
        while True:
            path = os.path.join(scene.mount, f"big{len(paths)}")
            with open(path, "wb") as file:
                paths.append(path)
                file.write(bytes(MIB))
                os.fsync(file.fileno())
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    return paths


def free_bytes(path):
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def without_data_bytes_max(scene):
    """A shoal.conf of one's own need not say how large data may grow: half of what is free, also
    once there is some."""
    scene.configure(f"data_bytes_max = {16 * MIB}\n", "")
    directory = scene.disk(700)
    shutil.move(scene.path("shoal.conf"), directory)
    scene.directory = directory
    scene.start()
    told = free_bytes(scene.mount)
    if not 200 * MIB < told < 400 * MIB:
        return f"the mount tells {told} bytes"
    scene.write(os.path.join(scene.mount, "large"), bytes(100 * MIB))
    scene.stop()
    scene.start()
    again = free_bytes(scene.mount) + 100 * MIB
    return f"the mount has told {told} bytes, and {again} afterwards" \
        if abs(told - again) > 32 * MIB else None


def on_full_disk(scene):
    """Targets that may grow beyond the file system below: some of it stays free, and the mount
    tells what there is."""
    keep = 64 * MIB
    scene.configure("osts = 1", "osts = 3")
    scene.configure(f"data_bytes_max = {16 * MIB}", f"data_bytes_max = {4096 * MIB}\n"
                    f"keep_free_bytes = {keep}")
    directory = scene.disk(700)
    shutil.move(scene.path("shoal.conf"), directory)
    scene.directory = directory
    scene.start()
    told = free_bytes(scene.mount)
    if not 200 * MIB < told <= 700 * MIB - keep:
        return f"the mount tells {told} bytes"
    paths = write_until_full(scene)
    if abs(told - len(paths) * MIB) > 100 * MIB:
        return f"the mount has told {told} bytes, and takes {len(paths)} MiB"
    if free_bytes(scene.mount) > 50 * MIB:
        return f"the mount is full and tells {free_bytes(scene.mount)} bytes"
    left = free_bytes(directory)
    if left < keep * 9 // 10:
        return f"{left} bytes are left of {keep}"
    with open(scene.path("shoal.log"), encoding="utf-8") as file:
        log = file.read()
    if not re.search(rf"the file system of {directory}/ost\d/data has {left // MIB} MiB free, of "
                     "which keep_free_bytes keeps 64 MiB: make room", log):
        return f"the log does not say what is free: {log[-500:]}"
    if len(paths) < 200:
        return f"full after {len(paths)} MiB of 700"
    for number in range(1000):
        scene.write(os.path.join(scene.mount, f"small{number}"), b"inline")
    for path in paths[:100]:
        os.unlink(path)
    scene.stop()
    scene.start()
    scene.write(os.path.join(scene.mount, "again"), bytes(50 * MIB))
    if len(os.listdir(scene.mount)) != len(paths) - 100 + 1001:
        return "names are lost"
    return None


def on_raised_limit(scene):
    """A limit is raised where there is no room for more: the start takes nothing that is to stay
    free."""
    keep = 64 * MIB
    scene.configure(f"data_bytes_max = {16 * MIB}", f"data_bytes_max = {16 * MIB}\n"
                    f"keep_free_bytes = {keep}")
    directory = scene.disk(200)
    shutil.move(scene.path("shoal.conf"), directory)
    scene.directory = directory
    scene.run_once()
    scene.configure(f"data_bytes_max = {16 * MIB}", f"data_bytes_max = {4096 * MIB}")
    os.mkdir(os.path.join(directory, "filler"))
    with open(os.path.join(directory, "filler", "file"), "wb") as file:
        os.posix_fallocate(file.fileno(), 0, free_bytes(directory) - keep - MIB)
    scene.start()
    if free_bytes(directory) < keep - MIB:
        return f"{free_bytes(directory)} bytes are left of {keep}"
    if os.path.getsize(scene.path("ost0/data")) != 16 * MIB:
        return "the data has grown"
    if free_bytes(scene.mount) > 16 * MIB:
        return f"the mount tells {free_bytes(scene.mount)} bytes"
    scene.stop()
    shutil.rmtree(os.path.join(directory, "filler"))
    scene.start()
    return None if free_bytes(scene.mount) > 30 * MIB else "the mount tells no more space"


LOG_LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ shoal: (.*)")


def on_log(scene):
    """Each line has its time, and each start, stop and death is there to be matched."""
    processes = []
    scene.start()
    processes.append(scene.process())
    with open(scene.path("lock"), encoding="ascii") as file:
        if (text := file.read().rstrip("\n")) != str(processes[0]):
            return f"the lock holds {text!r}"
    scene.stop()
    with open(scene.path("lock"), encoding="ascii") as file:
        if file.read().rstrip("\n"):
            return "the lock still holds something"
    scene.start()
    processes.append(scene.process())
    scene.write(os.path.join(scene.mount, "file"), b"bytes")
    scene.kill()
    scene.start()
    processes.append(scene.process())
    scene.run("umount", scene.mount)
    scene.run("up", scene.directory, "--mount", scene.mount)
    os.kill(processes[-1], signal.SIGTERM)
    for _ in range(SETTLE_LIMIT):
        if scene.process() is None:
            break
        time.sleep(SETTLE_S)
    with open(scene.path("shoal.log"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    ready = f"{scene.directory}: 1 manager, 1 metadata target, 1 storage target, mounted at "
    wanted = [f"{re.escape(ready + scene.mount)}, process {process}" for process in processes]
    stopped = re.escape(f"{scene.directory} stopped, all of it is on disk")
    died = r".*died: [1-9]\d* records are played again, [1-9]\d* of them from memory"
    wanted = [wanted[0], stopped, wanted[1], died, wanted[2],
              re.escape(f"{scene.directory}: mounted at {scene.mount}"), r".*: signal 15 says stop",
              stopped]
    for line in lines:
        match = LOG_LINE.fullmatch(line)
        if not match:
            return f"no time: {line}"
        if wanted and re.fullmatch(wanted[0], match.group(1)):
            wanted.pop(0)
    return f"the log lacks {wanted[0]}: {lines}" if wanted else None


def make_files(scene, names, limit):
    """Small files, until the mount says that it is full; answers whether it did."""
    for _ in range(limit):
        path = os.path.join(scene.mount, f"name{len(names)}")
        try:
            scene.write(path, b"inline" * 300)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            # The name may be there, without its bytes.
            if os.path.exists(path):
                names.append(os.path.basename(path))
            return True
        names.append(os.path.basename(path))
    return False


def on_no_space(scene):
    """Something else takes all the space below: no checkpoint, but all else, until the log is full;
    reading, stopping, starting and a kill then, and all goes on once there is space."""
    scene.configure("[sizes]", f"[sizes]\nmdt_changes_bytes = {8 * MIB}")
    top = scene.disk(150)
    directory = os.path.join(top, "data")
    os.mkdir(directory)
    shutil.move(scene.path("shoal.conf"), directory)
    scene.directory = directory
    names = []
    scene.start()
    if make_files(scene, names, 100):
        return "full before it is"
    fill(top)
    if make_files(scene, names, 100):
        return "full, though nothing needs space yet"
    os.unlink(os.path.join(scene.mount, names.pop()))
    if not make_files(scene, names, 100000):
        return "never full"
    os.unlink(os.path.join(scene.mount, names.pop()))
    for end in (scene.stop, scene.kill, scene.stop):
        if sorted(os.listdir(scene.mount)) != sorted(names):
            return "names are lost"
        with open(os.path.join(scene.mount, names[0]), "rb") as file:
            if file.read() != b"inline" * 300:
                return "the file has other bytes"
        end()
        scene.start()
    os.unlink(os.path.join(top, "filler"))
    for _ in range(200):
        if not make_files(scene, names, 1):
            break
        time.sleep(SETTLE_S)
    if make_files(scene, names, 500):
        return "still full"
    return None if sorted(os.listdir(scene.mount)) == sorted(names) else "names are lost at the end"


def cluster_id(directory):
    with open(os.path.join(directory, "shoal.conf"), encoding="ascii") as file:
        return next(line for line in file if line.startswith("id = "))


def on_two_starts(scene):
    """Two starts at the same time in an empty directory: one serves, the other is refused, and the
    cluster keeps the identity that it serves under. Whichever way the two meet."""
    for _ in range(6):
        scene.directory = scene.new_directory()
        words = [scene.shoal, "up", scene.directory, "--osts", "1", "--size", "16M"]
        starts = [subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True) for _ in range(2)]
        lines = [start.communicate(timeout=LIMIT_S)[1] for start in starts]
        before = cluster_id(scene.directory)
        scene.note_regions()
        if sorted(start.returncode for start in starts) != [0, 1]:
            return f"exit statuses {[start.returncode for start in starts]}: {lines}"
        refused = next(line for line, start in zip(lines, starts) if start.returncode)
        wanted = f"{scene.directory} is in use by process {scene.process()}: stop it with"
        if wanted not in refused:
            return f"the second start says {refused.strip()}"
        scene.stop()
        if cluster_id(scene.directory) != before:
            return "the second start has given it another id"
        result = scene.run("up", scene.directory)
        if result.returncode:
            return f"it does not start again: {result.stderr.strip()}"
        scene.stop()
        shutil.rmtree(scene.directory)
    return None


def on_cut_format(scene):
    """A first start that was killed before it had marked the directory."""
    scene.directory = scene.new_directory()
    scene.write(scene.path("lock"), b"%-15d\n" % 1234567)
    scene.write(scene.path("shoal.conf.tmp"), b"[clus")
    result = scene.run("up", scene.directory, "--osts", "1", "--size", "16M")
    if result.returncode:
        return result.stderr.strip()
    scene.stop()
    left = [name for name in os.listdir(scene.directory) if name.endswith(".tmp")]
    return f"{left} is left" if left else None


# Nothing on a full disk takes longer, and when it has space again all goes on within the second.
ANSWER_LIMIT_S = 2
AGAIN_LIMIT_S = 10


def answer(do, *words):
    """0 or ENOSPC, of a call that must not hang."""
    error_number = clusters.answer(ANSWER_LIMIT_S, do, *words)
    if error_number not in (0, errno.ENOSPC):
        raise clusters.Failed(f"{do.__name__} {words} answers {error_number}")
    return error_number


def late_closes(scene):
    stats = json.loads(scene.run("stats", scene.directory, "--json").stdout)
    return next(row["value"] for row in stats["counters"] if row["name"] == "late_closes")


def append_and_sync(handle):
    os.write(handle, bytes(100))
    os.fsync(handle)


def open_append_and_sync(path):
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        append_and_sync(handle)
    finally:
        os.close(handle)


def spend(scene, names, writer, reader):
    """Until nothing has a reserve any more: what makes files, then what removes some, then what
    syncs; and closes, which succeed."""
    fill(scene.path("mdt0"))
    while not make_files(scene, names, 1000):
        pass
    removed = 0
    while names and answer(os.unlink, os.path.join(scene.mount, names[-1])) == 0:
        names.pop()
        removed += 1
        if removed % 4 == 0:
            os.sync()
    if removed == 0 or not names:
        raise clusters.Failed(f"{removed} files can be removed, {len(names)} are left")
    for count in range(10000):
        if answer(append_and_sync, writer):
            break
    else:
        raise clusters.Failed("fsync never meets the full disk")
    kept = os.path.join(scene.mount, "kept")
    for do, words in ((append_and_sync, (writer,)), (os.unlink, (kept,)), (os.truncate, (kept, 1)),
                      (os.chmod, (kept, 0o600)), (os.utime, (kept,))):
        if answer(do, *words) != errno.ENOSPC:
            raise clusters.Failed(f"{do.__name__} has room after {count} syncs")
    before = late_closes(scene)
    if answer(os.close, reader):
        raise clusters.Failed("a close of what was not written says that there is no room")
    until(lambda: late_closes(scene) > before, "the close that is put off")
    answer(os.close, writer)


def goes_on(scene, names, size):
    """All that was refused, within seconds; names, the file's size and bytes are right."""
    end = time.monotonic() + AGAIN_LIMIT_S
    kept = os.path.join(scene.mount, "kept")
    written = os.path.join(scene.mount, "written")
    for do, words in ((open_append_and_sync, (written,)), (os.utime, (kept,)),
                      (os.chmod, (kept, 0o600)), (os.truncate, (kept, 1))):
        while answer(do, *words):
            if time.monotonic() > end:
                raise clusters.Failed(f"{do.__name__} is still refused after {AGAIN_LIMIT_S} s")
            time.sleep(SETTLE_S)
    if sorted(os.listdir(scene.mount)) != sorted([*names, "kept", "written"]):
        raise clusters.Failed("names are lost")
    found = os.stat(written).st_size
    if found < size:
        raise clusters.Failed(f"{size} bytes were written and {found} are there")


def on_no_reserve(scene):
    """The metadata target's disk is full until nothing has a reserve left: each is told at once, a
    close succeeds, and the cluster can be stopped. With space again all goes on: as it is, after a
    stop, and after a kill."""
    scene.configure(f"mdt_changes_bytes = {clusters.SIZES['mdt_changes_bytes']}",
                    f"mdt_changes_bytes = {8 * MIB}")
    disk_of_target(scene, "mdt0", 64)
    scene.start()
    names = []
    scene.write(os.path.join(scene.mount, "kept"), bytes(100000))
    scene.write(os.path.join(scene.mount, "written"), bytes(100000))
    for end in (None, scene.stop, scene.kill):
        writer = os.open(os.path.join(scene.mount, "written"), os.O_WRONLY | os.O_APPEND)
        reader = os.open(os.path.join(scene.mount, "kept"), os.O_RDONLY)
        append_and_sync(writer)
        spend(scene, names, writer, reader)
        size = os.stat(os.path.join(scene.mount, "written")).st_size
        if end:
            end()
        os.unlink(scene.path("mdt0/filler"))
        if end:
            scene.start()
        goes_on(scene, names, size)
    return None


# _IOR('X', 125, __u32), and to go down at once, without another write.
EXT4_IOC_SHUTDOWN = 0x8004587d
EXT4_GOING_FLAGS_NOLOGFLUSH = struct.pack("I", 2)


def until(condition, what):
    """Waits for the condition."""
    end = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > end:
            raise clusters.Failed(f"{what}: not within {LIMIT_S} s")
        time.sleep(SETTLE_S)


def states_of(scene, path):
    """What `status` says of the targets."""
    result = scene.run("status", path, "--json", limit_s=LIMIT_S)
    if result.returncode:
        raise clusters.Failed(f"status: {result.stderr.strip()}")
    found = json.loads(result.stdout)
    return {row["id"]: row["state"] for row in found["managers"] + found["targets"]}


def use_and_sync(scene, number):
    """Something for every target's log; the error, if one comes."""
    try:
        with open(os.path.join(scene.mount, f"use{number}"), "wb") as file:
            file.write(bytes(200000))
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno
    return 0


def end_by_down(scene):
    """By the path of a mount that may answer nothing but errors."""
    result = scene.run("down", scene.mount, limit_s=LIMIT_S)
    if result.returncode != 1 or "stopped with an error" not in result.stderr:
        raise clusters.Failed(f"down answers {result.returncode}: {result.stderr.strip()}")


def end_by_signal(scene):
    handle = os.pidfd_open(scene.process())
    signal.pidfd_send_signal(handle, signal.SIGTERM)
    ended, _, _ = select.select([handle], [], [], LIMIT_S)
    os.close(handle)
    if not ended:
        raise clusters.Failed(f"SIGTERM does not end it in {LIMIT_S} s")


def disk_of_target(scene, target, megabytes=200):
    """A target's directory on a file system of its own; its image."""
    image = os.path.join(scene.top, "image")
    with open(image, "wb") as file:
        file.truncate(megabytes * MIB)
    scene.sh("mkfs.ext4", "-q", image)
    os.mkdir(scene.path(target))
    scene.mount_at(scene.path(target), "-o", "loop", image)
    return image


def disk_goes(scene, target):
    folder = os.open(scene.path(target), os.O_RDONLY)
    fcntl.ioctl(folder, EXT4_IOC_SHUTDOWN, EXT4_GOING_FLAGS_NOLOGFLUSH)
    os.close(folder)


def has_open(process, begin):
    """Whether a process has something open whose name begins so."""
    folder = f"/proc/{process}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            # It may be closed by now.
            with contextlib.suppress(OSError):
                if os.readlink(os.path.join(folder, name)).startswith(begin):
                    return True
    return False


def on_failed_start(scene):
    """After a kill the metadata target's disk goes away between its opening and the eviction of the
    session before: the start ends with a line. It is stopped at the first storage target's log,
    with seven more to open."""
    scene.configure("osts = 1", "osts = 8")
    image = disk_of_target(scene, "mdt0")
    scene.start()
    if use_and_sync(scene, 0):
        return "it does not work"
    scene.kill()
    with clusters.child([scene.shoal, "up", scene.directory, "--mount", scene.mount],
                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                        stderr=subprocess.PIPE, text=True) as start:
        log = os.path.realpath(scene.path("ost0/log"))
        while start.poll() is None and not has_open(scene.process(), log):
            pass
        daemon = os.pidfd_open(scene.process())
        signal.pidfd_send_signal(daemon, signal.SIGSTOP)
        disk_goes(scene, "mdt0")
        signal.pidfd_send_signal(daemon, signal.SIGCONT)
        try:
            error = start.communicate(timeout=LIMIT_S)[1]
        except subprocess.TimeoutExpired:
            signal.pidfd_send_signal(daemon, signal.SIGKILL)
            return "it never ends"
        finally:
            os.close(daemon)
    if start.returncode != 1 or "cannot be started" not in error:
        return f"exit status {start.returncode}: {error.strip()}"
    until(lambda: scene.process() is None, "the daemon's end")
    scene.sh("umount", scene.path("mdt0"))
    scene.sh("mount", "-o", "loop", image, scene.path("mdt0"))
    scene.start()
    if os.path.getsize(os.path.join(scene.mount, "use0")) != 200000 or use_and_sync(scene, 1):
        return "it does not work again"
    scene.stop()
    return None


def on_failed_target(target, end, scene):
    """The disk below one target goes away: that is said once, by the log, and by `status`; the
    cluster ends soon all the same, and with the disk back it has all that was synced."""
    image = disk_of_target(scene, target)
    scene.start()
    if use_and_sync(scene, 0):
        return "it does not work"
    disk_goes(scene, target)
    # The manager writes only when sessions come and go.
    if target != "manager":
        until(lambda: use_and_sync(scene, 1) == errno.EIO, "an error of the target")
        until(lambda: states_of(scene, scene.mount)[target] == "failed", "its state")
        if list(states_of(scene, scene.mount).values()).count("failed") != 1:
            return f"states are {states_of(scene, scene.mount)}"
    end(scene)
    until(lambda: scene.process() is None, "the daemon's end")
    with open(scene.path("shoal.log"), encoding="utf-8") as file:
        lines = [line for line in file if f"{scene.path(target)}: " in line]
    if len(lines) != 1 or "answers nothing more" not in lines[0] or "shoal down" not in lines[0]:
        return f"the log says of it {lines}"
    scene.sh("umount", scene.path(target))
    scene.sh("mount", "-o", "loop", image, scene.path(target))
    scene.start()
    if os.path.getsize(os.path.join(scene.mount, "use0")) != 200000 or use_and_sync(scene, 2):
        return "it does not work again"
    scene.stop()
    return None


def on_signal_of_down(scene):
    """A daemon that answers nothing: who waits for it may give up."""
    scene.start()
    daemon = os.pidfd_open(scene.process())
    signal.pidfd_send_signal(daemon, signal.SIGSTOP)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Who runs this test may ignore SIGINT, which would be inherited.
        with clusters.child([scene.shoal, "down", scene.directory], stdin=subprocess.DEVNULL,
                            preexec_fn=lambda: signal.signal(signal.SIGINT,
                                                             signal.SIG_DFL)) as down:
            until(lambda: has_open(down.pid, "socket:"), "the call of `down`")
            down.send_signal(number)
            try:
                status = down.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                down.kill()
                return f"{number.name} does not end it"
        if status != -number:
            return f"{number.name} ends it with {status}"
    # It was asked to end all the same.
    signal.pidfd_send_signal(daemon, signal.SIGCONT)
    os.close(daemon)
    until(lambda: scene.process() is None, "the daemon's end")
    return None


def on_help(scene):
    """Each program and verb says what it is for, with an example."""
    asked = [[scene.shoal, "--help"], [scene.shoal + "d", "--help"]]
    listed = subprocess.run(asked[0], capture_output=True, text=True, check=False).stdout
    verbs = re.findall(r"^  (\w+) ", listed, flags=re.M)
    if len(verbs) < 12:
        return f"{len(verbs)} verbs are listed"
    asked += [[scene.shoal, verb, "--help"] for verb in verbs]
    for words in asked[1:]:
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        name = " ".join([os.path.basename(words[0]), *words[1:-1]])
        if result.returncode or result.stderr or "Example:\n  " + name not in result.stdout:
            return f"{name} --help answers {result.returncode}: {result.stdout}{result.stderr}"
        asked_again = [[*words[:-1], "-h"]]
        if words[1] != "--help":
            asked_again.append([words[0], "help", words[1]])
        for again in asked_again:
            other = subprocess.run(again, capture_output=True, text=True, check=False)
            if other.returncode or other.stdout != result.stdout:
                return f"{again} answers {other.returncode}: {other.stdout}{other.stderr}"
    for words in (["-h"], ["help"], []):
        result = subprocess.run([scene.shoal, *words], capture_output=True, text=True, check=False)
        if result.returncode or result.stdout != listed:
            return f"shoal {words} answers {result.returncode}: {result.stdout}"
    result = subprocess.run([scene.shoal + "d", "--version"], capture_output=True, text=True,
                            check=False)
    return None if "on-disk format" in result.stdout else f"shoald --version: {result}"


def on_left_entries(scene):
    """What killed daemons left in the registry goes with the next look, and nothing else."""
    # Those that rows before have killed may be there as long as nobody has waited for them.
    for name in os.listdir("/run/shoal"):
        os.unlink(f"/run/shoal/{name}")
    scene.start()
    kept = os.listdir("/run/shoal")
    gone = scene.new_directory()
    scene.write("/run/shoal/999999999", os.path.join(gone, "absent").encode())
    scene.write("/run/shoal/999999998", gone.encode())
    scene.write(f"/run/shoal/{os.getpid()}", os.path.join(gone, "out of sight").encode())
    # Half written ones.
    scene.write("/run/shoal/999999997.tmp", gone.encode())
    scene.write("/run/shoal/999999996.tmp", b"")
    others = [str(os.getpid()), f"{os.getpid()}.tmp", "mine.tmp", "99999999999999999999.tmp"]
    for name in others[1:]:
        scene.write(f"/run/shoal/{name}", b"")
    kept = sorted([*kept, *others])
    result = scene.run("status")
    found = sorted(os.listdir("/run/shoal"))
    for name in others:
        os.unlink(f"/run/shoal/{name}")
    if result.returncode or scene.directory not in result.stdout:
        return f"status answers {result.returncode}: {result.stderr.strip()}"
    return None if found == kept else f"the registry has {found}, not {kept}"


def on_unreadable_base(scene):
    """The disk no longer gives what a target reads: the daemon ends, and says of which file."""
    scene.configure("[sizes]", f"[sizes]\nmdt_changes_bytes = {8 * MIB}")
    scene.start()
    for number in range(3000):
        scene.write(os.path.join(scene.mount, f"file{number}"), b"")
    scene.stop()
    scene.start()
    os.truncate(scene.path("mdt0/base.mdb"), 8192)
    try:
        os.listdir(scene.mount)
    except OSError:
        pass
    until(lambda: scene.process() is None, "the daemon's end")
    with open(scene.path("shoal.log"), encoding="utf-8") as file:
        end = file.read().splitlines()[-1]
    return None if scene.path("mdt0/base.mdb") + " cannot be read" in end else f"it says {end}"


def on_mount_again(scene):
    """A cluster that runs is mounted anew, at the same place and at others, by up alone."""
    scene.start()
    scene.write(os.path.join(scene.mount, "file"), b"bytes")
    process = scene.process()
    for words in (["shoal", "umount", scene.mount], ["umount", scene.mount]):
        for place in (scene.mount, scene.new_directory(), scene.mount):
            if words[0] == "shoal":
                scene.run("umount", scene.mount)
            else:
                scene.sh(*words)
            scene.mount = words[-1] = place
            result = scene.run("up", scene.directory, "--mount", place)
            if result.stdout != f"{scene.directory}: mounted at {place}\n" or result.returncode:
                return f"it answers {result.returncode}: {result.stdout}{result.stderr}"
            with open(os.path.join(place, "file"), "rb") as file:
                if file.read() != b"bytes":
                    return "the file has other bytes"
            if f"mounted    {place}\n" not in scene.run("status", place).stdout:
                return "the status does not tell the new mount"
            with open("/proc/mounts", encoding="utf-8") as file:
                if f"shoal@{scene.directory} {place} fuse.shoal" not in file.read():
                    return "the table of mounts does not name the cluster"
    scene.write(os.path.join(scene.mount, "other"), b"more")
    if scene.process() != process:
        return "it is not the same daemon"
    scene.stop()
    scene.start()
    names = sorted(os.listdir(scene.mount))
    return None if names == ["file", "other"] else f"there are {names}"


def connection(scene):
    """To the daemon's control socket, with nothing said yet."""
    control = socket.socket(socket.AF_UNIX)
    # With a time limit set it would not wait for room in the queue.
    control.connect(scene.path("control.sock"))
    control.settimeout(LIMIT_S)
    return control


def ask(control, *words):
    """Exit status and text of an answer."""
    request = b"".join(word.encode() + b"\0" for word in words)
    control.sendall(struct.pack("<I", len(request)) + request)
    with control.makefile("rb") as answer:
        text = b""
        while size := struct.unpack("<I", answer.read(4))[0]:
            text += answer.read(size)
        return struct.unpack("<I", answer.read(4))[0], text.decode()


def on_control(scene):
    """Requests that no verb makes are refused, and who says nothing holds up nobody."""
    scene.start()
    layout = ask(connection(scene), "stripe", "get", "1", "-", "-")
    for words in (["set", "1", "x", "y"], ["set", "1", "0", "-"], ["set", "1", "-1", "-"],
                  ["set", "1", "65535", "-"], ["set", "1", "-", "1000"], ["set", "1", "2", "65K"],
                  ["set", "1", "-", "128M"], ["set", "1", "2"], ["set", "1", "2", "-", "more"],
                  ["zap", "1", "-", "-"], ["zap", "1"], ["get", "1", "2", "-"], ["get"], [],
                  ["get", "one", "-", "-"], ["set", "1", "-", "99999999999999999999"]):
        status, text = ask(connection(scene), "stripe", *words)
        if status != 2 or "does not understand" not in text:
            return f"{words} is answered with {status}: {text}"
    if layout[0] or ask(connection(scene), "stripe", "get", "1", "-", "-") != layout:
        return "the layout has changed"
    status, text = ask(connection(scene), "stripe", "set", "1", "3", "128K")
    if status or "128 KiB" not in text or "count  3" not in text:
        return f"the layout is set with {status}: {text}"
    silent = [connection(scene) for _ in range(40)]
    halves = [connection(scene) for _ in range(8)]
    for half in halves:
        half.sendall(struct.pack("<I", 12) + b"mount")
    if ask(connection(scene), "mount-point") != (0, scene.mount):
        return "behind half requests nobody is answered"
    if len(select.select(halves, [], [], 0)[0]) == len(halves):
        return "half requests hold up the others to their end"
    halves[0].sendall(b"-point\0")
    with halves[0].makefile("rb") as answer:
        if not answer.read().endswith(struct.pack("<II", 0, 0)):
            return "a request in two parts is not answered"
    if any(half.recv(1) != b"" for half in halves[1:]):
        return "there is an answer to half a request"
    result = scene.run("status", scene.directory, limit_s=LIMIT_S)
    if result.returncode:
        return f"status answers {result.returncode}: {result.stderr.strip()}"
    if ask(silent[-1], "mount-point") != (0, scene.mount):
        return "who has been silent is not answered"
    scene.run("down", scene.directory, limit_s=LIMIT_S)
    return None if silent[-2].recv(1) == b"" else "there is an answer to nothing"


def on_bench_time(scene):
    """The time of a phase holds for the directories before it too, and they go again."""
    scene.start()
    for native in ([], ["--native"]):
        result = scene.run("bench", "meta", scene.mount, "--dirs", "1000000000", "--files", "2",
                           "--seconds", "1", *native, limit_s=LIMIT_S)
        if result.returncode != 1 or "lower --dirs" not in result.stderr or result.stdout:
            return f"{native} it answers {result.returncode}: {result.stderr.strip()}"
        if os.listdir(scene.mount):
            return f"{os.listdir(scene.mount)} is left"
    return None


def on_limits(scene):
    """A limit of open files that is not the last is raised; one of a file's size ends its growth,
    with a line, and all else goes on."""
    scene.configure(f"data_bytes_max = {16 * MIB}", f"data_bytes_max = {1024 * MIB}")
    command = ["prlimit", "--nofile=32:4096", f"--fsize={100 * MIB}", scene.shoal, "up",
               scene.directory, "--mount", scene.mount]
    result = subprocess.run(command, capture_output=True, text=True, check=False,
                            timeout=LIMIT_S, stdin=subprocess.DEVNULL)
    if result.returncode:
        return f"up answers {result.returncode}: {result.stderr.strip()}"
    scene.note_regions()
    paths = write_until_full(scene)
    with open(scene.path("shoal.log"), encoding="utf-8") as file:
        log = file.read()
    if "cannot grow beyond 64 MiB: the file would be larger than a limit allows" not in log:
        return f"the log says {log[-500:]}"
    os.unlink(paths[0])
    scene.stop()
    scene.start()
    return None if len(os.listdir(scene.mount)) == len(paths) - 1 else "names are lost"


def answers_dead(path):
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def on_dead_mount(scene):
    """Until the new mount takes its place, the dead one stays: no program meets the directory
    beneath while logs are recovered, nor after a start that fails at that, or makes no mount."""
    scene.start()
    scene.write(os.path.join(scene.mount, "file"), b"bytes")
    scene.kill()
    wait_for_death(scene.mount)
    until(lambda: answers_dead(scene.mount), "the end of the connection")
    os.rename(scene.path("ost0/base.mdb"), os.path.join(scene.top, "base.mdb"))
    scene.write(scene.path("ost0/base.mdb"), b"no database" * 1000)
    result = scene.run("up", scene.directory, "--mount", scene.mount)
    if result.returncode != 1 or "cannot be started" not in result.stderr:
        return f"it answers {result.returncode}: {result.stderr.strip()}"
    if not answers_dead(scene.mount):
        return "a start that failed has taken the dead mount away"
    os.rename(os.path.join(scene.top, "base.mdb"), scene.path("ost0/base.mdb"))
    result = scene.run("up", scene.directory)
    if result.returncode or not answers_dead(scene.mount):
        return f"without a mount it answers {result.returncode}: {result.stderr.strip()}"
    result = scene.run("umount", scene.mount)
    if result.returncode != 1 or "is dead" not in result.stderr or not answers_dead(scene.mount):
        return f"umount answers {result.returncode}: {result.stderr.strip()}"
    scene.start()
    with open(os.path.join(scene.mount, "file"), "rb") as file:
        if file.read() != b"bytes":
            return "the file has other bytes"
    scene.stop()
    return "something is beneath" if os.listdir(scene.mount) else None


WORKS = [("works-help", on_help), ("works-mount-again", on_mount_again),
         ("works-dead-mount", on_dead_mount),
         ("works-unreadable-base", on_unreadable_base),
         ("works-left-entries", on_left_entries), ("works-control", on_control),
         ("works-bench-time", on_bench_time), ("works-limits", on_limits),
         ("works-failed-mdt", functools.partial(on_failed_target, "mdt0", end_by_down)),
         ("works-failed-ost", functools.partial(on_failed_target, "ost0", end_by_down)),
         ("works-failed-manager", functools.partial(on_failed_target, "manager", end_by_down)),
         ("works-failed-mdt-signal", functools.partial(on_failed_target, "mdt0", end_by_signal)),
         ("works-failed-start", on_failed_start),
         ("works-signal-of-down", on_signal_of_down),
         ("works-two-starts", on_two_starts), ("works-cut-format", on_cut_format),
         ("works-on-tmpfs", on_tmpfs), ("works-notes", on_notes),
         ("works-on-overlay", on_overlay),
         ("works-without-data-bytes-max", without_data_bytes_max),
         ("works-on-full-disk", on_full_disk), ("works-raised-limit", on_raised_limit),
         ("works-log", on_log),
         ("works-on-no-space", on_no_space), ("works-no-reserve", on_no_reserve)]


def run_works(shoal, serve):
    with Scene(shoal) as scene:
        return serve(scene)


def run_row(shoal, status, expected, prepare):
    """What is wrong with the refusal, or None."""
    with Scene(shoal) as scene:
        words = prepare(scene)
        problem = refuse(scene, words, status, expected)
        # A busy machine may let a daemon take its sync point only now. What the refusal itself
        # writes, it writes each time.
        for _ in range(AGAIN_MAX):
            if problem is None or not problem.endswith(LOG_CHANGED) or scene.process() is None:
                break
            problem = refuse(scene, words, status, expected)
        return problem


def refuse(scene, words, status, expected):
    """Runs the command once: what is wrong, or None."""
    shoal = scene.shoal
    if scene.user is not None:
        shoal = clusters.for_everybody(shoal, scene.top)
    before = settled_state(scene)
    command = [shoal, *words]
    if words and words[0] == "shoald":
        command = [scene.shoal + "d", *words[1:]]
    if scene.limits:
        command = ["prlimit", *scene.limits, *command]
    if scene.user is not None:
        command = ["setpriv", f"--reuid={scene.user}", f"--regid={scene.user}",
                   "--clear-groups", *command]
    try:
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                                timeout=LIMIT_S, check=False,
                                env={**os.environ, **scene.environment})
    except subprocess.TimeoutExpired:
        return f"it does not end in {LIMIT_S} s"
    line = result.stderr.decode(errors="replace")
    after = state(scene)
    if result.returncode != status:
        return f"exit status {result.returncode}, not {status}: {line.strip()[-300:]}"
    if line.count("\n") != 1 or not line.endswith("\n"):
        return f"{line.count(chr(10))} lines on standard error: {line.strip()}"
    for word in expected + ((scene.must_name,) if scene.must_name else ()):
        if word not in line:
            return f"the line does not say \"{word}\": {line.strip()}"
    if result.stdout:
        return f"standard output has {result.stdout.decode(errors='replace').strip()}"
    return difference(before, after)


def main():
    if len(sys.argv) not in (2, 3):
        print(__doc__.split("\n")[4], file=sys.stderr)
        return 2
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}")
        print(f"0 passed, 0 failed, {len(ROWS) + len(WORKS)} skipped")
        return 0
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "/usr/bin/python3",
                              *sys.argv])
    # What `up` says of this machine's settings is in no row.
    os.environ["SHOAL_MACHINE_ROOT"] = "/nowhere"
    os.makedirs("/run/shoal", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run/shoal"], check=True)
    rows = [(name, functools.partial(run_row, sys.argv[1], *rest)) for name, *rest in ROWS]
    rows += [(name, functools.partial(run_works, sys.argv[1], serve)) for name, serve in WORKS]
    passed = 0
    failed = 0
    for name, run in rows:
        if len(sys.argv) == 3 and not name.startswith(sys.argv[2]):
            continue
        try:
            problem = run()
        except (clusters.Failed, OSError, subprocess.CalledProcessError) as error:
            problem = f"the scene cannot be set: {error}"
        if problem:
            print(f"FAILED: {name}: {problem}", flush=True)
            failed += 1
        else:
            passed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
