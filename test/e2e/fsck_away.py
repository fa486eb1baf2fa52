#!/usr/bin/python3
"""What `shoal fsck` says of a cluster of three nodes of which one is away: before it begins, from
its middle on, beside damage, beside a scrub that waits. Nothing is found that is not wrong.

Usage: fsck_away.py SHOAL [TEST...]

SHOAL is the command. The last line counts.
"""

import json
import os
import signal
import subprocess
import sys
import time

import cluster as clusters
from cluster import Failed, MIB
from driver import drive
from files_load import wait_until
from lost import targets_of
from nodes import Nodes, clean, maps_are_one, put, slots_are_dealt, status, told

DIRECTORIES = 24
LIMIT_S = 60
TURNS_MAX = 8
DATA_BYTES = 48 * MIB
MARK = b"a block of a file that no other one has" * 100


def fill(nodes):
    """Directories of all metadata targets, with names that lead from each to others, and data on
    all storage targets."""
    nodes.start()
    slots_are_dealt(nodes)
    maps_are_one(nodes)
    mount = nodes.first.mount
    put(os.path.join(mount, "data"), DATA_BYTES)
    for number in range(DIRECTORIES):
        place = os.path.join(mount, f"d{number}")
        os.mkdir(place)
        put(os.path.join(place, "small"), 1000)
        put(os.path.join(place, "file"), 300 << 10)
        os.mkdir(os.path.join(place, "sub"))
        os.link(os.path.join(place, "small"), os.path.join(mount, f"l{number}"))
        os.link(os.path.join(place, "file"), os.path.join(mount, "d0", f"l{number}"))
    counts = [next(row for row in status(node)["targets"] if row["kind"] == "mdt")["directories"]
              for node in nodes.all()]
    if min(counts) < 2:
        raise Failed(f"directories of the nodes: {counts}")
    told(nodes.first, "sync", nodes.first.directory)
    clean(nodes.first)


def named(found, error, node, targets):
    """Just the targets of that node, with its address."""
    if sorted(row["target"] for row in found["not_checked"]) != sorted(targets) or \
            any(row["address"] != node.source for row in found["not_checked"]):
        raise Failed(f"not checked: {found['not_checked']}, not {targets} of {node.source}")
    for target in targets:
        if not any(f"target {target} (" in line and node.source in line and
                   "was not checked" in line for line in error.split("\n")):
            raise Failed(f"target {target} is not named: {error}")


def checked(node, *words):
    """The status, what is found, and what is told beside it."""
    begin = time.monotonic()
    result = node.run("fsck", node.directory, "--json", *words, limit_s=LIMIT_S)
    try:
        return result.returncode, json.loads(result.stdout), result.stderr
    except ValueError:
        raise Failed(f"fsck: {result.returncode}, {result.stdout} {result.stderr}, "
                     f"{time.monotonic() - begin:.0f} s") from None


def is_partly(node, gone, targets):
    """Nothing wrong, but not all is checked, and it says so."""
    code, found, error = checked(node)
    if code != 3 or found["problems"] or found["clean"] or not found["finished"] or \
            not found["unjudged"]:
        raise Failed(f"fsck with one away: {code}, {found} {error}")
    named(found, error, gone, targets)
    return found


def says_so(node, targets):
    """As text."""
    code, text, error = told(node, "fsck", node.directory)
    if code != 3 or "nothing wrong in what was checked; " not in text or \
            text.count("\n") != 1 or error.count("\n") != len(targets):
        raise Failed(f"fsck as text: {code}, {text} {error}")


def is_clean_again(nodes):
    for node in nodes.all():
        wait_until(lambda node=node: told(node, "fsck", node.directory, "--no-data")[0] == 0,
                   "a check of all")
        clean(node)


def one_is_away(nodes):
    """Killed, stopped, or it is the first one: the one that is asked checks the rest."""
    fill(nodes)
    first, middle, last = nodes.all()
    targets = {node: targets_of(first, node) for node in nodes.all()}
    middle.kill()
    found = is_partly(first, middle, targets[middle])
    if any(row["begun"] for row in found["not_checked"]) or found["files"] == 0:
        raise Failed(f"a node that was killed: {found}")
    says_so(last, targets[middle])
    middle.start()
    is_clean_again(nodes)
    process = last.process()
    clusters.stop_process(process)
    try:
        is_partly(first, last, targets[last])
    finally:
        os.kill(process, signal.SIGCONT)
    is_clean_again(nodes)
    first.kill()
    is_partly(middle, first, targets[first])
    last.kill()
    code, found, error = checked(middle)
    if code != 3 or found["problems"] or \
            {row["target"] for row in found["not_checked"]} != {*targets[first], *targets[last]}:
        raise Failed(f"fsck with two away: {code}, {found} {error}")
    middle.stop()
    code, found, error = checked(middle)
    if code != 3 or found["problems"] or len(found["not_checked"]) != 5:
        raise Failed(f"fsck of a DIR whose cluster is away: {code}, {found} {error}")
    for node in nodes.all():
        node.start()
    is_clean_again(nodes)


def cut_at(nodes, gone, stage):
    """fsck at the first node, which stands still when it tells that stage, until the other one is
    dead. Its answer; None where it had passed the other one."""
    first = nodes.first
    words = [first.shoal, "fsck", first.directory, "--json", "--progress"]
    with clusters.child(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True) as check:
        for line in check.stderr:
            if stage in line:
                break
        process = first.process()
        clusters.stop_process(process)
        gone.kill()
        os.kill(process, signal.SIGCONT)
        text, error = check.communicate(timeout=LIMIT_S)
    found = json.loads(text)
    return (check.returncode, found, error) if found["not_checked"] else None


def one_goes_away(nodes):
    """In the middle, at each stage: of what it had told nothing is held against the others."""
    fill(nodes)
    first, gone, _ = nodes.all()
    targets = targets_of(first, gone)
    for stage in ("checking names", "checking small files", "checking the index of ost0",
                  "checking the data of ost0"):
        for _ in range(TURNS_MAX):
            met = cut_at(nodes, gone, stage)
            gone.start()
            is_clean_again(nodes)
            if met:
                break
        else:
            raise Failed(f"{stage}: {TURNS_MAX} checks ended before the node was dead")
        code, found, error = met
        if code != 3 or found["problems"] or found["clean"]:
            raise Failed(f"{stage}: {code}, {found} {error}")
        ids = [row["target"] for row in found["not_checked"]]
        if not set(ids) <= set(targets) or not all(row["begun"] for row in found["not_checked"]):
            raise Failed(f"{stage}: {found} {error}")
        named(found, error, gone, ids)


def spoil(node):
    """One bit of the marked block, of each of the node's data files that has it."""
    spoilt = 0
    for name in ("ost0", "ost1"):
        with open(node.path(os.path.join(name, "data")), "r+b") as file:
            at = file.read().find(MARK)
            if at >= 0:
                file.seek(at)
                file.write(bytes([MARK[0] ^ 4]))
                os.fsync(file.fileno())
                spoilt += 1
    return spoilt


def damage_is_found(nodes):
    """On a node that is there, while another one is away."""
    fill(nodes)
    first, gone, last = nodes.all()
    targets = targets_of(first, gone)
    path = os.path.join(first.mount, "marked")
    with open(path, "wb") as file:
        file.write(MARK * (8 * MIB // len(MARK)))
        os.fsync(file.fileno())
    told(first, "sync", first.directory)
    last.stop()
    if spoil(last) == 0:
        raise Failed("the marked file has nothing at the last node")
    last.start()
    gone.kill()
    code, found, error = checked(first)
    if code != 1 or not found["problems"] or found["clean"] or \
            any(row["kind"] != "damaged-block" for row in found["problems"]):
        raise Failed(f"fsck beside damage: {code}, {found} {error}")
    named(found, error, gone, targets)
    gone.start()
    wait_until(lambda: not checked(first, "--no-data")[1]["not_checked"], "all nodes")
    if checked(first)[0] != 1:
        raise Failed("the damage is gone with the node's return")
    os.unlink(path)
    is_clean_again(nodes)


def the_scrub_waits(nodes):
    """After the end of all, one does not come back: the scrub waits for it, and fsck does not."""
    fill(nodes)
    first, gone, last = nodes.all()
    targets = targets_of(first, gone)
    for node in nodes.all():
        node.kill()
    first.start()
    last.start()
    code, found, error = checked(first)
    if code != 3 or found["problems"] or found["scrubbed"] or \
            "the scrub after an unclean end waits" not in error:
        raise Failed(f"fsck beside a scrub that waits: {code}, {found} {error}")
    named(found, error, gone, targets)
    if not os.path.exists(first.path("in-use")):
        raise Failed("the scrub has given up")
    gone.start()
    is_clean_again(nodes)


TESTS = [one_is_away, one_goes_away, damage_is_found, the_scrub_waits]


def main():
    def play(test):
        with Nodes(sys.argv[1]) as nodes:
            test(nodes)

    return drive(__doc__, TESTS, play)


if __name__ == "__main__":
    sys.exit(main())
