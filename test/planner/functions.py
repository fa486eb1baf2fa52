"""Functions that formulas of the planner may call, each written from its definition.

The formula that `shoal plan --explain` shows is evaluated with these and compared with the figure.
"""

import configparser
import math
import operator
import os

FUNCTIONS = {
    "min": min, "max": max, "ceil": math.ceil, "floor": math.floor, "sqrt": math.sqrt,
    "exp": math.exp, "log": math.log, "log2": math.log2, "round": round, "len": len, "sum": sum,
}


def named(function):
    """Makes a function known to formulas."""
    FUNCTIONS[function.__name__] = function
    return function


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
