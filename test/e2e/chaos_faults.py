"""Faults in a cluster of several nodes, drawn from a seed: what is done when, and by whom it ends.

    faults = Faults(place, random.Random(seed), long)
    faults.play(watch)     each kind at least once, some at the same time
    faults.done            counts by kind, and
    faults.ends_ns         when the last one had ended

Daemons are killed and stopped by their process ids; links are cut by nft in the network of the node
that shall hear nothing. Whoever ends a fault is a thread of its own, as `shoal up` may wait.
"""

import collections
import os
import signal
import subprocess
import threading
import time

import cluster as clusters
from cluster import Failed

KINDS = ("kill", "kill first", "kill", "stop", "stop first", "cut off", "deaf", "mute", "cut pair",
         "cut pair one way", "all")
LONG_STOP_S = 40
# A client whose words do not reach the manager for 30 s is evicted: that is another test's.
CUT_S = (1.0, 10.0)
STOP_S = (0.5, 10.0)
DOWN_S = (0.0, 6.0)
BETWEEN_S = (0.2, 3.0)
# Between two faults of one node: so that each renews its session.
REST_S = 3.0


def address_of(node):
    return f"10.90.0.{node}"


class Cuts:
    """Who does not hear whom: pairs (from, to)."""

    def __init__(self, place):
        self.place = place
        self.lock = threading.Lock()
        self.pairs = collections.Counter()

    def add(self, pairs):
        self.change(pairs, 1)

    def take(self, pairs):
        self.change(pairs, -1)

    def change(self, pairs, step):
        with self.lock:
            for pair in pairs:
                self.pairs[pair] += step
            for node in sorted({to for _, to in pairs}):
                self.set_rules(node)

    def set_rules(self, node):
        unheard = [address_of(other) for (other, to), count in sorted(self.pairs.items())
                   if to == node and count > 0]
        rule = "ip saddr { " + ", ".join(unheard) + " } drop\n" if unheard else ""
        rules = ("table inet chaos\ndelete table inet chaos\ntable inet chaos {\nchain hears {\n"
                 f"type filter hook input priority 0; policy accept;\n{rule}}}\n}}\n")
        result = subprocess.run(self.place.within(node, "nft", "-f", "-"), input=rules, text=True,
                                capture_output=True, check=False)
        if result.returncode != 0:
            raise Failed(f"nft: {result.stderr.strip()}")


class Faults:
    """Of one turn."""

    def __init__(self, place, rng, long):
        self.place = place
        self.rng = rng
        self.long = long
        self.cuts = Cuts(place)
        self.nodes = list(place.nodes)
        self.free_s = {node: 0.0 for node in self.nodes}
        self.enders = {node: [] for node in self.nodes}
        self.problems = []
        self.done = collections.Counter()
        self.told = []
        self.ends_ns = 0
        self.begin_s = time.monotonic()

    def play(self, watch):
        """Each kind; `watch` is called between, and raises what it finds."""
        kinds = list(KINDS)
        self.rng.shuffle(kinds)
        try:
            for kind in kinds:
                time.sleep(self.rng.uniform(*BETWEEN_S))
                watch()
                self.make(kind)
        finally:
            self.wait_for(self.nodes)
        self.ends_ns = time.monotonic_ns()
        if self.problems:
            raise Failed(self.problems[0])

    def make(self, kind):
        """All choices are drawn before anything is done: the order in which threads run is not the
        seed's."""
        rng = self.rng
        first, other = rng.sample(self.nodes, 2)
        if kind in ("kill", "stop"):
            first = rng.choice(self.nodes[1:])
        if kind.endswith("first"):
            first = self.nodes[0]
        others = [node for node in self.nodes if node != first]
        down_s = [rng.uniform(*DOWN_S) for _ in self.nodes]
        cut_s = rng.uniform(*CUT_S)
        stop_s = rng.uniform(*STOP_S)
        if kind.startswith("kill"):
            self.kill([first], down_s)
        elif kind == "all":
            self.kill(self.nodes, down_s)
        elif kind.startswith("stop"):
            self.stop(first, LONG_STOP_S if self.long and kind == "stop first" else stop_s)
        elif kind == "cut off":
            self.cut(kind, [(first, to) for to in others] + [(to, first) for to in others], cut_s)
        elif kind == "deaf":
            self.cut(kind, [(to, first) for to in others], cut_s)
        elif kind == "mute":
            self.cut(kind, [(first, to) for to in others], cut_s)
        elif kind == "cut pair":
            self.cut(kind, [(first, other), (other, first)], cut_s)
        else:
            self.cut(kind, [(first, other)], cut_s)

    def take_nodes(self, nodes, seconds):
        """Waits until none of them is in a fault, and for a rest."""
        self.wait_for(nodes)
        while (wait_s := max(self.free_s[node] for node in nodes) - time.monotonic()) > 0:
            time.sleep(wait_s)
        for node in nodes:
            self.free_s[node] = time.monotonic() + seconds + REST_S

    def wait_for(self, nodes):
        for node in nodes:
            for ender in self.enders[node]:
                ender.join()
            self.enders[node].clear()

    def end_later(self, nodes, seconds, end, *words):
        """Calls `end` then; what breaks in it is told at the end of the turn."""
        def run():
            try:
                time.sleep(seconds)
                end(*words)
            except (Failed, OSError, ValueError) as problem:
                self.problems.append(str(problem))
        ender = threading.Thread(target=run)
        ender.start()
        for node in nodes:
            self.enders[node].append(ender)

    def tell(self, kind, what, seconds):
        self.done[kind] += 1
        self.told.append(f"{time.monotonic() - self.begin_s:.1f} s {kind} {what} for "
                         f"{seconds:.1f} s")

    def kill(self, nodes, down_s):
        self.take_nodes(nodes, max(down_s[:len(nodes)]))
        kind = "all" if len(nodes) > 1 else "kill first" if nodes[0] == 1 else "kill"
        processes = [self.place.process(node) for node in nodes]
        for process in processes:
            os.kill(process, signal.SIGKILL)
        for process in processes:
            clusters.end_process(process)
        self.tell(kind, " ".join(map(str, nodes)), max(down_s[:len(nodes)]))
        for node, seconds in zip(nodes, down_s):
            self.end_later([node], seconds, self.place.up, node)

    def stop(self, node, seconds):
        self.take_nodes([node], seconds)
        process = self.place.process(node)
        os.kill(process, signal.SIGSTOP)
        kind = "long stop" if seconds == LONG_STOP_S else "stop first" if node == 1 else "stop"
        self.tell(kind, node, seconds)
        self.end_later([node], seconds, os.kill, process, signal.SIGCONT)

    def cut(self, kind, pairs, seconds):
        """Others than the one that is cut off may be in faults of their own."""
        nodes = sorted({node for pair in pairs for node in pair})
        if len(nodes) > 2:
            nodes = [node for node in nodes if all(node in pair for pair in pairs)]
        self.take_nodes(nodes, seconds)
        self.cuts.add(pairs)
        self.tell(kind, " ".join(f"{one}>{other}" for one, other in pairs), seconds)
        self.end_later(nodes, seconds, self.cuts.take, pairs)
