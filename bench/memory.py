"""Parts of ./dev bench with every store in memory (/dev/shm), so that the way of a request is all
that is measured: one program and eight, beside libfuse's pass-through over a folder of the same
memory and, for names and samples, beside our channel alone; on the machine as it comes and with
idle processors that poll."""

import os
import shutil
import statistics

import machine
from mounts import Cluster, Failed, Passthrough, forget, stopping, up

PASSTHROUGH = "libfuse's passthrough_ll"
BARE = "bare FUSE"
NAMES = ("create", "stat", "open", "unlink")
ROUNDS = {"create": "create", "stat": "stat, cold", "open": "open + close", "unlink": "unlink",
          "write": "50 KiB files written", "read": "50 KiB files read cold",
          "randread": "4 KiB O_DIRECT reads", "randwrite": "4 KiB O_DIRECT writes"}
# What is measured in a turn: a kind and how many directories, requests or streams at a time.
OF_ONE = (("names", 1), ("samples", 1), ("blocks", 1), ("blocks", 32), ("streams", 1))
OF_EIGHT = (("names", 1), ("names", 100), ("samples", 1), ("streams", 4))
BARES = {"names": ">= 0.67", "samples": ""}  # what bare FUSE has as well: budgets beside it
PAIRS = 5  # at least
FILES = 20000  # fewer where the pass-through can't have so many descriptors
MIB_A_GB = 1e9 / (1 << 20)


class Memory:
    """The systems with their stores in a folder of /dev/shm; stop() takes it away."""

    def __init__(self, bench, channel):
        self.top = os.path.join("/dev/shm", f"shoal-bench-{os.getpid()}")
        self.ours = Cluster(bench.shoal, os.path.join(self.top, "data"), bench.folder("mount"),
                            {"channel": channel})
        self.bare = bench.bare(channel)
        self.through = bench.passthrough and Passthrough(
            bench.passthrough, os.path.join(self.top, "source"), bench.folder("mount"))
        self.files = 1000 if bench.smoke else FILES

    def fit(self):
        """No more files than the pass-through can have."""
        if self.through:
            with up(self.through):
                self.files = min(self.files, self.through.inodes_max)

    def of(self, kind):
        """None for one that doesn't have that kind of work."""
        return [self.ours, self.through, self.bare if kind in BARES else None]

    def stop(self):
        stopping((self.ours, self.through, self.bare))
        shutil.rmtree(self.top, ignore_errors=True)


def dev_budget(_):
    return ">= 1"


def uring_budget(name):
    return ">= 2" if name.startswith("open") else ">= 1.5"


def memory(bench):
    """Over /dev/fuse as it comes, then polled, where idle processors go by such a setting. Then
    over io_uring likewise, eight programs polled only, where that can be. A channel that was asked
    for is measured alone."""
    settings = [("as it comes", 0), ("polled", machine.POLL_NS)]
    if machine.poll_read() is None:
        settings = [("as it comes", None)]
    cpu_us = {}
    for setting, value_ns in settings if bench.asked != "uring" else []:
        with machine.idle_polls(value_ns):
            where = f"in memory, {setting}"
            cpu_us[where] = compare(bench, where, "dev", 1, OF_ONE, dev_budget)
            compare(bench, where, "dev", 8, OF_EIGHT, dev_budget)
    with machine.uring_offered() as offered:
        for setting, value_ns in settings if offered and bench.asked != "dev" else []:
            with machine.idle_polls(value_ns):
                where = f"in memory, {setting}, over io_uring"
                cpu_us[where] = compare(bench, where, "uring", 1, OF_ONE, uring_budget)
                if setting != "as it comes" or len(settings) == 1:
                    compare(bench, where, "uring", 8, OF_EIGHT, lambda _: ">= 1")
    for over, channel, budget in (("", "/dev/fuse", "<= 1.5"),
                                  (", over io_uring", "io_uring", "<= 1.2")):
        bench.channel = channel
        settings_beside(bench, cpu_us, over, budget)


def settings_beside(bench, cpu_us, over, budget):
    """What an operation of one program costs as the machine comes, beside what it costs polled."""
    comes, polled = (cpu_us.get(f"in memory, {setting}{over}") for setting in
                     ("as it comes", "polled"))
    for name in comes if comes and polled else ():
        pairs = [(ours_us, statistics.median(polled[name])) for ours_us in comes[name]]
        bench.row(f"in memory{over}: {name}, 1 thread, CPU as it comes", "us", pairs, "polled",
                  budget)


def compare(bench, where, channel, threads, groups, budget):
    """Rows of each group, told when it is done; the CPU of each of ours, by name."""
    places = Memory(bench, channel)
    cpu_us = {}
    try:
        places.fit()
        for kind, number in groups:
            if not bench.smoke:
                machine.check_quiet()
            runs = bench.tell_turns(
                places.of(kind), lambda place, kind=kind, number=number:
                MEASURES[kind](bench, place, threads, number, places.files),
                lambda runs, kind=kind: rows_of(where, threads, runs, budget, BARES.get(kind)),
                PAIRS)
            cpu_us.update((name, [run[0][name]["cpu"] for run in runs]) for name in runs[0][0])
    finally:
        places.stop()
    return cpu_us


def rows_of(where, threads, runs, budget, bare_budget):
    """runs: of ours, of the pass-through and of bare FUSE, the latter two or None, by name."""
    for name, row in runs[0][0].items():
        unit, cpu_unit = row["units"]
        told = f"{where}: {name}"
        if not name.endswith(("deep", "streams", "stream")):
            told += f", {threads} thread{'s' if threads > 1 else ''}"

        def beside(place, of, name=name):
            return [(run[0][name][of], run[place] and run[place][name][of]) for run in runs]

        yield told, unit, beside(1, "rate"), PASSTHROUGH, budget(name) if runs[0][1] else ""
        yield f"{told}, CPU", cpu_unit, beside(1, "cpu"), PASSTHROUGH, ""
        if runs[0][2]:
            yield told, unit, beside(2, "rate"), BARE, bare_budget


def phase(bench, place, kind, name, cold, *words):
    """A row of it, everything forgotten by the kernel before."""
    forget(place, cold)
    row = bench.run(place, kind, *words, "--phases", name)[name]
    if row["ops"] == 0:
        raise Failed(f"{place.name}: no {name} at all")
    if kind == "big" and name in ("write", "read"):
        return {"rate": row["mb_per_s"], "cpu": row["server_cpu_s"] / row["ops"] * MIB_A_GB,
                "units": ("MB/s", "s/GB")}
    return {"rate": row["ops_per_s"], "cpu": row["server_cpu_s"] * 1e6 / row["ops"],
            "units": ("ops/s", "us")}


def names(bench, place, threads, dirs, files):
    words = ("--threads", str(threads), "--dirs", str(dirs), "--files", str(files))
    of = f", {dirs} director{'y' if dirs == 1 else 'ies'}"
    return {ROUNDS[name] + of: phase(bench, place, "meta", name, 2, *words) for name in NAMES}


def samples(bench, place, threads, _, __):
    words = ("--threads", str(threads), "--files", "500" if bench.smoke else "5000")
    rows = {ROUNDS[name]: phase(bench, place, "small", name, 3, *words)
            for name in ("write", "read")}
    bench.run(place, "small", *words, "--phases", "delete")
    return rows


def blocks(bench, place, _, deep, __):
    words = ("--threads", str(deep), "--size", "64M" if bench.smoke else "512M")
    bench.run(place, "big", *words, "--phases", "write")
    rows = {f"{ROUNDS[name]}, {deep} deep": phase(bench, place, "big", name, 3, *words, "--direct",
                                                  "--seconds", "1" if bench.smoke else "2")
            for name in ("randread", "randwrite")}
    bench.run(place, "big", *words, "--phases", "erase")
    return rows


def streams(bench, place, _, count, __):
    words = ("--threads", str(count), "--size", "64M" if bench.smoke else "1G")
    of = f"{count} stream{'s' if count > 1 else ''}"
    rows = {f"1 MiB {what}, {of}": phase(bench, place, "big", name, 3, *words)
            for name, what in (("write", "written"), ("read", "read"))}
    bench.run(place, "big", *words, "--phases", "erase")
    return rows


MEASURES = {"names": names, "samples": samples, "blocks": blocks, "streams": streams}
