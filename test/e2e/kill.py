#!/usr/bin/python3
"""kill -9 at acknowledgements, N times, over clusters of several shapes.

Usage: kill.py SHOAL KILL ROUNDS [SEED]

SHOAL is the command, KILL the program that works, kills and compares (kill.c). The last line says
how many rounds passed; when one breaks, the line before says what, and the folder is kept.
"""

import os
import random
import subprocess
import sys

import cluster as clusters
from cluster import SHAPES

ROUNDS_PER_CLUSTER = 10
LIMIT_S_PER_ROUND = 120


def run(shoal, program, rounds, seed):
    """One cluster through some rounds; whether nothing broke."""
    rng = random.Random(seed)
    osts, sizes = SHAPES[rng.randrange(len(SHAPES))]
    with clusters.Cluster(shoal, osts, sizes) as cluster:
        words = [program, cluster.shoal, cluster.directory, cluster.mount, str(seed), str(rounds),
                 str(rng.choice([1, 4, 8]))]
        print("seed", seed, "osts", osts, "threads", words[-1], flush=True)
        try:
            status = subprocess.run(words, stdin=subprocess.DEVNULL, check=False,
                                    timeout=rounds * LIMIT_S_PER_ROUND).returncode
        except subprocess.TimeoutExpired:
            print(f"FAILED: {rounds} rounds did not end in {rounds * LIMIT_S_PER_ROUND} s")
            status = 1
        if status != 0:
            print(f"FAILED: seed {seed}, status {status}; the log ends: {cluster.log_end()}",
                  flush=True)
        return status == 0


def main():
    if len(sys.argv) not in (4, 5):
        print(__doc__.split("\n")[2], file=sys.stderr)
        return 2
    shoal, program, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) == 5 else int.from_bytes(os.urandom(4), "little")
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, {rounds} skipped")
        return 0
    passed = 0
    failed = 0
    while passed + failed < rounds:
        count = min(ROUNDS_PER_CLUSTER, rounds - passed - failed)
        if run(shoal, program, count, seed):
            passed += count
        else:
            failed += count
        seed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
