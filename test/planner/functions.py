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
