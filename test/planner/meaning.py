"""Tests of meaning: not that the C is its formula, but that the answer is right.

The figures of the first part come from calculations of their own, not from the planner's formulas.
"""

import json
import math
import random
import re
import shlex
import subprocess

import plan

SEED = 20261122
INPUTS = 500
GRID = 10000

# A command, and figures that were computed apart from the planner: (value, tolerance).
ASYNC = "checkpoint --mode async --params 405B --nodes 128 --write-bandwidth 4GB/s " \
    "--read-bandwidth 4GB/s"
HUGE = "checkpoint --params 1T --nodes 12500 --write-bandwidth 300GB/s --read-bandwidth 300GB/s"
PLAIN = "cost --capacity 10PB --raw-per-usable 1.5 --setup $2000000 " \
    "--running-costs $20000/month --idle-before 10% --idle-after 3.5%"
FILES = "loading --workload custom --custom-size 50KiB --custom-rate 1786/s --samples-per-file 1 " \
    "--read-bandwidth 100GB/s"
REBUILD = "rebalance --servers 128 --targets 128 --target-used 0.6TB --sources 127 " \
    "--destinations 127 --target-read 6.5GB/s --target-write 3.5GB/s --link 400Gb/s"
BOTH = "size --params 405B --nodes 128 --read-needed 400GB/s --storage-nodes 16 " \
    "--drives-per-node 8 --storage-link 400Gb/s"
FIGURES = [
    (ASYNC, {"drain": (1417.5, 1e-4), "best_daly": (1416.6, 1e-3), "best_stall": (0.8859, 1e-3)}),
    ("checkpoint --replicas 8 --deduplicated no", {"recovery": (300 + 8 * 49, 1e-9)}),
    ("checkpoint --replicas 8 --deduplicated no --read-copies 1", {"recovery": (349, 1e-9)}),
    ("checkpoint --replicas 8", {"recovery": (349, 1e-9)}),
    # TCO of $7.81M over three years against GPUs of 256 x $1.924/h x 26,280 h.
    (PLAIN, {"break_even": (0.603, 3e-3), "tco_3": (7.81e6, 2e-3)}),
    (FILES, {"files_per_second": (457216, 1e-9), "metadata_targets_needed": (23, 0)}),
    (REBUILD + " --read-per-byte 16", {"resync": (16 * 0.6e12 / (127 * 6.5e9), 1e-9)}),
    (REBUILD, {"resync": (0.6e12 / (127 * 3.5e9), 1e-9)}),
    (BOTH, {"nodes_needed": (10, 0)}),
    (BOTH + " --mode async", {"nodes_for_reading": (10, 0), "nodes_for_bandwidth": (4, 0),
                              "nodes_needed": (14, 0)}),
    # Pollaczek-Khinchine: 2 GB/s of each node's 10 GB/s in transfers of 4 MiB, all of one size.
    ("metadata --file-rate 0/s", {"colocated_wait": (0.2 / 0.8 * (4 * 2 ** 20 / 1e10) / 2, 1e-9)}),
    ("metadata --file-rate 0/s --transfer-variation 1",
     {"colocated_wait": (0.2 / 0.8 * (4 * 2 ** 20 / 1e10), 1e-9)}),
]
# A command, and what its verdict says.
VERDICTS = [
    (ASYNC + " --interval 557.5s", "loses time: the drain takes longer than the interval"),
    (ASYNC + " --interval 23.7min", "tight: "),
    (HUGE + " --restart 20min --interval 12h", "never finishes: "),
    (HUGE + " --restart 20min", "loses time: 27.95 %"),
    ("checkpoint --device-mttf 1ns", "never finishes: "),
    ("checkpoint --target 30s", "target missed: a checkpoint takes 49 s, not 30 s"),
    ("checkpoint --interval 138min", "ok: "),
    (PLAIN, "does not pay: "),
    (FILES, "short: 457,216/s files are opened, which takes 23 metadata targets, not 2"),
    (FILES + " --metadata-targets 0", "ok: loading keeps up; the 457,216/s files opened take 23"),
    ("size --protection none", "ok: "),
    ("size --protection erasure --data-shards 8 --storage-nodes 8",
     "short: the protection takes 10 storage nodes, there are 8: --storage-nodes 10"),
    ("metadata --file-rate 457216/s", "short: "),
]
# A command, and what it says is not used.
UNUSED = [
    ("checkpoint --bytes-per-parameter 2B", "--bytes-per-parameter (state is adam-bf16)"),
    ("size --copies 3", "--copies (protection is none)"),
    ("size --data-shards 10", "--data-shards (protection is none)"),
    ("loading --custom-size 50KiB --custom-rate 1786/s", "--custom-size (workload is tokens)"),
    ("checkpoint --params 7B --benchmark mlperf-405b", "--params (benchmark is mlperf-405b)"),
    ("rebalance --copiers 64", "--copiers (via is servers)"),
    ("cost --other-price $1/GB/month", "--other-price (managed_level is 125)"),
    ("checkpoint --replicas 8", "--replicas (deduplicated is yes)"),
    ("checkpoint --interval 3min --sweep interval=1min..1h:3", "--interval (it is swept)"),
]


def first(shoal, command):
    return plan.plan(shoal, shlex.split(command.replace("$", "\\$")))["rows"][0]


def review(shoal, tally):
    """What an independent calculation found, and verdicts that name the worst."""
    for command, figures in FIGURES:
        row = first(shoal, command)
        for name, (wanted, tolerance) in figures.items():
            got = row[name]["value"]
            tally.check(got is not None and math.isclose(got, wanted, rel_tol=tolerance),
                        f"{command}: {name} is {row[name]['text']}, not {wanted}")
    for command, wanted in VERDICTS:
        got = first(shoal, command)["verdict"]["value"]
        tally.check(got.startswith(wanted), f"{command}: the verdict is \"{got}\"")
    for command, wanted in UNUSED:
        text = plan.call(shoal, shlex.split(command.replace("$", "\\$")))
        tally.check(wanted in " ".join(text.split()), f"{command}: not named as unused: {text}")


def useful(inputs, interval):
    """Useful share of a job by Daly's renewal argument, written for this test."""
    copy, drain, mttf, recovery, is_async = inputs
    stall = copy + max(0.0, drain - copy - interval) if is_async else drain
    unsafe = drain if is_async else 0.0
    try:
        whole = mttf * math.exp(recovery / mttf) * math.expm1((interval + stall) / mttf)
    except OverflowError:
        return 0.0
    return interval / (whole * (1 + unsafe / mttf))


def best_interval(shoal, tally):
    """The best interval is the argmax of the useful time, over a grid of 10,000."""
    chance = random.Random(SEED)
    worst = (0, "")
    for number in range(INPUTS):
        mode = chance.choice(["async", "async", "sync"])
        words = ["checkpoint", "--mode", mode,
                 "--params", f"{10 ** chance.uniform(9, 12.3):.6g}",
                 "--nodes", str(round(10 ** chance.uniform(0.5, 4))),
                 "--write-bandwidth", f"{10 ** chance.uniform(9.5, 12.3):.6g}B/s",
                 "--read-bandwidth", f"{10 ** chance.uniform(10.5, 12.3):.6g}B/s",
                 "--buffer-capacity", f"{10 ** chance.uniform(8.5, 12):.6g}B",
                 "--buffer-bandwidth", f"{10 ** chance.uniform(9.5, 11):.6g}B/s"]
        row = plan.plan(shoal, words)["rows"][0]
        inputs = (row["copy"]["value"], row["drain"]["value"], row["job_mttf"]["value"],
                  row["recovery"]["value"], mode == "async")
        best = row["best_daly"]["value"]
        low, high = best / 100, best * 100
        most = max(useful(inputs, low * (high / low) ** (step / (GRID - 1)))
                   for step in range(GRID))
        off = abs(useful(inputs, best) - most)
        worst = max(worst, (off, f"input {number}: {shlex.join(words)}"))
    tally.check(worst[0] <= 1e-3, f"seed {SEED}: the best interval is off by {worst}")


def advice(shoal, tally):
    """Where a verdict ends in an option with a value, taking it makes the verdict better."""
    order = ["never finishes", "does not pay", "target missed", "loses time", "short", "tight",
             "ok"]
    for command, wanted in VERDICTS:
        if wanted.startswith(("ok", "tight")) or "device-mttf" in command:
            continue
        seen = first(shoal, command)["verdict"]["value"]
        told = re.search(r"(--[a-z-]+) (\S+)$", seen)
        if not told:
            continue
        words = shlex.split(command.replace("$", "\\$"))
        if told[1] in words:
            words[words.index(told[1]) + 1] = told[2]
        else:
            words += [told[1], told[2]]
        then = plan.plan(shoal, words)["rows"][0]["verdict"]["value"]
        rank = [order.index(text.split(":")[0]) for text in (seen, then)]
        tally.check(rank[1] > rank[0], f"{command}: \"{seen}\", and then \"{then}\"")


def more_files(shoal, tally):
    """Adding files never lowers the metadata targets."""
    for model, option in (("loading --workload custom --samples-per-file 1", "custom_rate"),
                          ("metadata", "file_rate")):
        rows = plan.plan(shoal, shlex.split(model) + ["--sweep", f"{option}=1/s..1M/s:200log"])
        name = "metadata_targets_needed" if model.startswith("loading") else "targets_needed"
        counts = [row[name]["value"] for row in rows["rows"]]
        tally.check(counts == sorted(counts) and counts[-1] > counts[0],
                    f"{model}: metadata targets are {counts[:3]} ... {counts[-3:]}")


def options_count(shoal, tally):
    """Each option that is given changes a figure or is named as unused."""
    lines = plan.call(shoal, ["--help"]).split("Models;", 1)[1].splitlines()[1:]
    for model in [line.split()[0] for line in lines if re.match(r"  [a-z]", line)]:
        base = plan.plan(shoal, [model])
        for entry in base["inputs"]:
            if entry["kind"] == "points":
                continue
            wrong = changes_nothing(shoal, model, base, entry)
            tally.check(not wrong, f"{model} --{entry['name']}: {wrong}")


def others(entry):
    """Values that differ from the default, as text."""
    if entry["kind"] == "choice":
        return [value for value in entry["choices"].split("|") if value != entry["value"]]
    suffix = {"1": "", "bytes": "B", "s": "s", "bytes/s": "B/s", "1/s": "/s", "s/byte": "s/B",
              "bytes/s/byte": "B/s/B", "m": "m", "$": "", "$/s": "/s", "$/byte": "/B",
              "$/byte/s": "/B/s"}[entry["unit"]]
    sign = "$" if entry["unit"].startswith("$") else ""
    value = entry["value"]
    found = []
    for other in (value * 3.5, value / 3.5, value * 1e4, value / 1e4, value + 1, entry["least"],
                  entry["most"], 1.0, 1e9, 1e12):
        other = min(entry["most"], max(entry["least"], other))
        other = round(other) if entry["whole"] else other
        if other != value and entry["least"] <= other <= entry["most"]:
            found.append(f"{sign}{other!r}{suffix}")
    return found


def changes_nothing(shoal, model, base, entry):
    """What is wrong, or None."""
    for text in others(entry):
        result = plan.plan(shoal, [model, "--" + entry["name"].replace("_", "-"), text])
        told = next(one for one in result["inputs"] if one["name"] == entry["name"])
        if result["rows"] != base["rows"] or "moot" in told:
            return None
    return "changes nothing, and is not named as unused"


def meaning(shoal, tally):
    review(shoal, tally)
    best_interval(shoal, tally)
    advice(shoal, tally)
    more_files(shoal, tally)
    options_count(shoal, tally)
