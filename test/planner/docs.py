#!/usr/bin/python3
"""Tests that the pages say what `shoal plan` says, and writes what it says into them.

Usage: docs.py SHOAL [--write]

A figure in a page is followed by a comment that tells where it comes from, and that no reader sees:
    16.33 GB/s<!-- checkpoint params=70B target=60s: bandwidth_needed -->
    57.6 TB<!-- pretrain-32: size.usable -->          a scenario of share/shoal/scenarios
    66.07 us<!-- latency io_size=4KiB: nvme-tcp.total_low -->      the row of that name
    `lfs setstripe ...`<!-- stripe length=16MiB: lustre_command -->      words
The table of worked examples stands between <!-- examples --> and <!-- end of examples -->.
With --write figures and table become what they should be. The rest is checked in either case: each
`shoal plan` in a block of shell commands works, each file in a block of ini is read, each option
that is named exists, each model, each function of a formula and each key of the data files is told
of.

Prints a line for each failure and `N passed, N failed` at the end; exit status 1 on a failure.
"""

import configparser
import functools
import glob
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

import plan
from functions import FUNCTIONS
from run import Tally, all_examples, model_names

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SHARE = os.path.join(ROOT, "share", "shoal")
PAGE = os.path.join(ROOT, "docs", "concepts", "planner.md")
DATA_PAGE = os.path.join(ROOT, "docs", "reference", "planner-data.md")
UNITS = (r"%|million|billion|trillion|[kMGTPE]?B(?:/s)?(?:/TiB)?|[mun]?s(?:/GB)?|"
         r"min|h|d|y|m")
FIGURE = re.compile(
    r"(`[^`\n]*`|\$?\d[\d.,]*(?:e-?\d+)?[kMGT]?(?:/[A-Za-z]+)*(?: (?:" + UNITS + r"))?)"
    r"<!-- ([^<>]*?): ([\w-]+(?:\.[\w-]+)?) -->")
TABLE = re.compile(r"(<!-- examples -->\n).*?(<!-- end of examples -->)", re.DOTALL)
# These go on until they are ended, or write a file.
LEFT_OUT = ("--serve", "--html")


def pages():
    found = glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
    return sorted(found) + [os.path.join(ROOT, "README.md")]


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Figures:
    """What the program says, each command run once."""

    def __init__(self, shoal):
        self.shoal = shoal

    @functools.cache
    def answer(self, where):
        words = shlex.split(where)
        scenario = os.path.join(SHARE, "scenarios", words[0] + ".ini")
        if os.path.exists(scenario):
            return json.loads(plan.call(self.shoal, ["--from", scenario, "--json"]))["models"]
        options = [word for part in words[1:]
                   for word in ("--" + part.split("=", 1)[0], part.split("=", 1)[1])]
        return [plan.plan(self.shoal, [words[0]] + options)]

    def text(self, where, what):
        """The figure or input as it is shown; KeyError when there is none of that name."""
        models = self.answer(where)
        row, _, name = what.rpartition(".")
        for model in models:
            if len(models) > 1 and model["model"] != row:
                continue
            for entry in model["inputs"]:
                if entry["name"] == name:
                    return entry["text"]
            first = model["outputs"][0]["name"]
            for figures in model["rows"]:
                if not row or len(models) > 1 or figures[first]["value"] == row:
                    return figures[name]["text"]
        raise KeyError(what)


def with_figures(text, figures, tell):
    """The text with every figure as it should be; tell(what is wrong or None) for each."""
    def replaced(match):
        old, where, what = match.groups()
        try:
            new = figures.text(where, what)
        except (plan.Refused, KeyError, IndexError) as error:
            tell(f"{where}: {what}: {type(error).__name__} {error}")
            return match.group(0)
        new = f"`{new}`" if old.startswith("`") else new
        tell(f"{where}: {what} is {new}, not {old}" if new != old else None)
        return new + match.group(0)[len(old):]
    return FIGURE.sub(replaced, text)


def escaped(text):
    return re.sub(r"([|*<])", r"\\\1", " ".join(text.split()))


def table():
    lines = ["| | commonly claimed | right | model |", "|---|---|---|---|"]
    for row in all_examples():
        name = row["run"].split()[0]
        lines.append(f"| {row['number']} | {escaped(row['claimed'])} | {escaped(row['right'])} | "
                     f"[{name}](#{name}) |")
    return "\n".join(lines) + "\n"


def check_figures(shoal, write, tally):
    figures = Figures(shoal)
    count = 0
    for path in pages():
        name = os.path.relpath(path, ROOT)
        old = text_of(path)
        wrong = []

        def tell(problem, name=name, wrong=wrong):
            if problem:
                wrong.append(f"{name}: {problem}")
            else:
                tally.check(True, "")

        new = with_figures(old, figures, tell)
        count += len(FIGURE.findall(old))
        if path == PAGE:
            tables = len(TABLE.findall(new))
            tally.check(tables == 1, f"{name}: {tables} places for the table of examples")
            whole = TABLE.sub(lambda match: match.group(1) + table() + match.group(2), new)
            if whole != new:
                wrong.append(f"{name}: the table of examples differs: docs.py SHOAL --write")
            new = whole
        # A comment that FIGURE does not match would never be checked.
        loose = [line for line in new.splitlines()
                 if len(re.findall(r"<!-- [^<>]*: [\w.-]+ -->", line)) != len(FIGURE.findall(line))]
        tally.check(not loose, f"{name}: no figure in front of a comment: {loose}")
        if write and new != old:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
            wrong = [problem for problem in wrong if "Error" in problem or "Refused" in problem]
        for problem in wrong:
            tally.check(False, problem)
    tally.check(count > 50, f"the pages have {count} figures only")


def check_commands(shoal, tally):
    count = 0
    for path in pages():
        for block in re.findall(r"^```sh\n(.*?)^```", text_of(path), re.DOTALL | re.MULTILINE):
            for line in block.splitlines():
                if not line.startswith("shoal plan ") or any(word in line for word in LEFT_OUT):
                    continue
                count += 1
                words = shlex.split(line, comments=True)
                done = subprocess.run([shoal] + words[1:], cwd=ROOT, capture_output=True,
                                      text=True, check=False)
                tally.check(done.returncode == 0 or done.returncode == 3 and words[2] == "run",
                            f"{os.path.relpath(path, ROOT)}: {line}: {done.stderr.strip()}")
    tally.check(count > 10, f"the pages have {count} commands only")


ANSWER = re.compile(r"(```sh\n(shoal plan run [^\n]*)\n```\n\n```text\n)(.*?)(```)", re.DOTALL)
OPTIONS_MOST = 8
LINES_MOST = 25


FEATURES = re.compile(r"(<!-- features -->\n).*?(<!-- end of features -->)", re.DOTALL)


def features(shoal):
    """The table of systems by feature, of those whose features a source was read for."""
    names = ("best_scale", "metadata_logic", "small_file_speed", "operation")
    rows = [row for row in plan.plan(shoal, ["systems"])["rows"]
            if row["best_scale"]["value"] != "unknown"]
    lines = ["| | " + " | ".join(row["title"]["value"] for row in rows) + " |",
             "|---" * (len(rows) + 1) + "|"]
    for name in names:
        lines.append(f"| {name.replace('_', ' ')} | " +
                     " | ".join(row[name]["value"] for row in rows) + " |")
    return "\n".join(lines) + "\n"


def check_features(shoal, write, tally):
    text = text_of(PAGE)
    new = FEATURES.sub(lambda match: match[1] + features(shoal) + match[2], text)
    tally.check(len(FEATURES.findall(text)) == 1, f"{PAGE}: no place for the table of features")
    tally.check(write or new == text, f"{PAGE}: the table of features: docs.py SHOAL --write")
    if write and new != text:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(new)


def check_answers(shoal, write, tally):
    """Each `shoal plan run` in the pages says what stands below it, in so many lines."""
    text = text_of(PAGE)
    answers = 0

    def replaced(match):
        nonlocal answers
        answers += 1
        words = shlex.split(match[2])
        done = subprocess.run([shoal] + words[1:], cwd=ROOT, capture_output=True, text=True,
                              check=False)
        again = subprocess.run([shoal] + words[1:], cwd=ROOT, capture_output=True, text=True,
                               check=False)
        lines = done.stdout.splitlines()
        tally.check(done.returncode in (0, 3), f"{match[2]}: {done.returncode} {done.stderr}")
        tally.check(done.stdout == again.stdout, f"{match[2]}: says different things")
        tally.check(0 < len(lines) <= LINES_MOST, f"{match[2]}: {len(lines)} lines")
        tally.check(max(map(len, lines), default=0) <= 100, f"{match[2]}: a line is too long")
        tally.check(sum(word.startswith("--") for word in words) <= OPTIONS_MOST,
                    f"{match[2]}: too many options")
        tally.check(write or done.stdout == match[3],
                    f"{PAGE}: the answer to {match[2]} differs: docs.py SHOAL --write")
        result = json.loads(subprocess.run([shoal] + words[1:] + ["--json"], cwd=ROOT, text=True,
                                           capture_output=True, check=False).stdout)
        flat = " ".join(done.stdout.split())
        assumed = [one["text"] for one in result["figures"].values() if one["assumed"]]
        tally.check(flat.count("(assumed)") == len(assumed) and
                    all(f"{one} (assumed)" in flat for one in assumed),
                    f"{match[2]}: assumed values are {assumed}")
        tally.check(flat.startswith(result["level"] + ": "), f"{match[2]}: {result['level']}")
        return match[1] + done.stdout + match[4]

    new = ANSWER.sub(replaced, text)
    if write and new != text:
        with open(PAGE, "w", encoding="utf-8") as file:
            file.write(new)
    tally.check(answers == 4, f"{PAGE}: {answers} answers, not 4")


def check_sample(shoal, tally):
    """What verbs.md shows of the first command is what it prints."""
    path = os.path.join(ROOT, "docs", "reference", "verbs.md")
    section = text_of(path).split("\n## shoal plan\n", 1)[1].split("\n## ", 1)[0]
    command = re.search(r"^```sh\n(.*)$", section, re.MULTILINE)[1]
    sample = re.search(r"^```text\n(.*?)^```", section, re.DOTALL | re.MULTILINE)[1]
    told = plan.call(shoal, shlex.split(command)[2:])
    tally.check(told == sample, f"{path}: {command} prints:\n{told}")


def check_files(shoal, tally):
    """The INI files in the pages: scenarios, and data that a model says that it is for."""
    blocks = [block for path in pages()
              for block in re.findall(r"^```ini\n(.*?)^```", text_of(path),
                                      re.DOTALL | re.MULTILINE)]
    for block in blocks:
        told = re.match(r"; shoal plan (\w+) --data", block)
        with tempfile.NamedTemporaryFile("w", suffix=".ini") as file:
            file.write(block)
            file.flush()
            words = [told[1], "--data", file.name] if told else ["--from", file.name]
            try:
                wrong = "cannot be judged" in plan.call(shoal, words)
            except plan.Refused as error:
                wrong = str(error)
        tally.check(not wrong, f"a file of the pages: {wrong}: {block}")
    tally.check(len(blocks) >= 3, f"the pages have {len(blocks)} files only")


def check_options(shoal, tally):
    """In a model's section an option is its own, of all, or of a model that is linked there."""
    general = set(re.findall(r"--[a-z]+", plan.call(shoal, ["--help"])))
    own = {name: {"--" + entry["name"].replace("_", "-")
                  for entry in plan.plan(shoal, [name])["inputs"]} for name in model_names(shoal)}
    count = 0
    for section in re.split(r"^##+ ", text_of(PAGE), flags=re.MULTILINE):
        title = section.split("\n", 1)[0]
        linked = re.findall(r"\[[^]]*\]\(#(\w+)\)", section)
        models = [title, *linked] if title in own else own
        known = general.union(*(own.get(name, ()) for name in models))
        # Blocks of commands are run, comments are no text of the page.
        text = re.sub(r"^```.*?^```|<!--.*?-->", "", section, flags=re.DOTALL | re.MULTILINE)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text):
            count += 1
            tally.check(option in known, f"{PAGE}: {title}: no option {option}")
    tally.check(count > 10, f"{PAGE} has {count} options only")


def check_names(shoal, tally):
    page = text_of(PAGE)
    for model in model_names(shoal):
        tally.check(f"\n### {model}\n" in page, f"{PAGE}: no section of the model {model}")
    for name in ("data", *FUNCTIONS):
        tally.check(re.search(rf"`{name}[`(]", page), f"{PAGE}: nothing of the function {name}")
    told = text_of(DATA_PAGE)
    for path in sorted(glob.glob(os.path.join(SHARE, "*.ini"))):
        name = os.path.basename(path)
        tally.check(f"{name}" in told, f"{DATA_PAGE}: nothing of {name}")
        reader = configparser.RawConfigParser(delimiters=("=",), comment_prefixes=(";",))
        reader.read(path, encoding="utf-8")
        # The rules of a system may have any name.
        keys = {re.sub("_(h100|a100|b200|mi355|low|high)$", "", key)
                for section in reader.sections()
                if not section.startswith(("about.", "chooser.", "run.", "gpu.", "answer"))
                for key in reader[section]}
        for key in sorted(keys):
            tally.check(f"`{key}" in told, f"{DATA_PAGE}: nothing of {key} in {name}")


def main(arguments):
    tally = Tally()
    shoal = os.path.abspath(arguments[0])
    check_figures(shoal, "--write" in arguments, tally)
    check_answers(shoal, "--write" in arguments, tally)
    check_features(shoal, "--write" in arguments, tally)
    check_commands(shoal, tally)
    check_files(shoal, tally)
    check_sample(shoal, tally)
    check_options(shoal, tally)
    check_names(shoal, tally)
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
