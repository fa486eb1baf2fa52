#!/usr/bin/python3
"""Power loss under a daemon that works, N times, over clusters of several shapes.

Usage: power.py SHOAL POWER_LAYER ROUNDS [SEED] [--expect-loss]

SHOAL is the command, POWER_LAYER the file system under a cluster's directory that forgets what was
not synced (power_layer.c). A round: a load works on the mount; at some moment the daemon is killed,
its rings in shared memory are removed, as a reboot does, and the layer drops or tears what was not
synced; now and then that happens once more while the cluster starts. Then it is started, what is
there is compared with what was done and acknowledged (power_load.py), and `shoal fsck`, which waits
for the scrub of chunks without a file, is clean.

A round's choices come from its seed; the moments at which threads run do not. With --expect-loss it
succeeds when a loss is found. The last line counts.
"""

import os
import random
import shutil
import subprocess
import sys
import time

import cluster as clusters
import power_load
from cluster import Failed, SHAPES

ROUNDS_PER_CLUSTER = 4
LIMIT_S = 120


class PoweredCluster(clusters.Cluster):
    """A cluster whose directory lies on the layer."""

    def __init__(self, shoal, layer, osts, sizes):
        super().__init__(shoal, osts, sizes)
        self.program = os.path.abspath(layer)
        self.back = os.path.join(self.top, "back")
        self.layer = None
        os.makedirs(os.path.join(self.back, "root"))
        shutil.move(self.path("shoal.conf"), os.path.join(self.back, "root", "shoal.conf"))

    def power_on(self):
        self.layer = subprocess.Popen([self.program, self.back, self.directory], text=True,
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.layer.stdout.readline() != "ready\n":
            raise Failed("the layer did not mount")

    def power_off(self, seed):
        """What the layer says that it kept and lost. No daemon runs any more."""
        clusters.unmount(self.mount)
        for region in self.regions:
            if os.path.exists(region):
                os.unlink(region)
        told, _ = self.layer.communicate(f"power {seed}\n", timeout=LIMIT_S)
        status = self.layer.returncode
        self.layer = None
        clusters.unmount(self.directory)
        if status != 0:
            raise Failed(f"the layer ended with {status}: {told}")
        return told.strip()

    def start_and_kill(self, delay_s):
        """A start that is cut."""
        process = subprocess.Popen([self.shoal, "up", self.directory, "--mount", self.mount,
                                    "--foreground"], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay_s)
        clusters.end_process(process.pid)
        process.wait()

    def close(self):
        self.note_regions()
        process = self.process()
        if process is not None:
            clusters.end_process(process)
        clusters.unmount(self.mount)
        if self.layer:
            self.layer.communicate("", timeout=LIMIT_S)
        clusters.unmount(self.directory)
        super().close()


class Round:
    """One load and one cut. kept is what the round before left, in a folder of its own."""

    def __init__(self, cluster, seed):
        self.cluster = cluster
        self.seed = seed
        self.rng = random.Random(seed)
        self.folder = os.path.join(cluster.mount, f"round{seed}")
        rng = self.rng
        workers = [(power_load.Names, "names0"), (power_load.Names, "names1"),
                   (power_load.Data, "data0")]
        workers += [(power_load.Data, "data1")] * rng.randrange(2)
        workers += [(power_load.Small, "small0")] * rng.randrange(2)
        # An fsync syncs a whole target: where there are few, much is lost that none covers.
        sync_share = rng.choice([0.02, 0.2, 1])
        self.workers = [kind(self.folder, name, seed, sync_share) for kind, name in workers]
        self.load_s = rng.choice([0.1, 0.5, 1.0, 1.5, 2.5]) * (0.5 + rng.random())

    def work(self):
        os.mkdir(self.folder)
        for worker in self.workers:
            worker.start()
        time.sleep(self.load_s)
        self.cluster.kill()
        for worker in self.workers:
            worker.ends.set()
        clusters.unmount(self.cluster.mount)
        for worker in self.workers:
            worker.join(LIMIT_S)
            if worker.is_alive() or worker.problem:
                raise Failed(f"{worker.name} of the load: {worker.problem or 'does not end'}")

    def cut(self):
        told = [self.cluster.power_off(self.rng.getrandbits(63))]
        self.cluster.power_on()
        if self.rng.random() < 0.3:
            self.cluster.start_and_kill(0.02 + self.rng.random() * 0.4)
            told.append("cut in a start: " + self.cluster.power_off(self.rng.getrandbits(63)))
            self.cluster.power_on()
        print(f"seed {self.seed}: {self.load_s:.1f} s,",
              sum(worker.steps_done for worker in self.workers), "steps,",
              sum(worker.syncs_done for worker in self.workers), "fsyncs;",
              "; ".join(told), flush=True)

    def check(self, kept):
        if kept:
            top = os.path.commonpath(list(kept))
            now = power_load.snapshot(top)
            changed = sorted(path for path in kept.keys() | now.keys()
                             if kept.get(path) != now.get(path))
            if changed:
                raise Failed(f"{changed[0]} was synced before the load and is not as it was: "
                             f"{now.get(changed[0])}, not {kept.get(changed[0])}")
        for worker in self.workers:
            worker.check()
        power_load.check_order([worker for worker in self.workers
                                if isinstance(worker, power_load.Names)])
        self.check_fsck()

    def check_fsck(self):
        """Clean: the check waits for the scrub of chunks without a file."""
        result = self.cluster.run("fsck", self.cluster.directory, limit_s=LIMIT_S)
        if result.returncode != 0:
            raise Failed(f"fsck says {result.stdout.strip()} {result.stderr.strip()}")

    def run(self, kept):
        """What is below the mount afterwards, all synced."""
        self.work()
        self.cut()
        self.cluster.start()
        self.check(kept)
        for name in os.listdir(self.cluster.mount):
            path = os.path.join(self.cluster.mount, name)
            if path != self.folder:
                shutil.rmtree(path)
        power_load.sync_path(self.cluster.mount)
        return power_load.snapshot(self.folder) if os.path.isdir(self.folder) else {}


def run_cluster(shoal, layer, seeds):
    """Rounds on one cluster; how many passed before one failed."""
    osts, sizes = SHAPES[random.Random(seeds[0]).randrange(len(SHAPES))]
    passed = 0
    with PoweredCluster(shoal, layer, osts, sizes) as cluster:
        try:
            cluster.power_on()
            cluster.start()
            kept = {}
            for seed in seeds:
                kept = Round(cluster, seed).run(kept)
                passed += 1
        except (Failed, OSError) as failure:
            # A log that the cut took a part of holds zeros.
            text = f"{failure}; the log ends: {cluster.log_end()}".replace("\0", "")
            print(f"FAILED: seed {seeds[passed]} of those from {seeds[0]}: {text}", flush=True)
    return passed


def count_rounds(shoal, layer, rounds, seed, until_failure):
    passed = failed = 0
    while passed + failed < rounds and not (until_failure and failed):
        count = min(ROUNDS_PER_CLUSTER, rounds - passed - failed)
        good = run_cluster(shoal, layer, list(range(seed, seed + count)))
        passed += good
        failed += good < count
        seed += good + (good < count)
    return passed, failed


def main():
    words = [word for word in sys.argv[1:] if word != "--expect-loss"]
    expect_loss = len(words) < len(sys.argv) - 1
    if len(words) not in (3, 4) or not all(word.isdigit() for word in words[2:]):
        print(__doc__.split("\n")[2], file=sys.stderr)
        return 2
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, 1 skipped")
        return 0
    seed = int(words[3]) if len(words) == 4 else int.from_bytes(os.urandom(3), "little")
    passed, failed = count_rounds(words[0], words[1], int(words[2]), seed, expect_loss)
    if expect_loss:
        print("the loss was found" if failed else f"no loss was found in {passed} rounds")
        passed, failed = (1, 0) if failed else (0, 1)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
