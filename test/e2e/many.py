#!/usr/bin/python3
"""A cluster with four metadata targets: names that lie elsewhere than their inodes, below kills of
the daemon, and what fsck says.

Usage: many.py SHOAL [TEST]

SHOAL is the command. The last line counts.
"""

import os
import sys

import cluster as clusters
from cluster import Failed
from driver import drive
from names_load import NamesLoad

KILLS = 6
LOADS = 3
DIRECTORIES = 400


def fsck(cluster):
    result = cluster.run("fsck", cluster.directory)
    if result.returncode != 0:
        raise Failed(f"fsck: {result.stdout.strip()} {result.stderr.strip()}")


def counters(cluster, name):
    result = cluster.run("stats", cluster.directory)
    lines = [line.split() for line in result.stdout.split("\n")]
    return {line[0]: int(line[2]) for line in lines if len(line) == 3 and line[1] == name}


def kills_are_pauses(cluster):
    """Each acknowledged name is there, and nothing else, after kill -9 again and again."""
    cluster.start()
    loads = [NamesLoad(cluster, seed) for seed in range(1, LOADS + 1)]
    for kill in range(KILLS):
        for load in loads:
            load.goes_on()
        cluster.kill()
        result = cluster.run("up", cluster.directory)
        if result.returncode != 0:
            raise Failed(f"kill {kill}: up: {result.stderr.strip()}")
    for load in loads:
        load.goes_on()
    if not any(counters(cluster, "crossings").values()):
        raise Failed("no operation went over two metadata targets")
    fsck(cluster)
    checked = [load.check() for load in loads]
    fsck(cluster)
    steps = sum(count for count, _ in checked)
    print(f"{steps} steps, {KILLS} kills, longest {max(s for _, s in checked):.1f} s")


def a_stop_keeps_all(cluster):
    """Also of transactions that were under way."""
    cluster.start()
    load = NamesLoad(cluster, 7)
    for _ in range(3):
        load.goes_on()
        cluster.stop()
        result = cluster.run("up", cluster.directory)
        if result.returncode != 0:
            raise Failed(f"up: {result.stderr.strip()}")
    load.check()
    fsck(cluster)


def directories_are_dealt(cluster):
    """Those near the root go to all targets alike; what is below stays with its parent."""
    cluster.start()
    for number in range(DIRECTORIES):
        os.mkdir(os.path.join(cluster.mount, f"d{number}"))
    inodes = counters(cluster, "inodes")
    if len(inodes) != 4 or min(inodes.values()) < DIRECTORIES / 4 * 0.7:
        raise Failed(f"inodes by target: {inodes}")
    crossings = sum(counters(cluster, "crossings").values())
    deep = os.path.join(cluster.mount, "d0", "e")
    os.mkdir(deep)
    seen = sum(counters(cluster, "crossings").values())
    for number in range(DIRECTORIES // 4):
        os.mkdir(os.path.join(deep, f"f{number}"))
    if seen > crossings + 1 or sum(counters(cluster, "crossings").values()) != seen:
        raise Failed("a directory far from the root went elsewhere")


TESTS = [kills_are_pauses, a_stop_keeps_all, directories_are_dealt]


def main():
    def play(test):
        with clusters.Cluster(sys.argv[1], apart=True, mdts=4) as cluster:
            test(cluster)

    return drive(__doc__, TESTS, play)


sys.exit(main())
