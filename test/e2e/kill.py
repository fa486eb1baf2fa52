#!/usr/bin/python3
"""kill -9 at acknowledgements, N times, over clusters of several shapes.

Usage: kill.py SHOAL KILL ROUNDS [SEED] [--role manager|meta|store|all]

SHOAL is the command, KILL the program that works, kills and compares (kill.c). Without --role the
rounds are of one node that serves its mount itself, and a third as many more, two at least, of
several nodes with different roles (kill_roles.h), of which two are killed in each round; with it
all rounds are of these, a node of that role first. Of each role it is told how often one was
killed, how often the load waited for that, and the longest call; a run that met a role too seldom
goes on for as many rounds again, and fails if these don't meet it. The last line says how many
rounds passed; when one breaks, a line before says what.
"""

import os
import random
import re
import subprocess
import sys
import threading

import cluster as clusters
from cluster import SHAPES, Failed
from nodes import Node, Nodes, clean, known_to_manager, maps_are_one, slots_are_dealt

ROUNDS_PER_CLUSTER = 10
LIMIT_S_PER_ROUND = 120
ROLES = ("manager", "meta", "store")
# Of nodes that join, besides the first one, which has a part of everything.
ROLE_SHAPES = [("meta", "store"), ("meta", "store", "store"), ("meta", "meta", "store")]
ROLE_ROUNDS_MIN = 2
MDTS_OSTS = {"meta": (1, 0), "store": (0, 2)}
TOLD = re.compile(r"kills of (\w+): (\d+), (\d+) of them waited for, the longest call (\d+) ms\n")


def run(shoal, program, rounds, seed):
    """One cluster through some rounds; whether nothing broke."""
    rng = random.Random(seed)
    osts, sizes = SHAPES[rng.randrange(len(SHAPES))]
    with clusters.Cluster(shoal, osts, sizes) as cluster:
        words = [program, cluster.shoal, cluster.directory, cluster.mount, str(seed), str(rounds),
                 str(rng.choice([1, 4, 8]))]
        print("seed", seed, "osts", osts, "threads", words[-1], flush=True)
        try:
            status = subprocess.run(words, stdin=subprocess.DEVNULL, check=False,
                                    timeout=rounds * LIMIT_S_PER_ROUND).returncode
        except subprocess.TimeoutExpired:
            print(f"FAILED: {rounds} rounds did not end in {rounds * LIMIT_S_PER_ROUND} s")
            status = 1
        if status != 0:
            print(f"FAILED: seed {seed}, status {status}; the log ends: {cluster.log_end()}",
                  flush=True)
        return status == 0


class RoleNode(Node):
    """It joins with one role."""

    def __init__(self, first, number, role, sizes):
        super().__init__(first, number, conf=False)
        self.role = role
        mdts, osts = MDTS_OSTS[role]
        lines = ["[cluster]", "format = 3", f"mdts = {mdts}", f"osts = {osts}", "", "[network]",
                 f"listen = {self.source}", f"key = {self.key_file}", f"join = {first.source}", "",
                 "[sizes]", *(f"{name} = {value}" for name, value in sizes.items())]
        with open(self.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write("\n".join(lines) + "\n")


class RoleNodes(Nodes):
    """The first node, of one storage target, and some of a role each; mounted by two processes,
    the second of which keeps no names and attributes."""

    def __init__(self, shoal, roles, sizes):
        super().__init__(shoal, sizes=sizes)
        self.roles = roles
        self.sizes = {**clusters.SIZES, **sizes}
        self.other_mount = os.path.join(self.first.top, "mount-other")

    def __enter__(self):
        self.others = [RoleNode(self.first, number, role, self.sizes)
                       for number, role in enumerate(self.roles, 2)]
        return self

    def start(self):
        self.first.start()
        for node in self.others:
            node.start("--roles", node.role)
            known_to_manager(node)
        slots_are_dealt(self)
        maps_are_one(self)
        os.mkdir(self.other_mount)
        self.first.mount_apart(self.other_mount, "-o", "ttl=0")

    def words(self):
        """What kill_roles.h says of mounts and nodes."""
        return [*(f"{mount}:{self.first.mount_process(mount)}"
                  for mount in (self.first.mount, self.other_mount)),
                f"manager:{self.first.directory}",
                *(f"{node.role}:{node.directory}" for node in self.others)]

    def end_mounts(self):
        """What waits for them ends."""
        for mount in (self.first.mount, self.other_mount):
            process = self.first.mount_process(mount)
            if process is not None:
                clusters.end_process(process)


class Totals:
    """What the roles have met."""

    def __init__(self):
        self.kills = dict.fromkeys(ROLES, 0)
        self.felt = dict.fromkeys(ROLES, 0)
        self.longest_ms = dict.fromkeys(ROLES, 0)
        self.wanted = dict.fromkeys(ROLES, 0)

    def expect(self, rounds, role):
        """Two kills a round, each role as often as the others, or one of them in each round."""
        for name in ROLES:
            share = 2 * rounds // 3 if role == "all" else rounds // 2
            self.wanted[name] += rounds if name == role else share

    def take(self, line):
        told = TOLD.fullmatch(line)
        if told:
            name = told[1]
            self.kills[name] += int(told[2])
            self.felt[name] += int(told[3])
            self.longest_ms[name] = max(self.longest_ms[name], int(told[4]))

    def missed(self):
        """The roles that were met too seldom: half of what was meant to be."""
        return [name for name in ROLES if 2 * self.felt[name] < self.wanted[name]]

    def check(self):
        """Tells them; how many roles were met too seldom."""
        for name in ROLES:
            print(f"{name}: {self.kills[name]} kills, {self.felt[name]} of them waited for, the "
                  f"longest call {self.longest_ms[name] / 1000:.1f} s")
        for name in self.missed():
            print(f"FAILED: {self.wanted[name]} kills of {name} were meant to be met, and half "
                  "of them were not")
        return len(self.missed())


def play(nodes, words, limit_s, totals):
    """Runs the program, tells on what it says; its exit status."""
    late = threading.Event()

    def end():
        late.set()
        nodes.end_mounts()
        process.kill()

    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          encoding="ascii", errors="replace") as process:
        timer = threading.Timer(limit_s, end)
        timer.start()
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                totals.take(line)
            status = process.wait()
        finally:
            timer.cancel()
    if late.is_set():
        raise Failed(f"it did not end in {limit_s} s")
    return status


def run_roles(shoal, program, rounds, seed, role, totals):
    """One cluster of several nodes through some rounds; whether nothing broke."""
    rng = random.Random(seed)
    roles = ROLE_SHAPES[rng.randrange(len(ROLE_SHAPES))]
    sizes = SHAPES[rng.randrange(2)][1]
    threads = rng.choice([2, 4, 8])
    print("seed", seed, "roles", ", ".join(["manager", *roles]), "threads", threads, flush=True)
    try:
        with RoleNodes(shoal, roles, sizes) as nodes:
            nodes.start()
            words = [program, nodes.first.shoal, "--roles", role, str(seed), str(rounds),
                     str(threads), *nodes.words()]
            status = play(nodes, words, rounds * LIMIT_S_PER_ROUND, totals)
            if status != 0:
                raise Failed(f"status {status}")
            clean(nodes.first)
    except Failed as error:
        print(f"FAILED: seed {seed}: {error}", flush=True)
        return False
    return True


def run_some_roles(shoal, program, rounds, seed, role):
    """The rounds, and where few kills were too few to meet a role, up to as many more that begin
    with it; how many passed and failed."""
    totals = Totals()

    def some(count, seed):
        good = run_roles(shoal, program, count, seed, role, totals)
        if good:
            totals.expect(count, role)
        return good

    passed, failed = run_all(rounds, seed, some)
    for more in range(1, rounds + 1):
        missed = totals.missed()
        if failed or not missed:
            break
        good = run_roles(shoal, program, 1, seed + rounds + more, missed[0], totals)
        passed += good
        failed += not good
    return passed, failed + totals.check()


def run_all(rounds, seed, run_some):
    """Some for each cluster, with seeds that follow each other; how many passed and failed."""
    passed = 0
    failed = 0
    while passed + failed < rounds:
        count = min(ROUNDS_PER_CLUSTER, rounds - passed - failed)
        if run_some(count, seed):
            passed += count
        else:
            failed += count
        seed += 1
    return passed, failed


def read_words(words):
    """Rounds, seed and role; None where they are none."""
    role = None
    if "--role" in words:
        at = words.index("--role")
        role = words[at + 1] if at + 1 < len(words) else ""
        words = words[:at] + words[at + 2:]
    if len(words) not in (1, 2) or not all(word.isdigit() for word in words) or \
            role not in (None, "all", *ROLES):
        return None
    seed = int(words[1]) if len(words) == 2 else int.from_bytes(os.urandom(4), "little")
    return int(words[0]), seed, role


def main():
    chosen = read_words(sys.argv[3:])
    if chosen is None:
        print(__doc__.split("\n")[2], file=sys.stderr)
        return 2
    shoal, program = sys.argv[1:3]
    rounds, seed, role = chosen
    role_rounds = rounds if role else max(ROLE_ROUNDS_MIN, rounds // 3)
    missing = clusters.missing()
    if missing:
        count = role_rounds + (0 if role else rounds)
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, {count} skipped")
        return 0
    passed = failed = 0
    if not role:
        passed, failed = run_all(rounds, seed,
                                 lambda count, seed: run(shoal, program, count, seed))
    counted = run_some_roles(shoal, program, role_rounds, seed, role or "all")
    passed += counted[0]
    failed += counted[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
