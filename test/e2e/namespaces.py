#!/usr/bin/python3
"""A cluster of several nodes in network namespaces, as ./dev cluster makes it: used, cut apart,
killed, under load.

Usage: namespaces.py SHOAL

SHOAL is the command. The last line counts.
"""

import json
import os
import signal
import subprocess
import sys
import time

import cluster as clusters
from cluster import Failed
from driver import drive
from files_load import Load, wait_until
from place import Place, same, why_not

NODES = 3
CUT_S = 3
TIMEOUT_S = 5  # of a session, the least


def who_opens_sees_what_was_closed(place):
    """At once, also within the second for which the kernel keeps a file's size."""
    for number in range(50):
        content = b"%08d" % number * (number * 37 % 500 + 1)
        with open(place.at(1, "grows"), "wb") as file:
            file.write(content)
        descriptor = os.open(place.at(2, "grows"), os.O_RDONLY)
        got = os.read(descriptor, 1 << 20)
        os.close(descriptor)
        if got != content:
            raise Failed(f"node 2 reads {len(got)} bytes of {len(content)} that were closed")


def nodes_see_one_tree(place):
    """All of it is there again after a stop of all; namespaces are gone in between."""
    place.start()
    contents = {}
    for node in range(1, NODES + 1):
        contents[f"of-{node}"] = os.urandom(3 << 20)
        with open(place.at(node, f"of-{node}"), "wb") as file:
            file.write(contents[f"of-{node}"])
    for node in range(1, NODES + 1):
        for name, content in contents.items():
            same(place.at(node, name), content)
    who_opens_sees_what_was_closed(place)
    if place.tool(str(NODES), place.directory, place.mounts, check=False).returncode != 1:
        raise Failed("what runs was started once more")
    place.stop()
    left = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    if place.name in left.stdout:
        raise Failed("a namespace is left")
    place.start()
    for name, content in contents.items():
        same(place.at(2, name), content)


def cuts_and_ends_are_pauses(place):
    """Each node's link is down for a while, each is stopped for a while, each is killed."""
    place.start()
    work = Load(place)
    other = Load(place, place.at(3), "third")
    for node in range(1, NODES + 1):
        work.goes_on()
        place.link(node, "down")
        time.sleep(CUT_S)
        place.link(node, "up")
        work.goes_on()
        process = place.process(node)
        os.kill(process, signal.SIGSTOP)
        time.sleep(CUT_S)
        os.kill(process, signal.SIGCONT)
        work.goes_on()
        clusters.end_process(process)
        place.up(node)
    work.goes_on()
    other.goes_on()
    told = [one.check() for one in (work, other)]
    print(f"{sum(count for count, _ in told)} files, the longest took "
          f"{max(longest for _, longest in told)} s")
    for node in range(1, NODES + 1):
        result = subprocess.run([place.shoal, "fsck", place.path(node)], capture_output=True,
                                text=True, check=False)
        if result.returncode != 0:
            raise Failed(f"fsck of node {node}: {result.stdout.strip()} {result.stderr.strip()}")


def counters(place):
    told = subprocess.run([place.shoal, "stats", place.path(1), "--json"], capture_output=True,
                          text=True, check=False).stdout
    return {row["name"]: row["value"] for row in json.loads(told)["counters"]}


def log_of(place):
    with open(place.path(1, "shoal.log"), encoding="utf-8") as file:
        return file.read()


def a_first_node_that_is_cut_off_evicts_nobody(place):
    """For longer than a session's timeout: what was open goes on, by every mount."""
    place.start()
    place.tool("run", "1", "shoal", "down", place.path(1))
    with open(place.path(1, "shoal.conf"), "a", encoding="ascii") as file:
        file.write(f"[limits]\nsession_timeout_ms = {TIMEOUT_S * 1000}\n")
    place.up(1)
    opened = [os.open(place.at(node, f"open-{node}"), os.O_CREAT | os.O_RDWR)
              for node in (2, 3)]
    place.link(1, "down")
    start = time.monotonic()
    try:
        wait_until(lambda: "hears 1 of 3 nodes: no client is evicted" in log_of(place),
                   "a line of a manager that hears too few")
        status = subprocess.run([place.shoal, "status", place.path(1)], capture_output=True,
                                text=True, check=False).stdout
        if "evictions  held back: the manager hears 1 of 3 nodes" not in status:
            raise Failed(f"status of a manager that hears too few says {status}")
        time.sleep(max(0.0, TIMEOUT_S + 1.5 - (time.monotonic() - start)))
    finally:
        place.link(1, "up")
    for descriptor in opened:
        os.pwrite(descriptor, b"goes on", 0)
        os.fsync(descriptor)
        os.close(descriptor)
    for node in (2, 3):
        same(place.at(1, f"open-{node}"), b"goes on")
    count = counters(place)
    if count["silent_evicted"] != 0 or count["silent_held"] < 2:
        raise Failed(f"{count['silent_evicted']} were evicted, {count['silent_held']} were not")


TESTS = [nodes_see_one_tree, cuts_and_ends_are_pauses, a_first_node_that_is_cut_off_evicts_nobody]


def main():
    def play(test):
        with Place(sys.argv[1], NODES) as place:
            test(place)

    return drive(__doc__, TESTS, play, lacks=why_not)


sys.exit(main())
