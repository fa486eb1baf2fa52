"""Calls `shoal plan` and evaluates its formulas; what the tests of the planner share."""

import json
import math
import subprocess

import shipped
from functions import FUNCTIONS

CANNOT = "cannot be computed: "


class Refused(Exception):
    """The command said no; its one line is the message."""


def call(shoal, words):
    run = subprocess.run([shoal, "plan"] + words, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        raise Refused(run.stderr.strip())
    return run.stdout


def plan(shoal, words):
    return json.loads(call(shoal, words + ["--json"]))


def points(text):
    return [tuple(float(part) for part in point.split(":")) for point in text.split(",") if point]


def names_of(result, row):
    """Names that a formula may use, with their values; figures without a value are left out."""
    names = {}
    for entry in result["inputs"]:
        names[entry["name"]] = points(entry["value"]) if entry["kind"] == "points" \
            else entry["value"]
    for name, figure in row.items():
        if figure["value"] is not None:
            names[name] = figure["value"]
    return names


def evaluate(formula, names, data=None):
    """The formula's value, or None where it has none: a division by 0, a figure that has none."""
    # A comprehension sees globals only, so all names are given as such.
    scope = {"__builtins__": {}, **FUNCTIONS, **names}
    scope["data"] = data or shipped.data
    scope["lacks"] = lambda name: name not in names
    try:
        value = eval(formula, scope)  # pylint: disable=eval-used
    except (ZeroDivisionError, OverflowError, NameError, ValueError):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, complex) or not math.isfinite(value):
        return None
    return value


def near(one, other, tolerance):
    return math.isclose(one, other, rel_tol=tolerance, abs_tol=1e-300) or one == other
