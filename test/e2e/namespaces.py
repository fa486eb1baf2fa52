#!/usr/bin/python3
"""A cluster of several nodes in network namespaces, as ./dev cluster makes it: used, cut apart,
killed, under load.

Usage: namespaces.py SHOAL

SHOAL is the command. The last line counts.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import cluster as clusters
from cluster import Failed
from files_load import Load

NODES = 3
CUT_S = 3
TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "cluster")


class Place:
    """Of one test: where its nodes are, until it ends."""

    def __init__(self, shoal):
        self.shoal = os.path.abspath(shoal)
        self.name = f"shoal-e2e-{os.getpid()}"
        self.top = tempfile.mkdtemp(prefix="shoal-e2e-")
        self.directory = os.path.join(self.top, "data")
        self.mounts = os.path.join(self.top, "mounts")
        self.mount = os.path.join(self.mounts, "1")

    def tool(self, *words, check=True):
        result = subprocess.run([TOOL, "--name", self.name, self.shoal, *words], text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if check and result.returncode != 0:
            raise Failed(f"cluster {words[0]}: {result.stderr.strip()}")
        return result

    def start(self):
        self.tool(str(NODES), self.directory, self.mounts)

    def stop(self):
        self.tool("stop", self.directory, self.mounts)

    def path(self, node, *names):
        return os.path.join(self.directory, str(node), *names)

    def at(self, node, *names):
        return os.path.join(self.mounts, str(node), *names)

    def process(self, node):
        with open(self.path(node, "lock"), encoding="ascii") as file:
            return int(file.read())

    def up(self, node):
        self.tool("run", str(node), "shoal", "up", self.path(node))

    def link(self, node, state):
        subprocess.run(["ip", "-n", f"{self.name}-net", "link", "set", f"to-{node}", state],
                       check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in range(1, NODES + 1):
            clusters.unmount(self.at(node))
            try:
                clusters.end_process(self.process(node))
            except (OSError, ValueError):
                pass
        self.tool("stop", self.directory, self.mounts, check=False)
        shutil.rmtree(self.top, ignore_errors=True)


def same(path, content):
    with open(path, "rb") as file:
        if file.read() != content:
            raise Failed(f"{path} has other bytes")


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


def why_not():
    missing = clusters.missing()
    if missing:
        return missing
    if not shutil.which("ip") or not shutil.which("nsenter"):
        return "ip or nsenter, which make networks"
    if subprocess.run(["unshare", "--net", "true"], capture_output=True,
                      check=False).returncode != 0:
        return "the right to make network namespaces"
    return None


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
            with Place(sys.argv[1]) as place:
                test(place)
            print(f"{test.__name__}: ok, {time.monotonic() - start:.0f} s", flush=True)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"{test.__name__}: FAILED: {error}", flush=True)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
