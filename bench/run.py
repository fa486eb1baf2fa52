#!/usr/bin/python3
"""The figures of ./dev bench: each beside the limit that was measured in the same run.

Usage: run.py [--json FILE] [--quick] [--only PART] [--runs N] BUILD WORK

BUILD is the release build, WORK an empty folder on the medium that is measured. Compared systems
take turns, run by run; a figure is the median of its runs, a ratio the median of the runs' ratios.
A row: {name, value, unit, limit, limit_is, ratio, budget, runs}; ratio is value / limit, so above 1
is better for rates and worse for times and CPU. --quick: fewer files, one run: whether it works,
not how fast it is.
"""

import argparse
import json
import os
import shutil
import statistics
import sys
import time

import mounts
from mounts import Cluster, Failed, Folder, Mounted, command, cpu_s, drop_caches

SHAPES = ((1, 1), (8, 1), (1, 100), (8, 100))  # threads, directories
META = ("create", "stat", "open", "rename", "unlink", "mkdir", "rmdir")
CONFIGURED_EXTRA_BYTES = 200 << 20


class Bench:
    """What all rows need: programs, folders, sizes, and where rows go."""

    def __init__(self, options):
        self.options = options
        self.build = os.path.abspath(options.build)
        self.work = os.path.abspath(options.work)
        self.shoal = os.path.join(self.build, "bin", "shoal")
        self.quick = options.quick
        self.runs = 1 if options.quick else options.runs
        self.passthrough = mounts.passthrough_build(os.path.join(self.work, "passthrough"))
        self.rows = []
        self.serial = 0

    def folder(self, name):
        self.serial += 1
        return os.path.join(self.work, f"{name}{self.serial}")

    def program(self, name):
        return os.path.join(self.build, "bench", name)

    def row(self, name, unit, pairs, limit_is, budget):
        """pairs: (value, limit) of each run; a limit of None: there is none."""
        value = statistics.median(pair[0] for pair in pairs)
        limits = [pair[1] for pair in pairs if pair[1]]
        ratios = [pair[0] / pair[1] for pair in pairs if pair[1]]
        row = {"name": name, "value": value, "unit": unit,
               "limit": statistics.median(limits) if limits else None, "limit_is": limit_is,
               "ratio": statistics.median(ratios) if ratios else None, "budget": budget,
               "runs": len(pairs)}
        self.rows.append(row)
        limit = "" if row["limit"] is None else f"{row['limit']:12.4g} {row['ratio']:7.2f}"
        print(f"{name:44s} {value:12.4g} {unit:9s} {limit:20s} {budget} ({limit_is})", flush=True)

    def run(self, place, *words):
        """Rows of `shoal bench`, by name, each with the server's CPU time beside."""
        before_s = cpu_s(place.process_id)
        text = command([self.shoal, "bench", words[0], place.root, *words[1:], "--json"])
        rows = {row["name"]: row for row in json.loads(text)}
        for row in rows.values():
            row["server_cpu_s"] = cpu_s(place.process_id) - before_s
        return rows

    def cluster(self, **sizes):
        return Cluster(self.shoal, self.folder("data"), self.folder("mount"), sizes)

    def bare(self):
        root = self.folder("mount")
        return Mounted("bare FUSE", [self.program("bench_fuse_bare"), root], root)

    def through(self):
        """libfuse's pass-through over a folder of the medium, or None."""
        if not self.passthrough:
            return None
        root, source = self.folder("mount"), self.folder("source")
        os.makedirs(source)
        return Mounted("passthrough_ll", [self.passthrough, "-f", "-o", f"source={source}", root],
                       root)


def stopping(places):
    for place in places:
        if place:
            place.stop()


def metadata_once(bench, place, threads, dirs):
    """Rate of each phase, everything forgotten by the kernel before it."""
    rates = {}
    files = 2000 if bench.quick else 15000
    for phase in META:
        drop_caches(2)
        rows = bench.run(place, "meta", "--threads", str(threads), "--dirs", str(dirs), "--files",
                         str(files), "--phases", phase)
        rates[phase] = rows[phase]["ops_per_s"]
    return rates


def metadata(bench):
    """Through the mount: names and attributes."""
    shapes = SHAPES[:1] if bench.quick else SHAPES
    places = [bench.cluster(), bench.bare(), bench.through()]
    try:
        for place in places:
            if place:
                place.start()
        for threads, dirs in shapes:
            runs = [[metadata_once(bench, place, threads, dirs) if place else None
                     for place in places] for _ in range(bench.runs)]
            for phase in META:
                name = f"mount {phase}, {threads} threads, {dirs} directories"
                bench.row(name, "ops/s", [(a[phase], b[phase]) for a, b, _ in runs],
                          "bare FUSE", ">= 0.67")
                if places[2]:
                    bench.row(name, "ops/s", [(a[phase], c[phase]) for a, _, c in runs],
                              "libfuse's passthrough_ll", ">= 1")
    finally:
        stopping(places)


def native(bench):
    """CPU time of a request in the server, and of a read in one process."""
    budgets = {"mknod": "<= 5", "create+close": "<= 5", "lookup": "<= 2", "getattr": "<= 2",
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


def streams(bench):
    """Big files through the mount, beside the channel alone and the medium alone."""
    size = "256M" if bench.quick else "2G"
    places = [bench.cluster(), bench.bare(), Folder("medium", bench.folder("medium"))]
    try:
        for place in places:
            place.start()
        for threads in (1, 4):
            runs = []
            for _ in range(bench.runs):
                runs.append([stream_once(bench, place, threads, size) for place in places])
            for phase in ("write", "read"):
                rates = [[run[i][phase]["mb_per_s"] for i in range(3)] for run in runs]
                bench.row(f"mount {phase}, {threads} streams", "MB/s",
                          [(a, min(b, c)) for a, b, c in rates],
                          "the lesser of bare FUSE and the medium, O_DIRECT", ">= 0.8")
                bench.row(f"mount {phase}, {threads} streams, CPU", "s/GB",
                          [(run[0][phase]["server_cpu_s"]
                            / (run[0][phase]["ops"] * (1 << 20) / 1e9), None) for run in runs],
                          "user and system of the daemon", "<= 0.4")
    finally:
        stopping(places)


def stream_once(bench, place, threads, size):
    rows = {}
    for phase in ("write", "read", "erase"):
        drop_caches(3)
        words = ["--threads", str(threads), "--size", size, "--phases", phase]
        if isinstance(place, Folder) and phase != "erase":
            words.append("--direct")
        rows.update(bench.run(place, "big", *words))
    return rows


def samples(bench):
    """50 KiB files in scattered order by a client that knows nothing yet."""
    files = 1000 if bench.quick else 10000
    cluster, through = bench.cluster(), bench.through()
    try:
        for threads in (1, 8):
            runs = []
            for _ in range(bench.runs):
                cluster.start()
                if through:
                    through.start()
                pair = []
                for place in (cluster, through):
                    pair.append(samples_once(bench, place, threads, files) if place else None)
                runs.append(pair)
                command([bench.shoal, "down", cluster.data])
                if through:
                    through.stop()
            bench.row(f"mount 50 KiB files written, {threads} threads", "files/s",
                      [(a["write"], b and b["write"]) for a, b in runs],
                      "libfuse's passthrough_ll", "")
            bench.row(f"mount 50 KiB files read cold, {threads} threads", "files/s",
                      [(a["read"], b and b["read"]) for a, b in runs],
                      "libfuse's passthrough_ll", ">= 0.8")
    finally:
        stopping((cluster, through))


def samples_once(bench, place, threads, files):
    words = ["--threads", str(threads), "--files", str(files)]
    rates = {"write": bench.run(place, "small", *words, "--phases", "write")["write"]["ops_per_s"]}
    if isinstance(place, Cluster):
        place.again()
    drop_caches(3)
    rates["read"] = bench.run(place, "small", *words, "--phases", "read")["read"]["ops_per_s"]
    bench.run(place, "small", *words, "--phases", "delete")
    return rates


def commits(bench):
    """A small file written, made durable, renamed; beside two fdatasyncs of the medium."""
    count = 50 if bench.quick else 300
    cluster = bench.cluster()
    pairs = []
    try:
        cluster.start()
        for _ in range(bench.runs):
            rows = bench.run(cluster, "checkpoint", "--files", str(count), "--size", "1M",
                             "--phases", "commit,drop")
            pairs.append((rows["commit"]["p50_us"], two_syncs_us(bench, count)))
    finally:
        cluster.stop()
    bench.row("mount write, fsync, rename of 4 KiB", "us", pairs, "two fdatasyncs, median",
              "<= 1.5")


def two_syncs_us(bench, count):
    path = os.path.join(bench.work, "syncs")
    times = []
    fd = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        os.pwrite(fd, bytes(4096 * 16), 0)
        os.fsync(fd)
        for i in range(count):
            begun_ns = time.perf_counter_ns()
            for _ in range(2):
                os.pwrite(fd, bytes([i % 256]) * 4096, 0)
                os.fdatasync(fd)
            times.append((time.perf_counter_ns() - begun_ns) / 1e3)
    finally:
        os.close(fd)
        os.unlink(path)
    return statistics.median(times)


def listing(bench):
    """ls -l of a directory with very many files, cold; memory and start afterwards."""
    files = 20000 if bench.quick else 1000000
    cluster = bench.cluster()
    memory = Folder("tmpfs", os.path.join("/dev/shm", f"shoal-bench-{os.getpid()}"))
    words = ("--files", str(files), "--phases")
    try:
        cluster.start()
        rows = bench.run(cluster, "meta", "--threads", "8", *words, "create")
        bench.row(f"mount create of {files} files, 8 threads", "ops/s",
                  [(rows["create"]["ops_per_s"], None)], "one directory", "")
        config = configured_bytes(cluster)
        bench.row(f"memory after {files} files", "MiB",
                  [(cluster.memory_bytes() / (1 << 20), config / (1 << 20))],
                  "configured + 200 MiB", "<= 1")
        begun_s = cluster.again()
        bench.row(f"start to mounted on {files} files", "s", [(begun_s, None)], "", "<= 5")
        bench.run(memory, "meta", "--threads", "8", *words, "create")
        pairs = []
        for _ in range(bench.runs):
            cluster.again()
            drop_caches(2)
            a = bench.run(cluster, "meta", *words, "list")["list"]
            b = bench.run(memory, "meta", *words, "list")["list"]
            pairs.append((a["ops_per_s"], b["ops_per_s"], a["server_cpu_s"] * 1e6 / files))
        bench.row(f"mount ls -l of {files} files, cold", "entries/s",
                  [(a, b) for a, b, _ in pairs], "tmpfs", ">= 0.8")
        bench.row(f"mount ls -l of {files} files, CPU", "us/entry",
                  [(c, None) for _, _, c in pairs], "user and system of the daemon", "<= 0.3")
    finally:
        stopping((cluster, memory))


def configured_bytes(cluster):
    """What shoal.conf lets the daemon use, its FUSE buffers, and what the budget allows beside."""
    sizes = {}
    osts = 1
    with open(os.path.join(cluster.data, "shoal.conf"), encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition("=")
            name, value = name.strip(), value.split(";")[0].strip()
            if name.endswith("_bytes"):
                sizes[name] = int(value)
            elif name == "osts":
                osts = int(value)
    of_each = ("ost_ring_bytes", "ost_ring_data_bytes", "ost_changes_bytes", "cache_bytes")
    return (sizes["mdt_ring_bytes"] + sizes["mdt_changes_bytes"]
            + osts * sum(sizes[name] for name in of_each) + CONFIGURED_EXTRA_BYTES)


def checkpoints(bench):
    """Creates while checkpoints pass: memory for changes so small that ten take half a minute."""
    seconds = 5 if bench.quick else 30
    cluster = bench.cluster(mdt_changes_bytes=16 << 20)
    try:
        cluster.start()
        rows = bench.run(cluster, "meta", "--threads", "2", "--dirs", "100", "--files", "5000000",
                         "--seconds", str(seconds), "--phases", "create,unlink")
        passed = counter(cluster, "mdt0", "checkpoints")
        for phase in ("create", "unlink"):
            row = rows[phase]
            bench.row(f"mount {phase} during checkpoints, p99", "us",
                      [(row["p99_us"], row["p50_us"])], f"p50; {passed} checkpoints", "<= 5")
            bench.row(f"mount {phase} during checkpoints", "ops/s", [(row["ops_per_s"], None)],
                      f"{passed} checkpoints", "")
    finally:
        cluster.stop()


def counter(cluster, target, name):
    for row in cluster.stats()["counters"]:
        if row["target"] == target and row["name"] == name:
            return row["value"]
    raise Failed(f"stats has no {name} of {target}")


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
            idle_s = 2 if bench.quick else 10
            time.sleep(2)
            before_s = cpu_s(cluster.process_id)
            time.sleep(idle_s)
            runs.append((empty_s, killed_s, (cpu_s(cluster.process_id) - before_s) / idle_s * 100))
        finally:
            cluster.stop()
    bench.row("start to mounted, empty", "s", [(run[0], None) for run in runs], "", "<= 1")
    bench.row("start to mounted after kill -9", "s", [(run[1], None) for run in runs], "", "<= 5")
    bench.row("idle CPU", "%", [(run[2], None) for run in runs], "of one core", "<= 1")


PARTS = {"starts": starts, "native": native, "metadata": metadata, "streams": streams,
         "samples": samples, "commits": commits, "checkpoints": checkpoints, "listing": listing}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=sorted(PARTS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("build")
    parser.add_argument("work")
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    bench = Bench(options)
    if not bench.passthrough:
        print("run.py: libfuse's passthrough_ll is not here (package libfuse3-dev 3.14): its rows "
              "are left out", file=sys.stderr)
    failed = 0
    for name, part in PARTS.items():
        if options.only not in (None, name):
            continue
        try:
            part(bench)
        except Failed as problem:
            print(f"run.py: {name}: {problem}", file=sys.stderr)
            failed += 1
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(bench.rows, file, indent=1)
            file.write("\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
