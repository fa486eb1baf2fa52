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
