"""A turn of the soak: one cluster and its load, killed and started again, or only watched, while
the disk below it is filled and freed."""

import glob
import os
import shutil
import signal
import subprocess
import time

import cluster as clusters
import soak_disk
import soak_load
import soak_rings
from cluster import Failed, GIB, KIB, MIB

# What is kept free is what checkpoints of four targets take: with less, data that grows into the
# room of a disk that was full leaves none for the checkpoints that would go on.
SMALLEST = {
    "mdt_ring_bytes": MIB,
    "ost_ring_bytes": MIB,
    "ost_ring_data_bytes": 256 * KIB,
    "disk_log_bytes": 8 * MIB,
    "mdt_changes_bytes": 8 * MIB,
    "ost_changes_bytes": 8 * MIB,
    "base_memory_bytes": MIB,
    "cache_bytes": 0,
    "keep_free_bytes": 64 * MIB,
    "data_bytes_max": 512 * MIB,
}
START_S = 5
ROOM_S = 10
ANSWER_S = 60
AIM_S = 1.0
AIMED_SHARE = 0.4
STACKS_S = 60
# How often a state is aimed at; those of some nanoseconds cost a second each time.
AIMS = {"near the end": 4, "just wrapped": 4, "filler": 3, "empty": 5, "behind the walk": 1,
        "nearly full": 4, "torn": 1}


class SoakCluster(clusters.Cluster):
    """sizes: None: all is left to the first start. disk_bytes: of a small disk of its own below the
    directory, 0: none."""

    def __init__(self, shoal, osts, sizes, disk_bytes):
        super().__init__(shoal)
        self.disk = None
        if disk_bytes:
            base = os.path.join(self.top, "disk")
            os.mkdir(base)
            try:
                self.disk = soak_disk.Disk(os.path.join(self.top, "image"), base, disk_bytes)
            except Failed:
                self.close()
                raise
            self.directory = os.path.join(base, "data")
            os.mkdir(self.directory)
        if sizes is None:
            os.unlink(self.path("shoal.conf"))
            return
        with open(self.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write(clusters.configuration(osts, sizes, self.identity))

    def start(self):
        super().start()
        with open(self.path("shoal.conf"), encoding="ascii") as file:
            self.identity = next(line.split()[2] for line in file if line.startswith("id = "))

    def start_and_kill(self, delay_s):
        """A start that is cut."""
        process = subprocess.Popen([self.shoal, "up", self.directory, "--mount", self.mount,
                                    "--foreground"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(delay_s)
            raise Failed(f"a start ended with {process.returncode}; the log ends: "
                         f"{self.log_end()}")
        except subprocess.TimeoutExpired:
            clusters.end_process(process.pid)
            process.wait()

    def regions_now(self):
        return glob.glob(f"/dev/shm/shoal-{self.identity}-*")

    def anonymous_bytes(self):
        """RssAnon of the daemon."""
        with open(f"/proc/{self.process()}/status", encoding="ascii", errors="replace") as file:
            line = next(line for line in file if line.startswith("RssAnon"))
        return int(line.split()[1]) * KIB

    def keep(self, problem):
        """Ends it, and leaves all that a search for the reason needs."""
        process = self.process()
        if process is not None:
            save_stacks(process, self.top)
        rings = os.path.join(self.top, "rings")
        os.makedirs(rings, exist_ok=True)
        if process is not None:
            clusters.end_process(process)
        for path in self.regions_now():
            shutil.copy(path, rings)
            os.unlink(path)
        with open(os.path.join(self.top, "failure"), "w", encoding="utf-8") as file:
            file.write(f"{problem}\n")
        clusters.unmount(self.mount)
        if self.disk:
            self.disk.close()

    def close(self):
        process = self.process()
        if process is not None:
            clusters.end_process(process)
        clusters.unmount(self.mount)
        if self.disk:
            self.disk.close()
        super().close()


def save_stacks(process, folder):
    """Where all of its threads are, twice, as one that turns in a circle can be told from one that
    waits, and its memory; if there is gdb to ask."""
    if not shutil.which("gdb"):
        return
    asked = ["-ex", "thread apply all bt"]
    kept = asked + ["-ex", f"generate-core-file {os.path.join(folder, 'core')}"]
    with open(os.path.join(folder, "stacks"), "w", encoding="utf-8") as file:
        for words in (asked, kept):
            try:
                subprocess.run(["gdb", "-p", str(process), "-batch", *words],
                               stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
                               timeout=STACKS_S, check=False)
            except subprocess.TimeoutExpired:
                file.write("gdb did not end\n")


def stop(process):
    try:
        clusters.stop_process(process)
    except (ProcessLookupError, FileNotFoundError):
        raise Failed("the daemon died") from None


class Turn:
    """What all turns have: cluster, load, disk, and who waits for an answer."""

    def __init__(self, cluster, program, kinds, rng, totals):
        self.cluster = cluster
        self.program = program
        self.rng = rng
        self.totals = totals
        self.serving_since = None  # monotonic_ns, as are the next
        self.room_since = time.monotonic_ns()
        self.fill_at = time.monotonic() + 5 + rng.random() * 10
        self.free_at = None
        self.refused = 0
        self.last_start_s = 0
        self.load = soak_load.Load(program, kinds, (cluster.mount, cluster.top),
                                   rng.getrandbits(40))
        self.load.unanswered = self.look_for_answer
        self.step = "the first start"

    def say(self, *words):
        print(" ", *words, flush=True)

    def is_full(self):
        return self.cluster.disk is not None and self.cluster.disk.full

    def start(self):
        self.step = "start"
        began = time.monotonic()
        self.cluster.start()
        self.last_start_s = time.monotonic() - began
        self.totals.starts.append(self.last_start_s)
        if self.last_start_s > START_S:
            self.say(f"a start took {self.last_start_s:.1f} s; the log ends:",
                     self.cluster.log_end())
        self.serving_since = time.monotonic_ns()

    def room_s(self):
        """For how long the daemon has served with room on the disk; 0 without."""
        if self.serving_since is None or self.is_full():
            return 0
        return (time.monotonic_ns() - max(self.serving_since, self.room_since)) / 1e9

    def look_for_answer(self, name, began_ns):
        waited_s = min(self.room_s(), (time.monotonic_ns() - began_ns) / 1e9)
        if waited_s > ANSWER_S:
            raise Failed(f"{name} waits for an answer for {waited_s:.0f} s")
        refused = self.load.totals()[2]
        if refused > self.refused and self.room_s() > ROOM_S:
            raise Failed(f"ENOSPC, though there has been room for {self.room_s():.0f} s")
        self.refused = refused

    def check(self):
        self.step = "check"
        self.load.tell("check")
        while "full" in self.load.gather({"checked", "full"}):
            # The reserve from which files are opened on a full disk is not endless.
            if self.is_full():
                self.make_room()
            elif self.room_s() > ROOM_S:
                raise Failed(f"a look is ENOSPC after {ROOM_S} s of room")
            self.load.tell("check")

    def hold(self):
        self.step = "hold"
        self.load.tell("hold")
        self.load.gather({"held"})

    def tend_disk(self):
        """While all work: fills the disk or frees it when it is time."""
        now = time.monotonic()
        if self.cluster.disk is None:
            return
        if self.is_full() and now < self.free_at:
            self.cluster.disk.fill()
        elif self.is_full():
            self.free_disk()
        elif now >= self.fill_at:
            self.cluster.disk.fill()
            self.totals.fills += 1
            self.free_at = now + 4 + self.rng.random() * self.fill_s()

    def fill_s(self):
        return 10

    def make_room(self):
        self.cluster.disk.free()
        self.room_since = time.monotonic_ns()
        self.fill_at = time.monotonic() + 8 + self.rng.random() * 15

    def free_disk(self):
        """All goes on within ROOM_S."""
        self.step = "disk freed"
        before = self.load.acknowledged()
        self.make_room()
        probe = subprocess.Popen(
            [self.program, "probe", os.path.join(self.cluster.mount, "probe"),
             os.path.join(self.cluster.top, "probe.calls")],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        try:
            said, _ = probe.communicate(timeout=ROOM_S)
        except subprocess.TimeoutExpired:
            probe.kill()
            raise Failed(f"touch, chmod, write and fsync were not all answered in {ROOM_S} s of "
                         "room") from None
        if said != "done\n":
            raise Failed(f"with room: {said.strip()}")
        self.wait_for_progress(before)
        waited_s = (time.monotonic_ns() - self.room_since) / 1e9
        self.totals.longest_room_s = max(self.totals.longest_room_s, waited_s)

    def wait_for_progress(self, before):
        while True:
            now = self.load.acknowledged()
            behind = [name for name in now if now[name] == before[name]]
            if not behind:
                return
            if self.room_s() > ROOM_S:
                raise Failed(f"{', '.join(behind)} did nothing in {ROOM_S} s of room")
            self.load.run_for(0.05)

    def finish(self):
        """Ends as it should, and all is there afterwards."""
        if self.is_full():
            self.free_disk()
        self.hold()
        self.check()
        self.step = "fsck"
        result = self.cluster.run("fsck", self.cluster.directory)
        if result.returncode != 0:
            raise Failed(f"fsck says {result.stdout.strip()} {result.stderr.strip()}")
        self.step = "down"
        self.serving_since = None
        self.cluster.stop()
        self.start()
        self.check()

    def run(self, seconds):
        """All of it; adds up what was done also when it breaks."""
        try:
            self.start()
            self.work(time.monotonic() + seconds)
            self.finish()
        except Failed as problem:
            raise Failed(f"{self.where()}: {problem}") from None
        finally:
            acknowledged, checked, refused = self.load.totals()
            self.totals.acknowledged += acknowledged
            self.totals.checked += checked
            self.totals.refused += refused
            self.load.end()

    def where(self):
        return self.step

    def work(self, end):
        raise NotImplementedError


class KillTurn(Turn):
    """Killed and started again; pauses_s: between which bounds a life lasts."""

    def __init__(self, *arguments, pauses_s):
        super().__init__(*arguments)
        self.pauses_s = pauses_s
        self.kills = 0
        self.aimed = 0
        self.last_kill = "no kill"
        self.tell_at = time.monotonic() + 60

    def tell_progress(self):
        """Each minute."""
        if time.monotonic() >= self.tell_at:
            self.tell_at += 60
            self.say(f"{self.kills} kills, {self.aimed} aimed")

    def where(self):
        return f"{self.step}, after {self.last_kill}"

    def count_kill(self, state=None):
        self.serving_since = None
        self.last_kill = f"kill {self.kills + 1}{f' ({state})' if state else ''}"
        self.kills += 1
        self.totals.kills += 1
        if state:
            self.aimed += 1
            self.totals.aims[state] = self.totals.aims.get(state, 0) + 1

    def kill(self, state=None):
        self.cluster.kill()
        self.count_kill(state)

    def cut_starts(self):
        while self.rng.random() < 0.08:
            self.step = "a start that is cut"
            self.cluster.start_and_kill(self.rng.random() * 0.3)
            self.count_kill()

    def check_or_die(self):
        """False: killed in the middle of it."""
        if self.rng.random() >= 0.08:
            self.check()
            return True
        self.step = "a check that is cut"
        self.load.tell("check")
        time.sleep(self.rng.random() * 0.15)
        self.kill()
        self.load.gather({"checked", "full", "dead"}, ANSWER_S)
        return False

    def aim(self):
        """Kills in a rare state if there is one soon; says whether it did. In the last half of its
        time any of those that don't come by themselves will do."""
        wanted = set(self.rng.choices(list(AIMS), AIMS.values()))
        process = self.cluster.process()
        if process is None:
            raise Failed("the daemon died")
        end = time.monotonic() + AIM_S
        with soak_rings.Rings(self.cluster.identity) as rings:
            looked_at = [ring for ring in rings.rings if ring.usable]
            while time.monotonic() < end:
                self.load.run_for(self.rng.random() * 0.004)
                stop(process)
                if time.monotonic() > end - AIM_S / 2:
                    wanted |= set(AIMS) - {"empty"}
                for ring in looked_at:
                    if shown := wanted & soak_rings.states_of(ring):
                        self.kill(min(sorted(shown), key=AIMS.get))
                        return True
                os.kill(process, signal.SIGCONT)
        return False

    def live(self):
        """The load works; then the daemon is killed."""
        self.step = "work"
        self.load.tell("go")
        self.tend_disk()
        self.step = "work, disk full" if self.is_full() else "work"
        self.load.run_for(self.pauses_s[0] + self.rng.random() * self.pauses_s[1])
        if self.aimed >= AIMED_SHARE * self.kills or not self.aim():
            self.kill()
        self.step = "the end of the load"
        self.load.gather({"dead"}, ANSWER_S)

    def work(self, end):
        while time.monotonic() < end:
            if self.check_or_die():
                self.live()
            self.cut_starts()
            self.start()
            self.tell_progress()
        # As finish finds it.
        self.check()
        self.load.tell("go")


class QuietTurn(Turn):
    """Never killed: its memory is watched."""

    def fill_s(self):
        return 40

    def work(self, end):
        began = time.monotonic()
        sample_at = began + min(600, (end - began) / 6)
        before = None
        self.check()
        while time.monotonic() < end:
            self.step = "work"
            self.load.tell("go")
            until = min(end, time.monotonic() + 30)
            while time.monotonic() < until:
                self.tend_disk()
                self.load.run_for(1)
            if before is None and time.monotonic() >= sample_at:
                before = self.cluster.anonymous_bytes()
            self.hold()
            self.check()
        self.load.tell("go")
        if self.is_full():
            self.free_disk()
        after = self.cluster.anonymous_bytes()
        self.say(f"RssAnon after {(sample_at - began) / 60:.1f} minutes {before / MIB:.1f} MiB, at "
                 f"the end {after / MIB:.1f} MiB")
        if after > before + 5 * MIB:
            raise Failed(f"RssAnon grew from {before} to {after} bytes")


def make_turn(words, number, rng, totals, quiet):
    """The turn of this number, and its cluster: smallest sizes on a disk of its own, defaults,
    smallest sizes; and so on."""
    shoal, program = words
    no_disk = soak_disk.missing()
    if number % 3 == 1 and not quiet:
        cluster = SoakCluster(shoal, 4, None, 0)
        return KillTurn(cluster, program, soak_load.large_load(rng), rng, totals,
                        pauses_s=(0.5, 8))
    osts = rng.choice([1, 2, 3])
    disk_bytes = 0 if number % 3 == 2 or no_disk else rng.choice([600, 800, 1000]) * MIB
    disk_bytes = GIB if quiet and not no_disk else disk_bytes
    if no_disk and number % 3 == 0:
        print(f"  the disk is not filled, for want of {no_disk}", flush=True)
    cluster = SoakCluster(shoal, osts, SMALLEST, disk_bytes)
    equal = not quiet and rng.random() < (0.25 if disk_bytes else 0.75)
    kinds = soak_load.equal_load(rng) if equal else soak_load.small_load(rng)
    if quiet:
        return QuietTurn(cluster, program, kinds, rng, totals)
    return KillTurn(cluster, program, kinds, rng, totals, pauses_s=(0.02, 0.7))
