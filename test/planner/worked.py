"""Worked examples of the formulas for inference, mixes, caches, adapters and drives.

Each wanted figure is computed here from the formula's definition, not read from the planner.
"""

import itertools
import math
import random
import shlex

import plan

SEED = 20261122


def lru_hit(share):
    """Of a fresh permutation each epoch: simulated, and then compared with c + (1-c) ln(1-c)."""
    chance = random.Random(SEED)
    count = 4000
    room = round(share * count)
    cache = dict.fromkeys(range(room))
    hits = reads = 0
    for epoch in range(12):
        order = list(range(count))
        chance.shuffle(order)
        for item in order:
            hit = item in cache
            hits += hit and epoch > 1
            reads += epoch > 1
            cache.pop(item, None)
            cache[item] = None
            if len(cache) > room:
                del cache[next(iter(cache))]
    return hits / reads


def quantile(jobs, target):
    """By going through all subsets of the jobs."""
    rows = []
    for busy in itertools.product((0, 1), repeat=len(jobs)):
        chance, load = 1.0, 0.0
        for is_busy, (size, minutes) in zip(busy, jobs):
            share = target / (minutes * 60)
            chance *= share if is_busy else 1 - share
            load += is_busy * size * 1e9 / target
        rows.append((load, chance))
    total = 0
    for load, chance in sorted(rows):
        total += chance
        if total >= 0.99:
            return load
    return None


JOBS = [(980, 30), (980, 30), (420, 20), (112, 15), (112, 15), (28, 10)]
JOBS_TEXT = ",".join(f"{size}:{minutes}" for size, minutes in JOBS)
LARGE = 10 ** 9
EXAMPLES = [
    # KV cache: 2 x 80 layers x 8 heads x 128 x 2 B; MLA: 61 x (512 + 64) x 2 B.
    ("inference", {"token_bytes": (327680, 0)}),
    ("inference --attention mla --layers 61", {"token_bytes": (70272, 0)}),
    # 20 requests a second of 8,192 tokens, 40 % new, kept for an hour.
    ("inference --requests 20/s", {"capacity": (20 * 0.4 * 3600 * 8192 * 327680, 1e-12),
                                   "read_bandwidth_needed": (20 * 0.6 * 8192 * 327680, 1e-12)}),
    ("inference --stream-bandwidth 10GB/s", {"load_time": (8192 * 327680 / 1e10, 1e-12),
                                             "speedup": (0.8192 / 0.2684354560, 1e-9)}),
    # LoRA of rank 16 on attention: r x (d_in + d_out) of q, k, v, o in each of 32 layers.
    ("checkpoint --state lora-bf16 --layers 32 --hidden 4096 --kv-width 1024",
     {"adapter_params": (32 * 16 * (8192 + 5120 + 5120 + 8192), 0),
      "size": (32 * 16 * (8192 + 5120 + 5120 + 8192) * 14, 0)}),
    ("checkpoint --state lora-bf16 --layers 32 --hidden 4096 --kv-width 1024 --mlp-width 14336 "
     "--adapted all",
     {"adapter_params": (32 * 16 * (2 * 8192 + 2 * 5120 + 3 * (4096 + 14336)), 0)}),
    # A delta of 10 %, and an index of 2 GB.
    ("checkpoint --changed 10% --delta-index 2GB", {"written": (98e9 + 2e9, 1e-12)}),
    # Pre-emption each 20 h beside failures each 195 h.
    ("checkpoint --preemptions 0.05/h",
     {"job_mttf": (3600 / (0.05 + 256 / 50000), 1e-12)}),
    # A hard disk: 150 requests of 1 MiB a second are less than its 250 MB/s.
    ("size --drive-write 250MB/s --drive-read 250MB/s --drive-iops 150/s",
     {"drive_takes": (150 * 2 ** 20, 1e-12), "drive_gives": (150 * 2 ** 20, 1e-12)}),
    ("size --drive-write 250MB/s --drive-read 250MB/s --drive-iops 150/s --request 4MiB",
     {"drive_takes": (250e6, 1e-12)}),
    # 2 TB of each of 32 nodes for 100 TB.
    ("loading --cache-size 2TB --dataset 100TB", {"hit": (0.64, 1e-12)}),
    ("loading --cache-size 2TB --dataset 100TB --cache-kind lru",
     {"hit": (0.64 + 0.36 * math.log(0.36), 1e-12)}),
    ("loading --cache-size 2TB --dataset 10TB --cache-kind lru", {"hit": (1, 0)}),
    # 4 of 32 targets at 90 %, the others at 30 %: mean 37.5 %, 52.5 % of 15 TB leaves each.
    ("rebalance --full-targets 4", {"moving": (4 * 0.525 * 15e12, 1e-12)}),
    (f"mix --jobs {JOBS_TEXT}",
     {"write_mean": (sum(size * LARGE / (minutes * 60) for size, minutes in JOBS), 1e-12),
      "write_worst": (sum(size * LARGE / 60 for size, _ in JOBS), 1e-12),
      "write_p99": (quantile(JOBS, 60), 1e-3)}),
    # Beyond 64 jobs the normal distribution: 100 of 980 GB each half hour.
    ("mix --jobs 980:30 --job-copies 100",
     {"write_p99": (980e9 / 60 * (100 / 30 + 2.3263478740408408 *
                                  math.sqrt(100 / 30 * 29 / 30)), 1e-12)}),
    # The checkpoints of MLPerf Storage.
    ("checkpoint --benchmark mlperf-8b", {"size": (105 * 2 ** 30, 0)}),
    ("checkpoint --benchmark mlperf-70b", {"size": (912 * 2 ** 30, 0)}),
    ("checkpoint --benchmark mlperf-405b", {"size": (5290 * 2 ** 30, 0)}),
    ("checkpoint --benchmark mlperf-1t", {"size": (18000 * 2 ** 30, 0)}),
    ("loading --workload flux --accelerator b200 --nodes 1 --gpus-per-node 1",
     {"bandwidth_needed": (2164832 * 48 / 1.35, 1e-12)}),
    ("loading --workload dlrm --accelerator b200 --nodes 1 --gpus-per-node 1",
     {"bandwidth_needed": (761 * 16384 / 0.375e-3, 1e-12)}),
]


def worked(shoal, tally):
    for command, figures in EXAMPLES:
        row = plan.plan(shoal, shlex.split(command))["rows"][0]
        for name, (wanted, tolerance) in figures.items():
            got = row[name]["value"]
            tally.check(got is not None and
                        math.isclose(got, wanted, rel_tol=max(tolerance, 1e-15)),
                        f"{command}: {name} is {got}, not {wanted}")
    for share in (0.3, 0.64, 0.9):
        formula = share + (1 - share) * math.log(1 - share)
        tally.check(abs(lru_hit(share) - formula) < 0.01,
                    f"LRU, {share} of the data: {lru_hit(share)}, the formula says {formula}")
