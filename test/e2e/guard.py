#!/usr/bin/python3
"""What a user of the machine who is not root may bring about: what root's commands and daemons do
with what he put in their way, and what he can take from others. Each test does it as such a user.

Usage: guard.py SHOAL [TEST...]

The last line counts.
"""

import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading

import cluster as clusters
from cluster import Failed
from driver import drive
from files_load import wait_until

NOBODY = 65534
AS_USER = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def expect(condition, what):
    if not condition:
        raise Failed(what)


def as_user(*words):
    """A command of the user's, which has to work."""
    result = subprocess.run([*AS_USER, *words], capture_output=True, text=True, check=False)
    expect(result.returncode == 0, f"{words}: {result.stderr.strip()}")
    return result.stdout


def refused(result, *words):
    """One line on standard error that holds the words."""
    lines = result.stderr.splitlines()
    expect(result.returncode != 0, f"it is not refused, but says {result.stdout.strip()!r}")
    expect(len(lines) == 1, f"it says {len(lines)} lines: {result.stderr!r}")
    for word in words:
        expect(word in lines[0], f"it says {lines[0]!r}, without {word!r}")


def content(path):
    with open(path, encoding="ascii") as file:
        return file.read()


class Ground:
    """Where root and the user meet: /tmp's kind of folder, one of root's, one of the user's."""

    def __init__(self, cluster):
        self.cluster = cluster
        os.chmod(cluster.top, 0o755)
        self.shared = self.folder("shared", 0o1777)
        self.roots = self.folder("roots", 0o755)
        self.users = self.folder("users", 0o755)
        os.chown(self.users, NOBODY, NOBODY)
        self.treasure = os.path.join(self.roots, "treasure")
        with open(self.treasure, "w", encoding="ascii") as file:
            file.write("root's own")
        self.before = os.lstat(self.treasure)

    def folder(self, name, mode):
        path = os.path.join(self.cluster.top, name)
        os.mkdir(path)
        os.chmod(path, mode)
        return path

    def untouched(self):
        after = os.lstat(self.treasure)
        expect(content(self.treasure) == "root's own" and after.st_mode == self.before.st_mode and
               after.st_uid == 0 and os.listdir(self.roots) == ["treasure"],
               "root's file is touched, or has got company")


# A benchmark, whose names everybody knows.

def bench_in(ground, path, *words):
    return ground.cluster.run("bench", "small", path, "--files", "2", "--dirs", "1", *words)


def bench_takes_no_files_of_others(ground):
    """They lie in wait in a folder where all may write, or in the user's."""
    for place in (ground.shared, ground.users):
        folder = os.path.join(place, "shoal-bench")
        as_user("mkdir", "-p", folder + "/d0")
        as_user("ln", "-s", ground.treasure, folder + "/d0/f0")
        refused(bench_in(ground, place), folder, "not a folder of yours alone")
        as_user("rm", "-r", folder)
        as_user("ln", "-s", ground.roots, folder)
        refused(bench_in(ground, place), folder, "not a folder of yours alone")
        as_user("rm", folder)
    ground.untouched()


def bench_takes_no_folder_that_others_may_write_to(ground):
    for mode in (0o775, 0o757):
        folder = os.path.join(ground.shared, "shoal-bench")
        os.mkdir(folder)
        os.chmod(folder, mode)
        refused(bench_in(ground, ground.shared), folder, "not a folder of yours alone")
        os.rmdir(folder)
        os.mkdir(folder)
        os.mkdir(folder + "/d0")
        os.chmod(folder + "/d0", mode)
        refused(bench_in(ground, ground.shared), folder + "/d0", "not a folder of yours alone")
        shutil.rmtree(folder)
    ground.untouched()


def bench_follows_no_link(ground):
    """One of the caller's own, at the end."""
    folder = os.path.join(ground.users, "shoal-bench")
    os.makedirs(folder + "/d0")
    os.symlink(ground.treasure, folder + "/d0/f0")
    refused(bench_in(ground, ground.users), "shoal-bench/d0/f0")
    ground.untouched()


def bench_goes_on(ground):
    """In folders of its own, by phases, and for the user himself."""
    for place in (ground.shared, ground.users):
        result = bench_in(ground, place, "--phases", "write")
        expect(result.returncode == 0, result.stderr)
        expect(os.path.exists(place + "/shoal-bench/d0/f1"), "nothing is written")
        result = bench_in(ground, place)
        expect(result.returncode == 0, result.stderr)
        expect(not os.path.exists(place + "/shoal-bench"), "it stays")
    as_user(ground.cluster.shoal, "bench", "small", ground.users, "--files", "2")


def bench_in_the_daemon(ground):
    """--native works as root in the mount."""
    ground.cluster.start()
    mount = ground.cluster.mount
    users = os.path.join(mount, "users")
    os.mkdir(users)
    os.chown(users, NOBODY, NOBODY)
    secret = os.path.join(mount, "secret")
    with open(secret, "w", encoding="ascii") as file:
        file.write("root's own")
    as_user("mkdir", "-p", users + "/shoal-bench/d0")
    as_user("ln", "-s", "/secret", users + "/shoal-bench/d0/f0")
    refused(bench_in(ground, users, "--native"), "not a folder of yours alone")
    refused(bench_in(ground, users), "not a folder of yours alone")
    expect(content(secret) == "root's own", "root's file is written to")
    as_user("rm", "-r", users + "/shoal-bench")
    result = bench_in(ground, users, "--native")
    expect(result.returncode == 0, result.stderr)


# A directory of another user's, given to root's `shoal up`.

def up(ground, *words):
    return ground.cluster.run("up", *words)


def up_takes_no_directory_of_others(ground):
    """New, or with a shoal.conf of his, or his own cluster's."""
    refused(up(ground, ground.users), ground.users, f"belongs to user {NOBODY}")
    as_user("cp", ground.cluster.path("shoal.conf"), ground.users)
    refused(up(ground, ground.users), ground.users, f"belongs to user {NOBODY}")
    as_user("ln", "-s", ground.roots + "/log", ground.users + "/shoal.log")
    as_user("ln", "-s", ground.roots, ground.users + "/mdt0")
    refused(up(ground, ground.users), ground.users, f"belongs to user {NOBODY}")
    refused(up(ground, ground.users, "--foreground"), f"belongs to user {NOBODY}")
    ground.untouched()


def up_takes_nothing_of_others_in_its_directory(ground):
    directory = ground.cluster.directory
    for name, make in (("shoal.conf", "file"), ("shoal.log", "link"), ("mdt0", "link"),
                       ("ost0", "folder"), ("mount.place", "file"), ("lock", "file")):
        path = os.path.join(directory, name)
        was = content(path) if os.path.exists(path) else None
        if make == "file":
            with open(path, "a", encoding="ascii"):
                pass
        elif make == "folder":
            os.mkdir(path)
        else:
            os.symlink(ground.treasure if name == "shoal.log" else ground.roots, path)
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        refused(up(ground, directory), path, f"belongs to user {NOBODY}")
        if was is not None:
            os.chown(path, 0, 0)
        else:
            clusters.remove(path)
    ground.untouched()


def up_takes_nothing_that_others_may_write_to(ground):
    directory = ground.cluster.directory
    ground.cluster.start()
    ground.cluster.stop()
    for path in (directory, ground.cluster.path("shoal.conf"), ground.cluster.path("shoal.log"),
                 ground.cluster.path("mdt0"), ground.cluster.path("ost0/log")):
        mode = stat.S_IMODE(os.stat(path).st_mode)
        for more in (0o020, 0o002):
            os.chmod(path, mode | more)
            refused(up(ground, directory), f"others may write to {path},", "chmod -R go-w")
        os.chmod(path, mode)
    ground.cluster.start()


def log_is_no_link(ground):
    os.symlink(ground.treasure, ground.cluster.path("shoal.log"))
    refused(up(ground, ground.cluster.directory), "shoal.log", "no symbolic link")
    ground.untouched()


def names_are_no_orders(ground):
    """Neither a terminal nor the log takes the name of a directory for what it is not."""
    directory = os.path.join(ground.roots, "a\x1b[31m\nforged\x9b31m")
    os.rename(ground.cluster.directory, directory)
    ground.cluster.directory = directory
    result = up(ground, directory, "--foreground", "--osts", "7")
    refused(result, "a?[31m?forged??31m")
    result = up(ground, directory)
    expect(result.returncode == 0, result.stderr)
    with open(ground.cluster.path("shoal.log"), encoding="utf-8") as file:
        log = file.read()
    for text in (result.stdout[:-1], *log.split("\n")):
        expect(text.isprintable(), f"it has {text!r}")
    expect("\nforged" not in log and "a?[31m?forged" in log, "a line of the log is forged")
    ground.cluster.stop()
    ground.cluster.directory = os.path.join(ground.cluster.top, "data")
    os.rename(directory, ground.cluster.directory)


def mount_of_others_has_no_set_id(ground):
    """A daemon of his may say of any file that it is root's."""
    cluster = ground.cluster
    for path in (cluster.directory, cluster.path("shoal.conf")):
        os.chown(path, NOBODY, NOBODY)
    as_user(cluster.shoal, "up", cluster.directory)
    cluster.note_regions()
    result = cluster.run("mount", cluster.directory, cluster.mount, "-o",
                         f"log={cluster.top}/mount.log")
    expect(result.returncode == 0 and "nosuid,nodev" in result.stderr, result.stderr)
    options = os.statvfs(cluster.mount).f_flag
    expect(options & os.ST_NOSUID and options & os.ST_NODEV, "set-uid files and devices hold")
    cluster.run("umount", cluster.mount)
    as_user("ln", "-s", ground.treasure, cluster.directory + "/mount.log")
    result = cluster.run("mount", cluster.directory, cluster.mount)
    expect(result.returncode != 0 and "no symbolic link" in result.stderr, result.stderr)
    ground.untouched()
    as_user(cluster.shoal, "down", cluster.directory)


def directory_that_others_may_move_has_no_set_id(ground):
    """By the time that it is asked, a daemon of another's may listen in its place."""
    cluster = ground.cluster
    cluster.start()
    other = ground.folder("mount-other", 0o755)
    for owner, mode, safe in ((0, 0o755, True), (0, 0o1777, True), (NOBODY, 0o755, False),
                              (0, 0o775, False)):
        os.chown(cluster.top, owner, 0)
        os.chmod(cluster.top, mode)
        result = cluster.run("mount", cluster.directory, other, "-o", f"log={ground.roots}/log")
        expect(result.returncode == 0, result.stderr)
        flags = os.statvfs(other).f_flag & (os.ST_NOSUID | os.ST_NODEV)
        expect(flags == (0 if safe else os.ST_NOSUID | os.ST_NODEV) and
               safe == ("nosuid,nodev" not in result.stderr),
               f"with {oct(mode)} of user {owner} it has {flags}: {result.stderr}")
        expect(cluster.run("umount", other).returncode == 0, "it is not unmounted")
    os.chmod(cluster.top, 0o755)


def keys_are_for_no_directory_of_others(ground):
    """Who wrote its shoal.conf would have root prove a key that is not his, where he listens."""
    cluster = ground.cluster
    key = os.path.join(ground.roots, "members.key")
    cluster.key("new", key)
    with socket.create_server(("127.0.0.1", 0)) as door:
        with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
            file.write(f"[network]\nlisten = 127.0.0.1:{door.getsockname()[1]}\nkey = {key}\n")
        for path in (cluster.directory, cluster.path("shoal.conf")):
            os.chown(path, NOBODY, NOBODY)
        result = cluster.run("mount", cluster.directory, cluster.mount, "-o", "patience=2")
        lines = result.stderr.splitlines()
        expect(result.returncode != 0 and "no key is taken from its shoal.conf" in lines[-1],
               f"it is not refused: {result.stderr}")
        door.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            door.accept()
            raise Failed("what listens there was asked")


def keys_are_added_to_no_file_of_others(ground):
    """Who owns the file, or may lay another one in its place, would get to know the new key."""
    key = ground.cluster.key
    newer = os.path.join(ground.roots, "newer")
    key("new", newer)
    names = [os.path.join(folder, "members") for folder in (ground.users, ground.roots)]
    for name in names:
        key("new", name)
    before = content(names[0])
    refused(key_add(ground, names[0], newer), names[0], "not yours alone")
    refused(key_add(ground, names[1], names[0]), names[0], "not yours alone")
    os.chown(names[1], NOBODY, NOBODY)
    refused(key_add(ground, names[1], newer), names[1], "not yours alone")
    expect(content(names[0]) == before, "the user's file has changed")
    os.chown(names[1], 0, 0)
    link = os.path.join(ground.shared, "link")
    os.symlink(names[1], link)
    result = key_add(ground, link, newer)
    expect(result.returncode == 0 and names[1] in result.stdout, result.stderr)
    expect(os.path.islink(link) and len(content(names[1])) > len(before), "the key is elsewhere")


def key_add(ground, file, newer):
    return ground.cluster.run("key", "add", file, newer)


# The way to a mount point.

def mount_point_is_not_led_astray(ground):
    """Its owner lays a link there once it was looked at."""
    cluster = ground.cluster
    cluster.start()
    cluster.stop()
    leads = ground.folder("mount-leads", 0o755)
    for place, moved, to in (("point", "point", leads), ("way/mount-leads", "way", cluster.top)):
        as_user("mkdir", "-p", f"{ground.users}/{place}")
        log = f"{ground.roots}/{moved}.log"
        results = []
        thread = threading.Thread(target=lambda words=(f"{ground.users}/{place}", f"log={log}"):
                                  results.append(cluster.run("mount", cluster.directory, words[0],
                                                             "-o", words[1])))
        thread.start()
        wait_until(lambda path=log: os.path.exists(path), "a mount that waits for the daemon")
        as_user("mv", f"{ground.users}/{moved}", f"{ground.users}/was-{moved}")
        as_user("ln", "-s", to, f"{ground.users}/{moved}")
        started = cluster.run("up", cluster.directory)
        expect(started.returncode == 0, started.stderr)
        thread.join()
        result = results[0]
        expect(result.returncode != 0 and "a symbolic link has come into the way" in result.stderr,
               f"it is not refused: {result.stdout} {result.stderr}")
        expect(not os.path.ismount(leads), "something is mounted where the link leads")
        cluster.stop()


# Memory that does not come.

WRITES = """
import ctypes, mmap, os, sys
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
held = os.open(sys.argv[1], os.O_RDONLY)
page = library.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_PRIVATE, held,
                    ctypes.c_long(0))
file = os.open(sys.argv[2], os.O_WRONLY)
print("mapped", flush=True)
sys.stdin.readline()
print("writes", flush=True)
library.pwrite(file, ctypes.c_void_p(page), ctypes.c_size_t(4096), ctypes.c_long(0))
"""
READ_LIMIT_S = 20


def stands_still(process):
    """In a call, and not by a signal or a page that is on its way: it was not seen to run."""
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0] in "DS"


def readers_wait_for_no_writer(ground):
    """A user writes from memory that does not come, a page of a mount whose process stands still:
    who reads his file, root's backup say, goes on."""
    cluster = ground.cluster
    cluster.start()
    apart = os.path.join(cluster.top, "mount-apart")
    os.mkdir(apart)
    cluster.mount_apart(apart)
    server = cluster.mount_process(apart)
    os.chmod(cluster.mount, 0o777)
    for name in ("page", "file"):
        as_user("dd", "if=/dev/zero", f"of={cluster.mount}/{name}", "bs=4096", "count=1",
                "status=none")
    with subprocess.Popen([*AS_USER, sys.executable, "-c", WRITES, f"{apart}/page",
                           f"{cluster.mount}/file"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as writer:
        expect(writer.stdout.readline() == "mapped\n", "the page is not mapped")
        clusters.stop_process(server)
        try:
            writer.stdin.write("\n")
            writer.stdin.flush()
            writer.stdout.readline()
            wait_until(lambda: stands_still(writer), "a write that waits")
            with subprocess.Popen(["cat", f"{cluster.mount}/file"],
                                  stdout=subprocess.PIPE) as reader:
                try:
                    data, _ = reader.communicate(timeout=READ_LIMIT_S)
                    expect(data == bytes(4096), f"{len(data)} bytes are read")
                except subprocess.TimeoutExpired:
                    raise Failed("a reader waits for the writer") from None
                finally:
                    writer.kill()
        finally:
            os.kill(server, signal.SIGCONT)


# Rings, whose names are known once a cluster has run.

def names_of_rings_are_not_taken(ground):
    """What a user lays in their place while the cluster is down is refused by a line that says
    whose it is and what to do, which is enough."""
    cluster = ground.cluster
    cluster.start()
    cluster.stop()
    path = f"/dev/shm/shoal-{cluster.identity}-ost0"
    for make in (["touch", path], ["mkdir", path], ["ln", "-s", ground.treasure, path],
                 ["mkfifo", path], ["ln", "-s", "/nowhere", path]):
        as_user(*make)
        result = up(ground, cluster.directory)
        refused(result, path, f"taken by user {NOBODY}", f"`rm -r {path}`")
        subprocess.run(["sh", "-c", result.stderr.split("`")[1]], check=True)
        expect(not os.path.lexists(path), "what it says does not help")
    ground.untouched()
    cluster.start()
    cluster.kill()
    clusters.unmount(cluster.mount)
    os.chmod(path, 0o666)
    refused(up(ground, cluster.directory), f"others may write to the ring {path}", "chmod 600")
    os.chmod(path, 0o600)
    cluster.start()
    cluster.stop()
    expect(not rings_of(cluster), f"{rings_of(cluster)} stay behind a stop")


def rings_of(cluster):
    return [name for name in os.listdir("/dev/shm") if cluster.identity in name]


def a_start_that_fails_leaves_no_ring(ground):
    cluster = ground.cluster
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        key = os.path.join(cluster.top, "members.key")
        cluster.key("new", key)
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        refused(up(ground, cluster.directory, "--listen", address, "--key", key), address)
    expect(not rings_of(cluster), f"{rings_of(cluster)} stay behind a start that failed")
    cluster.start()


# The planner's page, which everybody reaches.

HALVES = 600
DRIP_S = 1


@contextlib.contextmanager
def served(ground):
    with subprocess.Popen([ground.cluster.shoal, "plan", "--serve", "127.0.0.1:0"],
                          stdout=subprocess.PIPE, text=True) as process:
        try:
            place = process.stdout.readline()
            expect(place.startswith("http://"), f"it says {place!r}")
            host, _, port = place[7:].split("/")[0].partition(":")
            yield host, int(port)
        finally:
            process.kill()


def get_page(place):
    with socket.create_connection(place, timeout=20) as one:
        one.sendall(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        return one.recv(15)


def drip(halves, over):
    """A byte more, so that none of them is silent."""
    while not over.wait(DRIP_S):
        for half in halves:
            with contextlib.suppress(OSError):
                half.sendall(b"x")


def half_requests_silence_nobody(ground):
    """However many connections somebody keeps open, also by one more byte from time to time."""
    over = threading.Event()
    with served(ground) as place, contextlib.ExitStack() as stack:
        halves = [stack.enter_context(socket.create_connection(place, timeout=20))
                  for _ in range(HALVES)]
        for half in halves:
            half.sendall(b"GET / HTTP/1.1\r\nX: ")
        thread = threading.Thread(target=drip, args=(halves, over), daemon=True)
        thread.start()
        try:
            for _ in range(3):
                expect(get_page(place) == b"HTTP/1.1 200 OK", "there is no answer")
        finally:
            over.set()
            thread.join()


# Directories within each other.

LEVELS_MAX = 16384
DEEP = """
import errno, os, sys
os.chdir(sys.argv[1])
levels, known = int(sys.argv[2]), {}
for level in range(levels):
    if level in (100, levels - 100):
        os.mkdir("moves")
        known[level] = os.open(".", os.O_RDONLY)
    os.mkdir("d")
    os.chdir("d")
high, low = sorted(known)
try:
    os.rename("moves", "below", src_dir_fd=known[high], dst_dir_fd=known[low])
    print("moved", flush=True)
except OSError as error:
    print(errno.errorcode[error.errno], flush=True)
os.rename("moves", "above", src_dir_fd=known[low], dst_dir_fd=known[high])
"""


def no_rename_walks_without_end(ground):
    """A directory's move looks for it on the whole way to the root, while nothing else is done."""
    ground.cluster.start()
    for name, levels, said in (("deep", LEVELS_MAX, "moved"),
                               ("deeper", LEVELS_MAX + 200, "ENAMETOOLONG")):
        folder = os.path.join(ground.cluster.mount, name)
        os.mkdir(folder)
        os.chown(folder, NOBODY, NOBODY)
        came = as_user(sys.executable, "-c", DEEP, folder, str(levels)).strip()
        expect(came == said, f"a move to level {levels} below {name}: {came}")


# Open files.

OPEN_MAX = 1024
OPENS = """
import errno, os, sys
held = []
try:
    while len(held) < 2000:
        held.append(os.open(sys.argv[1], os.O_RDONLY))
except OSError as error:
    print(len(held), errno.errorcode[error.errno], flush=True)
sys.stdin.read()
"""


def hold_all(mount, user):
    as_who = [*AS_USER[:1], f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    process = subprocess.Popen([*as_who, sys.executable, "-c", OPENS, mount],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().split()


def open_files_are_shared_out(ground):
    """One user's never keep another, nor root, from opening one, and a line tells of it."""
    cluster = ground.cluster
    with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write(f"\n[limits]\nopen_files_max = {OPEN_MAX}\n")
    cluster.start()
    mounts = {cluster.mount: "shoal.log", os.path.join(cluster.top, "mount-apart"): "mount.log"}
    os.mkdir(list(mounts)[1])
    cluster.mount_apart(list(mounts)[1])
    for mount, log in mounts.items():
        first, (count, error) = hold_all(mount, NOBODY)
        with first:
            expect((int(count), error) == (OPEN_MAX // 2, "ENFILE"), f"one opens {count}: {error}")
            second, (count, error) = hold_all(mount, NOBODY - 1)
            with second:
                expect(int(count) == OPEN_MAX * 15 // 16 - OPEN_MAX // 2 and error == "ENFILE",
                       f"the other opens {count}: {error}")
                held = [os.open(mount, os.O_RDONLY) for _ in range(OPEN_MAX // 16 - 1)]
                os.listdir(mount)
                for one in held:
                    os.close(one)
                second.kill()
            line = f"user {NOBODY} has as many files open as one may, {OPEN_MAX // 2} of {OPEN_MAX}"
            wait_until(lambda: line in content(cluster.path(log)), f"a line in {log}")
            first.kill()
    met = f"user {NOBODY} has met his share of open files at "
    wait_until(lambda: met + "this daemon's mount" in status_of(cluster) and
               met + f"the mount {list(mounts)[1]} (session " in status_of(cluster),
               "a line in status")
    rows = json.loads(cluster.run("status", cluster.directory, "--json").stdout)["shares_met"]
    expect([(row["user"], row["share"]) for row in rows] == [(NOBODY, "open files")] * 2, str(rows))
    expect(content(cluster.path("shoal.log")).count("has as many files open") == 1, "many lines")
    cluster.run("umount", list(mounts)[1])
    wait_until(lambda: "(session " not in status_of(cluster), "the mount's end in status")


def status_of(cluster):
    return cluster.run("status", cluster.directory).stdout


# By a pipe: how many to open at most, of mount/0 and so on from which one; what came of it.
OPENS_EACH = """
import errno, os, resource, sys
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for line in sys.stdin:
    mount, first, count = line.split()
    was, said = len(held), "OK"
    try:
        for number in range(int(first), int(first) + int(count)):
            held.append(os.open(f"{mount}/{number}", os.O_RDWR))
    except OSError as error:
        said = errno.errorcode[error.errno]
    print(len(held) - was, said, flush=True)
"""


class Opener:
    """A program of a user's, or of root's, that holds files open."""

    def __init__(self, user):
        as_who = [AS_USER[0], f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        self.process = subprocess.Popen([*as_who, sys.executable, "-c", OPENS_EACH],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def open(self, mount, first, count):
        print(mount, first, count, file=self.process.stdin, flush=True)
        opened, said = self.process.stdout.readline().split()
        return int(opened), said

    def end(self):
        self.process.kill()
        self.process.communicate()


def open_files_of_all_mounts_are_shared_out(ground):
    """Who has mounts that let him have more open than a metadata target does meets his share there,
    also behind a restart; others and root go on, and a line tells of it."""
    cluster = ground.cluster
    with open(cluster.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write(f"\n[limits]\nopen_files_max = {4 * OPEN_MAX}\n")
    cluster.start()
    mounts = [os.path.join(cluster.top, name) for name in ("mount-one", "mount-two")]
    for mount in mounts:
        os.mkdir(mount)
        cluster.mount_apart(mount)
    for number in range(3 * OPEN_MAX):
        os.close(os.open(f"{cluster.mount}/{number}", os.O_CREAT | os.O_WRONLY, 0o666))
        os.chmod(f"{cluster.mount}/{number}", 0o666)
    cluster.stop()
    conf = content(cluster.path("shoal.conf"))
    with open(cluster.path("shoal.conf"), "w", encoding="ascii") as file:
        file.write(conf.replace(f"open_files_max = {4 * OPEN_MAX}", f"open_files_max = {OPEN_MAX}"))
    cluster.start()
    most = 2 * OPEN_MAX
    others = most * 15 // 16
    spare = most + OPEN_MAX // 2
    with contextlib.ExitStack() as stack:
        one, other, root = (Opener(user) for user in (NOBODY, NOBODY - 1, 0))
        for opener in (one, other, root):
            stack.callback(opener.end)
        expect(one.open(mounts[0], 0, 700) == (700, "OK"), "one can't open 700")
        came = one.open(mounts[1], 700, most)
        expect(came == (most // 2 - 700, "ENFILE"), f"one opens {came} by the other mount")
        expect(one.open(mounts[0], spare, 1) == (0, "ENFILE"), "one opens more by the first mount")
        came = other.open(mounts[1], most // 2, most)
        expect(came == (others - most // 2, "ENFILE"), f"another one opens {came}")
        expect(root.open(mounts[0], most, most // 32) == (most // 32, "OK"), "root can't open")
        line = f"user {NOBODY} has as many files open by all mounts as one may, {OPEN_MAX} of"
        wait_until(lambda: line in content(cluster.path("shoal.log")), "a line in the log")
        said = f"user {NOBODY} has met his share of files open by all mounts at mdt0"
        expect(said in status_of(cluster), status_of(cluster))
        cluster.kill()
        clusters.unmount(cluster.mount)
        cluster.start()
        os.listdir(mounts[0])
        os.listdir(mounts[1])
        expect(one.open(mounts[0], spare, 1) == (0, "ENFILE"), "one opens more behind a restart")
        expect(other.open(mounts[1], spare, 1) == (0, "ENFILE"), "another opens more behind it")
        expect(root.open(mounts[1], spare + 1, 1) == (1, "OK"), "root can't open behind it")
        one.end()
        wait_until(lambda: other.open(mounts[1], spare, 1) == (1, "OK"), "room for another")
    for mount in mounts:
        cluster.run("umount", mount)


# Set-group-ID.

GROUP = 4242


def sh_as(groups, text):
    words = ["--clear-groups"] if groups is None else [f"--groups={groups}"]
    result = subprocess.run([*AS_USER[:3], *words, "sh", "-c", text], capture_output=True,
                            text=True, check=False)
    expect(result.returncode == 0, f"{text}: {result.stderr.strip()}")


def mode_of(path):
    return oct(stat.S_IMODE(os.stat(path).st_mode))


def set_group_id_is_the_groups(ground):
    """A stranger's write clears it also where the group may not execute; a member's doesn't. Who
    makes a program in a folder of a group that he is in by the way may give it the bit."""
    ground.cluster.start()
    path = os.path.join(ground.cluster.mount, "file")
    for change in (f"echo x >>{path}", f"echo x >{path}", f"truncate -s 1 {path}"):
        for groups, left in ((GROUP, "0o2666"), (None, "0o666")):
            with open(path, "w", encoding="ascii") as file:
                file.write("text")
            os.chown(path, 0, GROUP)
            os.chmod(path, 0o2666)
            sh_as(groups, change)
            expect(mode_of(path) == left, f"{change} by {groups} leaves {mode_of(path)}")
    folder = os.path.join(ground.cluster.mount, "folder")
    os.mkdir(folder)
    os.chown(folder, 0, GROUP)
    os.chmod(folder, 0o2777)
    make = "import os; os.umask(0); os.open('%s', os.O_CREAT | os.O_WRONLY, 0o2755)"
    for groups, left in ((GROUP, "0o2755"), (None, "0o755")):
        tool = f"{folder}/tool-{groups}"
        sh_as(groups, f'{sys.executable} -c "{make % tool}"')
        expect(mode_of(tool) == left, f"made by {groups} it has {mode_of(tool)}")


# Set-user-ID through several mounts.

# Says that it has opened the file, writes when it is told to, closes when it is told to.
WRITES_AS_TOLD = """
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY)
print("open", flush=True)
for line in sys.stdin:
    if line == "close\\n":
        os.close(fd)
    else:
        os.pwrite(fd, line.encode(), 0)
    print("done", flush=True)
"""


class Writer:
    """A program of the user's that has a file open for writing."""

    def __init__(self, path):
        self.process = subprocess.Popen([*AS_USER, sys.executable, "-c", WRITES_AS_TOLD, path],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        expect(self.process.stdout.readline() == "open\n", f"{path} is not opened")

    def does(self, word):
        print(word, file=self.process.stdin, flush=True)
        expect(self.process.stdout.readline() == "done\n", f"the user's {word} fails")

    def end(self):
        self.process.kill()
        self.process.communicate()


def nothing_acts_for_root_that_others_write(ground):
    """Who has a file open by one mount goes by the mode that he saw there: root can't make a
    program of his own of it by another one before it is closed. Who opens it later takes the bits
    away."""
    cluster = ground.cluster
    cluster.start()
    other = os.path.join(cluster.top, "mount-other")
    os.mkdir(other)
    cluster.mount_apart(other)
    for size in (100, 100000):  # beside its attributes, and in chunks
        path = os.path.join(cluster.mount, f"program-{size}")
        with open(path, "wb") as file:
            file.write(b"x" * size)
        os.chown(path, NOBODY, NOBODY)
        os.chmod(path, 0o755)
        writer = Writer(os.path.join(other, f"program-{size}"))
        try:
            writer.does("his, before")
            os.chown(path, 0, 0)
            acts_not(path, 0o4755)
            acts_not(path, 0o2755)
            writer.does("his, after")
            expect(mode_of(path) == "0o755", f"the mode is {mode_of(path)}")
            writer.does("close")
            wait_until(lambda path=path: acts(path, 0o6757), "a file that he has closed")
        finally:
            writer.end()
        writer = Writer(os.path.join(other, f"program-{size}"))
        try:
            writer.does("his, late")
            wait_until(lambda path=path: mode_of(path) == "0o757", "a mode without the bits")
        finally:
            writer.end()
    cluster.run("umount", other)


def acts(path, mode):
    try:
        os.chmod(path, mode)
    except OSError as error:
        expect(error.errno == errno.EBUSY, f"it is answered {error}")
        return False
    return True


def acts_not(path, mode):
    expect(not acts(path, mode), f"{path} gets mode {oct(mode)} while others write to it")


# A daemon that is none, in a directory that was named to root's verbs.

HOSTILE = """
import os, socket, struct, sys
# Writes what it is given to each who asks; or without end; or nothing.
path, way, *words = sys.argv[1:]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen(0)
print("ready", flush=True)
while True:
    asker, _ = listener.accept()
    try:
        asker.recv(1 << 16)
        if way == "silent":
            asker.recv(1)
        if way == "much":
            while True:
                asker.sendall(struct.pack("<I", 1 << 20) + b"x" * (1 << 20))
        text = words[0].encode("latin-1").decode("unicode_escape").encode("latin-1")
        asker.sendall(struct.pack("<I", len(text)) + text + struct.pack("<II", 0, 0))
    except OSError:
        pass
    asker.close()
"""


@contextlib.contextmanager
def hostile(ground, directory, way, *words, user=True):
    """Listens in the directory, which looks like one of Shoal's."""
    shutil.copy(ground.cluster.path("shoal.conf"), directory)
    path = os.path.join(directory, "control.sock")
    command = [*(AS_USER if user else []), sys.executable, "-c", HOSTILE, path, way, *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            expect(process.stdout.readline() == b"ready\n", "it does not listen")
            yield
        finally:
            process.kill()
            os.unlink(path)


VERBS = (["status"], ["df"], ["stats"], ["sync"], ["down"], ["fsck"])


def verbs_believe_no_other_user(ground):
    for way in ("silent", "much", "say"):
        with hostile(ground, ground.users, way, "all is well"):
            for verb in VERBS:
                result = ground.cluster.run(*verb, ground.users, limit_s=20)
                refused(result, "another user's daemon listens in " + ground.users)
                expect(result.stdout == "", result.stdout)


def answers_are_no_orders(ground):
    """Whoever may answer, what he says is text: a name in a file system is anybody's."""
    words = "a\\x1b]0;b\\x07\\xc2\\x9bc\\n\\x7f"
    with hostile(ground, ground.shared, "say", words, user=False):
        for verb in VERBS[:4] + VERBS[5:]:
            result = ground.cluster.run(*verb, ground.shared)
            said = result.stdout + result.stderr
            expect("a?]0;b?" in said and said.replace("\n", "").isprintable(),
                   f"{verb}: {said!r}")


def answers_have_an_end(ground):
    with hostile(ground, ground.shared, "much", user=False):
        refused(ground.cluster.run("status", ground.shared), "says more than 64 MiB")


TESTS = [no_rename_walks_without_end, half_requests_silence_nobody, names_of_rings_are_not_taken,
         a_start_that_fails_leaves_no_ring, open_files_are_shared_out,
         open_files_of_all_mounts_are_shared_out, set_group_id_is_the_groups,
         nothing_acts_for_root_that_others_write, verbs_believe_no_other_user,
         answers_are_no_orders, answers_have_an_end, up_takes_no_directory_of_others,
         up_takes_nothing_of_others_in_its_directory,
         up_takes_nothing_that_others_may_write_to, log_is_no_link, names_are_no_orders,
         mount_of_others_has_no_set_id, directory_that_others_may_move_has_no_set_id,
         keys_are_for_no_directory_of_others, keys_are_added_to_no_file_of_others,
         mount_point_is_not_led_astray, readers_wait_for_no_writer,
         bench_takes_no_files_of_others, bench_takes_no_folder_that_others_may_write_to,
         bench_follows_no_link, bench_goes_on, bench_in_the_daemon]


def end_others(top):
    """What a test that failed has let start in other directories."""
    for process in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as file:
            line = file.read()
            if any(f"{top}/{name}".encode() in line for name in ("roots", "users")):
                clusters.end_process(int(process))


def play(test):
    with clusters.Cluster(sys.argv[1], osts=1) as cluster:
        # The command has to be where the user may run it.
        here = os.path.join(cluster.top, "shoal")
        shutil.copy(cluster.shoal, here)
        cluster.shoal = here
        try:
            test(Ground(cluster))
        finally:
            end_others(cluster.top)


sys.exit(drive(__doc__, TESTS, play))
