#!/usr/bin/python3
"""Rows of ./dev bench: medians of their runs, their text, their file, and the page made of them.

Usage: figures.py JSON PAGE

Rewrites in PAGE, from what `run.py --json` has written, its table and what is between the two lines
that SUMMARY has (summary.py), and beside PAGE its picture; nothing else in PAGE changes.

A row: {name, value, unit, limit, limit_is, ratio, quartiles, budget, runs, date, commit, channel}.
channel is what requests of our mount came by, /dev/fuse or io_uring, where there was one. runs has
[value, limit] of each run, limit null where there is none; value and limit are their medians, ratio
is the median of the runs' ratios value / limit, so above 1 is better for rates and worse for times
and CPU; quartiles are those of the ratios, from five runs on. A budget is of the ratio where there
is a limit, else of the value; "" is none. Older rows may lack quartiles, date, commit, channel,
or their runs.
"""

import json
import operator
import os
import statistics
import sys

import summary

HEAD = ["| what | figure | limit | limit is | ratio | budget | met | measured |",
        "|---|---|---|---|---|---|---|---|"]
SUMMARY = ("<!-- summary: made by ./dev bench --page -->", "<!-- end of the summary -->")
QUARTILES_RUNS = 5
NEAR = 0.1  # a ratio so close to its bar is looked at again
BOUNDS = {">=": operator.ge, "<=": operator.le}


def row_of(name, unit, pairs, limit_is, budget):
    """pairs: (value, limit) of each run; a limit of None: there is none."""
    limits = [pair[1] for pair in pairs if pair[1] is not None]
    if limits and len(limits) != len(pairs):
        raise ValueError(f"{name}: a run without its limit")
    ratios = [pair[0] / pair[1] for pair in pairs] if limits else []
    return {"name": name, "value": statistics.median(pair[0] for pair in pairs), "unit": unit,
            "limit": statistics.median(limits) if limits else None, "limit_is": limit_is,
            "ratio": statistics.median(ratios) if ratios else None,
            "quartiles": quartiles_of(ratios), "budget": budget,
            "runs": [list(pair) for pair in pairs]}


def quartiles_of(ratios):
    if len(ratios) < QUARTILES_RUNS:
        return None
    first, _, third = statistics.quantiles(ratios, n=4, method="inclusive")
    return [first, third]


def is_met(row):
    """None where there is no budget."""
    if not row["budget"]:
        return None
    bound, number = row["budget"].split()
    return BOUNDS[bound](row["value"] if row["ratio"] is None else row["ratio"], float(number))


def is_near(row):
    """Whether its ratio is so near its bar that more runs are to say on which side."""
    return bool(row["budget"]) and row["ratio"] is not None and \
        abs(row["ratio"] / float(row["budget"].split()[1]) - 1) <= NEAR


def name_of(row):
    """With the channel, unless the name has it."""
    channel = row.get("channel")
    return row["name"] if not channel or f"over {channel}" in row["name"] else \
        f"{row['name']}, over {channel}"


def line_of(row):
    limit = "" if row["limit"] is None else f"{row['limit']:12.4g} {ratio_text(row)}"
    return (f"{name_of(row):44s} {row['value']:12.4g} {row['unit']:9s} {limit:34s} {row['budget']} "
            f"({row['limit_is']})")


def load(path):
    """No file is no rows."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def merged(before, rows):
    """The rows of before, each in its place, and new ones behind. What has a name was measured
    together, beside each of its limits, so all rows of a name over a channel give way to those
    measured anew, whatever their budgets: each to that of the same limit, or to one whose limit is
    told differently, as what a limit is may say what the run met; or it goes. One whose channel was
    not noted is measured again by whichever channel."""
    again = {(name_of(row), row["limit_is"]): row for row in rows}
    names = {name for name, _ in again}
    anyhow = {row["name"]: name_of(row) for row in reversed(rows)}
    had = [(anyhow.get(row["name"], row["name"])
            if "channel" not in row and row["name"] not in names else name_of(row),
            row["limit_is"]) for row in before]
    left = dict(again)
    kept = []
    for key, row in zip(had, before):
        if key[0] not in names:
            kept.append(row)
            continue
        if key not in again:
            key = next((new for new in left if new[0] == key[0] and new not in had), None)
        if key in left:
            kept.append(left.pop(key))
    return kept + list(left.values())


def save(path, rows):
    """A reader finds the rows of before or these, never a part."""
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")
    os.replace(path + ".part", path)


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio_text(row):
    if row["ratio"] is None:
        return "-"
    text = f"{row['ratio']:.2f}"
    if row.get("quartiles"):
        text += " ({:.2f} to {:.2f})".format(*row["quartiles"])
    return text


def cells_of(row):
    met = {None: "-", True: "yes", False: "**no**"}[is_met(row)]
    return [name_of(row), f"{number(row['value'])} {row['unit']}",
            "-" if row["limit"] is None else number(row["limit"]), row["limit_is"] or "-",
            ratio_text(row), row["budget"] or "-", met,
            " ".join(filter(None, (row.get("date"), row.get("commit")))) or "-"]


def table_made(lines, rows):
    if HEAD[0] not in lines:
        raise ValueError("the page has no table of figures")
    first = behind = lines.index(HEAD[0])
    while behind < len(lines) and lines[behind].startswith("|"):
        behind += 1
    table = HEAD + ["| " + " | ".join(cells_of(row)) + " |" for row in rows]
    return lines[:first] + table + lines[behind:]


def summary_made(lines, rows, picture):
    """picture: the name of its file, or None."""
    if not all(mark in lines for mark in SUMMARY):
        raise ValueError("the page has no place for the summary: " + " ... ".join(SUMMARY))
    first, behind = (lines.index(mark) for mark in SUMMARY)
    made = ["", *summary.lines(rows), ""]
    if picture:
        made += [f"![Operations a second through the mount, times {summary.TIMES}]({picture})", ""]
    return lines[:first + 1] + made + lines[behind:]


def page_of(page, rows, picture):
    """The page's text with its table and its summary made anew. ValueError: it lacks one."""
    return "\n".join(table_made(summary_made(page.split("\n"), rows, picture), rows))


def main():
    if len(sys.argv) != 3:
        print("usage: figures.py JSON PAGE", file=sys.stderr)
        return 2
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            rows = json.load(file)
        chart = summary.chart(rows)
        picture = os.path.splitext(sys.argv[2])[0] + ".svg"
        with open(sys.argv[2], encoding="utf-8") as file:
            text = page_of(file.read(), rows, os.path.basename(picture) if chart else None)
    except (OSError, ValueError) as problem:
        print(f"figures.py: {problem}", file=sys.stderr)
        return 1
    except (KeyError, TypeError, AttributeError):
        print(f"figures.py: {sys.argv[1]} holds something else than rows", file=sys.stderr)
        return 1
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(text)
    if chart:
        with open(picture, "w", encoding="utf-8") as file:
            file.write(chart)
    return 0


if __name__ == "__main__":
    sys.exit(main())
