"""Words drawn at random: an answer or one line, whatever they are."""

import random
import shlex
import subprocess

SEED = 20261122
DRAWS = 200
VALUES = ["0", "1", "-1", "1e400", "nan", "inf", "1e300", "70B", "10TB", "60s", "0s", "$2/h", "50%",
          "a:b", "1:1", "1e300:1e-300", "0:0", ",,", "x" * 5000, "\u00e9", "\x1b[31m", "</script>",
          "=size.usable", "2500/s", "0.5", "1e18", "none", "copies", "yes", "1e9", "999999999999"]
OPTIONS = ["params", "gpus", "dataset", "gpu", "system", "files", "sample-size", "interval",
           "samples-per-second", "target", "storage-nodes", "protection", "copies", "jobs",
           "job-copies", "mode", "state", "layers", "requests", "context", "drive-iops", "explain",
           "nodes", "cache-size", "cache-kind", "metadata-targets", "full-targets"]
NOUNS = ["run", "run", "run", "mix", "inference", "systems", "checkpoint", "size", "loading",
         "rebalance", "metadata", "cost"]


def draw(chance):
    words = [chance.choice(NOUNS)]
    for option in chance.sample(OPTIONS, chance.randrange(6)):
        words += ["--" + option, chance.choice(VALUES)]
    words += [word for word in ("--json", "--all", "--emit") if chance.random() < 0.15]
    if chance.random() < 0.15:
        words += ["--sweep", f"{chance.choice(OPTIONS)}={chance.choice(VALUES)}.."
                             f"{chance.choice(VALUES)}:{chance.choice(['3', '5log', '0', 'x'])}"]
    return words


def garbage(shoal, tally):
    chance = random.Random(SEED)
    for number in range(DRAWS):
        words = draw(chance)
        run = subprocess.run([shoal, "plan"] + words, capture_output=True, text=True, check=False,
                             errors="replace", timeout=60)
        refused = run.returncode in (1, 2)
        good = run.returncode in (0, 1, 2, 3) and \
            (not refused or (run.stderr.count("\n") == 1 and run.stdout == "")) and \
            not {"inf", "nan"} & set(run.stdout.split())
        tally.check(good, f"seed {SEED}, draw {number}: shoal plan {shlex.join(words)[:300]}: "
                          f"{run.returncode} {run.stderr[:200]!r}")
