#!/usr/bin/python3
"""The manager's log is lost, with what else the first node has still there: it is rebuilt from what
the other nodes and all targets know, and everything goes on.

Usage: rebuild.py SHOAL [TEST...]

SHOAL is the command. The last line counts.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time

import cluster as clusters
from cluster import Failed
from driver import drive
from files_load import Load, wait_until
from nodes import (LOST_BYTES, Node, Nodes, comes_back, error_of, free_port, known_to_manager,
                   makes_new, maps_are_one, mount_process, put, same, slots_are_dealt, status,
                   told)

STEP = 1 << 32
STEP_SESSIONS = 1 << 20
TIMEOUT_S = 5
# A verb's own patience, which a stop waits for, is 10 s.
STOP_LIMIT_S = 30
# Several of the sessions' timeouts, on a machine with much else to do.
MOUNT_LIMIT_S = 60


def start(nodes, timeout_s=TIMEOUT_S):
    with open(nodes.first.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write(f"\n[limits]\nsession_timeout_ms = {timeout_s * 1000}\n")
    nodes.start()


def version(node):
    """Whoever is away."""
    return json.loads(node.run("status", node.directory, "--json").stdout)["node"]["map_version"]


def sessions(node):
    code, text, error = told(node, "stats", node.directory, "--clients", "--json")
    if code != 0:
        raise Failed(f"stats: {error}")
    return {row["session"]: row for row in json.loads(text)["clients"]}


def loses_manager(first):
    """Its log, not only in memory: the ring of a killed daemon would be there still."""
    first.kill()
    shutil.rmtree(first.path("manager"))


def refuses(first, *words, says):
    """One line, and nothing is there that was not before."""
    before = sorted(os.listdir(first.directory))
    code, text, error = told(first, "up", first.directory, *words)
    if code not in (1, 2) or text or error.count("\n") != 1 or any(
            word not in error for word in says):
        raise Failed(f"up {words}: {code}, {text} {error}")
    if sorted(os.listdir(first.directory)) != before:
        raise Failed(f"up {words} has made {sorted(os.listdir(first.directory))} of {before}")


def rebuild(first, *words):
    code, text, error = told(first, "up", first.directory, "--rebuild-manager", *words)
    if code != 0:
        raise Failed(f"up --rebuild-manager {words}: {text} {error}; {first.log_end()}")
    first.note_regions()
    if os.path.exists(first.path("rebuilding")):
        raise Failed("it serves, and is not rebuilt")


def clean(node):
    code, text, error = told(node, "fsck", node.directory)
    if code != 0:
        raise Failed(f"fsck: {text} {error}")


def maps_are_above(nodes, before):
    maps_are_one(nodes)
    if version(nodes.first) < before + STEP:
        raise Failed(f"map {version(nodes.first)} behind one of {before}")


def mounts_anew(first, place):
    os.mkdir(place)
    first.mount_apart(place)
    return place


def all_goes_on(nodes):
    """Three nodes under load. With the manager's log gone a start is refused, and so is a
    rebuilding while a node is silent; once that answers, mounts and their open files go on, as
    nothing had been, whoever was open before; others begin, and a node joins."""
    start(nodes)
    slots_are_dealt(nodes)
    first, _, last = nodes.all()
    kept = put(os.path.join(first.mount, "kept"), LOST_BYTES)
    work = Load(first)
    work.goes_on()
    with open(os.path.join(first.mount, "open"), "wb", buffering=0) as file:
        file.write(b"before")
        before, ids = version(first), sessions(first)
        mine = max(ids, key=lambda number: ids[number]["requests"])
        loses_manager(first)
        refuses(first, says=["manager/log is missing"])
        last.kill()
        refuses(first, "--rebuild-manager", says=["node 3 ", "does not tell", "--without 3"])
        refuses(first, "--rebuild-manager", "--without", "2,3",
                says=["--without 2", "answers", "leave it out"])
        last.start()
        rebuild(first)
        file.write(b" and behind")
        os.fsync(file.fileno())
    work.goes_on()
    count, longest = work.check()
    print(f"{count} files over the loss of the manager, the longest took {longest} s")
    same(os.path.join(first.mount, "open"), b"before and behind")
    same(os.path.join(first.mount, "kept"), kept)
    maps_are_above(nodes, before)
    if mine not in sessions(first):
        raise Failed(f"the mount's session {mine} has not gone on: {sorted(sessions(first))}")
    other = mounts_anew(first, os.path.join(first.top, "mount2"))
    same(os.path.join(other, "kept"), kept)
    fresh = set(sessions(first)) - set(ids)
    if not fresh or min(fresh) < max(ids) + STEP_SESSIONS:
        raise Failed(f"sessions {sorted(fresh)} behind {sorted(ids)}")
    joiner = Node(first, 9)
    try:
        joiner.start()
        known_to_manager(joiner)
        slots_are_dealt(nodes)
        if status(joiner)["node"]["id"] != 4 or not makes_new(first.mount):
            raise Failed(f"a node that joins: {status(joiner)['node']}")
        for node in (*nodes.all(), joiner):
            clean(node)
    finally:
        joiner.close()


def who_does_not_come_is_evicted(nodes):
    """A mount that dies with the manager: what it had open is free within the timeout, and one in
    its place waits until then."""
    start(nodes)
    first = nodes.first
    place = mounts_anew(first, os.path.join(first.top, "mount2"))
    put(os.path.join(place, "gone"), 4)
    opened = os.open(os.path.join(place, "gone"), os.O_WRONLY | os.O_TRUNC)
    os.write(opened, b"word")
    os.fsync(opened)
    ids = set(sessions(first))
    process = mount_process(first, place)
    loses_manager(first)
    clusters.end_process(process)
    rebuild(first)
    with contextlib.suppress(OSError):
        os.close(opened)
    clusters.unmount(place)
    first.mount_apart(place)
    same(os.path.join(place, "gone"), b"word")
    wait_until(lambda: len(ids & set(sessions(first))) < len(ids), "its end")
    live = set(sessions(first))
    if max(live) < max(ids) + STEP_SESSIONS:
        raise Failed(f"sessions {sorted(live)} behind {sorted(ids)}")
    for node in nodes.all():
        clean(node)


def goes_on_without_a_node(nodes):
    """Which is gone with the manager's log: its targets are lost then, as if they had been declared
    so, and the rest goes on."""
    start(nodes)
    slots_are_dealt(nodes)
    first, stays, gone = nodes.all()
    contents = {}
    for number in range(24):
        path = os.path.join(first.mount, f"d{number}")
        os.mkdir(path)
        contents[path] = put(os.path.join(path, "file"), 1000)
    rows = [row for row in status(first)["cluster_targets"] if row["node"] == 3]
    before = version(first)
    gone.kill()
    saved = os.path.join(first.top, "saved")
    os.rename(gone.directory, saved)
    loses_manager(first)
    refuses(first, "--rebuild-manager", says=["node 3 ", ", ".join(
        str(row["id"]) for row in sorted(rows, key=lambda row: row["id"]))])
    for words, says in (("3,1", "it is this node"), ("3,7", "no such node"), ("3,2", "answers")):
        refuses(first, "--rebuild-manager", "--without", words, says=[says])
    rebuild(first, "--without", "3")
    wait_until(lambda: version(stays) >= before + STEP, "the newest map")
    wait_until(lambda: told(first, "status", first.directory)[0] == 0, "all that are left")
    states = {row["id"]: row["state"] for row in status(first)["cluster_targets"]}
    if any(states[row["id"]] != "lost" for row in rows):
        raise Failed(f"targets of the node that is gone: {states}")
    wait_until(lambda: makes_new(first.mount), "new files that lie elsewhere")
    read = [path for path in contents if error_of(lambda: os.listdir(path)) == 0]
    for path in read:
        same(os.path.join(path, "file"), contents[path])
    if not read or len(read) == len(contents):
        raise Failed(f"{len(read)} of {len(contents)} directories are left")
    os.rename(saved, gone.directory)
    comes_back(gone, [row["id"] for row in rows])


def a_node_that_has_moved_is_found(nodes):
    """The first node's map is from before: it hears of the new address from another node, though
    the one that moved is asked first, at the old one."""
    start(nodes)
    slots_are_dealt(nodes)
    maps_are_one(nodes)
    first, moved, _ = nodes.all()
    content = put(os.path.join(first.mount, "file"), LOST_BYTES)
    older = shutil.copy(first.path("map"), os.path.join(first.top, "older-map"))
    before = version(first)
    moved.stop()
    moved.source = f"127.0.0.77:{free_port('127.0.0.77')}"
    moved.start("--listen", moved.source)
    wait_until(lambda: version(first) > before, "a newer map")
    maps_are_one(nodes)
    loses_manager(first)
    shutil.copy(older, first.path("map"))
    rebuild(first)
    maps_are_above(nodes, before)
    same(os.path.join(first.mount, "file"), content)


def what_is_cut_serves_nobody(nodes):
    """Killed while it is rebuilt: no start takes what is there, but another rebuilding."""
    start(nodes)
    slots_are_dealt(nodes)
    first = nodes.first
    content = put(os.path.join(first.mount, "file"), LOST_BYTES)
    before = version(first)
    loses_manager(first)
    for _ in range(20):
        daemon = subprocess.Popen([first.shoal, "up", first.directory, "--rebuild-manager",
                                   "--foreground"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(first.path("rebuilding")) and daemon.poll() is None:
            if os.path.exists(first.path("manager/log")):
                break
        clusters.end_process(daemon.pid)
        daemon.wait()
        if os.path.exists(first.path("rebuilding")):
            break
        shutil.rmtree(first.path("manager"))
    else:
        raise Failed("it was not cut once")
    refuses(first, says=["was being rebuilt", "--rebuild-manager` once more"])
    rebuild(first)
    maps_are_above(nodes, before)
    same(os.path.join(first.mount, "file"), content)
    os.mkdir(os.path.join(first.mount, "directory"))
    first.stop()
    first.start()
    same(os.path.join(first.mount, "file"), content)
    for node in nodes.all():
        clean(node)


def a_stop_waits_for_nobody(nodes):
    """A verb waits for sessions of before, which would take ten minutes: it says so in the end, and
    a stop waits no longer than it does."""
    start(nodes, timeout_s=600)
    slots_are_dealt(nodes)
    first = nodes.first
    content = put(os.path.join(first.mount, "file"), LOST_BYTES)
    loses_manager(first)
    rebuild(first)
    same(os.path.join(first.mount, "file"), content)
    code, _, error = told(first, "df", first.directory)
    if code == 0 or "the manager was rebuilt, and waits for sessions of before" not in error:
        raise Failed(f"df: {code}, {error}")
    with clusters.child([first.shoal, "df", first.directory], stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as verb:
        begin = time.monotonic()
        first.stop()
        verb.wait(STOP_LIMIT_S)
        if time.monotonic() - begin > STOP_LIMIT_S:
            raise Failed(f"the stop took {time.monotonic() - begin:.0f} s")
    first.start()
    same(os.path.join(first.mount, "file"), content)


def refusals(nodes):
    """One line each, and nothing has changed."""
    nodes.start()
    first, second, _ = nodes.all()
    maps_are_one(nodes)
    refuses(first, "--without", "2", says=["--rebuild-manager goes on without"])
    refuses(first, "--rebuild-manager", says=["in use by process"])
    second.kill()
    refuses(second, "--rebuild-manager", says=["is node 2's", "the first node's"])
    second.start()
    first.kill()
    refuses(first, "--rebuild-manager", says=["manager is there", "move it away first"])
    os.rename(first.path("manager"), os.path.join(first.top, "manager"))
    for words in ("", "x", "2,", ",2", "2 3", "-1"):
        refuses(first, "--rebuild-manager", "--without", words, says=["--without"])
    refuses(first, "--rebuild-manager", "--without", "0", says=["takes numbers of nodes"])
    os.rename(first.path("map"), os.path.join(first.top, "map"))
    refuses(first, "--rebuild-manager", says=["map is gone", "of any other node"])
    shutil.copy(second.path("map"), first.path("map"))
    os.rename(os.path.join(first.top, "members.key"), os.path.join(first.top, "right.key"))
    first.key("new", os.path.join(first.top, "members.key"))
    refuses(first, "--rebuild-manager", says=["node 2 ", "key"])
    os.rename(os.path.join(first.top, "right.key"), os.path.join(first.top, "members.key"))
    other = os.path.join(first.top, "other")
    code, text, error = told(first, "up", other, "--rebuild-manager")
    if code != 1 or text or "no DIR of a cluster's first node" not in error or \
            error.count("\n") != 1 or os.path.exists(other):
        raise Failed(f"in a new directory: {code}, {text} {error}")
    os.rename(os.path.join(first.top, "manager"), first.path("manager"))
    first.start()
    clean(first)


def a_node_alone_rebuilds_its_own(nodes):
    """It asks its own targets only."""
    del nodes
    with clusters.Cluster(sys.argv[1]) as alone:
        alone.start()
        content = put(os.path.join(alone.mount, "file"), LOST_BYTES)
        alone.kill()
        clusters.unmount(alone.mount)
        shutil.rmtree(alone.path("manager"))
        code, text, error = told(alone, "up", alone.directory, "--rebuild-manager")
        if code != 0:
            raise Failed(f"alone: {text} {error}")
        end = time.monotonic() + MOUNT_LIMIT_S
        while told(alone, "up", alone.directory, "--mount", alone.mount)[0] != 0:
            if time.monotonic() > end:
                raise Failed(f"it does not mount: {alone.log_end()}")
        same(os.path.join(alone.mount, "file"), content)
        clean(alone)


TESTS = [all_goes_on, who_does_not_come_is_evicted, goes_on_without_a_node,
         a_node_that_has_moved_is_found, what_is_cut_serves_nobody,
         a_stop_waits_for_nobody, refusals, a_node_alone_rebuilds_its_own]


def main():
    def play(test):
        with Nodes(sys.argv[1]) as nodes:
            test(nodes)

    return drive(__doc__, TESTS, play)


if __name__ == "__main__":
    sys.exit(main())
