#!/usr/bin/python3
"""A node with a metadata target dies for good, with its disk: what was there is declared lost, the
rest goes on, and what comes back with the lost target's DIR is refused.

Usage: lost.py SHOAL [TEST...]

SHOAL is the command. The last line counts.
"""

import contextlib
import errno
import json
import os
import random
import re
import subprocess
import sys
import threading

import cluster as clusters
from cluster import Failed
from driver import drive
from files_load import wait_until
from nodes import (LOST_BYTES, QUICK_S, Nodes, answered, comes_back, error_of, lost, makes_new,
                   maps_are_one, put, refuses_to_lose, same, slots_are_dealt, status, told)

DIRECTORIES = 48
SMALL_BYTES = 1000
MOVED = 24
MOVES_MIN = 200


def mdt_row(node):
    return next(row for row in status(node)["targets"] if row["kind"] == "mdt")


def targets_of(first, node):
    """The numbers of a node's targets, the metadata target's first."""
    number = status(node)["node"]["id"]
    rows = [row for row in status(first)["cluster_targets"] if row["node"] == number]
    return [row["id"] for row in sorted(rows, key=lambda row: (row["kind"] != "mdt", row["id"]))]


def row_of(node):
    """Whoever is away."""
    return json.loads(node.run("status", node.directory, "--json").stdout)["node"]


def version(first):
    return row_of(first)["map_version"]


def dies(node, saved):
    """For good, and its DIR is gone, to where only the test looks."""
    node.kill()
    os.rename(node.directory, saved)


def declare(nodes, ids, told_first):
    """As soon as the daemon has been silent for long enough; who says no at a terminal changes
    nothing."""
    first = nodes.first
    before = version(first)
    wait_until(lambda: "--yes" in lost(first, ids[0])[2], "silence of the dead daemon")
    result = answered(first, ids[0], b"no\n")
    if result.returncode != 1 or told_first not in result.stdout or \
            "nothing has changed" not in result.stderr or version(first) != before:
        raise Failed(f"target lost, no: {result}")
    lost_at_once(nodes, ids[0])
    for target in ids[1:]:
        code, text, error = lost(first, target, "--yes")
        if code != 0 or f"target {target}: lost (map " not in text:
            raise Failed(f"target lost {target}: {code}, {text} {error}")
    for target in ids:
        refuses_to_lose(first, target, says="is lost already")
        refuses_to_lose(first, target, "--yes", says="is lost already")


def problems(first):
    """What fsck says is lost: names and other places. It finds nothing else."""
    code, text, error = told(first, "fsck", first.directory, "--json")
    if not text:
        raise Failed(f"fsck: {code}, {error}")
    found = json.loads(text)
    if not found["finished"] or code != (1 if found["problems"] else 0):
        raise Failed(f"fsck: {code}, {text} {error}")
    if any(one["kind"] != "lost-metadata" for one in found["problems"]):
        raise Failed(f"fsck: {found['problems']}")
    places = [one["where"] for one in found["problems"]]
    names = [re.match('name "(.*)" in ', place) for place in places]
    return (sorted(name.group(1) for name in names if name),
            sorted(place for place, name in zip(places, names) if not name))


def fails(what, call):
    number = error_of(call)
    if number != errno.EIO:
        raise Failed(f"{what} ends with {number}")


def make(mount, number, kept):
    """A directory with a file of its own, which has a second name in the root; and with another
    name of a file that the root's target has."""
    place = os.path.join(mount, f"d{number}")
    os.mkdir(place)
    content = put(os.path.join(place, "file"), SMALL_BYTES)
    os.link(os.path.join(place, "file"), os.path.join(mount, f"l{number}"))
    os.link(kept, os.path.join(place, "kept"))
    return content


def what_is_lost_fails(mount, number):
    place, name = os.path.join(mount, f"d{number}"), os.path.join(mount, f"l{number}")
    fails("stat of a directory", lambda: os.stat(place))
    fails("listing it", lambda: os.listdir(place))
    fails("a file in it", lambda: os.stat(os.path.join(place, "file")))
    fails("mkdir in it", lambda: os.mkdir(os.path.join(place, "new")))
    fails("its rename", lambda: os.rename(place, os.path.join(mount, "renamed")))
    fails("stat of a name elsewhere", lambda: os.stat(name))
    fails("open of it", lambda: os.close(os.open(name, os.O_RDONLY)))
    fails("a name over it", lambda: os.rename(os.path.join(mount, "kept"), name))


def the_rest_goes_on(mount, contents, gone):
    for number, content in enumerate(contents):
        if number not in gone:
            place = os.path.join(mount, f"d{number}")
            same(os.path.join(place, "file"), content)
            same(os.path.join(mount, f"l{number}"), content)
            os.mkdir(os.path.join(place, "new"))
            os.rename(os.path.join(place, "new"), os.path.join(mount, "moved"))
            os.rmdir(os.path.join(mount, "moved"))
    for number in range(DIRECTORIES):
        place = os.path.join(mount, f"n{number}")
        os.mkdir(place)
        same(os.path.join(place, "file"), put(os.path.join(place, "file"), SMALL_BYTES))


def refusals(nodes, ids):
    """Each is one line, at whatever node, and makes no version of the map."""
    first, last = nodes.first, nodes.all()[-1]
    maps_are_one(nodes)
    before = version(first)
    root, data = targets_of(first, first)
    for target, says in ((ids[0], "its daemon answers"),
                         (data, "its daemon answers"),
                         (root, "has the root of the file system"),
                         (0, "there is no target 0"),
                         (9999, "there is no target 9999"),
                         (2 ** 32, "is no number of a target"),
                         ("1x", "is no number of a target"),
                         ("mdt0", "is no number of a target"),
                         ("", "is no number of a target"),
                         ("-1", "say lost and the number of a target")):
        for words in ([], ["--yes"]):
            refuses_to_lose(first, target, *words, says=says)
            refuses_to_lose(last, target, *words, says=says)
    if version(first) != before:
        raise Failed("a refusal has made a version of the map")


def lost_at_once(nodes, target):
    """At two nodes at the same time: it is lost once."""
    verbs = [subprocess.Popen([node.shoal, "target", "lost", str(target), node.directory, "--yes"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
             for node in (nodes.first, nodes.all()[-1])]
    said = sorted((*verb.communicate(timeout=60), verb.returncode) for verb in verbs)
    (out, error, code), (done, no_error, success) = said
    if (code, out, success, no_error) != (1, "", 0, "") or error.count("\n") != 1 or \
            "is lost already" not in error or f"target {target}: lost (map " not in done:
        raise Failed(f"target lost at two nodes: {said}")


def without_a_manager(nodes, target):
    """One line at another node, and nothing of it is kept for when the manager is back."""
    first, last = nodes.first, nodes.all()[-1]
    before = version(first)
    first.kill()
    for words in ([], ["--yes"]):
        refuses_to_lose(last, target, *words, says="the cluster's manager does not answer")
    first.start()
    wait_until(lambda: 0 <= row_of(last)["manager_silent_s"] < 2, "the manager's answer")
    if version(first) != before:
        raise Failed("what was asked without a manager has made a version of the map")


def a_metadata_target_is_lost(nodes):
    """With its node's storage targets. Names of what it had are found, answer EIO at once, and can
    be removed; directories are made elsewhere."""
    nodes.start()
    slots_are_dealt(nodes)
    first, gone, _ = nodes.all()
    mount = first.mount
    kept = os.path.join(mount, "kept")
    kept_content = put(kept, SMALL_BYTES)
    contents = [make(mount, number, kept) for number in range(DIRECTORIES)]
    counts = [mdt_row(node)["directories"] for node in nodes.all()]
    if sum(counts) != 1 + DIRECTORIES or min(counts) < 2:
        raise Failed(f"directories of the nodes: {counts}")
    ids = targets_of(first, gone)
    if len(ids) != 3:
        raise Failed(f"targets of a node: {ids}")
    refusals(nodes, ids)
    saved = os.path.join(first.top, "saved")
    dies(gone, saved)
    without_a_manager(nodes, ids[0])
    waiting = subprocess.Popen(["ls", *(os.path.join(mount, f"d{number}")
                                        for number in range(DIRECTORIES))],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    declare(nodes, ids, "It is a metadata target. How many ")
    said = waiting.communicate(timeout=QUICK_S)[1]
    lost_ones = [number for number in range(DIRECTORIES)
                 if error_of(lambda: os.listdir(os.path.join(mount, f"d{number}"))) == errno.EIO]
    if len(lost_ones) != counts[1] or "Input/output error" not in said:
        raise Failed(f"{counts[1]} directories are lost, these answer EIO: {lost_ones}; {said}")
    for number in lost_ones:
        what_is_lost_fails(mount, number)
    wait_until(lambda: makes_new(mount), "new files that lie elsewhere")
    the_rest_goes_on(mount, contents, lost_ones)
    same(kept, kept_content)
    for words in (["status"], ["sync"], ["df"]):
        code, text, error = told(first, *words, first.directory)
        if code != 0:
            raise Failed(f"{words}: {code}, {text} {error}")
    names, others = problems(first)
    expected = sorted(f"{kind}{number}" for kind in "dl" for number in lost_ones)
    if names != expected or len(others) != 2 or f"target {ids[0]}" not in others:
        raise Failed(f"fsck: {names} of {expected}, {others}")
    last = lost_ones.pop()
    for number in lost_ones:
        os.unlink(os.path.join(mount, f"l{number}"))
        os.rmdir(os.path.join(mount, f"d{number}"))
    os.rename(saved, gone.directory)
    comes_back(gone, ids)
    what_is_lost_fails(mount, last)
    os.unlink(os.path.join(mount, f"l{last}"))
    os.rmdir(os.path.join(mount, f"d{last}"))
    if problems(first) != ([], others):
        raise Failed(f"fsck at the end: {problems(first)}")


class Mover(threading.Thread):
    """Moves files and directories about between directories, of all targets. What can't be moved
    any more stays where it is."""

    def __init__(self, mount):
        super().__init__(daemon=True)
        self.mount = mount
        self.at = {f"m{number}": "" for number in range(MOVED)}
        self.prng = random.Random(7)
        self.moves = 0
        self.ends = False
        for name in self.at:
            path = os.path.join(mount, name)
            if self.prng.random() < 0.5:
                os.mkdir(path)
            else:
                put(path, SMALL_BYTES)

    def run(self):
        while not self.ends:
            name = self.prng.choice(sorted(self.at))
            to = f"d{self.prng.randrange(DIRECTORIES)}"
            with contextlib.suppress(OSError):
                os.rename(os.path.join(self.mount, self.at[name], name),
                          os.path.join(self.mount, to, name))
                self.at[name] = to
                self.moves += 1

    def goes_on(self):
        before = self.moves
        wait_until(lambda: self.moves >= before + MOVES_MIN, "moves")

    def end(self):
        self.ends = True
        self.join()


def a_metadata_target_dies_amid_moves(nodes):
    """Its transactions end alike at all that are left: fsck finds nothing but what was on it."""
    nodes.start()
    slots_are_dealt(nodes)
    first, gone, _ = nodes.all()
    for number in range(DIRECTORIES):
        os.mkdir(os.path.join(first.mount, f"d{number}"))
    ids = targets_of(first, gone)
    mover = Mover(first.mount)
    mover.start()
    try:
        mover.goes_on()
        dies(gone, os.path.join(first.top, "saved"))
        declare(nodes, ids, "It is a metadata target, and had ")
        mover.goes_on()
    finally:
        mover.end()
    names, others = problems(first)
    if f"target {ids[0]}" not in others or not names:
        raise Failed(f"fsck: {names}, {others}")


TESTS = [a_metadata_target_is_lost, a_metadata_target_dies_amid_moves]


def main():
    def play(test):
        with Nodes(sys.argv[1]) as nodes:
            test(nodes)

    return drive(__doc__, TESTS, play)


if __name__ == "__main__":
    sys.exit(main())
