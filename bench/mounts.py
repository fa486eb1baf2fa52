"""The file systems that ./dev bench compares: a cluster, our channel alone, libfuse's pass-through
example, and folders. Each lies at .root while it is started:

    start()   mounted; the seconds that took
    rest()    ended, by its own process id; what it has on the disk stays
    again()   rest and start: of what it keeps on the disk nothing is in memory, nor in the kernel
    stop()    ended for good, as often as one likes
"""

import contextlib
import ctypes
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

EXAMPLES = "/usr/share/doc/libfuse3-dev/examples"
MOUNT_WAIT_S = 20
SETTLE_WAIT_S = 5
SETTLE_STEP_S = 0.05


class Failed(Exception):
    """One line that says what could not be done."""


def command(words, wait_s=900):
    result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                            timeout=wait_s, check=False)
    if result.returncode != 0:
        last = (result.stderr.strip() or "it said nothing").splitlines()[-1]
        raise Failed(f"{' '.join(words[:3])}: {last}")
    return result.stdout


def drop_caches(what):
    """2: names and attributes; 3: data as well. The kernel forgets; mounts see it as FORGETs."""
    os.sync()
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write(f"{what}\n")


def is_mounted(path):
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        return any(line.split(" ")[1] == path for line in file)


def cpu_s(process_id):
    """User and system time of a process so far; 0 for none."""
    if process_id is None:
        return 0.0
    with open(f"/proc/{process_id}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_clock_s(process_id):
    """Likewise by the process's own clock (clock_getcpuclockid(3)), which has no ticks: it never
    stands still while a daemon runs, and tells what takes less than one."""
    clock = ctypes.c_int()
    error = ctypes.CDLL(None).clock_getcpuclockid(process_id, ctypes.byref(clock))
    if error != 0:
        raise Failed(f"no processor time of process {process_id}: {os.strerror(error)}")
    return time.clock_gettime(clock.value)


def forget(place, what):
    """drop_caches, until what it gives the server to do is over: its CPU time stands still."""
    drop_caches(what)
    until_s = time.monotonic() + SETTLE_WAIT_S
    before_s = None
    while before_s != (now_s := cpu_s(place.process_id)) and time.monotonic() < until_s:
        before_s = now_s
        time.sleep(SETTLE_STEP_S)


@contextlib.contextmanager
def up(place):
    """Started cold, and at rest behind it: what is measured is alone."""
    drop_caches(3)
    place.start()
    try:
        yield place
    finally:
        place.rest()


class Folder:
    """A folder of whatever file system it lies in."""

    process_id = None

    def __init__(self, name, root):
        self.name = name
        self.root = root
        os.makedirs(root, exist_ok=True)

    def start(self):
        return 0.0

    def rest(self):
        pass

    def again(self):
        drop_caches(3)
        return 0.0

    def stop(self):
        shutil.rmtree(self.root, ignore_errors=True)


class Mounted:
    """A program that we start in the foreground and that serves a mount point from its memory."""

    def __init__(self, name, words, root):
        self.name = name
        self.words = words
        self.root = root
        self.process = None

    @property
    def process_id(self):
        return self.process.pid if self.process else None

    def start(self):
        os.makedirs(self.root, exist_ok=True)
        started_s = time.monotonic()
        self.process = subprocess.Popen(self.words, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not is_mounted(self.root):
            if self.process.poll() is not None or time.monotonic() - started_s > MOUNT_WAIT_S:
                raise Failed(f"{self.name} does not mount: {' '.join(self.words)}")
            time.sleep(0.01)
        return time.monotonic() - started_s

    def rest(self):
        subprocess.run(["umount", "--lazy", self.root], capture_output=True, check=False)
        if self.process:
            self.process.terminate()
            try:
                self.process.wait(timeout=MOUNT_WAIT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None

    def again(self):
        """What it has is in its memory, so it goes on."""
        drop_caches(3)
        return 0.0

    def stop(self):
        self.rest()


class Bare(Mounted):
    """Our channel alone, over what channel() says at its start: any, dev or uring."""

    def __init__(self, program, root, channel):
        super().__init__("bare FUSE", [program, root], root)
        self.asks = channel

    def start(self):
        self.words = self.words[:2] + ["channel=" + self.asks()]
        return super().start()


class Passthrough(Mounted):
    """libfuse's example passthrough_ll over the folder .source. Its options: the page cache as the
    kernel likes, names and attributes for 1 s, as ours."""

    def __init__(self, program, source, root):
        options = f"source={source},cache=auto,timeout=1"
        super().__init__("passthrough_ll", [program, "-f", "-o", options, root], root)
        self.source = source
        self.inodes_max = None  # while it is started: it keeps a descriptor open for each
        os.makedirs(source)

    def start(self):
        seconds = super().start()
        self.inodes_max = descriptors_raise(self.process_id) // 1000 * 1000 - 1000
        return seconds

    def again(self):
        self.rest()
        drop_caches(3)
        return self.start()


class Cluster:
    """A cluster with its data in .data, mounted at .root. sizes: settings of shoal.conf, changed
    before the first use."""

    name = "shoal"

    def __init__(self, shoal, data, root, sizes=None):
        self.shoal = shoal
        self.data = data
        self.root = root
        self.sizes = sizes or {}
        self.process_id = None
        self.started_s = None  # how long the last start took
        self.channel = None  # what the requests of its mount come by, as of the last start
        os.makedirs(data)
        os.makedirs(root, exist_ok=True)

    def start(self):
        if self.sizes:
            command([self.shoal, "up", self.data, "--mount", self.root])
            command([self.shoal, "down", self.data])
            self.configure()
        started_s = time.monotonic()
        command([self.shoal, "up", self.data, "--mount", self.root])
        os.listdir(self.root)
        self.started_s = time.monotonic() - started_s
        told = json.loads(command([self.shoal, "status", self.data, "--json"]))
        self.channel = told["mounts"][0]["channel"]
        with open(os.path.join(self.data, "lock"), encoding="ascii") as file:
            self.process_id = int(file.read())
        return self.started_s

    def configure(self):
        path = os.path.join(self.data, "shoal.conf")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for name, value in self.sizes.items():
            text, count = re.subn(rf"(?m)^;?{name} *=.*$", f"{name} = {value}", text)
            if count != 1:
                raise Failed(f"shoal.conf has no {name}")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.sizes = {}

    def rest(self):
        if self.process_id is not None:
            command([self.shoal, "down", self.data])
            self.process_id = None

    def again(self):
        self.rest()
        drop_caches(3)
        return self.start()

    def kill(self):
        process_id, self.process_id = self.process_id, None
        os.kill(process_id, signal.SIGKILL)
        while os.path.exists(f"/proc/{process_id}"):
            time.sleep(0.001)

    def stats(self):
        return json.loads(command([self.shoal, "stats", self.data, "--json"]))

    def memory_bytes(self):
        """RssAnon + RssShmem."""
        with open(f"/proc/{self.process_id}/status", encoding="ascii") as file:
            lines = dict(line.split(":", 1) for line in file)
        return sum(int(lines[key].split()[0]) * 1024 for key in ("RssAnon", "RssShmem"))

    def stop(self):
        if self.process_id is not None:
            subprocess.run([self.shoal, "down", self.data], capture_output=True, check=False)
            self.process_id = None
        shutil.rmtree(self.data, ignore_errors=True)


def mount_options(log, channel):
    """Of a mount by a process of its own: its log, and the channel that is asked for or None."""
    return ["-o", f"log={log}" + (f",channel={channel}" if channel else "")]


def channel_logged(path):
    """Of a mount by a process of its own, by its log."""
    with open(path, encoding="utf-8") as file:
        told = file.read().rpartition("requests come by ")[2]
    return "io_uring" if told.startswith("io_uring") else "/dev/fuse"


def descriptors_raise(process_id):
    """Lets a process have as many as may be; the number."""
    _, hard = resource.prlimit(process_id, resource.RLIMIT_NOFILE)
    with open("/proc/sys/fs/nr_open", encoding="ascii") as file:
        most = int(file.read())
    try:
        resource.prlimit(process_id, resource.RLIMIT_NOFILE, (most, most))
        return most
    except (PermissionError, ValueError):
        resource.prlimit(process_id, resource.RLIMIT_NOFILE, (hard, hard))
        return hard


def in_turns(places, once, numbers):
    """What once(place) says of each place, run by run. Who begins changes from one to the next."""
    runs = []
    for number in numbers:
        order = list(enumerate(places))[::-1 if number % 2 else 1]
        said = {index: once(place) for index, place in order}
        runs.append([said[index] for index in range(len(places))])
    return runs


def stopping(places):
    for place in places:
        if place:
            place.stop()


def passthrough_build(folder):
    """Builds libfuse's example passthrough_ll from where its package has put it. It looks inodes up
    in one list, which alone would be its cost with many files: here the list gets hash buckets.
    None when the package is not there or not the version known."""
    path = os.path.join(EXAMPLES, "passthrough_ll.c")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        text = file.read()
    changes = [
        ("static struct lo_inode *lo_find(",
         "static struct lo_inode lo_heads[1 << 17];\n#define LO_HEAD(ino) "
         "(&lo_heads[((unsigned long)(ino) * 0x9E3779B97F4A7C15ul) >> 47])\n"
         "static struct lo_inode *lo_find("),
        ("for (p = lo->root.next; p != &lo->root; p = p->next)",
         "for (p = LO_HEAD(st->st_ino)->next; p != LO_HEAD(st->st_ino); p = p->next)"),
        ("prev = &lo->root;", "prev = LO_HEAD(e->attr.st_ino);"),
        ("\tlo.root.next = lo.root.prev = &lo.root;",
         "\tlo.root.next = lo.root.prev = &lo.root;\n\tfor (int h = 0; h < 1 << 17; h++)\n"
         "\t\tlo_heads[h].next = lo_heads[h].prev = &lo_heads[h];"),
    ]
    for old, new in changes:
        if text.count(old) != 1:
            return None
        text = text.replace(old, new)
    os.makedirs(folder, exist_ok=True)
    source = os.path.join(folder, "passthrough_ll.c")
    with open(source, "w", encoding="utf-8") as file:
        file.write(text)
    flags = command(["pkg-config", "--cflags", "--libs", "fuse3"]).split()
    program = os.path.join(folder, "passthrough_ll")
    command(["gcc", "-O2", "-w", "-I" + EXAMPLES, source, *flags, "-o", program])
    return program
