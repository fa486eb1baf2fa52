#!/usr/bin/python3
"""The POSIX table, through a mount: ordinary rows, rows that fill the file system, rows that read
damaged data.

Usage: posix.py SHOAL POSIX [slow] [apart|afar|many]

SHOAL is the command, POSIX the program that runs the table (posix.c). apart: the mount is served by
a process of its own; afar: by TCP, too. many: four metadata targets. The last line counts.
"""

import os
import re
import subprocess
import sys

import cluster as clusters
from cluster import MIB

LIMIT_S = 1800
PATTERN = os.urandom(4096)


def run(program, cluster, kind):
    """Runs the rows of one kind; how many passed, failed and were skipped."""
    os.chmod(cluster.top, 0o755)
    try:
        result = subprocess.run([program, cluster.mount, kind], stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, timeout=LIMIT_S, check=False)
        lines = result.stdout.strip().split("\n")
    except subprocess.TimeoutExpired:
        lines = [f"FAILED: the {kind} rows did not end in {LIMIT_S} s", "0 passed, 1 failed"]
    for line in lines[:-1]:
        print(line)
    counts = [int(number) for number in re.findall(r"\d+", lines[-1])]
    if cluster.process() is None:
        print(f"FAILED: the daemon died in the {kind} rows; the log ends: {cluster.log_end()}")
        counts[1] += 1
    print(f"{kind}: {lines[-1]}", flush=True)
    return (counts + [0, 0, 0])[:3]


def damage(cluster):
    """Changes one byte of what the storage targets keep of the file "damaged"."""
    path = os.path.join(cluster.mount, "damaged")
    with open(path, "wb") as file:
        file.write(PATTERN * 64)
        os.fsync(file.fileno())
    cluster.stop()
    count = 0
    for name in sorted(os.listdir(cluster.directory)):
        data = cluster.path(os.path.join(name, "data"))
        if not name.startswith("ost") or not os.path.exists(data):
            continue
        with open(data, "r+b") as file:
            content = file.read()
            for match in re.finditer(re.escape(PATTERN), content):
                file.seek(match.start() + 17)
                file.write(bytes([PATTERN[17] ^ 1]))
                count += 1
    if count == 0:
        raise clusters.Failed("the storage targets do not hold the file's bytes")
    cluster.start()


def main():
    ways = {"apart": {"apart": True}, "afar": {"afar": True}, "many": {"mdts": 4}}
    way = ways.get(sys.argv[-1], {})
    words = sys.argv[1:-1] if way else sys.argv[1:]
    if len(words) not in (2, 3):
        print(__doc__.split("\n")[3], file=sys.stderr)
        return 2
    shoal, program = words[:2]
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, 1 skipped")
        return 0
    sums = [0, 0, 0]
    try:
        with clusters.Cluster(shoal, sizes={"data_bytes_max": 1024 * MIB}, **way) as cluster:
            cluster.start()
            kinds = ["ordinary"] + words[2:]
            for kind in kinds:
                sums = [a + b for a, b in zip(sums, run(program, cluster, kind))]
            damage(cluster)
            sums = [a + b for a, b in zip(sums, run(program, cluster, "damaged"))]
        with clusters.Cluster(shoal, sizes={"data_bytes_max": 64 * MIB}, **way) as cluster:
            cluster.start()
            sums = [a + b for a, b in zip(sums, run(program, cluster, "full"))]
    except clusters.Failed as failed:
        print(f"FAILED: {failed}")
        sums[1] += 1
    print(f"{sums[0]} passed, {sums[1]} failed, {sums[2]} skipped")
    return 1 if sums[1] else 0


sys.exit(main())
