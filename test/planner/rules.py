"""The shipped rules of the chooser, and rules of users: all are read, none promises too much."""

import os
import tempfile

import plan

# What Shoal does not do yet; where it is asked for, Shoal must be ruled out.
MISSING = {"nodes": "2", "durable": "yes", "snapshots": "yes", "tiering": "yes", "managed": "yes"}
MODEST = {"nodes": "1", "durable": "no", "snapshots": "no", "tiering": "no", "managed": "no",
          "lifetime": "job", "write-needed": "1GB/s"}


def choose(shoal, given, more=()):
    words = [word for name, value in given.items() for word in ("--" + name, value)]
    rows = plan.plan(shoal, ["choose"] + words + list(more))["rows"]
    return {row["system"]["value"]: row for row in rows}


def shipped(shoal, tally):
    rows = choose(shoal, {})
    tally.check(len(rows) >= 10, f"rules: {len(rows)} systems are shipped")
    for name, row in rows.items():
        tally.check(row["verdict"]["value"] != "cannot be judged",
                    f"rules of {name}: {row['ruled_out']['value']}")
    for name, value in MISSING.items():
        row = choose(shoal, {**MODEST, name: value})["Shoal"]
        tally.check(row["verdict"]["value"] == "no" and row["ruled_out"]["value"],
                    f"rules: Shoal is {row['verdict']['value']} with --{name} {value}")
    tally.check(choose(shoal, MODEST)["Shoal"]["verdict"]["value"] != "no",
                "rules: Shoal is ruled out where nothing is asked of it")


def of_users(shoal, tally):
    """A user's file changes, adds and takes away rules; a slip in it is named."""
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "rules.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[chooser.lustre]\nlarge = nods >= 64 : +3 : a slip\n"
                       "[chooser.weka]\nlicence = off\n"
                       "[chooser.ours]\nname = Ours\nknown = nodes < 40 : +9 : we know it\n")
        rows = choose(shoal, {"nodes": "32"}, ["--data", path])
    lustre = rows["Lustre"]
    tally.check(lustre["verdict"]["value"] == "cannot be judged" and
                lustre["score"]["value"] is None and
                lustre["ruled_out"]["value"].startswith("[chooser.lustre] large: no input is"),
                f"rules: a slip gives {lustre}")
    tally.check(next(iter(rows)) == "Ours" and rows["Ours"]["verdict"]["value"] == "fits",
                f"rules: a system of the user is {rows['Ours']}")
    tally.check(rows["WEKA"]["verdict"]["value"] != "no", f"rules: off leaves {rows['WEKA']}")


def rules(shoal, tally):
    shipped(shoal, tally)
    of_users(shoal, tally)
