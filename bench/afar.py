"""A part of ./dev bench: the set-up in which other parallel file systems were measured on such a
machine. Servers are processes of their own, reached by TCP without encryption; the mount is one,
too; all stores lie in memory (tmpfs). Two storage targets, one of them beside the metadata target.

What the best of the others did stands here, as their figures can't be taken in the same run:
docs/benchmarks.md says which, of what version, and how."""

import json
import os
import shutil
import subprocess
import time

from mounts import (Failed, channel_logged, command, cpu_clock_s, forget, in_turns, is_mounted,
                    mount_options, stopping)
from nodes import free_port

META = ("create", "stat", "open", "unlink")
# By name of the row: of the best, a second (MB a second of big files).
BEST = {
    "create, 1 threads, 1 directories": 3658, "create, 8 threads, 1 directories": 4539,
    "create, 1 threads, 100 directories": 3360, "create, 8 threads, 100 directories": 8841,
    "stat, 1 threads, 1 directories": 9172, "stat, 8 threads, 1 directories": 9646,
    "stat, 1 threads, 100 directories": 8802, "stat, 8 threads, 100 directories": 19148,
    "open, 1 threads, 1 directories": 5321, "open, 8 threads, 1 directories": 5683,
    "open, 1 threads, 100 directories": 4926, "open, 8 threads, 100 directories": 11386,
    "unlink, 1 threads, 1 directories": 4789, "unlink, 8 threads, 1 directories": 4566,
    "unlink, 1 threads, 100 directories": 3688, "unlink, 8 threads, 100 directories": 10673,
    "50 KiB files written, 1 threads": 986, "50 KiB files written, 8 threads": 1851,
    "50 KiB files read cold, 1 threads": 2133, "50 KiB files read cold, 8 threads": 4743,
    "write, 1 streams": 654, "write, 4 streams": 785,
    "read, 1 streams": 766, "read, 4 streams": 900,
    "random 4 KiB reads, 1 threads": 7026, "random 4 KiB reads, 32 threads": 16878,
    "random 4 KiB writes, 1 threads": 16545, "random 4 KiB writes, 32 threads": 14615,
}
THREADS_MANY = 8
END_WAIT_S = 10


class Afar:
    """Two nodes and a mount, .root. Its processor time is of all three."""

    process_id = None

    def __init__(self, bench):
        self.shoal = bench.shoal
        self.top = os.path.join("/dev/shm", f"shoal-bench-{os.getpid()}")
        self.root = bench.folder("mount")
        self.addresses = [f"{host}:{free_port(host)}" for host in ("127.0.0.1", "127.0.0.2")]
        self.key, self.mount_key = (os.path.join(self.top, name) for name in ("key", "mount.key"))
        self.asked = bench.asked
        self.is_made = False
        self.channel = None  # what the mount's requests come by

    def directory(self, number):
        return os.path.join(self.top, f"node{number}")

    def start(self):
        os.makedirs(self.root, exist_ok=True)
        if not self.is_made:
            os.makedirs(self.top)
            command([self.shoal, "key", "new", self.key])
            command([self.shoal, "key", "mount", self.key, self.mount_key])
        for number, address in enumerate(self.addresses):
            words = ["--listen", address, "--key", self.key, "--osts", "1"]
            if number:
                words += ["--roles", "store", "--join", self.addresses[0]]
            command([self.shoal, "up", self.directory(number), *([] if self.is_made else words)])
        self.is_made = True
        self.mount()

    def mount(self):
        log = os.path.join(self.top, "mount.log")
        command([self.shoal, "mount", self.addresses[0], self.root, "--key", self.mount_key,
                 *mount_options(log, self.asked)])
        self.channel = channel_logged(log)

    def again(self):
        """The mount anew: servers stay as they are."""
        command([self.shoal, "umount", self.root])
        self.mount()

    def rest(self):
        if is_mounted(self.root):
            command([self.shoal, "umount", self.root])
        for number in (1, 0):
            command([self.shoal, "down", self.directory(number)])

    def stop(self):
        subprocess.run(["umount", "--lazy", self.root], capture_output=True, check=False)
        for number in (1, 0):
            subprocess.run([self.shoal, "down", self.directory(number)], capture_output=True,
                           check=False)
        shutil.rmtree(self.top, ignore_errors=True)

    def cpu_s(self):
        """Of servers; of the mount's process."""
        servers = 0.0
        for number in range(len(self.addresses)):
            with open(os.path.join(self.directory(number), "lock"), encoding="ascii") as file:
                servers += cpu_clock_s(int(file.read()))
        return servers, cpu_clock_s(self.mount_process())

    def mount_processes(self):
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if words[1:2] == [b"mount"] and self.root.encode() in words:
                yield int(entry)

    def mount_process(self):
        """Of a mount that was ended a moment ago the process may be there yet."""
        until_s = time.monotonic() + END_WAIT_S
        while len(found := list(self.mount_processes())) > 1 and time.monotonic() < until_s:
            time.sleep(0.01)
        if len(found) != 1:
            raise Failed(f"{len(found)} processes serve {self.root}")
        return found[0]


def rows_of(bench, place, words, phase):
    """A row of `shoal bench`, with what servers and client used beside, where that is known."""
    bench.channel = getattr(place, "channel", None) or bench.channel
    before = place.cpu_s() if isinstance(place, Afar) else (0.0, 0.0)
    text = command([bench.shoal, "bench", words[0], place.root, *words[1:], "--phases", phase,
                    "--json"])
    after = place.cpu_s() if isinstance(place, Afar) else (0.0, 0.0)
    row = next(row for row in json.loads(text) if row["name"] == phase)
    row["cpu_us"] = [(b - a) * 1e6 / row["ops"] for a, b in zip(before, after)]
    return row


def tell(bench, name, unit, runs, aim):
    """runs: (row of Shoal, row of bare FUSE or None). aim: times what the best other did; that is
    asked for where bare FUSE allows it: 0.6 times its rate is enough."""
    of = "mb_per_s" if unit == "MB/s" else "ops_per_s"
    label = f"peers' set-up: {name}"
    bench.row(label, unit, [(a[of], BEST[name]) for a, _ in runs], "best of the others",
              f">= {aim:g}")
    if runs[0][1]:
        bench.row(label, unit, [(a[of], b[of]) for a, b in runs], "bare FUSE", ">= 0.6")
    bench.row(f"{label}, CPU", "us/op", [(sum(a["cpu_us"]), None) for a, _ in runs],
              "servers and client", "")


def both(bench, places, once):
    return in_turns(places, once, range(bench.runs))


def aim_of(threads):
    return 4 if threads >= THREADS_MANY else 2.5


def afar(bench):
    """Metadata, small files, streams and random blocks of big ones."""
    place, bare = Afar(bench), bench.bare()
    try:
        place.start()
        bench.channel = place.channel
        bare.start()
        for threads, dirs in ((1, 1), (8, 1), (1, 100), (8, 100)):
            names_rows(bench, (place, bare), threads, dirs)
        for threads in (1, 8):
            small_rows(bench, place, threads)
        for threads in (1, 4):
            stream_rows(bench, (place, bare), threads)
        for threads in (1, 32):
            random_rows(bench, place, threads)
    finally:
        stopping((place, bare))


def names_rows(bench, places, threads, dirs):
    files = 2000 if bench.smoke else 20000
    words = ("meta", "--threads", str(threads), "--dirs", str(dirs), "--files", str(files))

    def once(place):
        rows = {}
        for phase in META:
            if phase in ("stat", "open"):
                place.again()
                forget(place, 2)
            rows[phase] = rows_of(bench, place, words, phase)
        return rows

    runs = both(bench, places, once)
    for phase in META:
        tell(bench, f"{phase}, {threads} threads, {dirs} directories", "ops/s",
             [(a[phase], b[phase]) for a, b in runs], aim_of(threads))


def small_rows(bench, place, threads):
    files = 1000 if bench.smoke else 10000
    words = ("small", "--threads", str(threads), "--files", str(files))
    runs = []
    for _ in range(bench.runs):
        written = rows_of(bench, place, words, "write")
        place.again()
        forget(place, 3)
        runs.append((written, rows_of(bench, place, words, "read")))
        rows_of(bench, place, words, "delete")
    for index, what in enumerate(("written", "read cold")):
        tell(bench, f"50 KiB files {what}, {threads} threads", "files/s",
             [(run[index], None) for run in runs], aim_of(threads))


def stream_rows(bench, places, threads):
    size = "128M" if bench.smoke else "2G"
    words = ("big", "--threads", str(threads), "--size", size)

    def once(place):
        rows = {"write": rows_of(bench, place, words, "write")}
        place.again()
        forget(place, 3)
        rows["read"] = rows_of(bench, place, words, "read")
        rows_of(bench, place, words, "erase")
        return rows

    runs = both(bench, places, once)
    for phase in ("write", "read"):
        tell(bench, f"{phase}, {threads} streams", "MB/s", [(a[phase], b[phase]) for a, b in runs],
             2)


def random_rows(bench, place, threads):
    size = "128M" if bench.smoke else "1G"
    words = ("big", "--threads", str(threads), "--size", size, "--direct", "--seconds", "5")
    runs = []
    for _ in range(bench.runs):
        rows_of(bench, place, words, "write")
        place.again()
        runs.append([rows_of(bench, place, words, phase) for phase in ("randread", "randwrite")])
        rows_of(bench, place, words, "erase")
    for index, what in enumerate(("reads", "writes")):
        tell(bench, f"random 4 KiB {what}, {threads} threads", "ops/s",
             [(run[index], None) for run in runs], aim_of(threads))
