#!/usr/bin/python3
"""A cluster under load, killed at random and in rare states, its disk filled and freed.

Usage: soak.py SHOAL SOAK_LOAD MINUTES [SEED] [--no-kill]

SHOAL is the command, SOAK_LOAD the program that works and compares (soak_load.c). In turns of five
minutes a new cluster with the smallest rings, logs and memory, or with the defaults, is killed and
started again. What was acknowledged before a kill is there byte for byte afterwards, names too;
what was in flight is old or new, each block. A third of the kills are aimed: the daemon is stopped,
its rings are looked at, and it is killed if they are in a rare state (soak_rings.py). In some turns
the directory lies on a small disk that is filled and freed: ENOSPC is the only error then, and with
room all goes on within 10 s. No call waits for longer than 60 s. A start is to take 5 s at most;
one that takes longer is listed.

--no-kill: one turn; the disk is filled and freed, and the daemon's own memory at the end is no more
than 5 MiB above that of minute 10 (or a sixth of MINUTES, if less).

Choices come from the seed; the moments at which processes run do not. A turn that breaks leaves its
directory, its rings and what was asked last; their place is printed. The last line counts turns.
"""

import os
import random
import sys
import time

import cluster as clusters
import soak_turn
from cluster import Failed

TURN_S = 300
LEAST_S = 20  # a rest of less is not worth a turn


class Totals:
    """Of all turns."""

    def __init__(self):
        self.kills = 0
        self.aims = {}
        self.starts = []
        self.fills = 0
        self.acknowledged = 0
        self.checked = 0
        self.refused = 0
        self.longest_room_s = 0

    def text(self):
        aimed = ", ".join(f"{state} {count}" for state, count in sorted(self.aims.items()))
        slow = sum(start > soak_turn.START_S for start in self.starts)
        return (f"{self.kills} kills, {sum(self.aims.values())} of them aimed"
                f"{' (' + aimed + ')' if aimed else ''}; {len(self.starts)} starts, the longest "
                f"{max(self.starts, default=0):.1f} s, {slow} above {soak_turn.START_S} s; "
                f"{self.acknowledged} operations acknowledged, {self.checked} of them checked, "
                f"{self.refused} ENOSPC; {self.fills} fills, all went on within "
                f"{self.longest_room_s:.1f} s of room")


def run_turn(turn, seconds):
    """Whether nothing broke."""
    cluster = turn.cluster
    try:
        turn.run(seconds)
    except (Failed, OSError) as problem:
        # What a kill cut off may be zeros.
        text = f"{problem}; the log ends: {cluster.log_end()}".replace("\0", "")
        cluster.keep(text)
        print(f"FAILED: {text}; kept in {cluster.top}", flush=True)
        return False
    except BaseException:
        cluster.close()
        raise
    cluster.close()
    return True


def main():
    words = [word for word in sys.argv[1:] if word != "--no-kill"]
    quiet = len(words) < len(sys.argv) - 1
    if len(words) not in (3, 4) or not all(word.isdigit() for word in words[2:]) or \
            int(words[2]) == 0:
        print(__doc__.split("\n")[2], file=sys.stderr)
        return 2
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, 1 skipped")
        return 0
    seed = int(words[3]) if len(words) == 4 else int.from_bytes(os.urandom(3), "little")
    end = time.monotonic() + int(words[2]) * 60
    totals = Totals()
    passed = failed = 0
    while passed + failed == 0 or time.monotonic() + LEAST_S < end:
        number = passed + failed
        left = end - time.monotonic()
        kills, started = totals.kills, time.monotonic()
        print(f"seed {seed}, turn {number}", flush=True)
        try:
            turn = soak_turn.make_turn([os.path.abspath(word) for word in words[:2]], number,
                                       random.Random(f"{seed} {number}"), totals, quiet)
        except Failed as problem:
            print(f"FAILED: no cluster: {problem}", flush=True)
            failed += 1
            break
        print(" ", ", ".join(worker.name for worker in turn.load.workers), flush=True)
        good = run_turn(turn, left if quiet else min(TURN_S, left))
        passed += good
        failed += not good
        print(f"  {totals.kills - kills} kills in {time.monotonic() - started:.0f} s", flush=True)
    print(totals.text())
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
