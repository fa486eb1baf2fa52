#!/usr/bin/python3
"""A cluster of several nodes in network namespaces, as ./dev cluster makes it: used, cut apart,
killed, under load.

Usage: namespaces.py SHOAL

SHOAL is the command. The last line counts.
"""

import os
import signal
import subprocess
import sys
import time

import cluster as clusters
from cluster import Failed
from files_load import Load
from place import Place, same, why_not

NODES = 3
CUT_S = 3


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


TESTS = [nodes_see_one_tree, cuts_and_ends_are_pauses]


def main():
    if len(sys.argv) != 2:
        print(__doc__.split("\n")[4], file=sys.stderr)
        return 2
    missing = why_not()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, {len(TESTS)} skipped")
        return 0
    failed = 0
    for test in TESTS:
        start = time.monotonic()
        try:
            with Place(sys.argv[1], NODES) as place:
                test(place)
            print(f"{test.__name__}: ok, {time.monotonic() - start:.0f} s", flush=True)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"{test.__name__}: FAILED: {error}", flush=True)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
