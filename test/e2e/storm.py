#!/usr/bin/python3
"""One user's storm beside another user's small files, on a real mount.

Usage: storm.py SHOAL STORM [TEST]
       storm.py SHOAL STORM measure [KIND]

SHOAL is the command, STORM the program of storm.c. measure prints, for each kind of storm, what a
create + write + close + unlink of the other user takes, in milliseconds, with the mount in a
process of its own and in the daemon, and DIR on TMPDIR's disk and in /dev/shm. The last line
counts.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time

from cluster import Cluster, Failed, GIB, MIB
from driver import drive

STORM_UID, QUIET_UID = 61001, 61002
PROCESSES = 100
COUNT = 200
LARGE = ("write", "direct", "signal", "copy")  # of which one user has few at a time
LOOK_S = 60
NAMES = 30000
KINDS = {"none": [], "fsync": ["fsync"], "write": ["write"], "direct": ["direct"],
         "signal": ["signal"], "copy": ["copy"], "list": ["list"],
         "all": ["fsync", "write", "direct", "list"]}
SIZES = {"data_bytes_max": 4 * GIB, "disk_log_bytes": 256 * MIB, "mdt_ring_bytes": 32 * MIB,
         "ost_ring_bytes": 8 * MIB, "ost_ring_data_bytes": 32 * MIB, "cache_bytes": 64 * MIB}


def folder(cluster, name, uid):
    path = os.path.join(cluster.mount, name)
    os.mkdir(path)
    os.chown(path, uid, uid)
    return path


def names_make(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    for number in range(NAMES):
        os.mknod(f"name-of-a-file-{number:06}", dir_fd=descriptor)
    os.close(descriptor)


@contextlib.contextmanager
def storm(program, kinds, places, processes):
    """Runs while it is entered; yields what is filled with the steps that were done."""
    with contextlib.ExitStack() as stack:
        steps = {}
        all_ = {}
        for kind in kinds:
            words = [program, "load", kind, places[kind], str(processes // len(kinds)),
                     str(STORM_UID)]
            all_[kind] = stack.enter_context(subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                start_new_session=True))
        for kind, process in all_.items():
            if process.stdout.readline() != "ready\n":
                raise Failed(f"the storm of {kind} did not begin")
        try:
            yield steps
        finally:
            for process in all_.values():
                process.stdin.close()
            for kind, process in all_.items():
                steps[kind] = int(process.stdout.readline() or 0)


def quiet(program, place, count, pause_us=10000):
    words = [program, "quiet", place, str(QUIET_UID), str(count), str(pause_us)]
    result = subprocess.run(words, capture_output=True, text=True, check=False,
                            start_new_session=True)
    if result.returncode != 0:
        raise Failed(f"the quiet user: {result.stderr.strip()}")
    return [int(word) / 1000 for word in result.stdout.split()]


def prepare(cluster):
    cluster.start()
    os.chmod(cluster.top, 0o755)
    place = folder(cluster, "storm", STORM_UID)
    names = folder(cluster, "names", STORM_UID)
    names_make(names)
    return {"fsync": place, "write": place, "direct": place, "signal": place, "copy": place,
            "list": names, "quiet": folder(cluster, "quiet", QUIET_UID)}


def measure(shoal, program, kinds):
    for disk in (tempfile.gettempdir(), "/dev/shm"):
        tempfile.tempdir = disk
        for apart in (True, False):
            with Cluster(shoal, sizes=SIZES, apart=apart) as cluster:
                places = prepare(cluster)
                for kind in kinds:
                    with storm(program, KINDS[kind], places, PROCESSES) as steps:
                        start = time.monotonic()
                        took = quiet(program, places["quiet"], COUNT)
                        steps_s = time.monotonic() - start
                    print(f"{disk} {'apart' if apart else 'daemon'} {kind}: "
                          f"p50 {took[0]:.2f} p99 {took[1]:.2f} max {took[2]:.2f} ms; "
                          f"in {steps_s:.1f} s, steps {steps}", flush=True)
    return 0


def mount_counters(cluster):
    result = cluster.run("stats", cluster.directory, "--json")
    if result.returncode != 0:
        raise Failed(f"stats: {result.stderr.strip()}")
    return {one["name"]: one["value"] for one in json.loads(result.stdout)["counters"]
            if one["target"] == "mount"}


def told(cluster):
    """Whether status and the log tell of the storm's user."""
    with open(cluster.path("shoal.log"), encoding="utf-8") as file:
        log = file.read()
    status = cluster.run("status", cluster.directory).stdout
    return (f"user {STORM_UID} has met his share of requests at work" in status
            and f"user {STORM_UID} has as many requests at work as one may" in log)


def users_take_turns(cluster, program, kind):
    """That the storm's requests wait for their turn, while the other user's are served."""
    places = prepare(cluster)
    before = mount_counters(cluster)["requests_waited"]
    with storm(program, [kind], places, PROCESSES) as steps:
        took = quiet(program, places["quiet"], COUNT)
        after = mount_counters(cluster)
        end = time.monotonic() + LOOK_S
        while kind in LARGE and not told(cluster):
            if time.monotonic() > end:
                raise Failed("neither status nor the log tells who met his share")
            time.sleep(0.1)
    if after["requests_waited"] - before < PROCESSES:
        raise Failed(f"{after['requests_waited'] - before} requests waited for their turn")
    if kind in LARGE and after["requests_held_back"] == 0:
        raise Failed("nobody was held to his share")
    print(f"{kind}: p50 {took[0]:.2f} p99 {took[1]:.2f} max {took[2]:.2f} ms, {steps}", flush=True)


TESTS = ["fsync", "write", "direct", "signal", "copy", "list"]


def main():
    if sys.argv[3:4] == ["measure"]:
        return measure(sys.argv[1], sys.argv[2], sys.argv[4:] or list(KINDS))

    def play(kind):
        with Cluster(sys.argv[1], sizes=SIZES) as cluster:
            users_take_turns(cluster, sys.argv[2], kind)

    return drive(__doc__, TESTS, play, words=2, name=lambda kind: kind)


sys.exit(main())
