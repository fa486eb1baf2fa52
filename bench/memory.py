"""Parts of ./dev bench with every store in memory (/dev/shm), so that the way of a request is all
that is measured: one program and eight, beside libfuse's pass-through over a folder of the same
memory, on the machine as it comes and with idle processors that poll."""

import os
import shutil

import machine
from mounts import Cluster, Failed, Passthrough, forget, stopping, up

PASSTHROUGH = "libfuse's passthrough_ll"
NAMES = ("create", "stat", "open", "unlink")
ROUNDS = {"create": "create", "stat": "stat, cold", "open": "open + close", "unlink": "unlink",
          "write": "50 KiB files written", "read": "50 KiB files read cold",
          "randread": "4 KiB O_DIRECT reads", "randwrite": "4 KiB O_DIRECT writes"}
PAIRS = 5  # at least
FILES = 20000  # fewer where the pass-through can't have so many descriptors
NEAR = 0.1  # a ratio so close to its bar is looked at again
AGAIN = 10  # times more


class Memory:
    """Both systems with their stores in a folder of /dev/shm; stop() takes it away."""

    def __init__(self, bench, channel):
        self.top = os.path.join("/dev/shm", f"shoal-bench-{os.getpid()}")
        self.ours = Cluster(bench.shoal, os.path.join(self.top, "data"), bench.folder("mount"),
                            {"channel": channel})
        self.through = bench.passthrough and Passthrough(
            bench.passthrough, os.path.join(self.top, "source"), bench.folder("mount"))
        self.files = 1000 if bench.smoke else FILES
        if self.through:
            with up(self.through):
                self.files = min(self.files, self.through.inodes_max)

    def stop(self):
        stopping((self.ours, self.through))
        shutil.rmtree(self.top, ignore_errors=True)


def dev_budget(_):
    return ">= 1"


def uring_budget(name):
    return ">= 2" if name.startswith("open") else ">= 1.5"


def none(_):
    return ""


def one_program(bench, where, channel, budget):
    """Each operation of one thread."""
    compare(bench, where, channel, 1, {"names": [1], "samples": True, "deep": (1, 32)}, budget)


def eight_programs(bench, where, channel, budget):
    compare(bench, where, channel, 8, {"names": [1, 100], "samples": True, "deep": ()}, budget)


def memory(bench):
    """Over /dev/fuse as it comes, then polled, where idle processors go by such a setting. Then
    over io_uring likewise, eight programs polled only."""
    settings = [("as it comes", 0), ("polled", machine.POLL_NS)]
    if machine.poll_read() is None:
        settings = [("as it comes", None)]
    for setting, value_ns in settings:
        with machine.idle_polls(value_ns):
            budget = dev_budget if setting == "as it comes" else none
            one_program(bench, f"in memory, {setting}", "dev", budget)
            eight_programs(bench, f"in memory, {setting}", "dev", budget)
    with machine.uring_offered() as offered:
        for setting, value_ns in settings if offered else []:
            with machine.idle_polls(value_ns):
                budget = uring_budget if setting == "as it comes" else none
                where = f"in memory, {setting}, over io_uring"
                one_program(bench, where, "uring", budget)
                if setting != "as it comes" or len(settings) == 1:
                    eight_programs(bench, where, "uring", none)


def compare(bench, where, channel, threads, what, budget):
    places = Memory(bench, channel)
    pairs = {}
    try:
        turns(bench, places, threads, what, pairs, 1 if bench.smoke else max(bench.runs, PAIRS))
        if not bench.smoke and any(is_near(found, budget(name)) for name, found in pairs.items()):
            turns(bench, places, threads, what, pairs, AGAIN)
    finally:
        places.stop()
    of = f", {threads} thread{'s' if threads > 1 else ''}"
    for name, found in pairs.items():
        said = f"{where}: {name}" + ("" if name.endswith("deep") else of)
        bench.row(said, "ops/s",
                  [(ours["rate"], theirs and theirs["rate"]) for ours, theirs in found],
                  PASSTHROUGH, budget(name))
        bench.row(f"{said}, CPU", "us",
                  [(ours["cpu_us"], theirs and theirs["cpu_us"]) for ours, theirs in found],
                  PASSTHROUGH, "")


def is_near(found, budget):
    """Of a ratio at its bar."""
    ratios = sorted(ours["rate"] / theirs["rate"] for ours, theirs in found if theirs)
    bar = float(budget.split()[1]) if budget else 0
    return bool(ratios) and bar > 0 and abs(ratios[len(ratios) // 2] / bar - 1) <= NEAR


def turns(bench, places, threads, what, pairs, count):
    """Adds count pairs to each row; who begins changes from one pair to the next."""
    order = [places.ours, places.through]
    for number in range(count):
        found = {}
        for place in order if number % 2 == 0 else order[::-1]:
            if place:
                found[place.name] = bench.take_turn(
                    place, lambda place: measure(bench, place, threads, what, places.files))
        for name, ours in found["shoal"].items():
            theirs = found.get("passthrough_ll", {}).get(name)
            pairs.setdefault(name, []).append((ours, theirs))


def measure(bench, place, threads, what, files):
    """{row: {rate, cpu_us}}, everything forgotten by the kernel before each phase."""
    found = {}

    def phase(name, kind, cold, *words):
        forget(place, cold)
        row = bench.run(place, kind, "--threads", words[0], *words[1:], "--phases",
                        name)[name]
        if row["ops"] == 0:
            raise Failed(f"{place.name}: no {name} at all")
        return {"rate": row["ops_per_s"], "cpu_us": row["server_cpu_s"] * 1e6 / row["ops"]}

    for dirs in what["names"]:
        for name in NAMES:
            said = f"{ROUNDS[name]}, {dirs} director{'y' if dirs == 1 else 'ies'}"
            found[said] = phase(name, "meta", 2, str(threads), "--dirs", str(dirs), "--files",
                                str(files))
    if what["samples"]:
        small = ["--files", "500" if bench.smoke else "5000"]
        for name in ("write", "read"):
            found[ROUNDS[name]] = phase(name, "small", 3, str(threads), *small)
        bench.run(place, "small", "--threads", str(threads), *small, "--phases", "delete")
    for deep in what["deep"]:
        size = ["--size", "64M" if bench.smoke else "512M"]
        bench.run(place, "big", "--threads", str(deep), *size, "--phases", "write")
        for name in ("randread", "randwrite"):
            found[f"{ROUNDS[name]}, {deep} deep"] = phase(
                name, "big", 3, str(deep), *size, "--direct", "--seconds",
                "1" if bench.smoke else "2")
        bench.run(place, "big", "--threads", str(deep), *size, "--phases", "erase")
    return found
