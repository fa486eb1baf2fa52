"""Functions that formulas of the planner may call, each written from its definition.

The formula that `shoal plan --explain` shows is evaluated with these and compared with the figure.
"""

import math

FUNCTIONS = {
    "min": min, "max": max, "ceil": math.ceil, "floor": math.floor, "sqrt": math.sqrt,
    "exp": math.exp, "log": math.log, "log2": math.log2, "round": round, "len": len, "sum": sum,
}


def named(function):
    """Makes a function known to formulas."""
    FUNCTIONS[function.__name__] = function
    return function


def chains_of(seed, stripe_count, target_count):
    """Where a file of that seed lies: MurmurHash3's finaliser names the first chain."""
    value = seed
    value ^= value >> 16
    value = value * 0x85ebca6b & 0xffffffff
    value ^= value >> 13
    value = value * 0xc2b2ae35 & 0xffffffff
    value ^= value >> 16
    return [(value + i) % target_count for i in range(min(stripe_count, target_count))]


def pieces_of(files, stripe_count, targets):
    pieces = [0] * int(targets)
    for seed in range(int(files)):
        for chain in chains_of(seed, int(stripe_count), int(targets)):
            pieces[chain] += 1
    return pieces


@named
def layout_spread(files, stripe_count, targets):
    """Pieces on the fullest target against the mean."""
    pieces = pieces_of(files, stripe_count, targets)
    return max(pieces) / (sum(pieces) / len(pieces))


@named
def layout_share_on_fullest(files, stripe_count, targets):
    """Share of the files with a piece on the fullest target."""
    return max(pieces_of(files, stripe_count, targets)) / int(files)
