"""Parts of ./dev bench about many daemons: what calls between processes cost beside bare sockets,
metadata over four metadata targets in processes of their own beside one, and a fifth that joins.

All lie on this machine and share its processors: what is compared is work, not how fast machines
of their own would be."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time

from mounts import Failed, channel_logged, command, cpu_clock_s, mount_options

MDTS = 4
THREADS = 8  # of programs, for each metadata target or in all
PHASES = ("create", "stat", "open", "list", "unlink")
MKDIR, RMDIR = "mkdir", "rmdir"  # most lie where their parent does
KINDS = {"unix": "Unix socket", "tcp": "TCP", "tls": "TCP in TLS"}
SLOTS = 65536
BRANCH = 100  # directories in one, as a tree has them
LINK_GBIT = 10
WAIT_S = 120
WAIT_STEP_S = 0.05


def links(bench):
    """bench_lane compares with bare sockets itself; each run is a line of JSON a kind."""
    trips = 2000 if bench.smoke else 20000
    runs = []
    for _ in range(bench.runs):
        folder = bench.folder("links")
        os.makedirs(folder)
        lines = command([bench.program("bench_lane"), folder, str(trips)]).splitlines()
        runs.append([json.loads(line) for line in lines])
        shutil.rmtree(folder)
    for index, first in enumerate(runs[0]):
        name, of_kind = KINDS[first["socket"]], [run[index] for run in runs]
        plain = first["socket"] != "tls"
        bench.row(f"round trip of a call, {name}", "us",
                  [(row["round_trip_us"], row["bare_us"]) for row in of_kind],
                  "bare epoll, send and recv", "<= 1.25" if plain else "")
        bench.row(f"reads of 1 MiB by calls, {name}", "GB/s",
                  [(row["stream_gb_s"], row["bare_gb_s"]) for row in of_kind],
                  "bare send and recv", ">= 0.9" if plain else "")


def remote(bench):
    """Streams by libshoal from and to a daemon by TCP, its store in memory, beside a bare stream in
    the same run: over loopback, where both ends share this machine's processors, and over a link as
    slow as one between machines; in TLS, too."""
    mibs = 64 if bench.smoke else 1024
    found = {}
    for _ in range(bench.runs):
        for link in ("loopback", f"{LINK_GBIT} Gbit/s"):
            with namespace(link != "loopback") as inside, Daemon(bench, inside) as daemon:
                for kind, words in (("TCP", ()), ("TCP in TLS", ("tls",))):
                    for row in daemon.stream(mibs, words):
                        found.setdefault((row["name"], f"{link}, {kind}"), []).append(
                            (row["gb_s"], row["bare_gb_s"]))
    bench.channel = None
    for (name, kind), pairs in found.items():
        bench.row(f"libshoal's stream {name}, {kind}", "GB/s", pairs, "a bare TCP stream",
                  "" if kind.endswith("TLS") else ">= 0.9")


@contextlib.contextmanager
def namespace(is_wanted):
    """A network of its own whose loopback is a link of LINK_GBIT: the words that run a command
    there. Else none."""
    if not is_wanted:
        yield []
        return
    name = f"shoal-bench-{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    command(["ip", "netns", "add", name])
    try:
        command([*inside, "ip", "link", "set", "lo", "up"])
        command([*inside, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate",
                 f"{LINK_GBIT}gbit", "burst", "2mb", "latency", "20ms"])
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


class Daemon:
    """One with all targets and its store in memory, that listens."""

    def __init__(self, bench, inside):
        self.bench = bench
        self.inside = inside
        self.top = os.path.join("/dev/shm", f"shoal-bench-{os.getpid()}")
        self.key = os.path.join(self.top, "members.key")
        self.address = f"127.0.0.1:{free_port('127.0.0.1')}"

    def __enter__(self):
        os.makedirs(self.top)
        command([self.bench.shoal, "key", "new", self.key])
        command([*self.inside, self.bench.shoal, "up", os.path.join(self.top, "node"), "--listen",
                 self.address, "--key", self.key, "--osts", "1"])
        return self

    def stream(self, mibs, words):
        text = command([*self.inside, self.bench.program("bench_remote"), self.address, self.key,
                        "5", str(mibs), *words])
        return [json.loads(line) for line in text.splitlines()]

    def __exit__(self, *_):
        subprocess.run([self.bench.shoal, "down", os.path.join(self.top, "node")],
                       capture_output=True, check=False)
        shutil.rmtree(self.top, ignore_errors=True)


def free_port(host):
    with socket.socket() as free:
        free.bind((host, 0))
        return free.getsockname()[1]


class Nodes:
    """Daemons with one metadata target each, the first with the manager and the storage target;
    .root is a mount by a process of its own, by TCP with a key."""

    def __init__(self, bench):
        self.bench = bench
        self.shoal = bench.shoal
        self.top = bench.folder("nodes")
        self.root = bench.folder("mount")
        self.key = os.path.join(self.top, "members.key")
        self.addresses = []
        os.makedirs(self.top)
        os.makedirs(self.root)

    def start(self, count):
        command([self.shoal, "key", "new", self.key])
        for _ in range(count):
            self.add()
        self.until(lambda: all(self.share(number) == SLOTS // count for number in range(count)),
                   "slots")
        mount_key = os.path.join(self.top, "mount.key")
        command([self.shoal, "key", "mount", self.key, mount_key])
        log = os.path.join(self.top, "mount.log")
        command([self.shoal, "mount", self.addresses[0], self.root, "--key", mount_key,
                 *mount_options(log, self.bench.asked)])
        self.bench.channel = channel_logged(log)

    def directory(self, number):
        return os.path.join(self.top, f"node{number}")

    def add(self):
        number = len(self.addresses)
        host = f"127.0.0.{number + 1}"
        self.addresses.append(f"{host}:{free_port(host)}")
        words = ["--roles", "meta", "--join", self.addresses[0]] if number else ["--osts", "1"]
        command([self.shoal, "up", self.directory(number), "--listen", self.addresses[-1],
                 "--key", self.key, *words])

    def until(self, is_so, what):
        until_s = time.monotonic() + WAIT_S
        while not is_so():
            if time.monotonic() > until_s:
                raise Failed(f"no {what} within {WAIT_S} s")
            time.sleep(WAIT_STEP_S)

    def of_target(self, number):
        text = command([self.shoal, "status", self.directory(number), "--json"])
        return next(row for row in json.loads(text)["targets"] if row["kind"] == "mdt")

    def share(self, number):
        return self.of_target(number)["slots"]

    def requests(self, number):
        """Operations that the metadata target has answered so far."""
        text = command([self.shoal, "stats", self.directory(number), "--json"])
        return sum(row["count"] for row in json.loads(text)["operations"]
                   if row["target"] == "mdt0")

    def cpu_s(self, number):
        with open(os.path.join(self.directory(number), "lock"), encoding="ascii") as file:
            return cpu_clock_s(int(file.read()))

    def work(self):
        """Of each node: requests and processor time so far."""
        return [(self.requests(number), self.cpu_s(number))
                for number in range(len(self.addresses))]

    def stop(self):
        subprocess.run(["umount", "--lazy", self.root], capture_output=True, check=False)
        for number in reversed(range(len(self.addresses))):
            subprocess.run([self.shoal, "down", self.directory(number)], capture_output=True,
                           check=False)
        shutil.rmtree(self.top, ignore_errors=True)


@contextlib.contextmanager
def started(bench, count):
    nodes = Nodes(bench)
    try:
        nodes.start(count)
        yield nodes
    finally:
        nodes.stop()


def spread_once(bench, count, threads):
    """Processor time of all daemons an operation, by phase; and how far the requests of the
    target that is the farthest from the mean are from it, in percent: of files, and of directories,
    of which each hundred have one parent, whose target has a part in each."""
    dirs, files = (200, 2000) if bench.smoke else (10000, 40000)
    found = {}
    with started(bench, count) as nodes:
        top = os.path.join(nodes.root, "shoal-bench")
        before = nodes.work()
        requests = {"files": [0] * count, "directories": [0] * count}

        def note(phase, operations):
            nonlocal before
            after = nodes.work()
            found[phase] = sum(b[1] - a[1] for a, b in zip(before, after)) * 1e6 / operations
            of_kind = requests["files" if phase in PHASES else "directories"]
            for number, (a, b) in enumerate(zip(before, after)):
                of_kind[number] += b[0] - a[0]
            before = after

        os.mkdir(top)
        parents = [os.path.join(top, f"p{number}") for number in range(dirs // BRANCH)]
        folders = [os.path.join(parent, f"d{index * BRANCH + number}")
                   for index, parent in enumerate(parents) for number in range(BRANCH)]
        for folder in parents + folders:
            os.mkdir(folder)
        note(MKDIR, len(parents + folders))
        keep = os.path.join(folders[0], "keep")  # so that `shoal bench` removes no directory
        with open(keep, "wb"):
            pass
        for phase in PHASES:
            command([bench.shoal, "bench", "meta", nodes.root, "--dirs", str(dirs), "--branch",
                     str(BRANCH), "--files", str(files), "--threads", str(threads), "--phases",
                     phase])
            note(phase, files)
        os.unlink(keep)
        for folder in folders + parents:
            os.rmdir(folder)
        note(RMDIR, len(parents + folders))
    for kind, done in requests.items():
        mean = sum(done) / len(done)
        found["uneven " + kind] = max(abs(one - mean) for one in done) / mean * 100
    return found


def spread(bench):
    """As many threads for each target as the one has, many and few; and as many in all, where each
    target has a fourth of the load, so that more of its requests come alone and pay for a wake-up
    of their own. A directory that is made or removed over two targets has two flushes more than
    within one."""
    runs = [(spread_once(bench, MDTS, THREADS * MDTS), spread_once(bench, MDTS, THREADS),
             spread_once(bench, 1, THREADS), spread_once(bench, 1, THREADS // MDTS))
            for _ in range(bench.runs)]
    for phase in PHASES:
        for words, of_many, of_one in (("", 0, 2), (", which is little", 1, 3)):
            bench.row(f"{phase} over {MDTS} metadata targets in processes, as much load for each"
                      f"{words}", "us CPU",
                      [(run[of_many][phase], run[of_one][phase]) for run in runs],
                      "one metadata target, an operation", "<= 1.15")
    for phase in (*PHASES, MKDIR, RMDIR):
        bench.row(f"{phase} over {MDTS} metadata targets in processes, as much load in all",
                  "us CPU", [(both[phase], one[phase]) for _, both, one, _ in runs],
                  "one metadata target, an operation", "")
    for kind, words, budget in (
            ("files", "requests for files", "<= 10"),
            ("directories", "requests for directories in parents of a hundred", "")):
        bench.row(f"{words}, {MDTS} metadata targets, from even", "%",
                  [(run[0]["uneven " + kind], None) for run in runs],
                  "the farthest from the mean", budget)


def joining(bench):
    """How soon a metadata target that joins gets new directories, and which part of them."""
    dirs, new = (2000, 1000) if bench.smoke else (200000, 10000)
    runs = [joining_once(bench, dirs, new) for _ in range(bench.runs)]
    bench.row(f"mkdir of {dirs} over {MDTS} metadata targets", "ops/s",
              [(run[0], None) for run in runs], "one thread", "")
    bench.row("a metadata target that joins, first directory", "s",
              [(run[1], None) for run in runs], "from the end of shoal up", "<= 10")
    bench.row("a metadata target that joins, part of new directories", "%",
              [(run[2], None) for run in runs], "a fifth is even", ">= 15")


def joining_once(bench, dirs, new):
    with started(bench, MDTS) as nodes:
        began_s = time.monotonic()
        for number in range(dirs):
            make(nodes.root, "before", number)
        rate = dirs / (time.monotonic() - began_s)
        nodes.add()
        began_s = time.monotonic()
        number = 0
        while nodes.of_target(MDTS)["directories"] == 0:
            if time.monotonic() - began_s > WAIT_S:
                raise Failed(f"no directory of the fifth metadata target within {WAIT_S} s")
            make(nodes.root, "meanwhile", number)
            number += 1
        first_s = time.monotonic() - began_s
        had = nodes.of_target(MDTS)["directories"]
        for number in range(new):
            make(nodes.root, "behind", number)
        part = (nodes.of_target(MDTS)["directories"] - had) / new * 100
    return rate, first_s, part


def make(root, name, number):
    """Directories in folders of 1,000, which lie beside each other."""
    folder = os.path.join(root, f"{name}-{number // 1000}")
    if number % 1000 == 0:
        os.mkdir(folder)
    else:
        os.mkdir(os.path.join(folder, str(number)))
