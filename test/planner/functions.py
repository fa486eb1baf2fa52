"""Functions that formulas of the planner name, each written from its definition."""

import math


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


def stripe_best_size(length, targets):
    return min(stripe_layouts(length, targets))[1]


def stripe_best_count(length, targets):
    return min(stripe_layouts(length, targets))[2]
