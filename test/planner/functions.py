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


def stripe_layouts(length, targets):
    """Each layout allowed as (rank, size, count); the least rank suits best."""
    most = min(64, math.floor(targets))
    if most < 4 or length < 4 * 65536:
        raise ValueError("nothing fits")
    for count in range(4, most + 1):
        for size in range(65536, (4 << 20) + 1, 65536):
            rounds = math.ceil(length / (size * count))
            excess = rounds * size * count - length
            yield (excess, -min(size, 1 << 20), -count, -size), size, count


@named
def stripe_best_size(length, targets):
    return min(stripe_layouts(length, targets))[1]


@named
def stripe_best_count(length, targets):
    return min(stripe_layouts(length, targets))[2]


@named
def packet_payload(mtu, reserved, most):
    """Data of a full packet. With a most, it is a power of two, as InfiniBand's path MTU is."""
    left = mtu - reserved
    if left < 1:
        raise ValueError("no room for data")
    if most == 0:
        return left
    size = 1
    while 2 * size <= min(left, most):
        size *= 2
    return size
