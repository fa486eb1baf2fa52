#!/usr/bin/python3
"""Mounts that processes of their own serve, on the daemon's machine or, with a key, as from
another: the daemon may die, stop and come back below them, they may die and be made anew, several
may be there at a time.

Usage: mount.py SHOAL [TEST...]

SHOAL is the command. The last line counts.
"""

import contextlib
import ctypes
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import cluster as clusters
from cluster import Failed
from driver import Skipped, drive
from files_load import LIMIT_S, Load, wait_until

KILLS = 4
LIBC = ctypes.CDLL(None, use_errno=True)
LARGE = 32 << 20


def other(cluster, name):
    """Another place to mount at."""
    path = os.path.join(cluster.top, name)
    os.makedirs(path, exist_ok=True)
    return path


def a_daemon_that_dies_is_a_pause(cluster):
    cluster.start()
    work = Load(cluster)
    served = cluster.mount_process(cluster.mount)
    for _ in range(KILLS):
        work.goes_on()
        cluster.kill()
        cluster.start()
    work.goes_on()
    count, longest = work.check()
    if cluster.mount_process(cluster.mount) != served:
        raise Failed("the mount is not that of before")
    print(f"{KILLS} kills under {count} files, the longest took {longest} s")


def a_daemon_that_stops_is_a_pause(cluster):
    cluster.start()
    work = Load(cluster)
    work.goes_on()
    cluster.stop()
    cluster.start()
    work.goes_on()
    work.check()


def names_are_as_old_as_ttl_says(cluster):
    """What another mount has changed is seen after that time at the latest, and what is opened is
    what it has closed, whatever that time is."""
    cluster.start()
    old, new = other(cluster, "mount2"), other(cluster, "mount3")
    cluster.mount_apart(old, "-o", "ttl=3600")
    cluster.mount_apart(new, "-o", "ttl=0")
    for size in (10, 5000, 3 << 20):
        name = f"file-{size}"
        here = os.path.join(cluster.mount, name)
        with open(here, "wb") as file:
            file.write(b"a" * size)
        modes = {place: os.stat(os.path.join(place, name)).st_mode for place in (old, new)}
        with open(here, "ab") as file:
            file.write(b"b" * 777)
        os.chmod(here, 0o601)
        if os.stat(os.path.join(old, name)).st_mode != modes[old]:
            raise Failed("attributes were asked for again before an hour was over")
        if os.stat(os.path.join(new, name)).st_mode == modes[new]:
            raise Failed("with ttl=0 attributes were old")
        for place in (old, new):
            with open(os.path.join(place, name), "rb") as file:
                if os.fstat(file.fileno()).st_size != size + 777 or \
                        file.read() != b"a" * size + b"b" * 777:
                    raise Failed(f"{place} has another {name} than what was closed")
    os.unlink(os.path.join(cluster.mount, "file-10"))
    if os.path.exists(os.path.join(new, "file-10")):
        raise Failed("with ttl=0 a name was old")


def patience_has_an_end(cluster):
    cluster.start()
    impatient = other(cluster, "mount2")
    cluster.mount_apart(impatient, "-o", "patience=1")
    with open(os.path.join(impatient, "file"), "w", encoding="ascii") as file:
        file.write("word")
    cluster.kill()
    start = time.monotonic()
    try:
        os.stat(os.path.join(impatient, "nothing"))
        raise Failed("nobody served, and a call was answered")
    except OSError as error:
        if error.errno != errno.EIO:
            raise Failed(f"a call without a daemon ends with {error.strerror}") from None
    if time.monotonic() - start > 20:
        raise Failed("a call with a patience of 1 s took more than 20 s")
    cluster.start()
    wait_until(lambda: os.path.exists(os.path.join(impatient, "file")), "an answer")
    with open(os.path.join(impatient, "file"), encoding="ascii") as file:
        if file.read() != "word":
            raise Failed("the file has other bytes")


ENDS_S = 0.1  # what an interrupted call may take
TRIES = 5  # of which half may meet other programs' work on the processors
AT_ONCE = 80  # more than a mount has buffers for requests
# Named by what the call is; `file` is open, and has 1 MiB.
WAITS = {
    # Each its own name: the kernel lets one lookup of a name stand for all.
    "stat": lambda file, path: os.stat(path(f"nothing{os.getpid()}")),
    "open": lambda file, path: os.open(path("file"), os.O_RDONLY),
    "create": lambda file, path: os.open(path(f"made{os.getpid()}"), os.O_RDWR | os.O_CREAT),
    "write": lambda file, path: os.pwrite(file, b"x" * 65536, 0),
    "read": lambda file, path: os.pread(file, 65536, 0),
    "fsync": lambda file, path: os.fsync(file),
    "truncate": lambda file, path: os.ftruncate(file, 5),
    "mkdir": lambda file, path: os.mkdir(path("folder")),
    "list": lambda file, path: os.listdir(path("")),
}


class Alarm(Exception):
    """A signal that a program handles."""


def waiting(file, path, call, kills):
    """A process that waits in the call. Where it isn't to be killed, it is to end with EINTR."""
    def alarm(*_):
        raise Alarm()

    process = os.fork()
    if process == 0:
        signal.signal(signal.SIGUSR1, signal.SIG_DFL if kills else alarm)
        try:
            WAITS[call](file, path)
            os._exit(1)
        except Alarm:
            os._exit(0)
        except OSError:
            os._exit(2)
        except BaseException:  # pylint: disable=broad-except
            os._exit(3)
    return process


def is_in_a_call(process):
    if os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        raise Failed("what was to wait for the daemon has ended")
    with open(f"/proc/{process}/wchan", encoding="ascii") as file:
        return file.read() == "request_wait_answer"


def ends_soon(processes, number, what):
    """All of them, after the signal; the longest."""
    start = time.monotonic()
    for process in processes:
        os.kill(process, number)
    for process in processes:
        _, status = os.waitpid(process, 0)
        if status not in (0, number):
            raise Failed(f"{what}: a process that got signal {number} ended with {status}")
    return time.monotonic() - start


def who_is_interrupted_does_not_wait(cluster):
    """While the daemon is away; also many at once, and with what follows."""
    cluster.start()
    name = lambda one: os.path.join(cluster.mount, one)
    file = os.open(name("file"), os.O_RDWR | os.O_CREAT)
    os.pwrite(file, b"b" * (1 << 20), 0)
    os.fsync(file)
    os.chmod(cluster.top, 0o755)
    for user in (1, 2):  # as many requests are kept ready as users that take turns need
        subprocess.run(["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "ls",
                        cluster.mount], stdout=subprocess.DEVNULL, check=True)
    cluster.kill()
    longest = 0
    for kills in (True, False):
        number = signal.SIGKILL if kills else signal.SIGUSR1
        for call in WAITS:
            took = []
            for _ in range(TRIES):
                process = waiting(file, name, call, kills)
                wait_until(lambda: is_in_a_call(process), f"the wait of {call}")
                wait_until(lambda: "does not answer" in cluster.log_end("mount.log"), "its line")
                took.append(ends_soon([process], number, call))
            longest = max(longest, sorted(took)[TRIES // 2])
            if longest > ENDS_S:
                raise Failed(f"{call}: signal {number} took {took} s")
    all_took = 0
    for call in ("stat", "open"):
        many = [waiting(file, name, call, True) for _ in range(AT_ONCE)]
        for process in many:
            wait_until(lambda: is_in_a_call(process), "all waits")
        took = ends_soon(many, signal.SIGKILL, "many at once")
        all_took = max(all_took, took)
        if took > 10 * ENDS_S:
            raise Failed(f"{AT_ONCE} that were killed at once in {call} took {took:.3f} s")
    cluster.start()
    wait_until(lambda: os.stat(name("file")).st_size in (5, 1 << 20), "the daemon")
    if os.pwrite(file, b"after", 0) != 5:
        raise Failed("the file that was open is not written")
    os.fsync(file)
    os.close(file)
    with open(name("file"), "rb") as again:
        if again.read(5) != b"after":
            raise Failed("the file has other bytes")
    wait_until(lambda: counted(cluster, "opens") == 0, "the end of what nobody has open")
    print(f"one alone took {longest:.3f} s at most (medians), {AT_ONCE} at once {all_took:.3f} s")


def who_is_interrupted_leaves_a_daemon_that_stands_still(cluster):
    """It is taken for away when it has not answered for 6 s, and before its connection is."""
    cluster.start()
    file = os.open(os.path.join(cluster.mount, "file"), os.O_RDWR | os.O_CREAT)
    os.pwrite(file, b"b" * 65536, 0)
    daemon = cluster.process()
    clusters.stop_process(daemon)
    try:
        process = waiting(file, lambda one: os.path.join(cluster.mount, one), "write", True)
        wait_until(lambda: is_in_a_call(process), "the wait of the write")
        took = ends_soon([process], signal.SIGKILL, "write")
        if took > 9:
            raise Failed(f"it took {took:.3f} s")
    finally:
        os.kill(daemon, signal.SIGCONT)
    if os.pwrite(file, b"after", 0) != 5:
        raise Failed("the file is not written")
    os.close(file)
    print(f"it took {took:.1f} s")


def a_mount_that_dies_is_made_anew(cluster):
    cluster.start()
    work = Load(cluster)
    work.goes_on()
    clusters.end_process(cluster.mount_process(cluster.mount))
    error = work.ended()
    if "Errno" not in error:
        raise Failed(f"below a dead mount a program says: {error}")
    cluster.mount_apart(cluster.mount)
    work.compare()


def mounts_see_each_other(cluster):
    """Closed by one, opened by another: also where the daemon serves one itself."""
    cluster.start()
    places = [cluster.mount, other(cluster, "mount2"), other(cluster, "mount3")]
    cluster.mount_apart(places[1])
    result = cluster.run("up", cluster.directory, "--mount", places[2])
    if result.returncode != 0:
        raise Failed(f"the daemon does not mount: {result.stderr.strip()}")
    for turn in range(30):
        name = f"file{turn}"
        content = os.urandom(1 + turn * 7001)
        with open(os.path.join(places[turn % 3], name), "wb") as file:
            file.write(content)
        for place in places:
            with open(os.path.join(place, name), "rb") as file:
                if file.read() != content:
                    raise Failed(f"{name} has other bytes at {place}")
        os.unlink(os.path.join(places[(turn + 1) % 3], name))


def ask(cluster, *words):
    """What the daemon answers at its control socket. No process is forked for it: one that has
    files of a mount which stands still would wait for that."""
    request = b"".join(word.encode() + b"\0" for word in words)
    text = b""
    with socket.socket(socket.AF_UNIX) as control, control.makefile("rb") as answer:
        control.settimeout(LIMIT_S)
        control.connect(cluster.path("control.sock"))
        control.sendall(struct.pack("<I", len(request)) + request)
        while size := struct.unpack("<I", answer.read(4))[0]:
            text += answer.read(size)
    return text


def counted(cluster, name):
    rows = json.loads(ask(cluster, "stats", "--json"))["counters"]
    return sum(row["value"] for row in rows if row["name"] == name)


def reads(cluster):
    rows = json.loads(ask(cluster, "stats", "--json"))["operations"]
    return sum(row["count"] for row in rows if row["operation"] in ("chunk_read", "inline_read"))


def what_nobody_changed_is_kept(cluster):
    """The kernel's pages serve who has read a small file once, or another one twice, past them or
    by them, until another mount has closed or synced a change, be it one that size and time of the
    file don't show."""
    cluster.start()
    there = other(cluster, "mount2")
    cluster.mount_apart(there)
    for size in (10, 50 << 10, 1 << 20):
        here, path = (os.path.join(place, f"file-{size}") for place in (cluster.mount, there))
        content = os.urandom(size)
        with open(here, "wb") as file:
            file.write(content)
        for turn in range(6):
            same_again(cluster, path, content)
            content = os.urandom(size)
            times = os.stat(here)
            with open(here, "r+b", buffering=0) as file:
                file.write(content)
                if turn % 2:
                    os.fsync(file.fileno())
                    same_again(cluster, path, content)
                os.utime(here, ns=(times.st_atime_ns, times.st_mtime_ns))


SMALL_BYTES = 16 << 10  # of a file that is read by pages from the first time on


def same_again(cluster, path, content):
    counts = []
    known = 0 if len(content) <= SMALL_BYTES else 1
    for _ in range(4):
        with open(path, "rb", buffering=0) as file:
            if file.read() != content:
                raise Failed(f"{path} has other bytes than what was written")
        counts.append(reads(cluster))
    if counts[known] != counts[3]:
        raise Failed(f"{path} is read again though nobody has changed it: {counts}")


def what_a_dead_mount_has_written_is_seen(cluster):
    """It has overwritten a part of a file and neither closed nor synced it: who has the file's
    pages from before drops them once the dead mount's session has ended."""
    with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write("[limits]\nsession_timeout_ms = 5000\n")
    cluster.start()
    there = other(cluster, "mount2")
    cluster.mount_apart(there)
    here, path = (os.path.join(place, "file") for place in (cluster.mount, there))
    content = os.urandom(200 << 10)
    with open(here, "wb") as file:
        file.write(content)
    same_again(cluster, path, content)
    writer = os.open(here, os.O_WRONLY)
    if os.pwrite(writer, b"x" * 4096, 8192) != 4096:
        raise Failed("not all was written")
    before = evictions(cluster)
    os.kill(cluster.mount_process(cluster.mount), signal.SIGKILL)
    wait_until(lambda: evictions(cluster) > before, "the dead mount's eviction")
    fails_with(errno.ENOTCONN, lambda: os.close(writer))
    content = content[:8192] + b"x" * 4096 + content[12288:]
    wait_until(lambda: counted(cluster, "opens") == 0, "the end of what it had open")
    same_again(cluster, path, content)


def evictions(cluster):
    return counted(cluster, "evictions")


def fails_with(number, call):
    try:
        call()
    except OSError as error:
        return error.errno == number
    return False


def an_evicted_mount_begins_again(cluster):
    """Its process stood still for too long: what was open is lost, and nothing else."""
    with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write("[limits]\nsession_timeout_ms = 5000\n")
    cluster.start()
    path = os.path.join(cluster.mount, "file")
    with open(path, "wb") as file:
        file.write(b"before")
    old = os.open(path, os.O_RDWR)
    process = cluster.mount_process(cluster.mount)
    before = evictions(cluster)
    clusters.stop_process(process)
    try:
        wait_until(lambda: evictions(cluster) > before, "the mount's eviction")
    finally:
        os.kill(process, signal.SIGCONT)
    log = "mount.log"
    wait_until(lambda: "a new one has begun" in cluster.log_end(log), "a new session")
    for call in (lambda: os.pwrite(old, b"x", 0), lambda: os.fsync(old),
                 lambda: os.ftruncate(old, 1)):
        if not fails_with(errno.EIO, call):
            raise Failed("what was open before the eviction does not answer EIO")
    with open(path, "r+b") as file:
        if file.read() != b"before":
            raise Failed("the file has other bytes")
        file.write(b" and after")
        file.flush()
        os.fsync(file.fileno())
    if not fails_with(errno.EIO, lambda: os.pwrite(old, b"x", 0)):
        raise Failed("the old handle works again beside a new one")
    fails_with(errno.EIO, lambda: os.close(old))
    with open(path, "rb") as file:
        if file.read() != b"before and after":
            raise Failed("the file has other bytes after it was written again")
    os.mkdir(os.path.join(cluster.mount, "folder"))
    if cluster.mount_process(cluster.mount) != process:
        raise Failed("the mount is not that of before")


def an_idle_mount_keeps_no_space(cluster):
    """It comes back by itself to a daemon that has started anew: what others remove gives its space
    back, though this one might have it open."""
    with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write("[limits]\nsession_timeout_ms = 5000\n")
    cluster.start()
    idle = other(cluster, "mount2")
    cluster.mount_apart(idle)
    with open(os.path.join(cluster.mount, "kept"), "wb") as file:
        file.write(b"kept")
    # Who has only looked has nothing left to tell.
    if os.stat(os.path.join(idle, "kept")).st_size != 4:
        raise Failed("the idle mount sees another size")

    def used():
        space = os.statvfs(cluster.mount)
        return (space.f_blocks - space.f_bfree) * space.f_frsize

    for end in (cluster.kill, cluster.stop):
        path = os.path.join(cluster.mount, "large")
        with open(path, "wb") as file:
            file.write(os.urandom(LARGE))
            os.fsync(file.fileno())
        before = used()
        end()
        cluster.start()
        os.unlink(path)
        wait_until(lambda: used() < before - LARGE / 2, "the end of what a removed file took")
        if counted(cluster, "sessions_away") != 0:
            raise Failed("a mount is not back, and its files are freed")
    with open(os.path.join(idle, "kept"), "rb") as file:
        if file.read() != b"kept":
            raise Failed("the idle mount has other bytes")


class Steps:
    """A process of its own that goes through the steps of a generator, one each time: who forks
    while files of the mount are open waits for their daemon, so a test must not have them open."""

    def __init__(self, steps):
        self.end, other_end = socket.socketpair()
        self.process = os.fork()
        if self.process == 0:
            self.end.close()
            self.run(steps, other_end)
        other_end.close()

    @staticmethod
    def run(steps, end):
        try:
            for _ in steps:
                end.sendall(b"+")
                end.recv(1)
            end.sendall(b"+")
        except (Failed, OSError) as error:
            end.sendall(str(error).encode())
        finally:
            os._exit(0)  # pylint: disable=protected-access

    def wait(self):
        """For the end of the present step."""
        said = self.end.recv(1000)
        if said != b"+":
            raise Failed(f"a program says: {said.decode() or 'nothing, it died'}")

    def next(self):
        """Lets the next one begin, and waits for its end."""
        self.end.sendall(b"+")
        self.wait()

    def close(self):
        self.end.close()
        os.waitpid(self.process, 0)


def lives_without_a_name(mount, content):
    """Makes three files without a name, names one; looks at all; makes a large one, and is left
    with it."""
    unnamed = [os.open(mount, os.O_TMPFILE | os.O_RDWR, 0o600) for _ in range(3)]
    for descriptor in unnamed:
        os.write(descriptor, content[:300000])
    yield
    # With a descriptor Python calls linkat, and says that the link is to be followed.
    os.link(f"/proc/self/fd/{unnamed[0]}", os.path.join(mount, "named"), src_dir_fd=unnamed[0],
            follow_symlinks=True)
    yield
    for descriptor, links in zip(unnamed, (1, 0, 0)):
        if os.pread(descriptor, LARGE, 0) != content[:300000] or \
                os.fstat(descriptor).st_nlink != links:
            raise Failed(f"a file of {links} links is not what it was before the daemon died")
        os.close(descriptor)
    yield
    unnamed = os.open(mount, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(unnamed, content)
    os.fsync(unnamed)
    yield


def files_without_a_name_outlive_a_daemon(cluster):
    """They live as long as their mount has them open, and no longer."""
    with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write("[limits]\nsession_timeout_ms = 5000\n")
    cluster.start()
    content = os.urandom(LARGE)

    def used():
        space = os.statvfs(cluster.mount)
        return (space.f_blocks - space.f_bfree) * space.f_frsize

    def again(*ends):
        for end in ends:
            end()
            cluster.start()

    before = used()
    steps = Steps(lives_without_a_name(cluster.mount, content))
    try:
        steps.wait()
        again(cluster.kill, cluster.stop)
        steps.next()
        again(cluster.kill)
        steps.next()
        with open(os.path.join(cluster.mount, "named"), "rb") as file:
            if file.read() != content[:300000]:
                raise Failed("a file that was given a name has other bytes")
        wait_until(lambda: used() < before + 500000, "the end of what files without a name took")
        steps.next()
        if used() < before + LARGE:
            raise Failed("a file without a name takes no space")
        clusters.end_process(cluster.mount_process(cluster.mount))
    finally:
        steps.close()
    wait_until(lambda: is_dead(cluster.mount), "the end of the mount")
    cluster.mount_apart(cluster.mount)
    wait_until(lambda: used() < before + LARGE / 2, "the end of what a dead mount's file took")


def is_dead(mount):
    """The kernel has forgotten what it knew of it, too."""
    try:
        os.stat(mount)
    except OSError as error:
        return error.errno == errno.ENOTCONN
    return False


def handle_of(path):
    """As name_to_handle_at gives it."""
    handle = ctypes.create_string_buffer(8 + 128)
    struct.pack_into("Ii", handle, 0, 128, 0)
    mount_id = ctypes.c_int()
    if LIBC.name_to_handle_at(-100, path.encode(), handle, ctypes.byref(mount_id), 0) != 0:
        raise Failed(f"name_to_handle_at: {os.strerror(ctypes.get_errno())}")
    return handle


def content_by_handle(mount, handle):
    """What the file of that handle holds, or the errno."""
    place = os.open(mount, os.O_RDONLY | os.O_DIRECTORY)
    descriptor = LIBC.open_by_handle_at(place, handle, os.O_RDONLY)
    number = ctypes.get_errno()
    os.close(place)
    if descriptor < 0:
        return number
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def handles_are_good_at_other_mounts(cluster):
    cluster.start()
    folder = os.path.join(cluster.mount, "folder")
    os.mkdir(folder)
    paths = [os.path.join(folder, name) for name in ("file", "removed")]
    for path in paths:
        with open(path, "wb") as file:
            file.write(b"content")
    handles = [handle_of(path) for path in paths]
    os.unlink(paths[1])
    second = other(cluster, "mount2")
    cluster.mount_apart(second)

    def look(mount, when):
        got = [content_by_handle(mount, handle) for handle in handles]
        if got != [b"content", errno.ESTALE]:
            raise Failed(f"{when}: by their handles files are {got}")

    look(second, "at another mount")
    os.rename(paths[0], os.path.join(cluster.mount, "moved"))
    cluster.kill()
    cluster.start()
    process = cluster.mount_process(cluster.mount)
    result = cluster.run("umount", cluster.mount)
    if result.returncode != 0:
        raise Failed(f"umount: {result.stderr.strip()}")
    wait_until(lambda: not os.path.exists(f"/proc/{process}"), "the end of the mount's process")
    cluster.mount_apart(cluster.mount)
    look(cluster.mount, "at a mount that is made anew")


def umount_ends_the_process(cluster):
    cluster.start()
    process = cluster.mount_process(cluster.mount)
    with open(os.path.join(cluster.mount, "used"), "w", encoding="ascii") as file:
        file.write("x")
        result = cluster.run("umount", cluster.mount)
        if result.returncode != 1 or "in use" not in result.stderr:
            raise Failed(f"umount of what is used says: {result.stderr.strip()}")
    result = cluster.run("umount", cluster.mount)
    if result.returncode != 0:
        raise Failed(f"umount: {result.stderr.strip()}")
    wait_until(lambda: not os.path.exists(f"/proc/{process}"), "the end of the mount's process")
    if os.path.ismount(cluster.mount):
        raise Failed("it still is mounted")
    cluster.mount_apart(cluster.mount)
    process = cluster.mount_process(cluster.mount)
    os.kill(process, signal.SIGTERM)
    wait_until(lambda: not os.path.exists(f"/proc/{process}"), "the end by a signal")
    if os.path.ismount(cluster.mount):
        raise Failed("a signal has not unmounted it")
    # Of a daemon that is gone: what is still asked of it is let go, opens as well.
    cluster.mount_apart(cluster.mount)
    process = cluster.mount_process(cluster.mount)
    name = lambda one: os.path.join(cluster.mount, one)
    file = os.open(name("file"), os.O_RDWR | os.O_CREAT)
    others = [os.open(name(f"other{number}"), os.O_RDWR | os.O_CREAT) for number in range(900)]
    cluster.kill()
    # Of these none waits for a lock that another one has in the kernel.
    waits = [waiting(file, name, call, True) for call in ("open", "create", "write")]
    for wait in waits:
        wait_until(lambda: is_in_a_call(wait), "all waits")
    wait_until(lambda: "does not answer" in cluster.log_end("mount.log"), "a renewal that waits")
    subprocess.run(["umount", "-f", cluster.mount], check=False, stderr=subprocess.DEVNULL)
    wait_until(lambda: not os.path.exists(f"/proc/{process}"), "the end without a daemon")
    for wait in waits:
        if os.waitpid(wait, 0)[1] != 2 << 8:
            raise Failed("a program below a mount that has ended was not told")
    for one in [file, *others]:
        with contextlib.suppress(OSError):
            os.close(one)
    subprocess.run(["umount", "-l", cluster.mount], check=True)


def verbs_find_the_cluster(cluster):
    cluster.start()
    for words in (["status", cluster.mount], ["df", cluster.mount], ["sync", cluster.mount],
                  ["stats", cluster.mount], ["stat", cluster.mount], ["fsck", cluster.mount]):
        result = cluster.run(*words)
        if result.returncode != 0:
            raise Failed(f"shoal {' '.join(words)}: {result.stderr.strip()}")
    with open("/proc/mounts", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    if [cluster.directory, cluster.mount, "fuse.shoal"] not in [line[:3] for line in lines]:
        raise Failed("the table of mounts does not name the directory")


def a_directory_is_named_from_where_one_is(cluster):
    """Without a slash, as an address has none either."""
    cluster.start()
    place = other(cluster, "mount2")
    name = os.path.basename(cluster.directory)
    result = subprocess.run([cluster.shoal, "mount", name, place], capture_output=True, text=True,
                            check=False, cwd=os.path.dirname(cluster.directory))
    if result.returncode != 0:
        raise Failed(f"mount {name}: {result.stderr.strip()}")
    if not os.path.ismount(place):
        raise Failed("it is not mounted")


def remount_for_writing(path):
    """By mount(2): newer ones of mount(8) use calls by which the kernel refuses it for FUSE."""
    remount = 32
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(None, path.encode(), None, ctypes.c_ulong(remount), None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)


def all_of(folder):
    """Of the folder and each file in it: what a change would change, and its bytes."""
    found = {}
    for name in [".", *sorted(os.listdir(folder))]:
        path = os.path.join(folder, name)
        status = os.stat(path)
        content = None
        if not os.path.isdir(path):
            with open(path, "rb") as file:
                content = file.read()
        found[name] = (status.st_ino, status.st_mode, status.st_nlink, status.st_size,
                       status.st_mtime_ns, status.st_ctime_ns, content)
    return found


def keys_decide(cluster):
    """Who may mount, and what for: else one line, and nothing has changed."""
    cluster.start()
    with open(os.path.join(cluster.mount, "mine"), "w", encoding="ascii") as file:
        file.write("word")
    os.chmod(os.path.join(cluster.mount, "mine"), 0o600)
    before = all_of(cluster.mount)
    lonely = other(cluster, "mount2")
    stranger = os.path.join(cluster.top, "stranger.key")
    cluster.key("new", stranger)
    log = ["-o", "log=" + cluster.path("mount2.log")]
    for words, text in [([], "is asked with a key"), (["--key", stranger], "refuses the key"),
                        (["--key", cluster.top + "/none"], "no such file"),
                        (["--key", cluster.path("shoal.conf")], "others may read")]:
        start = time.monotonic()
        result = cluster.run("mount", cluster.source, lonely, *words, *log)
        if result.returncode != 1 or text not in result.stderr or os.path.ismount(lonely) or \
                result.stderr.count("\n") != 1:
            raise Failed(f"mount {' '.join(words)}: {result.stderr.strip()}")
        if time.monotonic() - start > 30:
            raise Failed(f"{text}: took {time.monotonic() - start:.0f} s")
    for name, words, allowed in [("ro.key", ["--ro"], False),
                                 ("squash.key", ["--squash", "root"], True)]:
        path = cluster.mount_key(name, *words)
        result = cluster.run("mount", cluster.source, lonely, "--key", path, *log)
        if result.returncode != 0:
            raise Failed(f"mount with {name}: {result.stderr.strip()}")
        # Not the kernel alone: it is the cluster that refuses.
        remount_for_writing(lonely)
        try:
            with open(os.path.join(lonely, "mine"), encoding="ascii") as file:
                got = file.read()
            if allowed or got != "word":
                raise Failed(f"{name}: root of a mount that has none read {got}")
        except PermissionError:
            if not allowed:
                raise
        try:
            os.mkdir(os.path.join(lonely, "made"))
            raise Failed(f"{name}: a directory was made")
        except OSError as error:
            if error.errno != (errno.EACCES if allowed else errno.EROFS):
                raise
        result = cluster.run("umount", lonely)
        if result.returncode != 0:
            raise Failed(f"umount: {result.stderr.strip()}")
    if all_of(cluster.mount) != before:
        raise Failed(f"of what was refused something has changed: {before}")


class Relay(threading.Thread):
    """Stands between the mounts that come to it and the cluster, and keeps what it has seen."""

    def __init__(self, cluster):
        super().__init__(daemon=True)
        host, port = cluster.source.split(":")
        self.target = (host, int(port))
        self.listener = socket.create_server((host, 0))
        self.source = f"{host}:{self.listener.getsockname()[1]}"
        self.seen = []
        self.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                ends = (self.listener.accept()[0], socket.create_connection(self.target))
                for one, two in (ends, ends[::-1]):
                    threading.Thread(target=self.pass_on, args=(one, two), daemon=True).start()

    def pass_on(self, one, two):
        with contextlib.suppress(OSError):
            while data := one.recv(1 << 20):
                self.seen.append(data)
                two.sendall(data)
            two.shutdown(socket.SHUT_WR)


def who_stands_between_sees_nothing(cluster):
    """A mount that is led to another port of its machine works, and stays in TLS."""
    relay = Relay(cluster)
    with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write(f"advertise = {relay.source}\n")
    cluster.source = relay.source
    cluster.start()
    secret = os.urandom(8192)
    with open(os.path.join(cluster.mount, "name-of-the-secret"), "wb") as file:
        file.write(secret)
        os.fsync(file.fileno())
    relay.listener.close()
    seen = b"".join(relay.seen)
    if len(seen) < len(secret):
        raise Failed(f"only {len(seen)} bytes went by the relay")
    if b"name-of-the-secret" in seen or secret[:64] in seen or secret[-64:] in seen:
        raise Failed("the relay has read a file or its name")


def mount_calls_its_helper(cluster):
    """As mount(8) does for the type fuse.shoal, once it is installed."""
    cluster.start()
    helper = os.path.join(cluster.top, "mount.fuse.shoal")
    os.symlink(cluster.shoal, helper)
    place = other(cluster, "mount2")
    options = f"rw,nosuid,nodev,key={cluster.top}/mount.key,log={cluster.path('mount2.log')}"
    for flags in (["-f"], ["-n", "-s"]):
        subprocess.run([helper, cluster.source, place, *flags, "-o", options], check=True,
                       stdout=subprocess.DEVNULL)
        if os.path.ismount(place) != (flags != ["-f"]):
            raise Failed(f"after mount {' '.join(flags)}: mounted is {os.path.ismount(place)}")
    with open("/proc/mounts", encoding="utf-8") as file:
        lines = [line.split() for line in file]
    found = [line for line in lines if line[1] == place]
    if len(found) != 1 or found[0][0] != cluster.source or \
            not {"nosuid", "nodev", "rw"} <= set(found[0][3].split(",")):
        raise Failed(f"the table of mounts says {found}")
    subprocess.run(["umount", place], check=True)


# Where what was installed is a machine's own, and nothing else sees it.
INSTALLED = """
set -e
mount --make-rprivate /
mount --bind "$1/usr/local" /usr/local
mount --bind "$1/sbin" "$(realpath /sbin)"
mount -t fuse.shoal "$2" "$3" -o "$4"
grep " $3 " /proc/mounts
echo by mount > "$3/installed"
umount "$3"
shoal version
"""


def mount_knows_the_type_once_it_is_installed(cluster):
    """From `meson install` to a line of the table of mounts that has all addresses."""
    built = os.path.dirname(os.path.dirname(os.path.realpath(cluster.shoal)))
    if not os.path.isdir(os.path.join(built, "meson-private")):
        raise Skipped(f"{cluster.shoal} is in no folder of a build")
    root = os.path.join(cluster.top, "root")
    subprocess.run(["meson", "install", "-C", built, "--no-rebuild", "--quiet", "--destdir", root],
                   check=True, stdout=subprocess.DEVNULL)
    cluster.start()
    sources = f"127.0.0.1:9,{cluster.source}"
    place = other(cluster, "mount2")
    options = f"rw,key={cluster.top}/mount.key,log={cluster.path('mount2.log')}"
    result = subprocess.run(["unshare", "--mount", "sh", "-c", INSTALLED, "sh", root, sources,
                             place, options], text=True, capture_output=True, check=False,
                            env={**os.environ, "PATH": "/usr/local/bin:/usr/bin:/bin"})
    told = [line.split()[:3] for line in result.stdout.splitlines()]
    if result.returncode != 0 or [sources, place, "fuse.shoal"] not in told or \
            "on-disk format" not in result.stdout:
        raise Failed(f"mount -t fuse.shoal: {result.returncode}, {told}, {result.stderr}")
    with open(os.path.join(cluster.mount, "installed"), encoding="ascii") as file:
        if file.read() != "by mount\n":
            raise Failed("what was written at the mount is not in the cluster")


def a_mount_at_boot_waits_its_patience(cluster):
    """As a line of fstab does: with the manager away it fails, with one line; or it comes back."""
    cluster.start()
    cluster.kill()
    helper = os.path.join(cluster.top, "mount.fuse.shoal")
    os.symlink(cluster.shoal, helper)
    place = other(cluster, "mount2")
    options = f"rw,key={cluster.top}/mount.key,log={cluster.path('mount2.log')},patience="
    start = time.monotonic()
    result = subprocess.run([helper, cluster.source, place, "-o", options + "2"], text=True,
                            capture_output=True, check=False)
    took = time.monotonic() - start
    if result.returncode == 0 or "nobody answers at" not in result.stderr or \
            len(result.stderr.splitlines()) != 1:
        raise Failed(f"with nobody there it says: {result.stderr}")
    if os.path.ismount(place) or not 2 <= took < 20:
        raise Failed(f"it took {took:.1f} s, or left a mount")
    waits = subprocess.Popen([helper, cluster.source, place, "-o", options + "60"],
                             stdout=subprocess.DEVNULL)
    cluster.start()
    if waits.wait(LIMIT_S) != 0 or not os.path.ismount(place):
        raise Failed("a mount that was asked for before the daemon came is not there")
    subprocess.run(["umount", place], check=True)


def a_missing_directory_is_made(cluster):
    path = os.path.join(cluster.top, "made")
    result = cluster.run("up", path, "--osts", "1", "--size", "64M")
    if result.returncode != 0 or not os.path.exists(os.path.join(path, "shoal.conf")):
        raise Failed(f"up of a directory that is to be made: {result.stderr.strip()}")
    result = cluster.run("down", path)
    if result.returncode != 0:
        raise Failed(f"down: {result.stderr.strip()}")


def strangers_disturb_nobody(cluster):
    """Any bytes at the port, half requests, connections that say nothing: nobody waits for them."""
    cluster.start()
    work = Load(cluster)
    host, port = cluster.source.split(":")
    silent = []
    for turn in range(60):
        one = socket.create_connection((host, int(port)))
        one.settimeout(LIMIT_S)
        if turn % 3 == 0:
            one.sendall(os.urandom(1 + turn * 301))
        elif turn % 3 == 1:
            one.sendall(b"\x16\x03\x01\x01\x00\x01" + os.urandom(turn))
        silent.append(one)
    work.goes_on()
    for turn, one in enumerate(silent):
        # Who has said nothing that leads on is sent away.
        try:
            while one.recv(4096):
                pass
        except ConnectionResetError:
            pass
        one.close()
    work.goes_on()
    work.check()


def tuned(cluster, word):
    """What a mount with the option leaves in a file that stands, for it, where the kernel's setting
    is; and its log."""
    setting, log = os.path.join(cluster.top, "setting"), os.path.join(cluster.top, "tuned.log")
    lonely = other(cluster, "tuned")
    with open(setting, "w", encoding="ascii") as file:
        file.write("N\n")
    script = f"mount --bind {setting} {clusters.ENABLE_URING} && exec \"$@\""
    with open(log, "w", encoding="ascii") as lines:
        process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh",
             cluster.shoal, "mount", cluster.directory, lonely, "--foreground", "-o", word],
            stdin=subprocess.DEVNULL, stdout=lines, stderr=lines)
    read = lambda: open(log, encoding="ascii").read()
    try:
        wait_until(lambda: "mounted at" in read() or process.poll() is not None, "the mount")
        process.terminate()
        if process.wait(timeout=LIMIT_S) != 0:
            raise Failed(f"mount -o {word}: {read()}")
    finally:
        process.kill()
        process.wait()
    with open(setting, encoding="ascii") as file:
        return file.read().strip(), read()


def a_mount_offers_io_uring(cluster):
    """It sets what the kernel offers that by, and says so, but where it is told to leave it."""
    if not clusters.uring_enable():
        print(f"nothing is offered where {clusters.ENABLE_URING} can't be set")
        return
    cluster.start()
    for word, value in (("channel=any", "Y"), ("channel=any,tune=no", "N"), ("channel=dev", "N"),
                        ("channel=any,tune=yes", "Y")):
        setting, log = tuned(cluster, word)
        if setting[:1] != value or ("enable_uring was N and is Y now" in log) != (value == "Y"):
            raise Failed(f"mount -o {word} leaves {setting}, and says {log}")


def sessions_have_a_limit(cluster):
    """A mount that is one too many waits its patience for a place, and says why in one line."""
    with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write("[limits]\nsessions_max = 16\n")
    cluster.start()
    mounted = []
    for number in range(16):
        place = other(cluster, f"mount{number}")
        result = cluster.run("mount", cluster.directory, place, "-o", "patience=5")
        if result.returncode != 0:
            break
        mounted.append(place)
    if result.returncode != 1 or result.stderr.count("\n") != 1 or \
            "raise sessions_max" not in result.stderr or os.path.ismount(place):
        raise Failed(f"mount {len(mounted)} of 16 sessions: {result.stderr.strip()}")
    with clusters.child([cluster.shoal, "mount", cluster.directory, place], text=True,
                        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as waits:
        result = cluster.run("umount", mounted[0])
        if result.returncode != 0:
            raise Failed(f"umount: {result.stderr.strip()}")
        _, text = waits.communicate(timeout=LIMIT_S)
    if waits.returncode != 0 or not os.path.ismount(place):
        raise Failed(f"a mount that waits for a place: {waits.returncode}, {text.strip()}")


def a_long_path_is_mounted(cluster):
    """Two of them, which differ at their ends, beside each other, and one of them again."""
    cluster.start()
    with open(os.path.join(cluster.mount, "file"), "wb") as file:
        file.write(b"bytes")
    top = os.path.join(cluster.top, "mount-long")
    while len(top) < 3000:
        top = os.path.join(top, "d" * 200)
    places = [top + "/1", top + "/2"]
    for place in places:
        os.makedirs(place)
        cluster.mount_apart(place)
    for end in (None, cluster.kill):
        if end:
            end()
            cluster.start()
        for place in places:
            with open(os.path.join(place, "file"), "rb") as file:
                if file.read() != b"bytes":
                    raise Failed("the file has other bytes")
    for place in places:
        result = cluster.run("umount", place)
        if result.returncode != 0:
            raise Failed(f"umount: {result.stderr.strip()}")


def what_cannot_be_is_refused(cluster):
    lonely = other(cluster, "mount2")
    rows = [
        ([cluster.directory, lonely, "-o", "patience=1"], 1, "does not answer"),
        ([lonely, cluster.mount], 1, "is no Shoal directory"),
        ([cluster.directory, lonely + "/none"], 1, "mount point doesn't exist"),
        ([cluster.top + "/none", lonely], 1, "cannot be used"),
        ([cluster.directory], 2, "a mount point"),
        ([cluster.directory, lonely, "-o", "patience=0"], 2, "patience takes"),
        ([cluster.directory, lonely, "-o", "ttl=3601"], 2, "ttl takes"),
        ([cluster.directory, lonely, "-o", "ttl=-1"], 2, "ttl takes"),
        ([cluster.directory, lonely, "-o", "quick"], 2, "is not understood"),
        ([cluster.directory, lonely, "-o"], 2, "is missing"),
        ([cluster.directory, lonely, "more"], 2, "is not understood"),
    ]
    for words, status, text in rows:
        result = cluster.run("mount", *words)
        if (result.returncode, result.stderr.count("\n")) != (status, 1) or \
                text not in result.stderr:
            raise Failed(f"mount {' '.join(words)}: {result.returncode}, {result.stderr.strip()}")
        if os.path.ismount(lonely):
            raise Failed("what was refused is mounted")
    cluster.start()
    result = cluster.run("mount", cluster.directory, cluster.mount)
    if result.returncode != 1 or "mounted there already" not in result.stderr:
        raise Failed(f"a second mount at one place: {result.stderr.strip()}")


BOTH = [a_daemon_that_dies_is_a_pause, a_daemon_that_stops_is_a_pause, patience_has_an_end,
        names_are_as_old_as_ttl_says, who_is_interrupted_does_not_wait,
        who_is_interrupted_leaves_a_daemon_that_stands_still,
        a_mount_that_dies_is_made_anew, an_evicted_mount_begins_again,
        an_idle_mount_keeps_no_space, files_without_a_name_outlive_a_daemon,
        handles_are_good_at_other_mounts, mounts_see_each_other,
        what_nobody_changed_is_kept, what_a_dead_mount_has_written_is_seen,
        umount_ends_the_process]
TESTS = [(test, {way: True}) for way in ("apart", "afar") for test in BOTH] + \
    [(test, {"apart": True}) for test in (verbs_find_the_cluster, what_cannot_be_is_refused,
                                        sessions_have_a_limit, a_missing_directory_is_made,
                                        a_long_path_is_mounted, a_mount_offers_io_uring,
                                        a_directory_is_named_from_where_one_is)] + \
    [(test, {"afar": True}) for test in (keys_decide, who_stands_between_sees_nothing,
                                       mount_calls_its_helper,
                                       mount_knows_the_type_once_it_is_installed,
                                       a_mount_at_boot_waits_its_patience,
                                       strangers_disturb_nobody)]


def main():
    def play(of):
        test, way = of
        with clusters.Cluster(sys.argv[1], **way) as cluster:
            test(cluster)

    def name(of):
        test, way = of
        return f"{test.__name__} {'afar' if 'afar' in way else 'apart'}"

    return drive(__doc__, TESTS, play, name=name)


sys.exit(main())
