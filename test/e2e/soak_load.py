"""The processes that work on a mount and compare (soak_load.c), and what they have open with it."""

import collections
import mmap
import os
import select
import struct
import subprocess
import time

from cluster import Failed, KIB, MIB

STATE = struct.Struct("<QQQQQ")  # began_ns, acknowledged, checked, refused, calls
CALL = struct.Struct("<QQqQQ88s")
CALLS = 4096
SHOWN = 8
POLL_S = 0.2

Progress = collections.namedtuple("Progress", "began_ns acknowledged checked refused calls")


class Worker:
    """One process, its directory on the mount and its account beside it."""

    def __init__(self, program, kind, name, places, seed, size):
        self.name = name
        self.state_path = os.path.join(places[1], f"{name}.calls")
        with open(self.state_path, "wb") as file:
            file.truncate(STATE.size + CALLS * CALL.size)
        with open(self.state_path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self.process = subprocess.Popen(
            [program, kind, os.path.join(places[0], name), self.state_path, str(seed), str(size)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.heard = b""

    def progress(self):
        return Progress(*STATE.unpack_from(self.map, 0))

    def tell(self, word):
        self.process.stdin.write(word.encode() + b"\n")
        self.process.stdin.flush()

    def listen(self):
        """What it said, as far as it is a whole line; None without."""
        more = os.read(self.process.stdout.fileno(), 4096)
        self.heard += more
        if not more:
            raise Failed(f"{self.name} of the load ended: {self.process.wait()}")
        line, end, rest = self.heard.partition(b"\n")
        if not end:
            return None
        self.heard = rest
        text = line.decode(errors="replace")
        if text.startswith("FAILED"):
            raise Failed(f"{self.name}: {text[7:]}; its last calls: {self.last_calls()}")
        return text

    def last_calls(self):
        """The newest of its account, in words."""
        count = self.progress().calls
        lines = []
        for number in range(max(0, count - SHOWN), count):
            began, ended, result, offset, length, what = CALL.unpack_from(
                self.map, STATE.size + number % CALLS * CALL.size)
            took = f"{(ended - began) // 1000} us" if ended else "no answer"
            lines.append(f"{what.split(bytes(1))[0].decode()} {offset} {length} = {result}, {took}")
        return " | ".join(lines)

    def end(self):
        self.process.kill()
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
        self.map.close()


class Load:
    """All workers of a turn. unanswered(name, began_ns) raises Failed for who waits too long."""

    def __init__(self, program, kinds, places, seed):
        """kinds: (kind, bytes) each; places: the mount, and a folder for the accounts."""
        self.unanswered = lambda name, began_ns: None
        self.workers = [Worker(program, kind, f"{kind}-{i}", places, seed + i, size)
                        for i, (kind, size) in enumerate(kinds)]

    def tell(self, word):
        for worker in self.workers:
            worker.tell(word)

    def gather(self, words, limit_s=None):
        """Waits until each has said one of `words`, and answers what was said. limit_s is for a
        daemon that is dead; one that serves is looked at by `unanswered`."""
        all_said = set()
        waiting = {worker.process.stdout: worker for worker in self.workers}
        end = None if limit_s is None else time.monotonic() + limit_s
        while waiting:
            left = POLL_S if end is None else min(POLL_S, end - time.monotonic())
            if left <= 0:
                names = ", ".join(worker.name for worker in waiting.values())
                raise Failed(f"{names} waits for {limit_s} s, though the daemon is dead")
            for stream in select.select(list(waiting), [], [], left)[0]:
                said = waiting[stream].listen()
                if said in words:
                    all_said.add(said)
                    del waiting[stream]
                elif said is not None:
                    raise Failed(f"{waiting[stream].name} says {said}, not {words}")
            self.watch()
        return all_said

    def watch(self):
        """Looks for calls that nobody answers."""
        for worker in self.workers:
            began_ns = worker.progress().began_ns
            if began_ns:
                self.unanswered(worker.name, began_ns)

    def run_for(self, seconds):
        """While they work; nobody has anything to say then."""
        end = time.monotonic() + seconds
        streams = [worker.process.stdout for worker in self.workers]
        while (left := end - time.monotonic()) > 0:
            for stream in select.select(streams, [], [], min(left, POLL_S))[0]:
                worker = self.workers[streams.index(stream)]
                if (said := worker.listen()) is not None:
                    raise Failed(f"{worker.name} says {said} under a daemon that runs; its last "
                                 f"calls: {worker.last_calls()}")
            self.watch()

    def totals(self):
        """Acknowledged, of these checked, refused."""
        all_progress = [worker.progress() for worker in self.workers]
        return [sum(progress[i] for progress in all_progress) for i in (1, 2, 3)]

    def acknowledged(self):
        return {worker.name: worker.progress().acknowledged for worker in self.workers}

    def end(self):
        for worker in self.workers:
            worker.end()


def small_load(rng):
    """For rings of 1 MiB: all is compared after each kill, so all is small."""
    kinds = [("direct64k", 8 * MIB), ("direct1m", rng.choice([8, 16, 48]) * MIB),
             ("sync4k", 2 * MIB), ("mixed", 4 * MIB), ("names", 0),
             ("many", rng.choice([500, 2000, 8000]) * 4 * KIB)]
    return kinds


def equal_load(rng):
    """Nothing but equal writes to storage: each lap of a ring is like the one before."""
    streams = [("direct64k", 8 * MIB), ("direct1m", 16 * MIB)]
    return rng.choice([streams[:1], streams[:1] * 2, streams[1:], streams]) + \
        [("names", 0)] * rng.randrange(2)


def large_load(rng):
    return [("direct64k", 32 * MIB), ("direct64k", 16 * MIB), ("direct1m", 128 * MIB),
            ("sync4k", 8 * MIB), ("mixed", 16 * MIB), ("names", 0),
            ("many", rng.choice([4000, 16000]) * 4 * KIB)]
