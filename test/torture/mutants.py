#!/usr/bin/env python3
"""Changes one place of the engine at a time, builds the torture with it, and looks whether a seed
breaks: a mutant that survives is a line that no seed looks at.

    mutants.py [COUNT] [--seeds N] [--only TEXT] [--list]

COUNT mutants (160) are drawn over all files, always the same ones; --only keeps those whose file
and text have TEXT in them. Those that survive and change nothing that could be seen stand with
their reason in survivors.txt. It succeeds when 95 of 100 fall or stand there."""

import argparse
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TREE = os.path.join(ROOT, "build", "mutants", "tree")
BUILD = os.path.join(ROOT, "build", "mutants", "build")
FILES = [f"src/kv/{name}.c" for name in (
    "changes", "changes_pool", "disk_log", "kv", "kv_admit", "kv_checkpoint", "kv_recover",
    "kv_recover_ring", "kv_sync", "kv_transaction", "kv_warm", "outcomes", "outcomes_table",
    "record", "ring")] + [f"src/store/{name}.c" for name in (
        "small", "small_write", "data_sync", "space", "blocks")]
SURVIVORS = os.path.join(ROOT, "test", "torture", "survivors.txt")
SHARE_THAT_FALLS = 0.95
ROUNDS = (2, 10, 50, 150, 500)  # up to which seed; one that hangs is told from many that pass
SEED_S = 2  # of one at the slowest
TURNED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARISON = re.compile(r"(?<=[\w)\]] )(<=|>=|==|!=|<|>)(?= [\w(\-&*!~])")
BOUND = re.compile(r" ([+-]) 1\b(?!\w)")
STATEMENT = re.compile(r"^\s+[\w>.\-\[\]()*&]+(?: [|&+\-*/]?= .*|\(.*\));$")
DECLARATION = re.compile(r"^\s+(?:const |static |struct |enum |uint|int |size_t |bool |char |void "
                         r"|return|break|continue|goto|union |double )")
STORE = re.compile(r"^\s+(?:[\w>.\-\[\]]+ = [^{]*|ring_store\(.*\));$")


class Mutant:
    def __init__(self, path, number, kind, old, new):
        self.path, self.number, self.kind = path, number, kind
        self.old, self.new = old, new

    def name(self):
        """Stays when lines before it come or go."""
        return f"{self.path}: {self.old.strip()} => {self.new.strip()}"

    def order(self):
        return hashlib.sha256(f"{self.name()} {self.kind}".encode()).hexdigest()


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
    if not (STORE.match(line) and STORE.match(after)) or DECLARATION.match(line) or \
            DECLARATION.match(after):
        return False
    if "ring_store(" in line or "ring_store(" in after:
        return "ring_store(" in line and "ring_store(" in after
    (first, first_of), (second, second_of) = (text.split(" = ", 1) for text in (line, after))
    return first.strip() in second_of or second.strip() in first_of


def mutants_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()
    lines = dict(code_lines(text))
    for number, line in lines.items():
        code = line.split(" /*")[0]
        if '"' in code or "BUG(" in code or "counters" in code:
            continue
        for found in COMPARISON.finditer(code):
            turned = code[:found.start()] + TURNED[found.group()] + code[found.end():]
            yield Mutant(path, number, "comparison", line, turned)
        for found in BOUND.finditer(code):
            for instead in ("0", "2"):
                yield Mutant(path, number, "bound", line,
                             f"{code[:found.start()]} {found.group(1)} {instead}"
                             f"{code[found.end():]}")
        if STATEMENT.match(code) and not DECLARATION.match(code):
            yield Mutant(path, number, "gone", line, ";")
        after = lines.get(number + 1)
        if after and depend(line, after):
            yield Mutant(path, number, "swapped", f"{line}\n{after}", f"{after}\n{line}")


def draw(count):
    """From each file as many as it has of all, the first by a hash."""
    by_file = {path: sorted(mutants_of(path), key=Mutant.order) for path in FILES}
    total = sum(len(mutants) for mutants in by_file.values())
    drawn = []
    for mutants in by_file.values():
        drawn += mutants[:max(2, round(count * len(mutants) / total))]
    return drawn, total


def prepare():
    """A copy of what is tracked, and its build."""
    shutil.rmtree(os.path.join(ROOT, "build", "mutants"), ignore_errors=True)
    os.makedirs(TREE)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    for name in listed.stdout.decode().split("\0"):
        source = os.path.join(ROOT, name)
        if name and os.path.isfile(source):
            target = os.path.join(TREE, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy(source, target)
    subprocess.run(["meson", "setup", BUILD, TREE, "-Dbuildtype=release", "-Dring_trace=true",
                    "-Dpage=disabled", "-Dwerror=false"], check=True,
                   stdout=subprocess.DEVNULL)
    if not build():
        sys.exit("mutants: the torture does not build as it is")


def build():
    return subprocess.run(["ninja", "-C", BUILD, "test/torture/torture"], check=False,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def play_round(first, last):
    """None: all of them pass."""
    program = os.path.join(BUILD, "test", "torture", "torture")
    process = subprocess.Popen([program, str(last - first + 1), str(first)],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               start_new_session=True)
    end = threading.Timer(20 + (last - first) * SEED_S, os.killpg,
                          (process.pid, signal.SIGKILL))  # its children play
    end.start()
    fate = f"falls: a seed up to {last} does not end"
    for line in process.stdout:
        broken = re.match(r"seed (\d+): ", line)
        if broken:
            fate = f"falls by seed {broken.group(1)}"
            break
        if line.endswith(" passed, 0 failed\n"):
            fate = None
    end.cancel()
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return fate


def play(seeds):
    """What became of it: a text that begins with "falls" or "survives"."""
    first = 1
    for last in ROUNDS:
        last = min(last, seeds)
        fate = play_round(first, last) if first <= last else None
        if fate:
            return fate
        first = last + 1
    return "survives"


def try_one(mutant, seeds):
    path = os.path.join(TREE, mutant.path)
    with open(os.path.join(ROOT, mutant.path), encoding="utf-8") as file:
        text = file.read()
    lines = text.split("\n")
    lines[mutant.number:mutant.number + mutant.old.count("\n") + 1] = mutant.new.split("\n")
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        return play(seeds) if build() else "is no program"
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def reasons():
    """Name to reason: two lines each, the second one indented."""
    known = {}
    name = None
    with open(SURVIVORS, encoding="utf-8") as file:
        for line in file:
            if line.startswith("    ") and name:
                known[name] = line.strip()
            elif line.strip() and not line.startswith("#"):
                name = line.rstrip("\n").replace("\\n", "\n")
    return known


def tell(mutant, fate, reason):
    name = mutant.name().replace("\n", "\\n")
    print(f"{fate:28} {mutant.kind:10} {name}{f' ({reason})' if reason else ''}", flush=True)


def main():
    words = argparse.ArgumentParser(prog="torture --mutants")
    words.add_argument("count", nargs="?", type=int, default=160)
    words.add_argument("--seeds", type=int, default=500)
    words.add_argument("--only", default="")
    words.add_argument("--list", action="store_true")
    words = words.parse_args()
    words.seeds = min(words.seeds, ROUNDS[-1])
    drawn, total = draw(words.count)
    drawn = [mutant for mutant in drawn if words.only in mutant.name()]
    if words.list:
        for mutant in drawn:
            print(f"{mutant.kind:10} {mutant.name()}")
        print(f"{len(drawn)} of {total}")
        return 0
    known = reasons()
    prepare()
    fallen = survived = named = 0
    for mutant in drawn:
        fate = try_one(mutant, words.seeds)
        reason = known.get(mutant.name().replace("\n", "\\n"), "") if fate == "survives" else ""
        tell(mutant, fate, reason)
        fallen += fate.startswith("falls")
        named += bool(reason)
        survived += fate == "survives" and not reason
    tried = fallen + survived + named
    enough = tried > 0 and fallen + named >= SHARE_THAT_FALLS * tried
    print(f"{fallen} of {tried} mutants fall, {named} survive for a reason, {survived} without")
    print(f"{int(enough)} passed, {int(not enough)} failed")
    return 0 if enough else 1


if __name__ == "__main__":
    sys.exit(main())
