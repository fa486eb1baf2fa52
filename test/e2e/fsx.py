#!/usr/bin/python3
"""Random operations on files beside a model, through mounts whose daemon is killed below them.

Usage: fsx.py SHOAL FSX [MINUTES [SEED]]

SHOAL is the command, FSX the program that plays and compares (fsx.c). Several of it work on one
cluster, each in a directory of its own with files of two layouts. The mounts are processes of their
own, by the daemon's socket or by TCP, so a kill is a pause: each step that was answered is there
afterwards, byte for byte, and all files are compared right behind each start. At the end `shoal
fsck` finds nothing, and what was removed is free again.

Without MINUTES: the model itself against file systems of this machine, files changed behind its
back, which it must find, and short turns of a fixed number of steps. With MINUTES: turns of up to
three minutes over all ways of VARIANTS, every fifth without a kill: st_blocks is exact behind it.

Steps come from the seed; the moments at which processes run do not. A turn that met a kind of step
or kills too seldom fails. The last line counts.
"""

import contextlib
import mmap
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

import cluster as clusters
from cluster import GIB, SHAPES, Cluster, Failed
from driver import drive

WORKERS = 3
TURN_S = 180
QUIET_EVERY = 5  # turn without a kill, behind which counts of blocks are exact
FAILURES_MAX = 5  # turns
LEAST_S = 20  # a rest of less is not worth a turn
STILL_S = 150  # without a step: longer than any call may wait
SPACE_S = 30
SPACE_BLOCKS = 64
SHORT_STEPS = 1500
SHORT_KILLS = 4
SHORT_TURNS = 3
LOCAL_STEPS = 2000
STEPS_PER_KILL = (200, 6000)
AIM_S = 2
# What a turn must have met, or it was none.
KILLS_MIN = 3
HITS_MIN = 2
# Of fsx.h: began_ns, kind, calls, steps, kills, ends, then the counts.
STATE = struct.Struct("<6Q")
COUNTS_MAX = 48
STATE_BYTES = STATE.size + COUNTS_MAX * 8
KILLS_AT, ENDS_AT = 32, 40
# Kinds at whose calls kills are aimed, each some times in a long run.
AIMS = ("write", "append", "direct-write", "truncate", "allocate", "punch", "zero", "copy-within",
        "copy-between", "fsync", "create", "rename", "link", "unlink", "name-tmpfile",
        "truncate-by-open", "close")

# name: how the cluster is, its shape, how many mounts
VARIANTS = {
    "apart": ({"apart": True}, SHAPES[0], 1),
    "afar-two": ({"afar": True}, SHAPES[0], 2),
    "small": ({"apart": True}, SHAPES[1], 1),
    "two": ({"apart": True}, SHAPES[0], 2),
    "afar": ({"afar": True}, SHAPES[1], 1),
    "many": ({"apart": True, "mdts": 4}, SHAPES[0], 2),
}


def kinds_of(program):
    return subprocess.check_output([program, "--kinds"], text=True).split()


class Worker:
    """One process of FSX, and what it tells while it works."""

    def __init__(self, program, seed, steps, top, folders):
        self.said = os.path.join(top, f"fsx-{seed}.out")
        path = os.path.join(top, f"fsx-{seed}.state")
        with open(path, "wb") as file:
            file.truncate(STATE_BYTES)
        with open(path, "r+b") as file:
            self.state = mmap.mmap(file.fileno(), STATE_BYTES)
        with open(self.said, "wb") as output:
            self.process = subprocess.Popen([program, str(seed), str(steps), path, *folders],
                                            stdin=subprocess.DEVNULL, stdout=output,
                                            stderr=subprocess.STDOUT)

    def now(self):
        """began_ns of the call in flight, its step's kind, calls, steps."""
        return STATE.unpack_from(self.state)[:4]

    def met(self):
        return struct.unpack_from(f"<{COUNTS_MAX}Q", self.state, STATE.size)

    def tell(self, at, number):
        struct.pack_into("<Q", self.state, at, number)

    def ended(self):
        """Whether it has; Failed with what it found."""
        status = self.process.poll()
        if status:
            with open(self.said, encoding="utf-8", errors="replace") as file:
                text = file.read().strip()
            print(text, flush=True)
            found = [line for line in text.split("\n") if line.startswith("FAILED")]
            raise Failed((found or [f"fsx ended with {status}: {text[-300:]}"])[0])
        return status == 0

    def kill(self):
        self.process.kill()
        self.process.wait()


class Turn:
    """One cluster, its mounts, and what plays on them."""

    def __init__(self, tools, variant, seed, steps):
        self.shoal, self.program = tools
        self.ways, (self.osts, self.sizes), self.mounts_count = VARIANTS[variant]
        self.rng = random.Random(f"{variant} {seed}")
        self.seed = seed
        self.steps = steps
        self.kinds = kinds_of(self.program)
        self.workers = []
        self.kills = self.downs = 0
        self.hits = {}
        self.slowest_s = 0.0

    def make_mounts(self):
        """Those that the workers have. Between them names are as new as the kernel can have them;
        one alone has the defaults."""
        cluster = self.cluster
        mounts = [cluster.mount] if self.mounts_count == 1 else []
        while len(mounts) < self.mounts_count:
            mounts.append(os.path.join(cluster.top, f"mount-{len(mounts)}"))
            os.mkdir(mounts[-1])
            cluster.mount_apart(mounts[-1], "-o", "ttl=0")
        return mounts

    def make_folders(self, number):
        """The first has the smallest chunks, on all targets; the other one the defaults. By a
        mount of DIR, as the verb asks the daemon of this machine."""
        cluster = self.cluster
        top = os.path.join(self.layouts, str(number))
        for name in ("", "0", "1"):
            os.mkdir(os.path.join(top, name))
        result = cluster.run("stripe", "set", os.path.join(top, "0"), "--size", "64K", "--count",
                             "-1")
        if result.returncode != 0:
            raise Failed(f"stripe: {result.stderr.strip()}")

    def begin(self):
        cluster = self.cluster
        cluster.start()
        mounts = self.make_mounts()
        self.layouts = os.path.join(cluster.top, "mount-layouts")
        os.mkdir(self.layouts)
        result = cluster.run("mount", cluster.directory, self.layouts)
        if result.returncode != 0:
            raise Failed(f"mount: {result.stderr.strip()}")
        for number in range(WORKERS):
            self.make_folders(number)
        self.before = self.used()
        for number in range(WORKERS):
            folders = [os.path.join(mount, str(number)) for mount in mounts]
            self.workers.append(Worker(self.program, self.seed * WORKERS + number, self.steps,
                                       cluster.top, folders))

    def used(self):
        space = os.statvfs(self.layouts)
        return space.f_blocks - space.f_bfree

    def steps_done(self):
        return sum(worker.now()[3] for worker in self.workers)

    def wait_for(self, done, what):
        """Until it is so, while there are steps."""
        seen, since_s = -1, time.monotonic()
        while not done():
            steps = self.steps_done()
            if steps != seen:
                seen, since_s = steps, time.monotonic()
            if time.monotonic() - since_s > STILL_S:
                at = [self.kinds[worker.now()[1]] for worker in self.workers]
                raise Failed(f"{what}: no step in {STILL_S} s, at {', '.join(at)}")
            time.sleep(0.002)

    def all_ended(self):
        return all([worker.ended() for worker in self.workers])

    def aim(self, kind):
        """Until a call of such a step is in flight; not for ever."""
        end_s = time.monotonic() + AIM_S
        while time.monotonic() < end_s:
            for worker in self.workers:
                began, now, _, _ = worker.now()
                if began and self.kinds[now] == kind:
                    return

    def cut_a_start(self):
        """Killed while it starts."""
        with clusters.child([self.shoal, "up", self.cluster.directory], stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as start:
            process = None
            while process is None and start.poll() is None:
                process = self.cluster.process()
            time.sleep(self.rng.random() * 0.2)
            process = self.cluster.process()
            if process is not None:
                clusters.end_process(process)
        self.kills += 1

    def kill(self):
        """At a call of a drawn kind, or at any moment; notes which calls it cut."""
        if self.rng.random() < 0.6:
            self.aim(self.rng.choice(AIMS))
        before = [worker.now() for worker in self.workers]
        if self.rng.random() < 0.1:
            self.cluster.stop()
            self.downs += 1
        else:
            self.cluster.kill()
            self.kills += 1
        for worker, (began, kind, calls, _) in zip(self.workers, before):
            if began and worker.now()[:3] == (began, kind, calls):
                name = self.kinds[kind]
                self.hits[name] = self.hits.get(name, 0) + 1
        if self.rng.random() < 0.2:
            self.cut_a_start()
        started_s = time.monotonic()
        result = self.cluster.run("up", self.cluster.directory)
        if result.returncode != 0:
            raise Failed(f"up: {result.stderr.strip()}")
        self.slowest_s = max(self.slowest_s, time.monotonic() - started_s)
        for worker in self.workers:
            worker.tell(KILLS_AT, self.kills + self.downs)

    def play(self, seconds, kills):
        """For so long, or with so many kills over the steps there are; None: without any."""
        end_s = time.monotonic() + (seconds or 0)
        count = 0
        if kills is None and seconds:
            self.wait_for(lambda: self.all_ended() or time.monotonic() > end_s, "without kills")
        while kills is not None and (time.monotonic() < end_s if seconds else count < kills):
            wanted = self.steps_done() + self.rng.randint(*STEPS_PER_KILL)
            if not seconds:
                wanted = self.steps * WORKERS * (count + self.rng.random()) / (kills + 1)
            self.wait_for(lambda: self.all_ended() or self.steps_done() >= wanted or
                          (seconds and time.monotonic() > end_s), "between kills")
            if self.all_ended():
                break
            self.kill()
            count += 1
        for worker in self.workers if seconds else []:
            worker.tell(ENDS_AT, 1)
        self.wait_for(self.all_ended, "at the end")

    def end(self):
        """Clean, and free again when all is removed."""
        cluster = self.cluster
        result = cluster.run("fsck", cluster.directory)
        if result.returncode != 0:
            raise Failed(f"fsck: {result.stdout.strip()} {result.stderr.strip()}")
        for name in os.listdir(self.layouts):
            shutil.rmtree(os.path.join(self.layouts, name))
        end_s = time.monotonic() + SPACE_S
        while self.used() > self.before + SPACE_BLOCKS:
            if time.monotonic() > end_s:
                raise Failed(f"{self.used()} blocks are in use when all is removed, "
                             f"{self.before} were before")
            time.sleep(0.05)
        cluster.stop()

    def check_met(self, least, with_kills):
        sums = [sum(counts) for counts in zip(*(worker.met() for worker in self.workers))]
        met = dict(zip(self.kinds, sums))
        if self.mounts_count < 2:
            del met["move"], met["peek"]
        print(f"  {self.steps_done()} steps, {self.kills} kills, {self.downs} stops, the longest "
              f"start {self.slowest_s:.1f} s; calls that were cut: " +
              ", ".join(f"{name} {count}" for name, count in sorted(self.hits.items())))
        print("  " + ", ".join(f"{name} {count}" for name, count in met.items()), flush=True)
        seldom = [name for name, count in met.items() if count < least]
        if seldom:
            raise Failed(f"too few of {', '.join(seldom)}: less than {least}")
        if with_kills:
            check_kills(self.kills, self.cut())

    def cut(self):
        return sum(self.hits.values())

    def keep(self, problem):
        """The logs, and what the workers said."""
        kept = tempfile.mkdtemp(prefix="shoal-fsx-failed-")
        for top, names in ((self.cluster.directory, ("shoal.log", "mount.log")),
                           (self.cluster.top, os.listdir(self.cluster.top))):
            for name in names:
                path = os.path.join(top, name)
                if name.endswith((".log", ".out")) and os.path.exists(path):
                    shutil.copy(path, kept)
        return Failed(f"{problem}; the log ends: {self.cluster.log_end()}; logs are kept in {kept}")

    def run(self, seconds=None, kills=0, least=1, with_kills=True):
        sizes = {**self.sizes, "data_bytes_max": 4 * GIB}
        with Cluster(self.shoal, self.osts, sizes, **self.ways) as self.cluster:
            try:
                self.begin()
                self.play(seconds, kills)
                self.end()
                self.check_met(least, with_kills and kills is not None)
            except (Failed, OSError) as problem:
                raise self.keep(problem) from None
            finally:
                for worker in self.workers:
                    worker.kill()


def check_kills(kills, cut):
    if kills < KILLS_MIN or cut < HITS_MIN:
        raise Failed(f"{kills} kills, which cut {cut} calls, are too few: {KILLS_MIN}, and "
                     f"{HITS_MIN} calls")


class Rows:
    """The short run."""

    def __init__(self, tools):
        self.tools = tools

    def play_local(self, top, seed):
        folder = tempfile.mkdtemp(prefix="shoal-fsx-", dir=top)
        try:
            play = os.path.join(folder, "play")
            os.mkdir(play)
            worker = Worker(self.tools[1], seed, LOCAL_STEPS, folder, [play])
            worker.process.wait()
            worker.ended()
            with open(worker.said, encoding="utf-8") as file:
                print(f"  {top}:", "; ".join(file.read().strip().split("\n")), flush=True)
        finally:
            shutil.rmtree(folder)

    def model(self):
        """Is right, by other file systems."""
        for top in dict.fromkeys(("/dev/shm", tempfile.gettempdir())):
            self.play_local(top, 7)

    def change(self, play, rng, size_too):
        """A byte, or the size, of a file that is there."""
        folder = os.path.join(play, rng.choice("01"))
        if not os.path.isdir(folder) or not os.listdir(folder):
            return
        path = os.path.join(folder, rng.choice(os.listdir(folder)))
        with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
            size = os.fstat(file.fileno()).st_size
            if size_too:
                file.truncate(size + 1)
            elif size > 0:
                file.seek(rng.randrange(size))
                file.write(b"?")

    def finds_changes(self, size_too):
        folder = tempfile.mkdtemp(prefix="shoal-fsx-", dir="/dev/shm")
        rng = random.Random(1)
        try:
            worker = Worker(self.tools[1], 1, 0, folder, [folder])
            end_s = time.monotonic() + STILL_S
            while worker.process.poll() is None and time.monotonic() < end_s:
                self.change(folder, rng, size_too)
            worker.kill()
            with open(worker.said, encoding="utf-8") as file:
                lines = [line for line in file if line.startswith("FAILED seed 1 step ")]
            if len(lines) != 1 or worker.process.returncode != 1:
                raise Failed(f"it ended with {worker.process.returncode}: {lines}")
            print(" ", lines[0].strip()[:200], flush=True)
        finally:
            shutil.rmtree(folder)

    def finds(self):
        """What was changed behind its back."""
        self.finds_changes(False)
        self.finds_changes(True)

    def short(self, variant):
        """Another turn where kills have met too little; not for ever."""
        kills = cut = 0
        for seed in range(1, SHORT_TURNS + 1):
            turn = Turn(self.tools, variant, seed, SHORT_STEPS)
            turn.run(kills=SHORT_KILLS, least=4, with_kills=False)
            kills += turn.kills
            cut += turn.cut()
            if kills >= KILLS_MIN and cut >= HITS_MIN:
                return
        check_kills(kills, cut)

    def no_kills(self):
        """Counts of blocks are exact then."""
        Turn(self.tools, "two", 1, SHORT_STEPS // 2).run(kills=None, least=2)

    def kills_below_one_mount(self):
        """By the daemon's socket."""
        self.short("apart")

    def kills_below_two_mounts(self):
        """By TCP; files move between them."""
        self.short("afar-two")


def play_minutes(tools, minutes, seed):
    """Turns; how many passed and failed."""
    end_s = time.monotonic() + minutes * 60
    passed = failed = 0
    names = list(VARIANTS)
    while failed < FAILURES_MAX and (passed + failed == 0 or
                                     time.monotonic() + LEAST_S < end_s):
        number = passed + failed
        variant = names[number % len(names)]
        seconds = min(TURN_S, end_s - time.monotonic())
        kills = None if number % QUIET_EVERY == QUIET_EVERY - 1 else 0
        print(f"seed {seed + number}, {variant}, {seconds:.0f} s"
              f"{', no kills' if kills is None else ''}", flush=True)
        try:
            Turn(tools, variant, seed + number, 0).run(seconds, kills, 10 if seconds > 60 else 1)
            passed += 1
        except (Failed, OSError, subprocess.SubprocessError) as problem:
            print(f"FAILED: seed {seed + number}, {variant}: {problem}", flush=True)
            failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    words = sys.argv[1:]
    tools = [os.path.abspath(word) for word in words[:2]]
    if len(words) in (3, 4) and all(word.isdigit() for word in words[2:]) and int(words[2]) > 0:
        missing = clusters.missing()
        if missing:
            print(f"skipped, for want of {missing}\n0 passed, 0 failed, 1 skipped")
            return 0
        seed = int(words[3]) if len(words) == 4 else int.from_bytes(os.urandom(3), "little")
        return play_minutes(tools, int(words[2]), seed)
    rows = Rows(tools)
    return drive(__doc__, [rows.model, rows.finds, rows.no_kills, rows.kills_below_one_mount,
                           rows.kills_below_two_mounts], lambda row: row(), words=2)


if __name__ == "__main__":
    sys.exit(main())
