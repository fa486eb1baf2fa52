#!/usr/bin/python3
"""Tests of `shoal plan`: worked examples, formulas, properties, bad input.

Usage: run.py SHOAL [PART]...    (all of PARTS by default)

Prints a line for each failure and `N passed, N failed` at the end; exit status 1 on a failure.
"""

import glob
import importlib
import os
import random
import shlex
import sys

import plan
from architectures import architectures
from rules import rules

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 20261121


class Tally:
    def __init__(self):
        self.passed = 0
        self.failed = 0

    def check(self, good, message):
        if good:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {message}")


def all_examples():
    """The examples of every file, by number."""
    rows = []
    for path in sorted(glob.glob(os.path.join(HERE, "examples_*.py"))):
        rows += importlib.import_module(os.path.basename(path)[:-3]).EXAMPLES
    return sorted(rows, key=lambda row: row["number"])


def check_example(shoal, row):
    """What is wrong with a worked example, or None."""
    if row.get("run"):
        result = plan.plan(shoal, shlex.split(row["run"]))
        for name, wanted in row["expect"].items():
            figure = result["rows"][row.get("row", 0)][name]
            if isinstance(wanted, str):
                if figure["value"] != wanted:
                    return f"{name} is {figure['value']!r}, not {wanted!r}"
            elif figure["value"] is None or not plan.near(figure["value"], wanted[0], wanted[1]):
                return f"{name} is {figure['text']}, not {wanted[0]}"
    for name, (expression, wanted) in row.get("compute", {}).items():
        value = plan.evaluate(expression, {})
        if value is None or not plan.near(value, wanted, 1e-3):
            return f"{name}: {expression} is {value}, not {wanted}"
    if not row.get("run") and not row.get("compute"):
        return "neither a run nor a computation"
    return None


def examples(shoal, tally):
    rows = all_examples()
    numbers = [row["number"] for row in rows]
    tally.check(numbers == list(range(1, 59)),
                f"examples: 1 to 58 each once; missing {sorted(set(range(1, 59)) - set(numbers))}, "
                f"twice {sorted(n for n in set(numbers) if numbers.count(n) > 1)}")
    for row in rows:
        try:
            wrong = check_example(shoal, row)
        except (plan.Refused, KeyError, IndexError) as error:
            wrong = f"{type(error).__name__} {error}"
        tally.check(not wrong, f"example {row['number']}: {wrong}")


def model_names(shoal):
    lines = plan.call(shoal, ["--help"]).split("Models;", 1)[1].splitlines()[1:]
    return [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]


def draw_points(chance):
    """Measured throughput of more and more clients, with some error; None: no points."""
    share, growth = chance.uniform(0, 0.1), chance.uniform(1.5, 4)
    counts = [max(1, round(growth ** i)) for i in range(chance.randrange(7))]
    return ",".join(f"{n}:{20 * n / (1 + share * n) * chance.uniform(0.8, 1.2):.15g}"
                    for n in counts) or None


def draw(chance, entry):
    """A value for an input near its default, as text; None leaves the default."""
    if chance.random() < 0.3:
        return None
    if entry["kind"] == "points":
        return draw_points(chance)
    if entry["kind"] == "choice":
        return chance.choice(entry["choices"].split("|"))
    unit = {"1": "", "bytes": "B", "s": "s", "bytes/s": "B/s", "1/s": "/s", "s/byte": "s/B",
            "bytes/s/byte": "B/s/B", "m": "m", "$": "", "$/s": "/s", "$/byte": "/B",
            "$/byte/s": "/B/s"}[entry["unit"]]
    value = entry["value"] * 10 ** chance.uniform(-1, 1)
    if entry["value"] == 0:
        value = chance.choice([0, entry["least"], 10 ** chance.uniform(0, 3)])
    if entry["integral"]:
        value = round(value)
    value = min(entry["most"], max(entry["least"], value))
    return ("$" if entry["unit"].startswith("$") else "") + f"{value!r}{unit}"


def check_formulas(result, tally, words):
    for index, row in enumerate(result["rows"]):
        names = plan.names_of(result, row)
        for output in result["outputs"]:
            figure = row[output["name"]]
            if not output["formula"] or figure["value"] is None:
                continue
            value = plan.evaluate(output["formula"], names)
            tally.check(value is not None and plan.near(value, figure["value"], 1e-9),
                        f"formula of {output['name']} gives {value}, the model "
                        f"{figure['value']} (row {index}): shoal plan {shlex.join(words)}")


def formulas(shoal, tally):
    for model in model_names(shoal):
        chance = random.Random(SEED)
        result = plan.plan(shoal, [model])
        forms = describe(shoal, model, result)
        check_formulas(result, tally, [model])
        for _ in range(60):
            words = [model]
            for entry in forms:
                text = draw(chance, entry)
                if text is not None:
                    words += ["--" + entry["name"].replace("_", "-"), text]
            try:
                check_formulas(plan.plan(shoal, words), tally, words)
            except plan.Refused as error:
                tally.check(False, f"seed {SEED}: {error}: shoal plan {shlex.join(words)}")


def describe(shoal, model, result):
    """The inputs with choices and ranges."""
    del shoal, model
    for entry in result["inputs"]:
        entry["integral"] = entry["kind"] == "number" and entry["unit"] == "1" and \
            entry["value"] == int(entry["value"])
    return result["inputs"]


PARTS = {"architectures": architectures, "rules": rules,
         "examples": examples, "formulas": formulas}


def main(arguments):
    tally = Tally()
    for name in arguments[1:] or PARTS:
        PARTS[name](arguments[0], tally)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
