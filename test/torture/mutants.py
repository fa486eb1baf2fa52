#!/usr/bin/env python3
"""Changes one place of the engine at a time, builds the torture with it, and looks whether a seed
breaks: a mutant that survives is a line that no seed looks at.

    mutants.py [COUNT] [--seeds N] [--only TEXT] [--workers N] [--no-units]
               [--list | --again | --survivors]

COUNT mutants (160) are drawn over all files, always the same ones; --only keeps those whose file
and text have TEXT in them. Each is judged in stages, the cheapest first, until one falls: it is
compiled, plays the first seeds, the unit tests of kv and store with a sanitizer, the other seeds.
--no-units leaves the unit tests out, so that it tells what the seeds alone see; what it finds is
kept apart, in results-no-units.
What became of it is kept in build/mutants/results: a run that was cut goes on where it was, and
nothing is judged twice on one tree but with --again; --survivors takes what fell on an earlier
tree for fallen. Those that survive and change nothing that could be seen stand with their reason
in survivors.txt. It succeeds when 95 of 100 fall or stand there."""

import argparse
import hashlib
import json
import os
import queue
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PLACE = os.path.join(ROOT, "build", "mutants")
TREE = os.path.join(PLACE, "tree")
RESULTS = os.path.join(PLACE, "results")
RESULTS_NO_UNITS = os.path.join(PLACE, "results-no-units")
KV = ("changes", "changes_pool", "disk_log", "kv", "kv_admit", "kv_checkpoint", "kv_recover",
      "kv_recover_ring", "kv_sync", "kv_transaction", "kv_warm", "outcomes", "outcomes_table",
      "record", "ring")
STORE = ("small", "small_write", "data_sync", "space", "blocks")
FILES = [f"src/kv/{name}.c" for name in KV] + [f"src/store/{name}.c" for name in STORE]
UNITS = {"kv": ("kv_warm", "kv_base", "kv_limits", "kv_medium", "changes", "kv", "kv_edges"),
         "store": ("blocks", "ost_damage", "ost_waits", "ost", "ost_ring", "ost_faults",
                   "ost_model")}
SANITIZERS = {"ASAN_OPTIONS": "detect_stack_use_after_return=1",
              "UBSAN_OPTIONS": "halt_on_error=1"}
SURVIVORS = os.path.join(ROOT, "test", "torture", "survivors.txt")
SHARE_THAT_FALLS = 0.95
FIRST_ROUNDS = (4, 24)  # up to which seed; the unit tests come behind them
OTHER_ROUNDS = (100, 500)
SEED_S = 1  # processor time of one at the slowest
UNIT_S = 60
SPARE_S = 10
WAITS = 20  # for each second of processor time, on a machine that is busy
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARISON = re.compile(r"(?<=[\w)\]] )(<=|>=|==|!=|<|>)(?= [\w(\-&*!~])")
BOUND = re.compile(r" ([+-]) 1\b(?!\w)")
STATEMENT = re.compile(r"^\s+[\w>.\-\[\]()*&]+(?: [|&+\-*/]?= .*|\(.*\));$")
DECLARATION = re.compile(r"^\s+(?:const |static |struct |enum |uint|int |size_t |bool |char |void "
                         r"|return|break|continue|goto|union |double )")
STORING = re.compile(r"^\s+(?:[\w>.\-\[\]]+ = [^{]*|ring_store\(.*\));$")


class Mutant:
    def __init__(self, path, lines, number, kind, old, new):
        self.path, self.lines, self.number, self.kind = path, lines, number, kind
        self.old, self.new = old, new
        self.again = 1  # which of those that read the same

    def text(self):
        return f"{self.path}: {self.old.strip()} => {self.new.strip()}"

    def name(self):
        """Stays when lines before it come or go."""
        again = f" #{self.again}" if self.again > 1 else ""
        return self.text().replace("\n", "\\n") + again

    def order(self):
        return hashlib.sha256(f"{self.text()} {self.kind}".encode()).hexdigest()

    def whole(self):
        """The file with it."""
        lines = list(self.lines)
        lines[self.number:self.number + self.old.count("\n") + 1] = self.new.split("\n")
        return "\n".join(lines)


def code_lines(text):
    """(number, line) of lines within functions that are no assertion, comment or text."""
    depth = 0
    for number, line in enumerate(text.split("\n")):
        inside = depth > 0
        depth += line.count("{") - line.count("}")
        stripped = line.strip()
        if inside and stripped and not stripped.startswith(("/*", "*", "#", '"', "assert",
                                                            "static_assert", "(void)")):
            yield number, line


def depend(line, after):
    """Two stores whose order may be seen: into the ring, or one of what the other reads."""
    if not (STORING.match(line) and STORING.match(after)) or DECLARATION.match(line) or \
            DECLARATION.match(after):
        return False
    if "ring_store(" in line or "ring_store(" in after:
        return "ring_store(" in line and "ring_store(" in after
    (first, first_of), (second, second_of) = (text.split(" = ", 1) for text in (line, after))
    return first.strip() in second_of or second.strip() in first_of


def mutants_of(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        text = file.read()
    whole = text.split("\n")
    lines = dict(code_lines(text))
    for number, line in lines.items():
        code = line.split(" /*")[0]
        if '"' in code or "BUG(" in code or "counters" in code:
            continue
        for found in COMPARISON.finditer(code):
            turned = code[:found.start()] + TURNED[found.group()] + code[found.end():]
            yield Mutant(path, whole, number, "comparison", line, turned)
        for found in BOUND.finditer(code):
            for instead in ("0", "2"):
                yield Mutant(path, whole, number, "bound", line,
                             f"{code[:found.start()]} {found.group(1)} {instead}"
                             f"{code[found.end():]}")
        if STATEMENT.match(code) and not DECLARATION.match(code):
            yield Mutant(path, whole, number, "gone", line, ";")
        after = lines.get(number + 1)
        if after and depend(line, after):
            yield Mutant(path, whole, number, "swapped", f"{line}\n{after}", f"{after}\n{line}")


def draw(count):
    """From each file as many as it has of all, the first by a hash."""
    by_file = {path: sorted(mutants_of(path), key=Mutant.order) for path in FILES}
    total = sum(len(mutants) for mutants in by_file.values())
    drawn = []
    for mutants in by_file.values():
        times = {}
        for mutant in mutants:
            mutant.again = times[mutant.text()] = times.get(mutant.text(), 0) + 1
        drawn += mutants[:max(2, round(count * len(mutants) / total))]
    return drawn, total


def copy_tree():
    """What is tracked or new here, as it is; answers what it is of, but for pages and notes."""
    listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT,
                            stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
    sources = [name for name in sorted(set(listed)) if os.path.isfile(os.path.join(ROOT, name))]
    whole = hashlib.sha256()
    for name in sources:
        with open(os.path.join(ROOT, name), "rb") as file:
            content = file.read()
        if name.startswith(("src/", "test/torture/", "test/unit/")) and name.endswith((".c", ".h")):
            whole.update(name.encode() + b"\0" + content)
        target = os.path.join(TREE, name)
        if os.path.isfile(target):
            with open(target, "rb") as file:
                if file.read() == content:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(ROOT, name), target)
    for folder, _, names in os.walk(TREE):
        for name in names:
            target = os.path.join(folder, name)
            if os.path.relpath(target, TREE) not in sources:
                os.remove(target)
    return whole.hexdigest()[:16]


class Build:
    """A build of the tree as it is; what it links with one file changed."""

    def __init__(self, name, options, targets):
        self.folder = os.path.join(PLACE, name)
        if not os.path.isfile(os.path.join(self.folder, "build.ninja")):
            subprocess.run(["meson", "setup", self.folder, TREE, "-Dbuildtype=release",
                            "-Dpage=disabled", "-Dwerror=false", *options], check=True,
                           stdout=subprocess.DEVNULL)
        if subprocess.run(["ninja", "-C", self.folder, *targets], check=False,
                          stdout=subprocess.DEVNULL).returncode != 0:
            sys.exit("mutants: the tree does not build as it is")
        with open(os.path.join(self.folder, "compile_commands.json"), encoding="utf-8") as file:
            self.compiles = {
                os.path.relpath(os.path.join(self.folder, each["file"]), TREE): each["command"]
                for each in json.load(file) if "/lib" in each["output"]}
        self.links = {target: subprocess.run(
            ["ninja", "-C", self.folder, "-t", "commands", "-s", target], check=True,
            stdout=subprocess.PIPE, text=True).stdout.strip() for target in targets}

    def run(self, words):
        return subprocess.run(words, cwd=self.folder, check=False, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL).returncode == 0

    def compile(self, mutant, source, target):
        words = shlex.split(self.compiles[mutant.path])
        kept = []
        while words:
            word = words.pop(0)
            if word in ("-o", "-c", "-MF", "-MQ"):
                words.pop(0)
            elif word != "-MD":
                kept.append(word)
        return self.run([*kept, "-w", "-c", source, "-o", target])

    def link(self, target, changed, program):
        """The changed object has all that its library's member has, which is then not taken."""
        words = shlex.split(self.links[target])
        words[words.index("-o") + 1] = program
        return self.run([words[0], changed, *words[1:]])


class Builds:
    def __init__(self, with_units):
        self.torture = Build("torture", ["-Dring_trace=true"], ["test/torture/torture"])
        self.units = None
        if with_units:
            self.units = Build("units", ["-Db_sanitize=address,undefined", "-Db_lundef=false"],
                               [f"test/unit/test_{unit}" for units in UNITS.values()
                                for unit in units])


class Limit:
    """Of a program with a mutant in it: its processor time, and what it waits."""

    running = set()

    def __init__(self, words, seconds, folder, output):
        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        # Its children play.
        self.process = subprocess.Popen(words, stdout=output, stderr=subprocess.DEVNULL, text=True,
                                        start_new_session=True, cwd=folder, preexec_fn=limit,
                                        env={**os.environ, **SANITIZERS, "TMPDIR": folder})
        self.timer = threading.Timer(SPARE_S + seconds * WAITS, self.kill)
        self.timer.daemon = True
        self.timer.start()
        Limit.running.add(self)

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end(self):
        """Its status."""
        self.timer.cancel()
        status = self.process.wait()
        self.kill()
        Limit.running.discard(self)
        return status


def play_round(program, folder, first, last):
    """None: all of them pass."""
    limit = Limit([program, str(last - first + 1), str(first), "--jobs", "1", "--once"],
                  SPARE_S + (last - first + 1) * SEED_S, folder, subprocess.PIPE)
    fate = f"falls: a seed up to {last} does not end"
    for line in limit.process.stdout:
        broken = re.match(r"seed (\d+): ", line)
        if broken:
            fate = f"falls by seed {broken.group(1)}"
            limit.kill()
            break
        if line.endswith(" passed, 0 failed\n"):
            fate = None
    limit.end()
    return fate


def play_rounds(program, folder, rounds, first, seeds):
    for last in rounds:
        last = min(last, seeds)
        fate = play_round(program, folder, first, last) if first <= last else None
        if fate:
            return fate
        first = last + 1
    return None


def try_units(build, mutant, folder):
    """None: all of them pass."""
    changed = os.path.join(folder, "unit.o")
    if not build.compile(mutant, os.path.join(folder, "mutant.c"), changed):
        return "is no program"
    for unit in UNITS[mutant.path.split("/")[1]]:
        program = os.path.join(folder, "unit")
        if not build.link(f"test/unit/test_{unit}", changed, program):
            return "is no program"
        if Limit([program], UNIT_S, folder, subprocess.DEVNULL).end() != 0:
            return f"falls by test_{unit}"
    return None


def try_one(mutant, builds, seeds, folder):
    """What became of it: a text that begins with "falls", "survives" or "is"."""
    source, changed, program = (os.path.join(folder, name)
                                for name in ("mutant.c", "mutant.o", "torture"))
    with open(source, "w", encoding="utf-8") as file:
        file.write(mutant.whole())
    if not (builds.torture.compile(mutant, source, changed) and
            builds.torture.link("test/torture/torture", changed, program)):
        return "is no program"
    return (play_rounds(program, folder, FIRST_ROUNDS, 1, seeds) or
            (builds.units and try_units(builds.units, mutant, folder)) or
            play_rounds(program, folder, OTHER_ROUNDS, FIRST_ROUNDS[-1] + 1, seeds) or
            f"survives {seeds} seeds")


class Results:
    """Of each mutant and tree what became of it: a line of JSON each."""

    def __init__(self, path, tree, seeds):
        self.path = path
        self.tree = tree
        self.known = {}
        self.fallen = {}
        if os.path.isfile(path):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    was, name, fate = json.loads(line)
                    survived = re.match(r"survives (\d+) seeds", fate)
                    if was == tree and not (survived and int(survived.group(1)) < seeds):
                        self.known[name] = fate
                    if fate.startswith("falls"):
                        self.fallen[name] = fate
                    else:
                        self.fallen.pop(name, None)

    def add(self, mutant, fate):
        self.known[mutant.name()] = fate
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps([self.tree, mutant.name(), fate]) + "\n")


def reasons():
    """Name to reason: two lines each, the second one indented."""
    known = {}
    name = None
    with open(SURVIVORS, encoding="utf-8") as file:
        for line in file:
            if line.startswith("    ") and name:
                known[name] = line.strip()
            elif line.strip() and not line.startswith("#"):
                name = line.rstrip("\n")
    return known


class Judge:
    """Several workers, each with a folder of its own; counts what they find."""

    def __init__(self, builds, results, words):
        self.builds, self.results, self.words = builds, results, words
        self.waiting = queue.SimpleQueue()
        self.lock = threading.Lock()
        self.known = reasons()
        self.counts = {"seeds": 0, "units": 0, "named": 0, "without": 0, "none": 0}

    def tell(self, mutant, fate):
        reason = self.known.get(mutant.name(), "") if fate.startswith("survives") else ""
        self.counts["seeds" if "seed" in fate and fate.startswith("falls") else
                    "units" if fate.startswith("falls") else
                    "named" if reason else
                    "without" if fate.startswith("survives") else "none"] += 1
        print(f"{fate:28} {mutant.kind:10} {mutant.name()}{f' ({reason})' if reason else ''}",
              flush=True)

    def work(self, number):
        folder = os.path.join(PLACE, f"worker{number}")
        os.makedirs(folder, exist_ok=True)
        while True:
            try:
                mutant = self.waiting.get_nowait()
            except queue.Empty:
                return
            fate = try_one(mutant, self.builds, self.words.seeds, folder)
            with self.lock:
                self.results.add(mutant, fate)
                self.tell(mutant, fate)

    def run(self, drawn):
        """Those that take longest, as they are known to survive, come last."""
        for mutant in sorted(drawn, key=lambda each: each.name() in self.known):
            fate = None if self.words.again else self.results.known.get(mutant.name())
            if not fate and self.words.survivors:
                fate = self.results.fallen.get(mutant.name())
            if fate:
                self.tell(mutant, fate)
            else:
                self.waiting.put(mutant)
        workers = [threading.Thread(target=self.work, args=(number,), daemon=True)
                   for number in range(self.words.workers)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        finally:
            for limit in list(Limit.running):
                limit.kill()


def main():
    words = argparse.ArgumentParser(prog="torture --mutants")
    words.add_argument("count", nargs="?", type=int, default=160)
    words.add_argument("--seeds", type=int, default=OTHER_ROUNDS[-1])
    words.add_argument("--only", default="")
    words.add_argument("--workers", type=int, default=os.cpu_count())
    words.add_argument("--no-units", action="store_true", help="play the seeds alone")
    words.add_argument("--list", action="store_true")
    words.add_argument("--again", action="store_true")
    words.add_argument("--survivors", action="store_true")
    words = words.parse_args()
    words.seeds = min(words.seeds, OTHER_ROUNDS[-1])
    os.makedirs(TREE, exist_ok=True)
    tree = copy_tree()
    drawn, total = draw(words.count)
    drawn = [mutant for mutant in drawn if words.only in mutant.name()]
    if words.list:
        for mutant in drawn:
            print(f"{mutant.kind:10} {mutant.name()}")
        print(f"{len(drawn)} of {total}")
        return 0
    results = Results(RESULTS_NO_UNITS if words.no_units else RESULTS, tree, words.seeds)
    judge = Judge(Builds(not words.no_units), results, words)
    judge.run(drawn)
    counts = judge.counts
    fallen = counts["seeds"] + counts["units"]
    tried = fallen + counts["named"] + counts["without"]
    enough = tried > 0 and fallen + counts["named"] >= SHARE_THAT_FALLS * tried
    print(f"of {tried} mutants {counts['seeds']} fall by seeds, {counts['units']} by unit tests, "
          f"{counts['named']} survive for a reason, {counts['without']} without; "
          f"{counts['none']} are no program")
    print(f"{int(enough)} passed, {int(not enough)} failed")
    return 0 if enough else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
