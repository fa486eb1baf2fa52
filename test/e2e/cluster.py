"""A cluster of its own for a test: in a new folder, small, gone afterwards, however the test ends.

    with Cluster(shoal) as cluster:
        cluster.start()
        ...cluster.mount...
        cluster.kill()
        cluster.start()

It prepares shoal.conf before the first start, so that logs and rings are small and a start is fast.
Needs root and /dev/fuse; missing() says what there isn't.
"""

import contextlib
import faulthandler
import glob
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30

# osts and sizes: an ordinary cluster; one whose rings, logs and memory are so small that each
# fills, wraps and is checkpointed all the time; one of a single target.
SHAPES = [
    (2, {}),
    (3, {"mdt_ring_bytes": MIB, "ost_ring_bytes": MIB, "ost_ring_data_bytes": MIB,
         "disk_log_bytes": 8 * MIB, "mdt_changes_bytes": 8 * MIB, "ost_changes_bytes": 8 * MIB,
         "cache_bytes": 0}),
    (1, {"data_bytes_max": 512 * MIB}),
]

# Small, but large enough that no test but those of limits meets one.
SIZES = {
    "mdt_ring_bytes": 2 * MIB,
    "ost_ring_bytes": 1 * MIB,
    "ost_ring_data_bytes": 4 * MIB,
    "disk_log_bytes": 32 * MIB,
    "mdt_changes_bytes": 64 * MIB,
    "ost_changes_bytes": 32 * MIB,
    "base_memory_bytes": 256 * MIB,
    "cache_bytes": 16 * MIB,
    "data_bytes_max": 256 * MIB,
}
START_LIMIT_S = 120
# A directory that others may write to is refused.
os.umask(0o022)
# What mounts are served by: dev, or uring, for which the kernel's module is set while the test
# runs. What writes no shoal.conf takes what a mount takes by itself.
CHANNEL = os.environ.get("SHOAL_CHANNEL", "dev")
ENABLE_URING = "/sys/module/fuse/parameters/enable_uring"


# Whoever ends a test from outside, by a time limit say, lets it take its cluster away.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


# Set by ./dev: within as many seconds a program of the tests must have ended.
LIMIT_NAME = "SHOAL_TEST_LIMIT_S"
# In the environment of all that a program has started, daemons too.
STARTED_BY = f"SHOAL_STARTED_BY={os.getpid()}"


def read_or_none(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def started_by_us():
    """Processes that this program has started, and theirs: by their environment, which lasts when
    a parent ends, and by their parent, as in the middle of exec a process has no environment."""
    parents, ours = {}, set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        words = read_or_none(f"/proc/{entry}/environ") or b""
        stat = (read_or_none(f"/proc/{entry}/stat") or b"").rpartition(b")")[2].split()
        parents[int(entry)] = int(stat[1]) if stat else 0
        if STARTED_BY.encode() in words.split(b"\0"):
            ours.add(int(entry))
    ours.add(os.getpid())
    while more := {process for process, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return ours - {os.getpid()}


def end_late(limit_s):
    """Says where this program stands and what it has started, ends those, and itself: it may wait
    for one of them in a call that no signal ends."""
    print(f"{' '.join(sys.argv)} has not ended in {limit_s} s", file=sys.stderr, flush=True)
    faulthandler.dump_traceback(all_threads=True)
    late = list(started_by_us())
    for process in late:
        words = (read_or_none(f"/proc/{process}/cmdline") or b"").replace(b"\0", b" ")
        told = [words.decode(errors="replace")]
        for thread in glob.glob(f"/proc/{process}/task/*"):
            state = (read_or_none(thread + "/stat") or b"").rpartition(b")")[2].split()[:1]
            waits = read_or_none(thread + "/wchan") or b""
            told.append(b" ".join([*state, waits]).decode())
        print(process, "; ".join(told), file=sys.stderr, flush=True)
    # By another process, as with those gone this one would go on.
    if os.fork() == 0:
        for process in late:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        os._exit(0)
    os._exit(1)


def watch_the_time():
    name, _, value = STARTED_BY.partition("=")
    os.environ[name] = value
    limit_s = int(os.environ.get(LIMIT_NAME, "0"))
    if limit_s > 0:
        timer = threading.Timer(limit_s, end_late, [limit_s])
        timer.daemon = True
        timer.start()


watch_the_time()


class Failed(Exception):
    """What a test found, in one line."""


def missing():
    """Why no cluster can be mounted here, or None."""
    if os.geteuid() != 0:
        return "root, which mounts"
    if not os.path.exists("/dev/fuse"):
        return "/dev/fuse"
    if CHANNEL == "uring" and not uring_enable():
        return f"{ENABLE_URING}, which is Linux 6.14's"
    return None


def for_everybody(program, folder):
    """A copy in the folder, which all may enter: where the program lies they may not be let in."""
    copy = os.path.join(folder, "bin", os.path.basename(program))
    if not os.path.exists(copy):
        os.makedirs(os.path.dirname(copy), mode=0o755, exist_ok=True)
        shutil.copy(program, copy)
    return copy


def uring_enable():
    """For good, as mounts do: others may run beside. False where that can't be."""
    try:
        with open(ENABLE_URING, "r+", encoding="ascii") as file:
            if file.read().strip() != "Y":
                file.seek(0)
                file.write("Y")
    except OSError:
        return False
    return True


def configuration(osts, sizes, identity, mdts=1):
    """The text of a new cluster's shoal.conf."""
    lines = ["[cluster]", "format = 3", f"osts = {osts}", f"mdts = {mdts}", f"id = {identity}",
             f"name_hash_key = {os.urandom(16).hex()}", "", "[sizes]"]
    lines += [f"{name} = {value}" for name, value in sizes.items()]
    if CHANNEL:
        lines += ["", "[mount]", f"channel = {CHANNEL}"]
    return "\n".join(lines) + "\n"


def unmount(path):
    """Takes away whatever is mounted there, also what a dead process left."""
    while subprocess.run(["umount", "-l", path], capture_output=True, check=False).returncode == 0:
        pass


def remove(path):
    """A file, or a folder with all that is in it."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)


@contextlib.contextmanager
def child(words, **options):
    """A program that runs beside what follows, and is ended where that fails: subprocess.Popen
    would wait for its end, which then never comes."""
    with subprocess.Popen(words, **options) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def answer(limit_s, do, *words):
    """The errno of a call that must not hang; 0: it succeeds."""
    begin = time.monotonic()
    number = 0
    try:
        do(*words)
    except OSError as error:
        number = error.errno
    took_s = time.monotonic() - begin
    if took_s > limit_s:
        raise Failed(f"{do.__name__} {words} has answered {number} after {took_s:.1f} s")
    return number


class Cluster:
    """directory holds the data, mount is where it is mounted, top holds both and what else a test
    wants to keep on the local disk. apart: a process of its own serves the mount; afar: likewise,
    by TCP and with a key, as from another machine. mdts: metadata targets, over which directories
    are dealt. within: the folder that top is made in, if not the one for temporary files."""

    def __init__(self, shoal, osts=2, sizes=None, apart=False, afar=False, mdts=1,
                 within=None):
        self.apart = apart or afar
        self.afar = afar
        self.shoal = os.path.abspath(shoal)
        self.top = tempfile.mkdtemp(prefix="shoal-e2e-", dir=within)
        self.regions = set()
        self.identity = os.urandom(16).hex()
        self.directory = os.path.join(self.top, "data")
        self.mount = os.path.join(self.top, "mount")
        os.mkdir(self.directory)
        os.mkdir(self.mount)
        with open(self.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write(configuration(osts, {**SIZES, **(sizes or {})}, self.identity, mdts))
        self.source = self.directory
        if afar:
            self.make_afar()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def path(self, name):
        return os.path.join(self.directory, name)

    def run(self, *words, limit_s=START_LIMIT_S):
        """`shoal WORDS`: its CompletedProcess."""
        try:
            return subprocess.run([self.shoal, *words], stdin=subprocess.DEVNULL, text=True,
                                  capture_output=True, timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"shoal {words[0]} did not end in {limit_s} s") from None

    def make_afar(self):
        """A port of its own, and keys in top: members.key, mount.key, and what key() makes."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.source = "127.0.0.1:%d" % free.getsockname()[1]
        self.key("new", os.path.join(self.top, "members.key"))
        self.mount_key("mount.key")
        with open(self.path("shoal.conf"), "a", encoding="ascii") as file:
            file.write(f"[network]\nlisten = {self.source}\nkey = {self.top}/members.key\n")

    def key(self, *words):
        result = self.run("key", *words)
        if result.returncode != 0:
            raise Failed(f"key: {result.stderr.strip()}")

    def mount_key(self, name, *words):
        """The path of a key for mounts that this makes."""
        path = os.path.join(self.top, name)
        self.key("mount", os.path.join(self.top, "members.key"), path, *words)
        return path

    def start(self):
        """Starts and mounts."""
        words = [] if self.apart else ["--mount", self.mount]
        result = self.run("up", self.directory, *words)
        if result.returncode != 0:
            raise Failed(f"up failed: {result.stderr.strip()}; the log ends: {self.log_end()}")
        self.note_regions()
        if self.apart and not os.path.ismount(self.mount):
            self.mount_apart(self.mount)

    def mount_apart(self, mount, *words):
        """Mounts by a process of its own."""
        if CHANNEL:
            words = ["-o", f"channel={CHANNEL}", *words]
        if self.afar:
            words = ["--key", os.path.join(self.top, "mount.key"), "-o",
                     "log=" + self.path("mount.log"), *words]
        result = self.run("mount", self.source, mount, *words)
        if result.returncode != 0:
            raise Failed(f"mount failed: {result.stderr.strip()}; its log ends: "
                         f"{self.log_end('mount.log')}")

    def mount_process(self, mount):
        """Of the process that serves the mount, or None."""
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if words[1:4] == [b"mount", self.source.encode(), mount.encode()]:
                return int(entry)
        return None

    def note_regions(self):
        """Remembers the daemon's shared memory, which a killed one leaves behind."""
        try:
            with open(f"/proc/{self.process()}/maps", encoding="utf-8") as file:
                words = [line.split() for line in file]
        except OSError:
            return
        self.regions |= {line[5] for line in words
                         if len(line) > 5 and line[5].startswith("/dev/shm/shoal-")}

    def stop(self):
        """A clean end."""
        result = self.run("down", self.directory)
        if result.returncode != 0:
            raise Failed(f"down failed: {result.stderr.strip()}; the log ends: {self.log_end()}")

    def process(self):
        """The daemon's process id, or None when none runs."""
        try:
            with open(self.path("lock"), encoding="ascii") as file:
                process = int(file.read())
            with open(f"/proc/{process}/cmdline", "rb") as file:
                return process if self.directory.encode() in file.read() else None
        except (OSError, ValueError):
            return None

    def kill(self):
        """kill -9, and waits until the process is gone."""
        process = self.process()
        if process is None:
            raise Failed(f"no daemon runs; the log ends: {self.log_end()}")
        end_process(process)

    def lose_rings(self):
        """What power loss does to a killed daemon's shared memory."""
        for path in filter(os.path.exists, self.regions):
            remove(path)

    def log_end(self, name="shoal.log"):
        """The last lines of the daemon's log, in one."""
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as file:
                return " | ".join(file.read().strip().split("\n")[-3:])
        except OSError as error:
            return error.strerror

    def close(self):
        self.note_regions()
        process = self.process()
        if process is not None:
            end_process(process)
        for name in [name for name in os.listdir(self.top) if name.startswith("mount")]:
            mount = os.path.join(self.top, name)
            process = self.mount_process(mount)
            if process is not None:
                end_process(process)
            unmount(mount)
        # A start that was refused half way has left some, too.
        for path in self.regions.union(glob.glob(f"/dev/shm/shoal-{self.identity}-*")):
            if os.path.exists(path):
                os.unlink(path)
        shutil.rmtree(self.top, ignore_errors=True)


def stop_process(process):
    """SIGSTOP, and waits until all of its threads stand still: until then others go on serving."""
    os.kill(process, signal.SIGSTOP)
    states = set()
    while states != {"T"}:
        states = set()
        for thread in os.listdir(f"/proc/{process}/task"):
            with contextlib.suppress(FileNotFoundError), \
                 open(f"/proc/{process}/task/{thread}/stat", encoding="ascii",
                      errors="replace") as file:
                states.add(file.read().rpartition(")")[2].split()[0])
        if states & {"Z", "X"}:
            raise ProcessLookupError(process)


def end_process(process):
    """SIGKILL, and waits for the end."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        poll = select.poll()  # where a test has many files open, too
        poll.register(handle, select.POLLIN)
        poll.poll(START_LIMIT_S * 1000)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
