"""Part of ./dev bench about the planner: what `shoal plan cluster` says of small files here.

It takes the costs of other sizes as measured in the same run, and reckons those of this one."""

import json
import os
import subprocess

from mounts import forget, stopping

THREADS = 8
SIZE = "50K"
OTHER_SIZES = ("16K", "200K")


def prediction(bench):
    """How far the planner is off, for whole files of 50 KiB."""
    place = bench.cluster()
    try:
        runs = bench.take_turns((place,), lambda place: prediction_once(bench, place))
    finally:
        stopping((place,))
    for phase, words in (("write", "written"), ("read", "read")):
        pairs = [run[0][phase] for run in runs]
        name = f"planner: 50 KiB files {words}, {THREADS} threads"
        bench.row(name, "files/s", pairs, "what the planner says", "")
        bench.row(f"{name}, error", "%", [(abs(said / done - 1) * 100, None)
                                          for done, said in pairs], "of what was measured", "<= 20")


def prediction_once(bench, place):
    """{phase: (measured, predicted)}. Warm: the costs are those of the processors."""
    files = 2000 if bench.smoke else 20000
    forget(place, 3)
    costs = [small(bench, place, size, files) for size in OTHER_SIZES]
    done = small(bench, place, SIZE, files)
    paths = []
    for index, rows in enumerate(costs):
        paths.append(os.path.join(bench.work, f"calibration-{index}.json"))
        with open(paths[-1], "w", encoding="utf-8") as file:
            json.dump(list(rows.values()), file)
    said = plan(bench.shoal, paths)
    for path in paths:
        os.remove(path)
    return {"write": (done["write"]["ops_per_s"], said["small_writes"]["value"]),
            "read": (done["read"]["ops_per_s"], said["small_reads"]["value"])}


def small(bench, place, size, files):
    return bench.run(place, "small", "--threads", str(THREADS), "--files", str(files), "--size",
                     size)


def plan(shoal, calibrations):
    words = [shoal, "plan", "cluster", "--clients", "1", "--cores-per-client",
             str(os.cpu_count()), "--file-size", SIZE + "iB", "--json"]
    for path in calibrations:
        words += ["--calibration", path]
    run = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(run.stdout)["rows"][0]
