"""Functions that formulas of the planner may call, each written from its definition.

The formula that `shoal plan --explain` shows is evaluated with these and compared with the figure.
"""

import fractions
import configparser
import math
import operator
import os

FUNCTIONS = {
    "min": min, "max": max, "floor": math.floor, "sqrt": math.sqrt,
    "log": math.log, "log2": math.log2,
}


def cannot(reason):
    """What a formula is when it says that it has no value."""
    raise ValueError(reason)


FUNCTIONS["cannot"] = cannot


def named(function):
    """Makes a function known to formulas."""
    FUNCTIONS[function.__name__] = function
    return function


@named
def exp(value):
    """What is too large for a number is infinite, as in C."""
    return math.exp(value) if value < 709 else math.inf


@named
def expm1(value):
    """exp(value) - 1, precise near 0."""
    return math.expm1(value) if value < 709 else math.inf


@named
def ceil(value):
    """The least whole number that suffices; what rounding has put just above one is that one."""
    near = round(value)
    return near if abs(value - near) <= 1e-12 * abs(near) else math.ceil(value)


@named
def erlang_c(servers, load):
    """The share of arrivals that wait in M/M/c: c servers, `load` arrivals a service time.

    (a^c / c!) / ((1 - a/c) * sum(a^k / k!, k < c) + a^c / c!), each term of the sum taken over the
    one outside it. What is smaller than 1e-290 is 0.
    """
    if load == 0:
        return 0.0
    term, total = 1.0, 0.0
    for k in range(int(servers) - 1, -1, -1):
        term *= (k + 1) / load
        total += term
    waiting = 1 / (1 + (1 - load / servers) * total)
    return 0.0 if waiting < 1e-290 else waiting


def solve(rows, right):
    """The solution of a regular system in exact fractions."""
    rows = [list(row) + [value] for row, value in zip(rows, right)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k] != 0)
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(len(rows)):
            if i != k:
                share = rows[i][k] / rows[k][k]
                rows[i] = [one - share * other for one, other in zip(rows[i], rows[k])]
    return [row[-1] / row[k] for k, row in enumerate(rows)]


def least_squares(points, sets):
    """B, a, b and the error of X = B N / (1 + a (N-1) + b N (N-1)), of the best set of terms.

    The terms 1/B, a/B and b/B of N/X by the normal equations, each point weighted by X/N, in exact
    fractions; a set of terms with a negative one means nothing.
    """
    weighted = [[fractions.Fraction(x) / n for x in (y, y * (n - 1), y * n * (n - 1))]
                for n, y in ((fractions.Fraction(n), fractions.Fraction(x)) for n, x in points)]
    best = None
    for terms in sets:
        normal = [[sum(row[i] * row[j] for row in weighted) for j in terms] for i in terms]
        found = solve(normal, [sum(row[i] for row in weighted) for i in terms])
        whole = [fractions.Fraction(0)] * 3
        for term, value in zip(terms, found):
            whole[term] = value
        distance = sum((sum(c * r for c, r in zip(whole, row)) - 1) ** 2 for row in weighted)
        if whole[0] > 0 and min(whole) >= 0 and (best is None or distance < best[0]):
            best = distance, whole
    first, second, third = best[1]
    most = max(n for n, _ in points)
    alone, contention, coherency = 1 / float(first), float(second / first), float(third / first)
    contention = contention if contention * most >= 1e-9 else 0.0
    coherency = coherency if coherency * most * most >= 1e-9 else 0.0
    squares = [(alone * n / (1 + contention * (n - 1) + coherency * n * (n - 1)) / x - 1) ** 2
               for n, x in points]
    error = math.sqrt(math.fsum(squares) / len(squares))
    return alone, contention, coherency, error if error >= 1e-9 else 0.0


@named
def least_squares_amdahl(points):
    """B, f and the error of X = B N / (1 + f (N-1))."""
    if len({n for n, _ in points}) < 2:
        raise ValueError("too few points")
    alone, serial, _, error = least_squares(points, [(0, 1), (0,)])
    return alone, serial, error


@named
def least_squares_usl(points):
    """B, a, b and the error of X = B N / (1 + a (N-1) + b N (N-1))."""
    if len({n for n, _ in points}) < 3:
        raise ValueError("too few points")
    return least_squares(points, [(0, 1, 2), (0, 1), (0, 2), (0,)])


CHOOSER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../share/shoal/chooser.ini")
UNITS = {"GB/s": 1e9, "%": 0.01, "": 1}
COMPARISONS = [("==", operator.eq), ("!=", operator.ne), ("<=", operator.le), (">=", operator.ge),
               ("<", operator.lt), (">", operator.gt)]


def holds(comparison, given):
    """Whether a comparison of a rule is true of what is given."""
    for sign, compare in COMPARISONS:
        name, found, wanted = comparison.partition(sign)
        if found:
            value = given[name.strip()]
            wanted = wanted.strip()
            if not isinstance(value, str):
                unit = wanted.lstrip("0123456789.")
                wanted = float(wanted[:len(wanted) - len(unit)]) * UNITS[unit]
            return compare(value, wanted)
    raise ValueError(comparison)


@named
def chooser_score(system, **given):
    """Points of the shipped rules that apply to a system, which is named as it is shown."""
    rules = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=(";",))
    rules.read(CHOOSER, encoding="utf-8")
    score = 0
    for section in rules.sections():
        if section.startswith("chooser.") and rules[section]["name"] == system:
            for key, text in rules[section].items():
                if key == "name":
                    continue
                condition, points, _ = (part.strip() for part in text.split(":", 2))
                applies = condition == "always" or \
                    all(holds(part, given) for part in condition.split(" and "))
                if applies and points != "no":
                    score += int(points)
    return score
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


@named
def jobs_count(jobs):
    return len(jobs)


@named
def jobs_size(jobs):
    return sum(size * 1e9 for size, _ in jobs)


@named
def jobs_mean(jobs):
    return sum(size * 1e9 / (minutes * 60) for size, minutes in jobs)


@named
def jobs_p99(jobs, copies, target):
    """Up to 64 jobs by convolution on the planner's lattice, else normal."""
    if not jobs:
        return 0
    rows = [(size * 1e9 / target, min(1, target / (minutes * 60))) for size, minutes in jobs]
    worst = copies * sum(bandwidth for bandwidth, _ in rows)
    if len(rows) * copies > 64:
        mean = copies * sum(bandwidth * share for bandwidth, share in rows)
        variance = copies * sum(bandwidth ** 2 * share * (1 - share) for bandwidth, share in rows)
        return min(worst, mean + 2.3263478740408408 * math.sqrt(variance))
    chances = {0: 1.0}
    for bandwidth, share in rows:
        steps = ceil(bandwidth / worst * 65536)
        for _ in range(int(copies)):
            after = {}
            for at, chance in chances.items():
                after[at] = after.get(at, 0) + chance * (1 - share)
                after[at + steps] = after.get(at + steps, 0) + chance * share
            chances = after
    total = 0
    for at in sorted(chances):
        total += chances[at]
        if total >= 0.99:
            return min(worst, at / 65536 * worst)
    return worst
