#!/usr/bin/python3
"""A cluster of four nodes in network namespaces, under load from three mounts: its daemons are
killed and stopped, its links cut, one after another and at the same time.

Usage: chaos.py SHOAL CHAOS_LOAD MINUTES [SEED]

SHOAL is the command, CHAOS_LOAD the program that works and compares (chaos_load.c). In turns of
about a minute all kinds of faults are made (chaos_faults.py), in every third one the first node's
daemon, which has the manager, is stopped for 40 s. No call may fail. When the faults of a turn have
ended, each thread must go on within 60 s. Then the load is held, all that was acknowledged is
compared by a mount of another node (after the last turn: by each), and `shoal fsck` finds nothing.
What passes between the nodes is looked at all the time: no content of a file may be in it.

Faults come from the seed; the moments at which processes run do not. A run that breaks leaves its
directory, whose place is printed. A pause is a call that took longer than 0.1 s. The last line
counts turns.
"""

import collections
import json
import mmap
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import time

from chaos_faults import Faults
from cluster import Failed
from place import Place, why_not

NODES = 4
MDTS = (4, 1)  # by the seed
LOADS = 3
THREADS = 4
ALIVE_S = 60
ANSWER_S = 240
LONG_EVERY = 3
FRAME_TYPE = b"\x88\xb5"  # for experiments
# Of chaos_load.h and kill_work.h.
MARK = b"not on the wire!"
COUNTS = ("create", "open", "write", "read", "resize", "fsync", "close", "make", "link", "unlink",
          "rmdir", "rename", "truncate", "chmod", "chown", "utimes", "sync")
SHARED_COUNTS = ("writes", "reads", "exact")
SLOW_MAX = 4096
STATE = struct.Struct(f"<QQQ{len(COUNTS)}Q")
SLOW = struct.Struct("<QQ")
STATE_BYTES = STATE.size + SLOW_MAX * SLOW.size
# What each turn must have met, or it was none.
CALLS_MIN = 2000
PAUSES_MIN = 10
SHARED_MIN = 20

Thread = collections.namedtuple("Thread", "began_ns calls slow counts")


class Load:
    """The process that works on one node's mount."""

    def __init__(self, program, place, index, seed):
        self.name = f"load of node {index + 1}"
        state = os.path.join(place.top, f"load-{index}")
        self.process = subprocess.Popen(
            [program, place.at(index + 1), state, os.path.join(place.top, "shared"), str(seed),
             str(index), str(LOADS), str(THREADS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.heard = b""
        self.ask("make")
        with open(state, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)

    def tell(self, word):
        self.process.stdin.write(word.encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, word):
        self.tell(word)
        return self.answer(word)

    def answer(self, word):
        end = time.monotonic() + ANSWER_S
        while (line := self.listen(max(0, end - time.monotonic()))) is None:
            if time.monotonic() >= end:
                raise Failed(f"{self.name} has not answered {word} for {ANSWER_S} s")
        return line

    def listen(self, wait_s):
        """A line that it said within that time; what it has found is raised."""
        if b"\n" not in self.heard and select.select([self.process.stdout], [], [], wait_s)[0]:
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise Failed(f"{self.name} ended: {self.process.wait()}")
            self.heard += more
        line, end, rest = self.heard.partition(b"\n")
        if not end:
            return None
        self.heard = rest
        if line.startswith(b"FAILED"):
            raise Failed(f"{self.name}: {line[7:].decode()}")
        return line.decode()

    def threads(self):
        found = []
        for at in range(THREADS):
            words = STATE.unpack_from(self.map, at * STATE_BYTES)
            found.append(Thread(*words[:3], words[3:]))
        return found

    def pauses(self):
        """(began, ended) of each call that was slow and is still kept."""
        found = []
        for at, thread in enumerate(self.threads()):
            for slow in range(min(thread.slow, SLOW_MAX)):
                found.append(SLOW.unpack_from(
                    self.map, at * STATE_BYTES + STATE.size + slow * SLOW.size))
        return found

    def end(self):
        self.process.kill()
        self.process.wait()


class Wire:
    """What passes between the nodes: chaos_wire.py in the network that joins them."""

    def __init__(self, place):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chaos_wire.py")
        self.process = subprocess.Popen(
            place.within("net", sys.executable, program, MARK.decode()), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)
        self.expect("ready")
        self.prove(place)

    def expect(self, start):
        if not select.select([self.process.stdout], [], [], ANSWER_S)[0]:
            raise Failed(f"the capture has not said {start}")
        line = self.process.stdout.readline().decode().strip()
        if not line.startswith(start):
            raise Failed(f"the capture says {line!r}, not {start}")
        return line

    def prove(self, place):
        """That it sees what it must not see later: the mark, sent plainly once."""
        frame = b"\xff" * 12 + FRAME_TYPE + bytes(64) + MARK
        send = "import socket; wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); " \
               f"wire.bind(('eth0', 0)); wire.send({frame!r})"
        subprocess.run(place.within(1, sys.executable, "-c", send), check=True)
        self.expect("mark")

    def check(self):
        if select.select([self.process.stdout], [], [], 0)[0]:
            raise Failed("a file's content is on the wire: "
                         + self.process.stdout.readline().decode().strip())

    def end(self):
        """What it has seen in all."""
        self.check()
        self.process.stdin.close()
        seen = json.loads(self.expect("{"))
        self.process.wait()
        return seen

    def kill(self):
        self.process.kill()
        self.process.wait()


class Chaos:
    def __init__(self, place, program, seed):
        self.place = place
        self.seed = seed
        self.done = collections.Counter()
        self.calls = 0
        self.ends_ns = []
        self.longest_again_s = 0.0
        self.faults = None
        place.start()
        self.processes = {}
        self.wire = Wire(place)
        self.loads = []
        for index in range(LOADS):
            self.loads.append(Load(program, place, index, seed))

    def watch(self):
        self.wire.check()
        for load in self.loads:
            if (line := load.listen(0)) is not None:
                raise Failed(f"{load.name} says {line}")

    def all_threads(self):
        return [thread for load in self.loads for thread in load.threads()]

    def go_on(self):
        """Each thread ends the call that it is in and makes ten more; how long that took."""
        before = [thread.calls for thread in self.all_threads()]
        begin_s = time.monotonic()
        while True:
            self.watch()
            late = [at for at, thread in enumerate(self.all_threads())
                    if thread.calls < before[at] + 10]
            if not late:
                return time.monotonic() - begin_s
            if time.monotonic() - begin_s > ALIVE_S:
                raise Failed(f"{ALIVE_S} s after the last fault threads {late} have not gone on")
            time.sleep(0.02)

    def check_daemons(self):
        """None has ended by itself since the last fault: they all serve."""
        for node in self.place.nodes:
            result = subprocess.run([self.place.shoal, "status", self.place.path(node)],
                                    capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise Failed(f"status of node {node}: {(result.stderr or result.stdout).strip()}")

    def check(self, nodes):
        """All of them at the same time, by the mounts of each of these nodes. What a mount has
        looked at before may be a second old."""
        time.sleep(1)
        for node in nodes:
            for load in self.loads:
                load.tell(f"check {self.place.at(node)}")
            for load in self.loads:
                if load.answer("check") != "checked":
                    raise Failed(f"{load.name} does not check")
        result = subprocess.run([self.place.shoal, "fsck", self.place.path(nodes[0])],
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise Failed(f"fsck: {result.stdout.strip()} {result.stderr.strip()}")

    def turn(self, number, last):
        rng = random.Random(f"{self.seed} {number}")
        before = self.all_threads()
        faults = self.faults = Faults(self.place, rng, number % LONG_EVERY == LONG_EVERY - 1)
        for load in self.loads:
            load.tell("go")
        faults.play(self.watch)
        again_s = self.go_on()
        for load in self.loads:
            load.tell("hold")
        for load in self.loads:
            if load.answer("hold") != "held":
                raise Failed(f"{load.name} does not hold")
        self.check_daemons()
        self.check(list(self.place.nodes) if last else [rng.choice(self.place.nodes)])
        self.wire.check()
        self.done += faults.done
        self.ends_ns.append(faults.ends_ns)
        self.longest_again_s = max(self.longest_again_s, again_s)
        self.judge(before, self.all_threads(), again_s)

    def judge(self, before, after, again_s):
        """Whether the turn met enough."""
        calls = sum(one.calls for one in after) - sum(one.calls for one in before)
        slow = sum(one.slow for one in after) - sum(one.slow for one in before)
        sharers = range(THREADS - 1, LOADS * THREADS, THREADS)
        exact = sum(after[at].counts[2] - before[at].counts[2] for at in sharers)
        self.calls += calls
        print(f"  {calls} calls, {slow} pauses, {exact} reads of what another mount had closed; "
              f"all went on {again_s:.1f} s after the last fault", flush=True)
        if calls < CALLS_MIN or slow < PAUSES_MIN or exact < SHARED_MIN:
            raise Failed(f"too little was met: {CALLS_MIN} calls, {PAUSES_MIN} pauses and "
                         f"{SHARED_MIN} reads are the least")

    def report(self):
        seen = self.wire.end()
        pauses = sorted((ended - began) / 1e9 for load in self.loads
                        for began, ended in load.pauses())
        counts = collections.Counter()
        shared = collections.Counter()
        for load in self.loads:
            for thread in load.threads()[:-1]:
                counts.update(dict(zip(COUNTS, thread.counts)))
            shared.update(dict(zip(SHARED_COUNTS, load.threads()[-1].counts)))
        print("faults: " + words_of(self.done))
        print("operations: " + words_of(counts))
        print("files that mounts share: " + words_of(shared))
        print(f"{self.calls} calls; {len(pauses)} pauses: p50 {share_of(pauses, 0.5):.2f} s, "
              f"p99 {share_of(pauses, 0.99):.2f} s, longest {pauses[-1]:.2f} s; all went on within "
              f"{self.longest_again_s:.1f} s of a turn's last fault")
        print(f"on the wire: {seen['frames']} frames, {seen['bytes'] >> 20} MiB, no content of a "
              f"file; {seen['dropped']} frames not looked at")
        missing = [name for name in COUNTS if not counts[name]]
        if missing or seen["bytes"] < 1 << 20 or seen["dropped"] > seen["frames"] // 10:
            raise Failed(f"too little was met: no {', '.join(missing) or 'traffic'}")

    def end(self):
        for load in self.loads:
            load.end()
        self.wire.kill()


def words_of(counts):
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))


def share_of(values, share):
    return values[min(len(values) - 1, int(len(values) * share))]


def keep(place, chaos, problem):
    """What is needed to look at it."""
    text = str(problem)
    if chaos and chaos.faults:
        text += "\nthe turn's faults: " + "; ".join(chaos.faults.told)
    print(f"FAILED: {text}\nkept in {place.top}", flush=True)


def run(shoal, program, minutes, seed):
    """How many turns passed, and whether all did."""
    mdts = MDTS[seed % len(MDTS)]
    place = Place(shoal, NODES, mdts)
    print(f"seed {seed}: {NODES} nodes, {mdts} metadata targets in the first", flush=True)
    chaos = None
    passed = 0
    good = False
    try:
        chaos = Chaos(place, program, seed)
        begin_s = time.monotonic()
        last = False
        while not last:
            print(f"seed {seed}, turn {passed}", flush=True)
            turn_s = (time.monotonic() - begin_s) / passed if passed else 0
            last = time.monotonic() - begin_s + 2 * turn_s >= minutes * 60 or minutes == 1
            chaos.turn(passed, last)
            passed += 1
        chaos.report()
        for load in chaos.loads:
            load.end()
        place.stop()
        good = True
    except (Failed, OSError, subprocess.SubprocessError) as problem:
        keep(place, chaos, problem)
    finally:
        if chaos:
            chaos.end()
        place.end()
        if good:
            shutil.rmtree(place.top, ignore_errors=True)
    return passed, good


def main():
    words = sys.argv[3:]
    if len(words) not in (1, 2) or not all(word.isdigit() for word in words) or words[0] == "0":
        print(__doc__.split("\n")[3], file=sys.stderr)
        return 2
    missing = why_not() or (None if shutil.which("nft") else "nft, which cuts links")
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, 1 skipped")
        return 0
    seed = int(words[1]) if len(words) == 2 else int.from_bytes(os.urandom(3), "little")
    passed, good = run(sys.argv[1], os.path.abspath(sys.argv[2]), int(words[0]), seed)
    print(f"{passed} passed, {0 if good else 1} failed")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
