#!/usr/bin/python3
"""Nodes of two versions serve one cluster: the build of this tree, and that of the commit before.

Usage: versions.py SHOAL BEFORE [TEST...]

SHOAL and BEFORE are the commands of this tree and of the one before. The last line counts. A commit
that changes messages or the disk so that the two can't is told from others by its version
(docs/internals/links.md#versions), and changes this test.
"""

import os
import sys

import cluster as clusters
from driver import drive
from nodes import Nodes, clean, known_to_manager, put, same

FILES = 24
BYTES = 3 * clusters.MIB


def work(nodes, label):
    """Files by each mount, read by all; names that change, and go. Answers what must be there."""
    mounts = [node.mount for node in nodes.all()]
    made = {}
    for number, mount in enumerate(mounts):
        folder = os.path.join(mount, f"{label}-{number}")
        os.mkdir(folder)
        for index in range(FILES):
            path = f"{label}-{number}/file{index}"
            made[path] = put(os.path.join(mount, path), BYTES if index == 0 else 900 * index)
    all_is_there(nodes, made)
    first, last = (os.path.join(mount, label) for mount in (mounts[0], mounts[-1]))
    os.rename(last + "-0/file1", last + "-1/moved")
    os.unlink(first + "-1/file2")
    os.link(last + "-0/file3", last + "-2/linked")
    made[f"{label}-1/moved"] = made.pop(f"{label}-0/file1")
    made[f"{label}-2/linked"] = made[f"{label}-0/file3"]
    del made[f"{label}-1/file2"]
    return made


def all_is_there(nodes, made):
    for node in nodes.all():
        for path, content in made.items():
            same(os.path.join(node.mount, path), content)


def start(nodes, daemons, mounts):
    """By the command `daemons`, with a mount of a process of its own for each by `mounts`."""
    for node in nodes.all():
        node.shoal = daemons
    nodes.start()
    nodes.first.run("umount", nodes.first.mount)
    for node in nodes.all():
        nodes.first.shoal = mounts
        nodes.first.mount_apart(node.mount)
    nodes.first.shoal = daemons


def nodes_are_replaced(nodes, shoal, before):
    """A cluster that serves is upgraded, a node at a time; the mounts are of the older version,
    those of other nodes to the end."""
    start(nodes, before, before)
    made = work(nodes, "begin")
    for number, node in enumerate([*nodes.others, nodes.first]):
        node.stop()
        node.shoal = shoal
        node.start()
        known_to_manager(node)
        made |= work(nodes, f"turn{number}")
    all_is_there(nodes, made)
    clean(nodes.first)


def mounts_are_newer(nodes, shoal, before):
    start(nodes, before, shoal)
    all_is_there(nodes, work(nodes, "begin"))
    clean(nodes.first)


TESTS = [nodes_are_replaced, mounts_are_newer]


def lacks():
    return clusters.missing() or ("" if os.path.exists(sys.argv[2]) else "the commit before")


def main():
    def play(test):
        with Nodes(sys.argv[1]) as nodes:
            test(nodes, *(os.path.abspath(path) for path in sys.argv[1:3]))

    return drive(__doc__, TESTS, play, words=2, lacks=lacks)


if __name__ == "__main__":
    sys.exit(main())
