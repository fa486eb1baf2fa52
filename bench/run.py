#!/usr/bin/python3
"""The figures of ./dev bench: each beside the limit that was measured in the same run.

Usage: run.py [--json FILE | --resume FILE] [--smoke] [--part PART] [--channel CHANNEL] [--runs N]
              BUILD WORK

BUILD is the release build, WORK an empty folder on the medium that is measured, which is removed.
Settings of the machine are put back at each end, by a signal too. Compared systems take turns, run
by run, each started alone for its turn; a figure is the median of its runs, a ratio the median of
the runs' ratios (figures.py has the fields of a row). What systems do in turns is run 15 times
where a ratio is within a tenth of its bar. --resume: rows that FILE has stay unless they
are measured again, so that parts may be measured one after another. --channel: our mounts are
served by it, dev or uring; else by what is offered. --smoke: fewer files, one run: whether it
works, not how fast it is; else no part begins while another process takes more than 5 % of a
processor.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time

import afar
import data
import figures
import machine
import memory
import mounts
import names
import nodes
import planner
from mounts import Bare, Cluster, Failed, Passthrough, command, cpu_clock_s, cpu_s, up


CHANNELS = {"/dev/fuse": "dev", "io_uring": "uring"}  # as they are asked for
NEAR_RUNS = 15
KILLS, KILLS_SEED = 100, 7
KILLS_LOAD_S = (0.5, 2.0)  # at least, and so much more
KILLS_LOADS = (("meta", "--files", "1000000", "--dirs", "100", "--phases", "create"),
               ("small", "--files", "1000000", "--phases", "write"))


class Bench:
    """What all parts need: programs, folders, sizes, and where rows go."""

    def __init__(self, options):
        self.build = os.path.abspath(options.build)
        self.work = os.path.abspath(options.work)
        self.shoal = os.path.join(self.build, "bin", "shoal")
        self.smoke = options.smoke
        self.runs = 1 if options.smoke else options.runs
        self.passthrough = mounts.passthrough_build(os.path.join(self.work, "passthrough"))
        self.rows = []
        self.path = options.json or options.resume
        self.before = figures.load(options.resume) if options.resume else []
        self.commit = commit_of(self.build)
        self.serial = 0
        self.asked = options.channel  # what our mounts are to be served by; None: as offered
        self.channel = None  # what the mount of ours that was measured last was served by

    def folder(self, name):
        self.serial += 1
        return os.path.join(self.work, f"{name}{self.serial}")

    def program(self, name):
        return os.path.join(self.build, "bench", name)

    def save(self):
        """Also in the middle of a part: one that is cut off later has not measured in vain."""
        if self.path:
            figures.save(self.path, figures.merged(self.before, self.rows))

    def row(self, name, unit, pairs, limit_is, budget):
        """pairs: (value, limit) of each run; a limit of None: there is none."""
        row = figures.row_of(name, unit, pairs, limit_is, budget)
        row.update(date=time.strftime("%Y-%m-%d"), commit=self.commit)
        if self.channel:
            row.update(channel=self.channel)
        self.rows.append(row)
        self.save()
        print(figures.line_of(self.rows[-1]), flush=True)

    def run(self, place, *words):
        """Rows of `shoal bench`, by name, each with the server's CPU time beside."""
        self.channel = getattr(place, "channel", None) or self.channel
        before_s = self.server_s(place)
        text = command([self.shoal, "bench", words[0], place.root, *words[1:], "--json"])
        rows = {row["name"]: row for row in json.loads(text)}
        for row in rows.values():
            row["server_cpu_s"] = self.server_s(place) - before_s
        return rows

    @staticmethod
    def server_s(place):
        """Without ticks, as some phases take few."""
        return cpu_clock_s(place.process_id) if place.process_id else 0.0

    def take_turns(self, places, once, numbers=None):
        """What once(place) says of each place, run by run; None of a place that is None."""
        return mounts.in_turns(places, lambda place: self.take_turn(place, once),
                               range(self.runs) if numbers is None else numbers)

    def tell_turns(self, places, once, rows, at_least=1):
        """Such runs, and what rows(runs) yields of them told, each as row() takes it. Where the
        ratio of one is near its bar there are fifteen runs. What was measured is told also where
        more can't be."""
        count = 1 if self.smoke else max(self.runs, at_least)
        runs = self.take_turns(places, once, range(count))
        try:
            if not self.smoke and any(figures.is_near(figures.row_of(*row)) for row in rows(runs)):
                machine.check_quiet()
                runs += self.take_turns(places, once, range(count, NEAR_RUNS))
        finally:
            for row in rows(runs):
                self.row(*row)
        return runs

    def take_turn(self, place, once):
        if not place:
            return None
        with up(place):
            return once(place)

    def cluster(self, **sizes):
        if self.asked:
            sizes["channel"] = self.asked
        return Cluster(self.shoal, self.folder("data"), self.folder("mount"), sizes)

    def bare(self, channel=None):
        """None: over the channel that is asked for, else the one that ours was served by last."""
        return Bare(self.program("bench_fuse_bare"), self.folder("mount"),
                    lambda: channel or self.asked or CHANNELS.get(self.channel, "any"))

    def through(self):
        """libfuse's pass-through over a folder of the medium, or None."""
        if not self.passthrough:
            return None
        return Passthrough(self.passthrough, self.folder("source"), self.folder("mount"))


def native(bench):
    """CPU time of a request in the server, and of a read in one process."""
    budgets = {"mknod": "<= 5", "create+close": "<= 7.5", "lookup": "<= 2", "getattr": "<= 2",
               "unlink": ""}
    found = {}
    for _ in range(bench.runs):
        for name in ("group", "store", "client"):
            folder = bench.folder("native")
            os.makedirs(folder)
            words = [bench.program("bench_" + name), folder]
            for line in command(words).splitlines():
                row = json.loads(line)
                key = (name, row["name"], row.get("size", 0), row.get("depth", 1))
                found.setdefault(key, []).append(row)
            shutil.rmtree(folder)
    for (program, name, size, depth), rows in found.items():
        if program == "group" and depth > 1 and name in budgets:
            bench.row(f"native {name}, {depth} at a time", "us CPU",
                      [(row["cpu_ns"] / 1e3, None) for row in rows], "the step's thread",
                      budgets[name])
        elif program == "store" and size == 4096 and depth > 1 and name.startswith("random read"):
            bench.row(f"native {name}, {depth} at a time", "us CPU",
                      [(row["cpu_us"], None) for row in rows], "the step's thread", "<= 3")
        elif program == "client" and name == "client_chunk_read_4k":
            bench.row("libshoal 4 KiB read, cached chunk", "us",
                      [(row["ns"] / 1e3, None) for row in rows], "mean, one process", "<= 5")


def starts(bench):
    """Start to mounted: empty, and after kill -9 under load; then idle CPU."""
    runs = []
    for _ in range(bench.runs):
        cluster = bench.cluster()
        try:
            empty_s = cluster.start()
            bench.run(cluster, "meta", "--threads", "8", "--files", "1000000", "--seconds", "5",
                      "--phases", "create")
            cluster.kill()
            killed_s = cluster.start()
            idle_s = 2 if bench.smoke else 10
            time.sleep(2)
            before_s = cpu_s(cluster.process_id)
            time.sleep(idle_s)
            runs.append((empty_s, killed_s, (cpu_s(cluster.process_id) - before_s) / idle_s * 100))
        finally:
            cluster.stop()
    bench.row("start to mounted, empty", "s", [(run[0], None) for run in runs], "", "<= 1")
    bench.row("start to mounted after kill -9", "s", [(run[1], None) for run in runs], "", "<= 5")
    bench.row("idle CPU", "%", [(run[2], None) for run in runs], "of one core", "<= 1")


def kills(bench):
    """Starts behind kill -9 under full load, again and again: their median, and the longest."""
    rng = random.Random(KILLS_SEED)
    count = 3 if bench.smoke else KILLS
    cluster = bench.cluster()
    took_s = []
    try:
        cluster.start()
        for number in range(count):
            what = KILLS_LOADS[number % len(KILLS_LOADS)]
            load = subprocess.Popen([bench.shoal, "bench", what[0], cluster.root, *what[1:],
                                     "--threads", "8", "--seconds", "60"],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(KILLS_LOAD_S[0] + rng.random() * KILLS_LOAD_S[1])
            if load.poll() is not None:
                raise Failed(f"the load of kill {number + 1} ended by itself: {' '.join(what)}")
            cluster.kill()
            load.wait()
            took_s.append(cluster.start())
    finally:
        cluster.stop()
    name = f"start to mounted, {count} kills under load on end"
    bench.row(name, "s", [(took, None) for took in took_s], "median", "")
    bench.row(f"{name}, longest", "s", [(max(took_s), None)], "of all of these", "<= 5")


def commit_of(folder):
    """Short; with a "+" where the tree differs from it. None: not known."""
    result = subprocess.run(["git", "-C", folder, "describe", "--always", "--exclude", "*",
                             "--dirty=+"], capture_output=True, text=True, check=False)
    return result.stdout.strip() or None


PARTS = {"starts": starts, "kills": kills, "native": native, "metadata": names.metadata,
         "streams": data.streams, "samples": data.samples, "commits": data.commits,
         "checkpoints": names.checkpoints, "afar": afar.afar, "listing": names.listing,
         "links": nodes.links, "remote": nodes.remote, "nodes": nodes.spread,
         "joining": nodes.joining, "planner": planner.prediction, "memory": memory.memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--json", metavar="FILE")
    where.add_argument("--resume", metavar="FILE")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--part", choices=sorted(PARTS))
    parser.add_argument("--channel", choices=("dev", "uring"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("build")
    parser.add_argument("work")
    options = parser.parse_args()
    if options.runs < 1:
        parser.error("--runs takes a number from 1")
    os.makedirs(options.work, exist_ok=True)
    if os.listdir(options.work):
        parser.error(f"{options.work} is not empty, and it is removed in the end")
    try:
        with machine.kept_to_the_end():
            return measure(Bench(options), options)
    finally:
        # With care, as a mount may have been left there.
        subprocess.run(["rm", "-rf", "--one-file-system", options.work], check=False)


def measure(bench, options):
    """The parts that are wanted, one after another; the exit status."""
    if not bench.passthrough:
        print("run.py: libfuse's passthrough_ll is not here (package libfuse3-dev 3.14): its rows "
              "are left out", file=sys.stderr)
    failed = 0
    for name, part in PARTS.items():
        if options.part not in (None, name):
            continue
        begun_s = time.monotonic()
        bench.channel = None
        try:
            if not options.smoke:
                machine.check_quiet()
            part(bench)
        except Failed as problem:
            print(f"run.py: {name}: {problem}", file=sys.stderr)
            failed += 1
        print(f"run.py: {name} took {time.monotonic() - begun_s:.0f} s", file=sys.stderr)
        bench.save()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
