#!/usr/bin/python3
"""Tests of `shoal plan`: worked examples, formulas, properties, bad input.

Usage: run.py SHOAL [PART]...    (all of PARTS by default)

Prints a line for each failure and `N passed, N failed` at the end; exit status 1 on a failure.
"""

import configparser
import csv
import glob
import importlib
import io
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

import plan
from architectures import architectures
from garbage import garbage
from meaning import meaning
from rules import rules
from worked import worked

HERE = os.path.dirname(os.path.abspath(__file__))
SEED = 20261121
DRAWS = 60  # of random inputs for each model


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
    """What is wrong with a worked example, or None. `also` holds further commands and figures."""
    for words, expect in [(row["run"], row["expect"]), *row.get("also", [])]:
        result = plan.plan(shoal, shlex.split(words))
        for name, wanted in expect.items():
            figure = result["rows"][0][name]
            if wanted is None:
                if figure["value"] is not None:
                    return f"{name} is {figure['text']}, and cannot be computed"
            elif isinstance(wanted, str):
                if figure["value"] != wanted:
                    return f"{name} is {figure['value']!r}, not {wanted!r}"
            elif figure["value"] is None or not plan.near(figure["value"], wanted[0], wanted[1]):
                return f"{name} is {figure['text']}, not {wanted[0]}"
    for name, (expression, wanted) in row.get("compute", {}).items():
        value = plan.evaluate(expression, {})
        if value is None or not plan.near(value, wanted, 1e-3):
            return f"{name}: {expression} is {value}, not {wanted}"
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


# What stands behind a base number of each unit.
SUFFIXES = {"1": "", "bytes": "B", "s": "s", "bytes/s": "B/s", "1/s": "/s", "s/byte": "s/B",
            "bytes/s/byte": "B/s/B", "m": "m", "$": "", "$/s": "/s", "$/byte": "/B",
            "$/byte/s": "/B/s"}


def draw(chance, entry):
    """A value for an input near its default, as text; None leaves the default."""
    if chance.random() < 0.3:
        return None
    if entry["kind"] == "points":
        return draw_points(chance)
    if entry["kind"] == "choice":
        return chance.choice(entry["choices"].split("|"))
    unit = SUFFIXES[entry["unit"]]
    value = entry["value"] * 10 ** chance.uniform(-1, 1)
    if entry["value"] == 0:
        value = chance.choice([0, entry["least"], 10 ** chance.uniform(0, 3)])
    value = min(entry["most"], max(entry["least"], value))
    if entry["whole"]:
        value = round(value)
    return ("$" if entry["unit"].startswith("$") else "") + f"{value!r}{unit}"


def check_formulas(result, wrong, words):
    """Compares each figure with its formula; what differs is added to wrong."""
    for index, row in enumerate(result["rows"]):
        names = plan.names_of(result, row)
        for output in result["outputs"]:
            figure = row[output["name"]]
            if not output["formula"]:
                continue
            if output["unit"] == "words":
                wrong += check_words(output, figure, names, words)
                continue
            value = plan.evaluate(output["formula"], names)
            if figure["value"] is None:
                # Both have none, or the number would be too large to be told.
                large = plan.CANNOT + "the number" in figure["text"]
                if value is not None and abs(value) < 1e290 and not large:
                    wrong.append(f"{output['name']} is {figure['text']}, its formula {value}: "
                                 f"shoal plan {shlex.join(words)}")
                continue
            if value is None or not plan.near(value, figure["value"], 1e-9):
                wrong.append(f"formula of {output['name']} gives {value}, the model "
                             f"{figure['value']} (row {index}): shoal plan {shlex.join(words)}")


def check_words(output, figure, names, words):
    """Words are what their formula says; figures in them are checked as outputs."""
    template = plan.evaluate(output["formula"], names)
    if template is None:
        return []
    pattern = "".join(".*" if part.startswith("{") else re.escape(part)
                      for part in re.split(r"(\{\w+[+=?-]?\})", template))
    if re.fullmatch(pattern, figure["value"]):
        return []
    return [f"{output['name']} is \"{figure['value']}\", not \"{template}\": "
            f"shoal plan {shlex.join(words)}"]


def formulas(shoal, tally):
    for model in model_names(shoal):
        chance = random.Random(SEED)
        result = plan.plan(shoal, [model])
        entries = result["inputs"]
        wrong = []
        check_formulas(result, wrong, [model])
        for _ in range(DRAWS):
            words = [model]
            for entry in entries:
                text = draw(chance, entry)
                if text is not None:
                    words += ["--" + entry["name"].replace("_", "-"), text]
            try:
                check_formulas(plan.plan(shoal, words), wrong, words)
            except plan.Refused as error:
                wrong.append(f"{error}: shoal plan {shlex.join(words)}")
        tally.check(not wrong, f"{model}, seed {SEED}: {len(wrong)} wrong, first: {wrong[:1]}")


# Words, and what the one line must say: the option and an example, or what there is.
REFUSALS = [
    ("checkpoint --target 60", ["--target takes a time with its unit", "--target 60s"]),
    ("checkpoint --measured-size '70 G'", ["--measured-size takes a size", "140GB"]),
    ("checkpoint --target -60s", ["--target takes 0 s to", "not -60 s"]),
    ("checkpoint --nodes 0", ["--nodes takes 1 to"]),
    ("checkpoint --nodes 1e300", ["--nodes takes 1 to"]),
    ("checkpoint --params many", ["--params takes a number", "70B"]),
    ("checkpoint --write-bandwidth 20GB", ["--write-bandwidth takes a bandwidth", "20GB/s"]),
    ("checkpoint --efficiency 150%", ["--efficiency takes 0 % to 100 %"]),
    ("checkpoint --mode later", ["--mode takes one of sync|async"]),
    ("checkpoint --mode", ["--mode needs a value"]),
    ("checkpoint --nodes 8 --nodes 9", ["--nodes is given twice"]),
    ("checkpoint --gpus-per-node 8 --gpus_per_node 9", ["--gpus_per_node is given twice"]),
    ("checkpoint --nodes x", ["--nodes takes a number", "for example --nodes 32"]),
    ("cluster --rpc-cost 60s", ["--rpc-cost takes 0 s to 1 s", "for example --rpc-cost 1s"]),
    ("checkpoint --nope 1", ["checkpoint has no option --nope"]),
    ("'check\npoint'", ["no model \"check?point\""]),
    ("checkpoint nodes=8", ["not nodes=8"]),
    ("checkpoint metadata", ["one model"]),
    ("checkpoint --json --csv", ["--json or --csv"]),
    ("checkpoint --sweep nodes", ["--sweep nodes", "for example"]),
    ("checkpoint --sweep nodes=1..2:1", ["number of steps"]),
    ("checkpoint --sweep nodes=0..2:5", ["out of range, which is 1 to 1,000,000",
                                         "--sweep nodes=32..64:10"]),
    ("--version", ["there is no option --version"]),
    ("--from /dev/null", ["/dev/null sets nothing", "[common] params = 70B"]),
    ("run --from /dev/null", ["run needs what it is to answer"]),
    ("checkpoint --data /nowhere.ini", ["/nowhere.ini cannot be read"]),
    ("checkpoint" + 17 * " --data /dev/null", ["one file too many, 16 are allowed"]),
    ("scaling --points " + ",".join(f"{x}:1" for x in range(1, 66)), ["takes 64 points at most"]),
    ("checkpoint --calibration /nowhere", ["/nowhere cannot be read"]),
    ("cost --gpu-price 4.62", ["--gpu-price takes an amount in $", "$4.62/h"]),
    ("checkpont", ["no model \"checkpont\""]),
    ("--json", ["say one of a model"]),
    ("--from /nowhere.ini", ["/nowhere.ini cannot be read"]),
    ("--from /", ["cannot be read"]),
    ("--from /nowhere.ini --html y", ["/nowhere.ini cannot be read"]),
    ("checkpoint --target=60", ["--target takes a time"]),
    ("checkpoint --from /nowhere.ini", ["/nowhere.ini cannot be read"]),
    ("--html /nowhere/x", ["/nowhere/x cannot be written"]),
    ("--html /", ["/ is there already"]),
    ("--html x --json", ["takes no further options"]),
    ("--serve nowhere", ["--serve takes ADDR:PORT", "127.0.0.1:8080"]),
    ("--serve 127.0.0.1:99999", ["--serve takes ADDR:PORT"]),
    ("--serve 127.0.0.1:", ["--serve takes ADDR:PORT"]),
    ("--serve [::1", ["--serve takes ADDR:PORT"]),
    ("--serve 192.0.2.1:80", ["192.0.2.1:80 cannot be listened at: others could reach it",
                             "--serve 127.0.0.1:8080"]),
    ("--serve 192.0.2.1:80 --listen-anywhere", ["192.0.2.1:80 cannot be listened at: the address "
                                               "is not of this machine", "127.0.0.1:8080"]),
    ("checkpoint --nodes 1.5", ["--nodes takes a whole number, not 1.5: for example --nodes 2"]),
    ("checkpoint --shards 0.3", ["--shards takes a whole number"]),
    ("size --copies 2.5", ["--copies takes a whole number"]),
    ("size --data-shards 8.5", ["--data-shards takes a whole number"]),
    ("size --storage-nodes 10.5", ["--storage-nodes takes a whole number"]),
    ("run", ["run needs what it is to answer", "--params 70B --gpus 256"]),
    ("run --gpus 1.5", ["--gpus takes a whole number", "--gpus 256"]),
    ("run --gpus x", ["--gpus takes a whole number"]),
    ("run --nope 1", ["run has no option --nope", "--params 70B"]),
    ("run --params many --gpus 8", ["--params takes a number", "70B"]),
    ("run --gpus 8 --system nowhere", ["--system takes one of", "nowhere"]),
    ("run --gpus 8 --sweep nodes=1..2:2", ["--sweep is for a model"]),
    ("run --gpus 8 --explain nope", ["no model has a figure nope", "best_daly"]),
    ("checkpoint --explain nope", ["checkpoint has no figure nope"]),
    ("checkpoint --emit", ["--emit for run"]),
    ("--serve 0 --target 60s", ["takes no further options"]),
]
# Text of a scenario, and what the one line must say.
SCENARIOS = [
    ("nodes = 8", ["stands in no section"]),
    ("[checkpoint]\nnodes 8", ["line 2"]),
    ("[common]\nparams = 70B\n[checkpoint\nnodes = 8", ["line 3 begins a section", "[checkpoint]"]),
    ("[]\nnodes = 8", ["line 1 begins a section"]),
    ("[about.scenario]\ntitle = nothing", ["sets nothing"]),
    ("[checkpoint]\nnodes =", ["for example [checkpoint] nodes = 32"]),
    ("[checkpoint]\nnodes = 1.5", ["[checkpoint] nodes takes a whole number, not 1.5"]),
    ("[checkpoint]\nnodes = 8\nnodes = 9", ["twice"]),
    ("[checkpont]\nnodes = 8", ["no model \"checkpont\""]),
    ("[checkpoint]\nnoses = 8", ["no input \"noses\""]),
    ("[common]\nnoses = 8", ["no input \"noses\""]),
    ("[checkpoint]\ntarget = 60", ["[checkpoint] target takes a time"]),
    ("[checkpoint]\ntarget = =size", ["is no figure"]),
    ("[checkpoint]\nrestart = =checkpoint.recovery", ["circle that does not settle"]),
    ("[checkpoint]\ntarget = =checkpoint.size", ["takes a time", "checkpoint.size is a size"]),
    ("[checkpoint]\nwrite_bandwidth = size.write_bandwidth", ["by a second =: write_bandwidth ="]),
    ("[checkpoint]\nwrite_bandwidth = 0GB/s\n[loading]\ncheckpoint_stall = =checkpoint.stall",
     ["cannot be computed: the bandwidth is zero"]),
    ("[checkpoint]\nnodes = 8\0", ["zero byte"]),
    ("[checkpoint]\nnodes = " + "8" * 2000, ["line 2 is longer than"]),
    ("[check\x1b[31mpoint]\nnodes = 8", ["no model \"check?[31mpoint\""]),
    (";" + "c" * 198 + "[checkpoint]\nnodes = 99", ["line 1 is longer than"]),
    ("[checkpoint]\ntarget = =loading.useful",
     ["target takes a time", "loading.useful is a share"]),
    ("x" * 1100000, ["cannot be read"]),
]
DATA = [
    ("[price]\nh200_spot = $2/h", ["there is no [price] h200_spot"]),
    ("[prices]\nh200_spott = $2/h", ["there is no [prices] h200_spott"]),
    ("[prices]\nh200_spot = 2", ["h200_spot takes an amount in $"]),
]
CALIBRATIONS = [
    ("", ["is not what"]), ("{}", ["is not what"]), ("[]", ["is not what"]),
    ("[1]", ["is not what"]),
    ("[{\"name\": \"create\"}]", ["is not what"]),
    ("[{\"name\": \"create\", \"ops_per_s\": -1}]", ["is not what"]),
    ("[" * 100000, ["is not what"]),
]


def check_refusal(shoal, tally, words, parts):
    """One line on standard error with these parts, exit 1 or 2, nothing on standard output."""
    run = subprocess.run([shoal, "plan"] + words, capture_output=True, text=True, check=False,
                         timeout=60)
    good = run.returncode in (1, 2) and run.stdout == "" and run.stderr.count("\n") == 1 and \
        run.stderr.startswith("shoal plan: ") and all(part in run.stderr for part in parts)
    tally.check(good, f"refusal of {shlex.join(words)[:80]}: {run.returncode} {run.stderr[:300]!r}")


def refusals(shoal, tally):
    for words, parts in REFUSALS:
        check_refusal(shoal, tally, shlex.split(words), parts)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "file")
        for option, rows in (("--from", SCENARIOS), ("--data", DATA),
                             ("--calibration", CALIBRATIONS)):
            for text, parts in rows:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                words = [option, path] + {"--from": [], "--data": ["cost"],
                                          "--calibration": ["cluster"]}[option]
                check_refusal(shoal, tally, words, parts)


def outputs(shoal, tally):
    """Lines, JSON and CSV say the same; sweeps end where they should; nothing is inf or nan."""
    for model in model_names(shoal):
        result = plan.plan(shoal, [model])
        lines = plan.call(shoal, [model, "--explain"])
        rows = list(csv.DictReader(io.StringIO(plan.call(shoal, [model, "--csv"]))))
        tally.check(len(rows) == len(result["rows"]), f"{model}: rows of CSV and JSON")
        for output in result["outputs"]:
            unit = output["unit"]
            head = output["name"] + ("" if unit in ("1", "words") else f" [{unit}]")
            for row, figures in zip(rows, result["rows"]):
                figure = figures[output["name"]]
                value = row[head] if unit == "words" else \
                    figure["value"] if figure["value"] is None else float(row[head])
                if value != figure["value"] or figure["text"] not in lines:
                    tally.check(False, f"{model}.{output['name']}: {row[head]}, {figure}")
        number = next(entry for entry in result["inputs"] if entry["kind"] == "number")
        ends = plan.plan(shoal, [model, "--sweep", f"{number['name']}="
                                 f"{exact(number, 'least')}..{exact(number, 'most')}:5"])["rows"]
        got = [row[number["name"]]["value"] for row in ends]
        tally.check(got[0] == number["least"] and got[-1] == number["most"],
                    f"{model}: a sweep from {got[0]} to {got[-1]}")
    piped = subprocess.run([shoal, "plan", "--from", "/dev/stdin"], capture_output=True, text=True,
                           input="[checkpoint]\nnodes = 77\n", check=False, timeout=60)
    tally.check("nodes=77" in piped.stdout, f"a scenario from a pipe: {piped.stderr}")


def exact(entry, key):
    sign = "$" if entry["unit"].startswith("$") else ""
    return f"{sign}{entry[key]!r}{SUFFIXES[entry['unit']]}"


def calibration(shoal, tally):
    """Rates of this machine take the place of the shipped costs."""
    files = [[{"name": "open", "threads": 1, "ops_per_s": 1000.0, "mb_per_s": 0},
              {"name": "read", "threads": 1, "ops_per_s": 1000.0, "mb_per_s": 1048.576}],
             [{"name": "read", "threads": 1, "ops_per_s": 8000.0, "mb_per_s": 80},
              {"name": "read", "threads": 8, "ops_per_s": 10000.0, "mb_per_s": 100}],
             [{"name": "read", "threads": 8, "ops_per_s": 4000.0, "mb_per_s": 160}]]
    words = ["cluster"]
    with tempfile.TemporaryDirectory() as folder:
        for index, rows in enumerate(files):
            path = os.path.join(folder, f"bench-{index}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(rows, file)
            words += ["--calibration", path]
        result = plan.plan(shoal, words)
    values = {entry["name"]: entry["value"] for entry in result["inputs"]}
    told = {entry["name"]: entry.get("source", "") for entry in result["inputs"]}
    tally.check(told["client_read"].startswith("this machine, ") and
                told["client_write"].startswith("docs/benchmarks.md"), f"costs are from {told}")
    cores = os.cpu_count()
    # 10 kB cost cores / 10,000 and 40 kB cores / 4,000.
    slope = cores * (1 / 4000 - 1 / 10000) / 30000
    for name, wanted in (("client_read", cores / 1048.576e6), ("read_byte", slope),
                         ("read_file", cores / 10000 - slope * 10000)):
        tally.check(plan.near(values[name], wanted, 1e-9), f"{name} is {values[name]}")
    shipped = {entry["name"]: entry["value"] for entry in plan.plan(shoal, ["cluster"])["inputs"]}
    tally.check(values["write_byte"] == shipped["write_byte"], "what was not measured stays")


def origins(shoal, tally):
    """A default out of the data files comes with its source and date, a user's price without."""
    for model in model_names(shoal):
        path = os.path.join(HERE, "..", "..", "src", "planner", model + ".def")
        with open(path, encoding="utf-8") as file:
            wanted = set(re.findall(r"^INPUT\((\w+), \w+, \"@", file.read(), re.MULTILINE))
        got = {entry["name"] for entry in plan.plan(shoal, [model])["inputs"]
               if entry.get("source") and entry.get("date")}
        tally.check(got == wanted, f"{model}: sources of {sorted(got ^ wanted)}")
    lines = plan.call(shoal, ["cost", "--explain"])
    tally.check(re.search(r"gpu_price = \$1\.924/h\n +from: quoted .*, 2026-05-18\n", lines),
                "the source of a price is explained")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "prices.ini")
        with open(path, "w", encoding="utf-8") as file:
            file.write("[prices]\nh200_spot = $3/h\ncpu_node = $2/h\n"
                       "[about.prices.cpu_node]\nsource = our offer\n")
        for words in (["--gpu-price", "$3/h"], ["--data", path]):
            entries = {entry["name"]: entry
                       for entry in plan.plan(shoal, ["cost"] + words)["inputs"]}
            tally.check("source" not in entries["gpu_price"],
                        f"a price of {words[0]}: {entries['gpu_price']}")
    tally.check(entries["extra_price"].get("source") == "our offer" and
                "date" not in entries["extra_price"], f"a source: {entries['extra_price']}")


def scenarios(shoal, tally):
    """One model of a scenario, with options over it and swept, is the scenario's."""
    path = os.path.join(HERE, "..", "..", "share", "shoal", "scenarios", "pretrain-32.ini")
    models = plan.plan(shoal, ["--from", path])["models"]
    for model in models:
        one = plan.plan(shoal, [model["model"], "--from", path])
        tally.check(one == model, f"{model['model']} --from is what --from says of it")
    row = plan.plan(shoal, ["checkpoint", "--from", path, "--params=405B", "--sweep",
                            "nodes=32..64:2"])["rows"]
    tally.check([[figures[name]["value"] for name in ("size", "gpus")] for figures in row] ==
                [[5.67e12, 256], [5.67e12, 512]], "options and a sweep over a scenario")


KINDS = ("measured", "vendor", "user", "derived")


def systems(shoal, tally):
    """Each value of a system has its source, date and kind, or is unknown; then nothing is told."""
    path = os.path.join(HERE, "..", "..", "share", "shoal", "systems.ini")
    reader = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=(";",))
    reader.optionxform = str
    reader.read(path, encoding="utf-8")
    names = [name for name in reader.sections() if name.startswith("system.")]
    tally.check(len(names) >= 13, f"{len(names)} systems")
    for name in names:
        for key, value in reader[name].items():
            if key == "name" or value == "unknown":
                continue
            about = f"about.{name}.{key}"
            told = dict(reader[about]) if reader.has_section(about) else {}
            good = told.get("source") and told.get("kind") in KINDS and \
                re.fullmatch(r"\d{4}-\d\d-\d\d", told.get("date", "")) and \
                (told.get("url") or key == "most")
            tally.check(good, f"systems.ini: [{name}] {key} has {told}")
    rows = {row["system"]["value"]: row for row in plan.plan(shoal, ["systems"])["rows"]}
    tally.check(sorted(rows) == sorted(name[7:] for name in names), f"rows: {sorted(rows)}")
    for name, row in rows.items():
        known = reader["system." + name]["write"] != "unknown"
        time = row["checkpoint_time"]
        tally.check((time["value"] is not None) == known and
                    (known or "no source was read" in time["text"]), f"{name}: {time}")
    # Lustre's clients of 4.36 GiB/s, 32 of them, and 980 GB.
    tally.check(plan.near(rows["lustre"]["checkpoint_time"]["value"],
                          980e9 / (32 * 4.36 * 2 ** 30), 1e-9), "time of a checkpoint on Lustre")
    answer = plan.call(shoal, ["run", "--gpus", "256", "--system", "weka"])
    tally.check("system: WEKA" in answer, f"--system weka: {answer}")


def emitted(shoal, tally):
    """What --emit prints is taken by the verbs' own parsers: they fail at the paths only."""
    lines = plan.call(shoal, ["run", "--params", "70B", "--gpus", "256", "--emit"]).splitlines()
    tally.check(len(lines) == 2 and lines[0].startswith("shoal up "), f"--emit: {lines}")
    for line in lines:
        words = [word.replace("/var/lib/", "/proc/nowhere/").replace("/mnt/", "/proc/nowhere/")
                 for word in shlex.split(line)]
        run = subprocess.run([shoal] + words[1:], capture_output=True, text=True, check=False,
                             timeout=60)
        tally.check(run.returncode == 1 and "usage" not in run.stderr,
                    f"--emit: {line}: {run.returncode} {run.stderr}")
        broken = subprocess.run([shoal] + words[1:] + ["--nope"], capture_output=True, text=True,
                                check=False, timeout=60)
        tally.check(broken.returncode == 2, f"--emit: {line} --nope: {broken.returncode}")


def answers(shoal, tally):
    """Exit status, the same names in JSON, what is explained and what is not used."""
    short = ["run", "--params", "405B", "--gpus", "256", "--storage-nodes", "4"]
    run = subprocess.run([shoal, "plan"] + short, capture_output=True, text=True, check=False)
    tally.check(run.returncode == 3 and run.stdout.startswith("short: "), f"short: {run}")
    run = subprocess.run([shoal, "plan"] + short + ["--json"], capture_output=True, text=True,
                         check=False)
    result = json.loads(run.stdout)
    tally.check(run.returncode == 3 and result["level"] == "short" and
                result["figures"]["size.nodes_needed" if "size.nodes_needed" in result["figures"]
                                  else "size.storage_nodes"]["value"] is not None,
                f"short as JSON: {result['level']}")
    told = plan.call(shoal, ["run", "--gpus", "256", "--copies", "3", "--protection", "none"])
    tally.check("not used: --copies (protection is none)" in told, f"unused in run: {told}")
    told = plan.call(shoal, ["run", "--gpus", "256", "--explain", "best_daly"])
    tally.check(told.startswith("checkpoint.best_daly: ") and "source: Daly" in told,
                f"explained: {told}")
    # Options go over the file, also where it says something of one model, or in other words.
    path = os.path.join(HERE, "..", "..", "share", "shoal", "scenarios", "production-128.ini")
    told = json.loads(plan.call(shoal, ["run", "--from", path, "--file-count", "5M", "--gpus",
                                        "512", "--json"]))["figures"]
    tally.check(told["size.file_count"]["value"] == 5e6, f"files: {told['size.file_count']}")
    told = plan.call(shoal, ["run", "--from", path, "--gpus", "512", "--explain", "gpus"])
    tally.check("checkpoint.gpus: GPUs of the job: 512" in told, f"GPUs over a file: {told}")
    # The best interval is the one whose own best it is, also where the drain is what binds.
    told = plan.call(shoal, ["run", "--params", "405B", "--gpus", "1024", "--write-bandwidth",
                             "4GB/s", "--read-bandwidth", "4GB/s", "--explain",
                             "checkpoint.best_daly"])
    tally.check("23.61 min" in told, f"a drain that binds: {told}")
    one = plan.call(shoal, ["run", "--gpus", "256", "--all"])
    for model in model_names(shoal):
        tally.check(f"\n{model}: " in one, f"--all has no {model}")


PARTS = {"examples": examples, "formulas": formulas, "outputs": outputs, "refusals": refusals,
         "calibration": calibration, "origins": origins, "scenarios": scenarios,
         "architectures": architectures, "rules": rules, "meaning": meaning,
         "systems": systems,
         "emitted": emitted, "answers": answers, "worked": worked, "garbage": garbage}


def main(arguments):
    tally = Tally()
    for name in arguments[1:] or PARTS:
        PARTS[name](arguments[0], tally)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
