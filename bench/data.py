"""Parts of ./dev bench about bytes: big files, files of 50 KiB, a small file made durable."""

import os
import statistics
import time

import machine
from mounts import Folder, forget, stopping

PASSTHROUGH = "libfuse's passthrough_ll"


def streams(bench):
    """Big files through the mount, beside the channel alone, the medium alone, the pass-through."""
    size = "256M" if bench.smoke else "2G"
    places = (bench.cluster(), bench.bare(), Folder("medium", bench.folder("medium")),
              bench.through())
    try:
        for threads in (1, 4):
            bench.tell_turns(places, lambda place, threads=threads:
                             streams_once(bench, place, threads, size),
                             lambda runs, threads=threads: streams_rows(threads, runs))
    finally:
        stopping(places)


def streams_rows(threads, runs):
    for phase in ("write", "read"):
        of_phase = [[place and place[phase] for place in run] for run in runs]
        yield from phase_rows(f"mount {phase}, {threads} streams", of_phase)


def phase_rows(name, runs):
    rate = "mb_per_s"
    yield (name, "MB/s", [(a[rate], min(b[rate], c[rate])) for a, b, c, _ in runs],
           "the lesser of bare FUSE and the medium, the latter with O_DIRECT", ">= 0.8")
    if runs[0][3]:
        yield (name, "MB/s", [(a[rate], d[rate]) for a, _, _, d in runs],
               f"{PASSTHROUGH}, both without O_DIRECT", ">= 1")
    yield (f"{name}, CPU", "s/GB",
           [(a["server_cpu_s"] / (a["ops"] * (1 << 20) / 1e9), None) for a, *_ in runs],
           "user and system of the daemon", "<= 0.4")


def streams_once(bench, place, threads, size):
    """The written stream ends on the disk within its time; the read one begins there."""
    rows = {}
    words = ["--threads", str(threads), "--size", size, "--phases"]
    direct = ["--direct"] if isinstance(place, Folder) else []
    forget(place, 3)
    rows.update(bench.run(place, "big", *words, "write", *direct))
    place.again()
    forget(place, 3)
    rows.update(bench.run(place, "big", *words, "read", *direct))
    bench.run(place, "big", *words, "erase")
    return rows


def samples(bench):
    """50 KiB files in scattered order by a client that knows nothing yet."""
    files = 1000 if bench.smoke else 10000
    places = (bench.cluster(), bench.through())
    try:
        for threads in (1, 8):
            bench.tell_turns(places, lambda place, threads=threads:
                             samples_once(bench, place, threads, files),
                             lambda runs, threads=threads: samples_rows(threads, runs))
    finally:
        stopping(places)


def samples_rows(threads, runs):
    for phase, words in (("write", "written"), ("read", "read cold")):
        yield (f"mount 50 KiB files {words}, {threads} threads", "files/s",
               [(a[phase], b and b[phase]) for a, b in runs], PASSTHROUGH,
               ">= 1" if runs[0][1] else "")


def samples_once(bench, place, threads, files):
    words = ["--threads", str(threads), "--files", str(files), "--phases"]
    forget(place, 3)
    rates = {"write": bench.run(place, "small", *words, "write")["write"]["ops_per_s"]}
    place.again()
    forget(place, 3)
    rates["read"] = bench.run(place, "small", *words, "read")["read"]["ops_per_s"]
    bench.run(place, "small", *words, "delete")
    return rates


def commits(bench):
    """A small file written, made durable, renamed; beside two fdatasyncs of the medium."""
    count = 50 if bench.smoke else 300
    places = (bench.cluster(), Folder("medium", bench.folder("medium")), bench.through())
    try:
        bench.tell_turns(places, lambda place: commits_once(bench, place, count),
                         lambda runs: commits_rows(bench.channel, runs))
    finally:
        stopping(places)


def commits_rows(channel, runs):
    name = "mount write, fsync, rename of 4 KiB"
    yield (name, "us", [(a, b) for a, b, _ in runs], "two fdatasyncs, medians",
           commits_budget(channel))
    if runs[0][2]:
        yield name, "us", [(a, c) for a, _, c in runs], f"{PASSTHROUGH}, medians", "<= 1"


def commits_budget(channel):
    """Over /dev/fuse a processor that has halted is woken for each request. Without the setting
    (None) processors halt, too."""
    return "<= 2" if channel == "/dev/fuse" and not machine.poll_read() else "<= 1.5"


def commits_once(bench, place, count):
    """Microseconds, the median of count."""
    if isinstance(place, Folder):
        return two_syncs_us(place.root, count)
    rows = bench.run(place, "checkpoint", "--files", str(count), "--size", "1M", "--phases",
                     "commit,drop")
    return rows["commit"]["p50_us"]


def two_syncs_us(folder, count):
    path = os.path.join(folder, "syncs")
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
