#!/usr/bin/python3
"""Compares the stores of the source with those of the instructions that the compiler made of them.

Usage: order.py TOLD STEPPED SEED...

Both programs play each seed's schedule. All that is no store must happen in both, in one order; in
between, an instruction belongs to the first store, from the last one's on, that it lies within.
One that spans several has joined them. One that lies within an earlier store, or in none, was
moved: that is what ring_store must not let happen, and fails.
"""

import re
import subprocess
import sys

EVENT = re.compile(r" *\d+ (\w+) +at ([0-9a-f]+), (\d+) bytes")
NAMES = ("stores of the source", "instructions", "split", "joined", "moved",
         "of bytes that were there")


def steps(program, seed):
    """What happens, each with the stores before it."""
    found, stores = [], []
    with subprocess.Popen([program, "1", seed, "--once", "--trace"], text=True,
                          stdout=subprocess.PIPE) as playing:
        for line in playing.stdout:
            match = EVENT.match(line)
            if line.startswith("=="):
                break  # What follows are crashes of it.
            if match and match[1] == "store":
                first = int(match[2], 16)
                stores.append((first, first + int(match[3])))
            elif match and match[1] != "fill":  # A data area has no order.
                found.append((match.groups(), stores))
                stores = []
        playing.kill()
    return found


def assign(told, stepped):
    """What became of these stores: split, joined, moved, of which nothing was seen."""
    parts = [0] * len(told)
    joined = moved = at = 0
    for first, end in stepped:
        inside = [i for i, store in enumerate(told) if store[0] <= first and end <= store[1]]
        touched = [i for i, store in enumerate(told) if first < store[1] and store[0] < end]
        later = [i for i in inside if i >= at]
        if later:
            at = later[0]
            parts[at] += 1
        elif not inside and touched and touched[0] >= at:
            joined += 1
            at = touched[-1]
            for i in touched:
                parts[i] += 1
        else:
            moved += 1
    return sum(count > 1 for count in parts), joined, moved, parts.count(0)


def compare(told, stepped):
    if [happened for happened, _ in told] != [happened for happened, _ in stepped]:
        return None
    sums = [0] * len(NAMES)
    for (_, source), (_, instructions) in zip(told, stepped):
        row = (len(source), len(instructions)) + assign(source, instructions)
        sums = [whole + part for whole, part in zip(sums, row)]
    return sums


def main(told, stepped, seeds):
    sums = [0] * len(NAMES)
    for seed in seeds:
        row = compare(steps(told, seed), steps(stepped, seed))
        if not row or not row[0]:
            print(f"seed {seed}: the two builds do not do the same")
            return 1
        sums = [whole + part for whole, part in zip(sums, row)]
    print(", ".join(f"{count} {name}" for name, count in zip(NAMES, sums)))
    return int(sums[NAMES.index("moved")] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
