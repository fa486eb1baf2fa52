#!/usr/bin/python3
"""Clusters of several nodes: they join, spread files, die and come back in any order, move, and
refuse what can't be. Each listens at an address of its own of this machine's loopback.

Usage: nodes.py SHOAL [TEST...]

SHOAL is the command. The last line counts.
"""

import contextlib
import errno
import functools
import hashlib
import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

import cluster as clusters
import soak_disk
from cluster import Failed
from driver import drive
from files_load import Load, wait_until

ROUNDS = 3
SLOTS = 65536
SLOTS_OPEN_MIN = 16
SMALL_BYTES = 64 * clusters.MIB
FILL_BYTES = 5 * clusters.MIB
DISK_BYTES = 1536 * clusters.MIB
FILL_MAX = 120
LOST_BYTES = 6 * clusters.MIB
QUICK_S = 10
PATIENCE_S = 4
AT_ONCE_S = 1
RENEWAL_S = 2
SILENT_S = 30


def free_port(host):
    with socket.socket() as free:
        free.bind((host, 0))
        return free.getsockname()[1]


class Node(clusters.Cluster):
    """One that joins first, with directory and address of its own. Its mount is the daemon's."""

    def __init__(self, first, number, osts=2, conf=True):
        self.first = first
        self.apart = True
        self.afar = False
        self.shoal = first.shoal
        self.top = first.top
        self.regions = set()
        self.identity = "none"
        self.directory = os.path.join(first.top, f"node{number}")
        self.mount = os.path.join(first.top, f"mount-of-{number}")
        os.mkdir(self.directory)
        os.mkdir(self.mount)
        host = f"127.0.0.{number}"
        self.source = f"{host}:{free_port(host)}"
        self.key_file = os.path.join(first.top, "members.key")
        if conf:
            with open(self.path("shoal.conf"), "w", encoding="ascii") as file:
                file.write(f"[cluster]\nformat = 3\nosts = {osts}\n\n[network]\nlisten = "
                           f"{self.source}\nkey = {self.key_file}\njoin = {first.source}\n"
                           "\n[sizes]\n")
                for name, value in clusters.SIZES.items():
                    file.write(f"{name} = {value}\n")

    def start(self, *words):
        result = self.run("up", self.directory, *words)
        if result.returncode != 0:
            raise Failed(f"up of a node failed: {result.stderr.strip()}; its log ends: "
                         f"{self.log_end()}")
        self.note_regions()
        return result.stdout

    def close(self):
        self.note_regions()
        process = self.process()
        if process is not None:
            clusters.end_process(process)
        clusters.unmount(self.mount)
        for path in self.regions:
            if os.path.exists(path):
                os.unlink(path)


class Nodes:
    """A first node, and others that have joined; all is mounted at the first one's mount."""

    def __init__(self, shoal, count=3, sizes=None):
        self.first = clusters.Cluster(shoal, osts=1, sizes=sizes, afar=True)
        self.others = []
        self.count = count

    def __enter__(self):
        self.others = [Node(self.first, number) for number in range(2, self.count + 1)]
        return self

    def __exit__(self, kind, *_):
        if kind:
            for node in self.all():
                print(f"{node.source} said: {node.log_end()}")
            print(f"the mount said: {self.first.log_end('mount.log')}")
        for node in self.others:
            node.close()
        self.first.close()

    def all(self):
        return [self.first, *self.others]

    def start(self):
        self.first.start()
        for node in self.others:
            node.start()
            known_to_manager(node)


def status(node):
    result = node.run("status", node.directory, "--json")
    if result.returncode != 0:
        raise Failed(f"status: {result.stderr.strip()}")
    return json.loads(result.stdout)


def known_to_manager(node):
    """Its targets are in the map, and it has that map."""
    wait_until(lambda: status(node)["node"]["told"], "a word of the manager")


def used(node):
    return sum(target["bytes_total"] - target["bytes_free"]
               for target in status(node)["targets"] if target["kind"] == "ost")


def room_of(mount):
    space = os.statvfs(mount)
    return space.f_blocks * space.f_frsize


def put(path, size):
    content = os.urandom(size)
    with open(path, "wb") as file:
        file.write(content)
        os.fsync(file.fileno())
    return content


def same(path, content):
    with open(path, "rb") as file:
        if file.read() != content:
            raise Failed(f"{path} has other bytes")


def clean(node):
    result = node.run("fsck", node.directory)
    if result.returncode != 0:
        raise Failed(f"fsck: {result.stdout.strip()} {result.stderr.strip()}")


def versions(nodes):
    return [status(node)["node"]["map_version"] for node in nodes.all()]


def maps_are_one(nodes):
    wait_until(lambda: len(set(versions(nodes))) == 1, "one map at all nodes")


def new_files_use_all_nodes(nodes):
    """A file from before the nodes came stays where it is; later ones lie on all."""
    first = nodes.first
    first.start()
    old = put(os.path.join(first.mount, "old"), 4 * clusters.MIB)
    for node in nodes.others:
        node.start()
        known_to_manager(node)
    if any(used(node) >= clusters.MIB for node in nodes.others):
        raise Failed("a file that was there has moved")
    maps_are_one(nodes)
    new = put(os.path.join(first.mount, "new"), 12 * clusters.MIB)
    for node in nodes.others:
        if used(node) < 2 * clusters.MIB:
            raise Failed(f"{used(node)} bytes of 12 MiB lie at {node.source}")
    numbers = [target["node"] for node in nodes.all() for target in status(node)["targets"]]
    if sorted(set(numbers)) != list(range(1, nodes.count + 1)):
        raise Failed(f"the nodes' numbers are {numbers}")
    same(os.path.join(first.mount, "old"), old)
    same(os.path.join(first.mount, "new"), new)
    for node in nodes.all():
        clean(node)
    os.unlink(os.path.join(first.mount, "new"))
    wait_until(lambda: all(used(node) < clusters.MIB for node in nodes.others),
               "the room of what is removed")


def out_since(node):
    """Of each of its storage targets."""
    return [target["no_new_files_since"] for target in status(node)["targets"]
            if target["kind"] == "ost"]


def fill(directory, is_over):
    """Files that lie on all targets, until it is over; answers them. One that meets a target which
    is full already is taken away."""
    contents = {}
    for number in range(FILL_MAX):
        if is_over():
            return contents
        path = os.path.join(directory, f"f{number}")
        try:
            contents[path] = put(path, FILL_BYTES)
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
            os.unlink(path)
            time.sleep(1)
        time.sleep(0.1)
    raise Failed(f"{FILL_MAX} files fill nobody")


def full_targets_get_no_new_files(nodes):
    """A node with little room gets full: later files lie on the others, and on it again once there
    is room; over a kill of the manager. Nothing that is there moves or is lost."""
    first, small = nodes.first, nodes.others[0]
    with open(small.path("shoal.conf"), encoding="ascii") as file:
        conf = file.read()
    with open(small.path("shoal.conf"), "w", encoding="ascii") as file:
        file.write(conf.replace(f"data_bytes_max = {clusters.SIZES['data_bytes_max']}",
                                f"data_bytes_max = {SMALL_BYTES}"))
    nodes.start()
    maps_are_one(nodes)
    contents = fill(first.mount, lambda: all(out_since(small)))
    words = small.run("status", small.directory).stdout
    if words.count("is full: no new files since pool version") != 2:
        raise Failed(f"status says nothing of it: {words}")
    if any(sum(out_since(node)) for node in (first, nodes.others[1])):
        raise Failed("one with room gets no new files")
    maps_are_one(nodes)
    first.kill()
    first.start()
    before = used(small)
    path = os.path.join(first.mount, "later")
    contents[path] = put(path, 12 * clusters.MIB)
    if used(small) > before or not all(out_since(small)):
        raise Failed(f"a new file lies on what is full: {used(small)} bytes after {before}")
    for path, content in contents.items():
        same(path, content)
    for path in contents:
        os.unlink(path)
    wait_until(lambda: not any(out_since(small)), "a target that has room again")
    maps_are_one(nodes)
    path = os.path.join(first.mount, "again")
    content = put(path, 12 * clusters.MIB)
    if used(small) < 2 * clusters.MIB:
        raise Failed(f"{used(small)} bytes of 12 MiB lie where there is room again")
    same(path, content)
    clean(first)


def each_node_may_die(nodes):
    """kill -9 of one after another, the first one too, under load: pauses, and nothing else."""
    nodes.start()
    work = Load(nodes.first)
    for _ in range(ROUNDS):
        for node in nodes.all():
            work.goes_on()
            node.kill()
            node.start()
    work.goes_on()
    count, longest = work.check()
    print(f"{ROUNDS * nodes.count} kills under {count} files, the longest took {longest} s")
    for node in nodes.all():
        clean(node)


def all_may_die_at_once(nodes):
    """And come back in any order: who has joined before needs nobody to start."""
    nodes.start()
    work = Load(nodes.first)
    work.goes_on()
    for node in nodes.all():
        node.kill()
    nodes.others[-1].start()
    told = "the manager does not answer"
    wait_until(lambda: told in nodes.others[-1].log_end(), "a line about the manager")
    nodes.first.start()
    nodes.others[0].start()
    work.goes_on()
    work.check()
    wait_until(lambda: "the manager answers again" in nodes.others[-1].log_end(), "its return")


def a_node_that_is_away_holds_nobody_up(nodes):
    """What needs it waits; sessions begin and end, files elsewhere are used, nodes stop."""
    nodes.start()
    maps_are_one(nodes)
    first = nodes.first
    # A mount counts a target from its first answer on, and statfs waits a second for that.
    room = clusters.SIZES["data_bytes_max"] * sum(row["kind"] == "ost"
                                                  for row in status(first)["cluster_targets"])
    wait_until(lambda: room_of(first.mount) == room, "the room of all nodes")
    nodes.others[0].stop()
    start = time.monotonic()
    if room_of(first.mount) != room:
        raise Failed("the room of a node that is away is forgotten")
    place = os.path.join(first.top, "mount2")
    os.mkdir(place)
    first.mount_apart(place, "-o", "patience=20")
    os.statvfs(place)
    os.mkdir(os.path.join(place, "made"))
    with open(os.path.join(place, "small"), "wb") as file:
        file.write(b"word")
    same(os.path.join(first.mount, "small"), b"word")
    result = first.run("umount", place)
    if result.returncode != 0:
        raise Failed(f"umount: {result.stderr.strip()}")
    if time.monotonic() - start > 15:
        raise Failed(f"with a node away that took {time.monotonic() - start:.0f} s")
    result = first.run("umount", first.mount)
    if result.returncode != 0:
        raise Failed(f"umount: {result.stderr.strip()}")
    start = time.monotonic()
    first.stop()
    nodes.others[1].stop()
    if time.monotonic() - start > 15:
        raise Failed(f"the other nodes took {time.monotonic() - start:.0f} s to stop")


def a_node_may_move(nodes):
    """It comes back at another address: others hear of that from the manager."""
    nodes.start()
    maps_are_one(nodes)
    content = put(os.path.join(nodes.first.mount, "file"), 6 * clusters.MIB)
    moved = nodes.others[0]
    before = status(nodes.first)["node"]["map_version"]
    moved.stop()
    host = "127.0.0.77"
    address = f"{host}:{free_port(host)}"
    moved.start("--listen", address)
    wait_until(lambda: status(nodes.first)["node"]["map_version"] > before, "a newer map")
    other = os.path.join(nodes.first.top, "mount2")
    os.mkdir(other)
    nodes.first.mount_apart(other)
    same(os.path.join(other, "file"), content)
    same(os.path.join(nodes.first.mount, "file"), content)
    if status(moved)["node"]["address"] != address:
        raise Failed("it tells its old address")


def any_node_mounts(nodes):
    """A node that has joined serves a mount itself; verbs at its directory are the cluster's."""
    nodes.start()
    node = nodes.others[1]
    result = node.run("up", node.directory, "--mount", node.mount)
    if result.returncode != 0:
        raise Failed(f"a node does not mount: {result.stderr.strip()}")
    content = put(os.path.join(node.mount, "file"), 6 * clusters.MIB)
    same(os.path.join(nodes.first.mount, "file"), content)
    # And by processes of their own, at the directory of any node.
    for place, of in (("mount2", nodes.first), ("mount3", nodes.others[0])):
        path = os.path.join(nodes.first.top, place)
        os.mkdir(path)
        result = of.run("mount", of.directory, path)
        if result.returncode != 0:
            raise Failed(f"mount of {of.directory}: {result.stderr.strip()}")
        same(os.path.join(path, "file"), content)
        result = of.run("umount", path)
        if result.returncode != 0:
            raise Failed(f"umount: {result.stderr.strip()}")
    work = Load(nodes.first, node.mount, "there")
    work.goes_on()
    nodes.first.kill()
    nodes.first.start()
    nodes.others[0].kill()
    nodes.others[0].start()
    work.goes_on()
    work.check()
    sums = [node.run("df", node.directory).stdout for node in nodes.all()]
    if len(set(sums)) != 1 or not sums[0]:
        raise Failed(f"df says {sums}")
    for words in (["sync", node.directory], ["stats", node.directory], ["status", node.mount]):
        result = node.run(*words)
        if result.returncode != 0:
            raise Failed(f"shoal {' '.join(words)}: {result.stderr.strip()}")
    result = node.run("down", node.directory)
    if result.returncode != 0 or os.path.ismount(node.mount):
        raise Failed(f"down of a mounted node: {result.stderr.strip()}")


def mount_process(node, place):
    """A process of its own, asked of the node's directory or address."""
    of = {node.directory.encode(), node.source.encode()}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
            if {b"mount", place.encode()} <= set(words) and of & set(words):
                return int(entry)
    raise Failed(f"nobody serves {place} of {node.directory}")


class Apart:
    """A mount namespace with a root for each node, below all of which is what there is here."""

    def __init__(self, nodes):
        self.roots = {node: os.path.join(nodes.first.top, f"root{number}")
                      for number, node in enumerate(nodes.all())}
        for root in self.roots.values():
            os.mkdir(root)
        self.mounted = []
        self.keeper = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             'for root; do mount --rbind / "$root" || exit 1; done; echo made; read -r _', "sh",
             *self.roots.values()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        if self.keeper.stdout.readline() != "made\n":
            raise Failed("no root can be mounted in a mount namespace")
        return self

    def __exit__(self, *_):
        for node, place in self.mounted:
            with contextlib.suppress(Failed):
                clusters.end_process(mount_process(node, place))
        self.keeper.communicate("")

    def within(self):
        """Its root, too: this program's may be a folder of the machine's."""
        return ["nsenter", "--mount", "--root", "--target", str(self.keeper.pid)]

    def mount(self, node, place):
        """Where that is seen from outside."""
        self.mounted.append((node, place))
        result = subprocess.run(
            [*self.within(), "chroot", self.roots[node], node.shoal, "mount", node.directory,
             place], stdin=subprocess.DEVNULL, text=True,
            capture_output=True, timeout=clusters.START_LIMIT_S, check=False)
        if result.returncode != 0:
            raise Failed(f"mount of {node.directory}: {result.stderr.strip()}")
        return f"/proc/{self.keeper.pid}/root{self.roots[node]}{place}"

    def unmount(self, node, place):
        subprocess.run([*self.within(), "umount", "-l", self.roots[node] + place],
                       capture_output=True, check=False)


def clients(node):
    """Of each session the node that its mount is of."""
    rows = json.loads(node.run("stats", node.directory, "--clients", "--json").stdout)["clients"]
    return {row["session"]: row["node"] for row in rows}


def mounts_at_one_path_are_two(nodes):
    """Of two nodes, from mount namespaces of one number, as machines have that were started alike:
    neither ends the other's session. One that begins where one of its node has died does so."""
    nodes.start()
    first, second = nodes.all()[:2]
    place = first.mount + "-alike"
    os.mkdir(place)
    with Apart(nodes) as apart, contextlib.ExitStack() as opened:
        files = []
        of_second = set()
        for node in (first, second):
            others = set(clients(first))
            path = os.path.join(apart.mount(node, place), "file" + str(len(files)))
            of_second = set(clients(first)) - others
            files.append(opened.enter_context(open(path, "wb", buffering=0)))
        for _ in range(4 * RENEWAL_S):
            time.sleep(1)
            for file in files:
                file.write(b"a word")
                os.fsync(file.fileno())
        before = clients(first)
        if set(before.values()) != {0, 1, 2}:
            raise Failed(f"nodes of the sessions {before}")
        files.pop().close()
        clusters.end_process(mount_process(second, place))
        apart.unmount(second, place)
        begin = time.monotonic()
        apart.mount(second, place)
        gone = {session for session in of_second if before.get(session) == 2}
        if len(gone) != 1:
            raise Failed(f"the second mount began {of_second} of {before}")
        wait_until(lambda: not gone & set(clients(first)), "the end of the predecessor")
        if time.monotonic() - begin > SILENT_S / 2:
            raise Failed(f"a predecessor's end took {time.monotonic() - begin:.0f} s")
        files[0].write(b"another")


def own_process(node):
    """Of the process that serves the mount of a node's directory."""
    found = [mount["process"] for mount in status(node)["mounts"] if mount["path"] == node.mount]
    if len(found) != 1:
        raise Failed(f"status tells {status(node)['mounts']} of a mount at {node.mount}")
    return found[0]


def up_again(node, *words):
    code, _, error = told(node, "up", node.directory, *words)
    if code != 0:
        raise Failed(f"up {' '.join(words)}: {error}")


def is_down(node):
    if os.path.ismount(node.mount) or os.path.exists(node.path("mount.place")) or node.process():
        raise Failed("down has left a mount or a daemon")


def a_mount_outlives_its_daemon(nodes):
    """That of a node beside others, and `down` takes both away, also without a daemon; a killed
    mount is made anew; and one that is `inside` dies with its daemon."""
    nodes.start()
    node = nodes.others[0]
    up_again(node, "--mount", node.mount)
    serves = own_process(node)
    if serves == node.process():
        raise Failed("the daemon serves the mount itself")
    work = Load(node.first, node.mount, "load-of-2")
    for words in ([], ["--mount", node.mount]):
        work.goes_on()
        node.kill()
        up_again(node, *words)
        if own_process(node) != serves:
            raise Failed("the mount was made anew")
    work.goes_on()
    # The load itself has no file open between two.
    with open(os.path.join(node.mount, "held"), "w", encoding="ascii"):
        code, _, error = told(node, "down", node.directory)
    if code != 1 or "is in use" not in error or node.process() is None:
        raise Failed(f"down of a mount in use: {code}, {error}")
    count, longest = work.check()
    print(f"2 kills of the daemon under {count} files, the longest took {longest} s")
    clusters.end_process(serves)
    wait_until(lambda: not status(node)["mounts"], "word of the dead mount")
    up_again(node)
    if own_process(node) == serves or not os.listdir(node.mount):
        raise Failed("a killed mount is not made anew")
    node.stop()
    is_down(node)
    up_again(node, "--mount", node.mount)
    node.kill()
    node.stop()
    is_down(node)
    with open(node.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write(f"\n[mount]\nmount = inside\nmount_point = {node.mount}\n")
    up_again(node)
    if own_process(node) != node.process():
        raise Failed("a mount inside has a process of its own")
    node.kill()
    wait_until(lambda: errno_of(lambda: os.listdir(node.mount)) == errno.ENOTCONN, "its death")


def waits(node):
    """Its mount does, as it says where it is asked, and the node serves."""
    code, words, error = told(node, "status", node.directory)
    if code != 3 or "waits for its cluster" not in words or node.process() is None:
        raise Failed(f"status of a node whose mount waits: {code}, {words} {error}")
    if os.path.ismount(node.mount) and errno_of(lambda: os.listdir(node.mount)) != errno.ENOTCONN:
        raise Failed("it is mounted without a manager")


def comes_without_its_mount(node, *words):
    code, words, error = told(node, "up", node.directory, *words)
    if code != 3 or f"the mount at {node.mount} waits for its cluster" not in words + error:
        raise Failed(f"up of a node without its manager: {code}, {words} {error}")
    node.note_regions()
    waits(node)


def down_at_once(node):
    start = time.monotonic()
    code, _, error = told(node, "down", node.directory)
    if code != 0 or os.path.ismount(node.mount) or node.process() is not None:
        raise Failed(f"down of a node whose mount waits: {code}, {error}")
    if time.monotonic() - start > QUICK_S:
        raise Failed(f"down of a node whose mount waits took {time.monotonic() - start:.0f} s")


def a_mount_waits_for_its_cluster(nodes):
    """Power returns, the first node stays away: one that mounts serves, and is mounted when the
    manager is there. It can be stopped at any time, and a mount that can't be ends its start."""
    nodes.start()
    first, node = nodes.all()[:2]
    content = put(os.path.join(first.mount, "file"), 6 * clusters.MIB)
    with open(node.path("shoal.conf"), encoding="ascii") as file:
        conf = file.read()

    def configure(way, patience_s):
        with open(node.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write(f"{conf}\n[mount]\nmount = {way}\nmount_point = {node.mount}\n\n[limits]\n"
                       f"request_timeout_ms = {patience_s * 1000}\n")

    for way in ("apart", "inside"):
        node.stop()
        configure(way, AT_ONCE_S)
        node.start()
        serves = own_process(node)
        for one in nodes.all():
            one.kill()
        clusters.end_process(serves)
        comes_without_its_mount(node)
        code, _, error = told(node, "up", node.directory, "--mount", node.mount)
        if code != 1 or "waits for its cluster already" not in error:
            raise Failed(f"up of one whose mount waits: {code}, {error}")
        down_at_once(node)
        configure(way, QUICK_S * 6)
        for stop in (down_at_once, lambda node: os.kill(node.process(), signal.SIGTERM)):
            with clusters.child([node.shoal, "up", node.directory], stderr=subprocess.PIPE,
                                text=True) as up:
                wait_until(lambda: told(node, "status", node.directory)[0] == 3, "its daemon")
                stop(node)
                error = up.communicate(timeout=QUICK_S)[1]
            if up.returncode != 1 or "is stopping" not in error:
                raise Failed(f"up of one that is stopped: {up.returncode}, {error}")
        configure(way, AT_ONCE_S)
        comes_without_its_mount(node)
        for one in (first, nodes.others[1]):
            one.start()
        wait_until(lambda: status(node)["mounts"], "the mount")
        same(os.path.join(node.mount, "file"), content)
        own_process(node)
    # One that runs is asked for it.
    node.stop()
    with open(node.path("shoal.conf"), "w", encoding="ascii") as file:
        file.write(f"{conf}\n[limits]\nrequest_timeout_ms = {AT_ONCE_S * 1000}\n")
    node.start()
    first.kill()
    comes_without_its_mount(node, "--mount", node.mount)
    first.start()
    wait_until(lambda: status(node)["mounts"], "the mount that a running one was asked for")
    same(os.path.join(node.mount, "file"), content)
    node.stop()
    code, _, error = told(node, "up", node.directory, "--mount", node.key_file)
    if code != 1 or "not a directory" not in error or node.process() is not None:
        raise Failed(f"up with no mount point: {code}, {error}")


def any_address_leads_there(nodes):
    """Of a mount, and of a node that joins: those of any nodes, in turn, one of them away."""
    first = nodes.first
    first.start()
    nodes.others[0].start()
    known_to_manager(nodes.others[0])
    nobody = f"127.0.0.9:{free_port('127.0.0.9')}"
    last = nodes.others[1]
    with open(last.path("shoal.conf"), encoding="ascii") as file:
        text = file.read()
    with open(last.path("shoal.conf"), "w", encoding="ascii") as file:
        file.write(text.replace(f"join = {first.source}",
                                f"join = {nobody},{nodes.others[0].source}"))
    last.start()
    known_to_manager(last)
    content = put(os.path.join(first.mount, "file"), 6 * clusters.MIB)
    nodes.others[0].stop()
    sources = f"{nodes.others[0].source},{nobody},{last.source}"
    place = os.path.join(first.top, "mount2")
    os.mkdir(place)
    result = first.run("mount", sources, place, "--key", os.path.join(first.top, "mount.key"))
    if result.returncode != 0:
        raise Failed(f"mount by other nodes: {result.stderr.strip()}")
    nodes.others[0].start()
    same(os.path.join(place, "file"), content)
    work = Load(first, place, "there")
    work.goes_on()
    first.kill()
    last.kill()
    first.start()
    last.start()
    work.goes_on()
    work.check()
    result = first.run("umount", place)
    if result.returncode != 0:
        raise Failed(f"umount: {result.stderr.strip()}")
    first.stop()
    result = first.run("mount", sources, place, "--key", os.path.join(first.top, "mount.key"),
                       "-o", "patience=3")
    if result.returncode != 1 or "which has the manager" not in result.stderr:
        raise Failed(f"mount without the manager: {result.stderr.strip()}")


def told(node, *words):
    result = node.run(*words)
    return result.returncode, result.stdout, result.stderr


def verbs_speak_of_all_nodes(nodes):
    """Asked at any directory, a path in a mount, or addresses with the key; one that is away is
    named, the rest is shown, and the exit code says so."""
    nodes.start()
    maps_are_one(nodes)
    first, away, last = nodes.all()
    put(os.path.join(first.mount, "file"), 6 * clusters.MIB)
    for node in nodes.all():
        rows = status(node)
        own = {row["number"]: row["id"] for row in rows["targets"]}
        by_map = {row["id"]: row["name"] for row in status(first)["cluster_targets"]
                  if row["node"] == rows["node"]["id"]}
        if own != by_map:
            raise Failed(f"{node.source} calls its targets {own}, the map {by_map}")
    key = os.path.join(first.top, "members.key")
    sources = f"127.0.0.9:{free_port('127.0.0.9')},{last.source}"
    places = [[first.directory], [last.directory], ["--join", sources, "--key", key],
              [first.mount, "--key", key]]
    for place in places:
        code, text, error = told(first, "status", *place)
        if code != 0 or any(f"at {node.source}" not in text for node in nodes.all()):
            raise Failed(f"status {place}: {code}, {text} {error}")
        code, text, error = told(first, "stats", *place, "--json")
        answer = json.loads(text)
        if code != 0 or len(answer["others"]) != 2 or \
                any(not other["answer"]["counters"] for other in answer["others"]):
            raise Failed(f"stats {place}: {code}, {text} {error}")
        for words in (["stats", "--clients"], ["df"], ["sync"], ["fsck", "--no-data"]):
            code, text, error = told(first, *words, *place)
            if code != 0:
                raise Failed(f"{words} {place}: {code}, {text} {error}")
    away.stop()
    named = f"node 2, at {away.source}, does not answer"
    for place, words in [*((place, ["status"]) for place in places), (places[1], ["stats"]),
                         (places[2], ["df"])]:
        code, text, error = told(first, *words, *place)
        if code != 3 or named not in text or len(text.split("\n")) < 3:
            raise Failed(f"{words} {place} with one away: {code}, {text} {error}")
    code, text, error = told(first, "fsck", *places[2])
    if code != 3 or f"of node 2, at {away.source}, was not checked: it does not" not in error or \
            "nothing wrong in what was checked" not in text:
        raise Failed(f"fsck with one away: {code}, {text} {error}")
    os.environ.update(SHOAL_CLUSTER=first.source, SHOAL_KEY=key)
    code, text, error = told(first, "df", "--json")
    if code != 3 or [one["id"] for one in json.loads(text)["away"]] != [2]:
        raise Failed(f"df by the environment: {code}, {text} {error}")
    os.environ.update(SHOAL_CLUSTER=first.directory)
    code, text, error = told(first, "status", "--json")
    if code != 3 or [other["error"] is None for other in json.loads(text)["others"]] != \
            [False, True]:
        raise Failed(f"status by the environment: {code}, {text} {error}")
    del os.environ["SHOAL_CLUSTER"], os.environ["SHOAL_KEY"]
    for words, text in ((["--join", first.source], "--key FILE"),
                        (["--join", first.source, "--key", first.top + "/mount.key"], "members"),
                        (["--join", away.source, "--key", key], "nobody answers")):
        code, _, error = told(first, "status", *words)
        if code != 1 or text not in error or error.count("\n") != 1:
            raise Failed(f"status {words}: {code}, {error}")


def listing(path):
    return sorted(os.listdir(path))


def what_cannot_join_is_refused(nodes):
    """One line, and the directory is as it was."""
    first = nodes.first
    first.start()
    new = Node(first, 9, conf=False)
    key = ["--key", new.key_file]
    listen = ["--listen", new.source]
    join = ["--join", first.source]
    stranger = os.path.join(first.top, "stranger.key")
    first.key("new", stranger)
    nobody = f"127.0.0.9:{free_port('127.0.0.9')}"
    rows = [
        ([*join, *key], "--join needs --listen"),
        ([*join, *listen], "--listen needs --key"),
        ([*join, *listen, "--key", first.top + "/none"], "there is no such name"),
        ([*join, *listen, "--key", first.top + "/mount.key"], "members' key"),
        ([*join, *listen, "--key", stranger], "refuses the key"),
        (["--join", nobody, *listen, *key], "nobody answers"),
        (["--join", "here", *listen, *key], "takes ADDRESS:PORT"),
        (["--join", new.source, *listen, *key], "this node's own address"),
        (["--join", f"{nobody},{nobody}", *listen, *key, "--advertise", nobody],
         "this node's own address"),
        ([*join, "--listen", "0.0.0.0:7400", *key], "--advertise"),
        ([*join, *listen, *key, "--advertise", "0.0.0.0:7400"], "--advertise"),
    ]
    for words, text in rows:
        start = time.monotonic()
        result = new.run("up", new.directory, *words)
        if result.returncode not in (1, 2) or text not in result.stderr or \
                result.stderr.count("\n") != 1:
            raise Failed(f"up {' '.join(words)}: {result.returncode}, {result.stderr.strip()}")
        if set(listing(new.directory)) - {"lock", "shoal.log"}:
            raise Failed(f"up {' '.join(words)} has left {listing(new.directory)}")
        if time.monotonic() - start > 20:
            raise Failed(f"{text}: took {time.monotonic() - start:.0f} s")
    result = first.run("up", first.directory, *join)
    if result.returncode == 0:
        raise Failed("one that runs has joined itself")
    first.stop()
    result = first.run("up", first.directory, *join)
    if result.returncode != 1 or "cannot join another" not in result.stderr:
        raise Failed(f"one that has made a cluster: {result.stderr.strip()}")


def a_first_start_that_fails_is_forgotten(nodes):
    """It has got numbers, and never comes back by them: verbs neither ask it nor name it, while its
    directory is there and when it has joined anew, by others."""
    first, other, failed = nodes.all()
    first.start()
    other.start()
    known_to_manager(other)
    before = status(first)["node"]["map_version"]
    os.makedirs(failed.path("map/in-the-way"))
    result = failed.run("up", failed.directory)
    if result.returncode != 1 or "map cannot be written" not in result.stderr:
        raise Failed(f"up without a map: {result.returncode}, {result.stderr.strip()}")
    numbered = re.search(r"^node = (\d+)$", text_of(failed.path("shoal.conf")), re.MULTILINE)

    def is_left_out():
        for node in (first, other):
            for words in (["status"], ["stats"], ["df"], ["sync"], ["fsck", "--no-data"]):
                code, text, error = told(first, *words, node.directory)
                if code != 0 or f"node {numbered[1]}," in text + error:
                    raise Failed(f"{words} behind it: {code}, {text} {error}")

    wait_until(lambda: all(status(node)["node"]["map_version"] > before for node in (first, other)),
               "the map with its numbers")
    is_left_out()
    shutil.rmtree(failed.directory)
    nodes.others.remove(failed)
    nodes.others.append(Node(first, 4))
    nodes.others[-1].start()
    known_to_manager(nodes.others[-1])
    maps_are_one(nodes)
    is_left_out()
    ids = [status(node)["node"]["id"] for node in nodes.all()]
    if int(numbered[1]) in ids:
        raise Failed(f"node {numbered[1]} is there again: {ids}")


CLOCK_C = b"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int r = real(id, now);
    if (id == CLOCK_REALTIME)
        now->tv_sec += atoi(getenv("CLOCK_AHEAD_S"));
    return r;
}
"""


def clocks_are_compared(nodes):
    """At a first joining two minutes are too much, and nothing has changed; less is told."""
    first = nodes.first
    first.start()
    slots_are_dealt(nodes)
    before = status(first)["node"]["map_version"]
    new = Node(first, 9, conf=False)
    library = os.path.join(first.top, "clock.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", library, "-"], input=CLOCK_C,
                   check=True)
    words = ["up", new.directory, "--join", first.source, "--key", new.key_file, "--listen",
             new.source, "--osts", "1", "--size", "64M"]
    os.environ["LD_PRELOAD"] = library
    try:
        for ahead_s, text in (("120", "s behind this machine's: set both right"),
                              ("-120", "s ahead of this machine's: set both right"),
                              ("30", None)):
            os.environ["CLOCK_AHEAD_S"] = ahead_s
            code, _, error = told(new, *words)
            if text and (code != 1 or text not in error or error.count("\n") != 1):
                raise Failed(f"{ahead_s} s ahead: {code}, {error}")
            if text and set(listing(new.directory)) - {"lock", "shoal.log"}:
                raise Failed(f"{ahead_s} s ahead has left {listing(new.directory)}")
            if text and status(first)["node"]["map_version"] != before:
                raise Failed(f"{ahead_s} s ahead has changed the map")
    finally:
        del os.environ["LD_PRELOAD"]
    try:
        if code != 0:
            raise Failed(f"half a minute ahead: {code}, {error}")
        known_to_manager(new)
        wait_until(lambda: "node 1 is 30.0 s behind" in told(new, "status", new.directory)[1],
                   "a word about the clock")
    finally:
        new.close()


def errno_of(call):
    try:
        call()
    except OSError as error:
        return error.errno
    return 0


def serial_of(path):
    with open(path, encoding="ascii") as file:
        return next(line for line in file if line.startswith("identity mount:"))[15:31]


def revoked(node):
    """How many keys it knows as such, whoever else is away."""
    return json.loads(node.run("status", node.directory, "--json").stdout)["node"]["keys_revoked"]


def a_revoked_key_lets_nobody_in(nodes):
    """Its mount is cut off at once and says why; others notice nothing; and all nodes, also one
    that was away and those that start anew, refuse it from then on."""
    nodes.start()
    first, away, last = nodes.all()
    key = os.path.join(first.top, "mount.key")
    serial = serial_of(key)
    other = first.mount_key("other.key")
    kept = nodes.others[0].mount
    if told(first, "mount", first.source, kept, "--key", other)[0] != 0:
        raise Failed("a mount by another key")
    content = put(os.path.join(first.mount, "file"), 6 * clusters.MIB)
    away.stop()
    small = os.open(os.path.join(first.mount, "small"), os.O_WRONLY | os.O_CREAT)
    code, text, error = told(first, "key", "revoke", serial, "--join", last.source, "--key",
                             os.path.join(first.top, "members.key"))
    if code != 0 or f"{serial}: revoked (map " not in text or "sessions that end: 1" not in text:
        raise Failed(f"key revoke: {code}, {text} {error}")
    wait_until(lambda: errno_of(lambda: os.listdir(first.mount)) == errno.EKEYREVOKED,
               "EKEYREVOKED of a name")
    wait_until(lambda: errno_of(lambda: os.write(small, b"more")) == errno.EKEYREVOKED,
               "EKEYREVOKED of an open file")
    errno_of(lambda: os.close(small))
    for node in (first, last):
        wait_until(lambda: revoked(node) == 1, "word of it")
    if "by this key: the key is revoked" not in first.log_end("mount.log"):
        raise Failed(f"the mount says {first.log_end('mount.log')}")
    away.start()
    wait_until(lambda: revoked(away) == 1, "word of it")
    same(os.path.join(kept, "file"), content)
    place = os.path.join(first.top, "mount2")
    os.mkdir(place)
    first.kill()
    if told(first, "up", first.directory)[0] != 0:
        raise Failed("up of the first node")
    for node in nodes.all():
        code, _, error = told(first, "mount", node.source, place, "--key", key)
        if code != 1 or "refuses the key: it is revoked" not in error or error.count("\n") != 1:
            raise Failed(f"mount at {node.source}: {code}, {error}")
    code, text, error = told(first, "key", "revoke", serial, first.directory)
    if code != 0 or "sessions that end: 0" not in text:
        raise Failed(f"key revoke once more: {code}, {text} {error}")
    same(os.path.join(kept, "file"), content)
    for path in (first.mount, kept):
        code, _, error = told(first, "umount", path)
        if code != 0:
            raise Failed(f"umount of {path}: {error}")
    clean(first)
def own_status(node):
    """What it says of itself, whoever else is away."""
    return json.loads(node.run("status", node.directory, "--json").stdout)["node"]


def who_is_away_is_told(nodes):
    """Once, by the log of whoever waits; and by status, with what it has."""
    nodes.start()
    maps_are_one(nodes)
    first, away = nodes.first, nodes.others[0]
    path = os.path.join(first.mount, "file")
    put(path, 6 * clusters.MIB)
    targets = [one["id"] for one in status(first)["cluster_targets"] if one["node"] == 2]
    if own_status(first)["away"]:
        raise Failed(f"nobody is away, and status tells {own_status(first)['away']}")
    away.kill()
    words = ["dd", "if=/dev/zero", f"of={path}", "bs=1M", "count=6", "conv=notrunc,fsync"]
    with clusters.child(words, stderr=subprocess.DEVNULL) as writer:
        line = re.compile(rf"node 2, at {away.source}, has not answered for \d+ s, and \d+ calls? "
                          "waits? for it")
        wait_until(lambda: line.search(first.log_end("mount.log")), "the line of who waits")
        wait_until(lambda: own_status(first)["away"], "the row of who is away")
        row = own_status(first)["away"][0]
        if (row["node"], row["address"], row["targets"]) != (2, away.source, targets):
            raise Failed(f"status tells {row}")
        text = told(first, "status", first.directory)[1]
        told_of = f"away       node 2, at {away.source}, with targets "
        if told_of + ", ".join(map(str, targets)) not in text:
            raise Failed(f"status tells {text}")
        away.start()
        if writer.wait() != 0:
            raise Failed("what waited has failed")
    wait_until(lambda: not own_status(first)["away"], "the end of that row")
    with open(first.path("mount.log"), encoding="utf-8") as file:
        if len(line.findall(file.read())) != 1:
            raise Failed("the line was told more than once")


def follows_on_a_full_disk(nodes, full, disk):
    """A key is revoked while `full` can keep no newer map."""
    first = nodes.first
    key = first.mount_key("other.key")
    if told(first, "mount", full.source, full.mount, "--key", key)[0] != 0:
        raise Failed("a mount by another key")
    os.listdir(full.mount)
    maps_are_one(nodes)
    disk.fill()
    disk.fill()
    before = own_status(full)["map_version"]
    code, text, error = told(first, "key", "revoke", serial_of(key), first.directory)
    if code != 0:
        raise Failed(f"key revoke: {code}, {text} {error}")
    wait_until(lambda: own_status(full)["map_problem"] == "full", "a map that cannot be kept")
    node = own_status(full)
    if node["map_version"] != before or node["map_newer"] <= before or node["keys_revoked"] != 1:
        raise Failed(f"a full node goes by {node}, from map {before} on")
    said = full.run("status", full.directory).stdout
    if f"map        {node['map_newer']} cannot be kept here: full" not in said:
        raise Failed(f"status says nothing of it: {said}")
    wait_until(lambda: errno_of(lambda: os.listdir(full.mount)) == errno.EKEYREVOKED,
               "EKEYREVOKED of a name")
    place = os.path.join(first.top, "mount2")
    os.mkdir(place)
    code, _, error = told(first, "mount", full.source, place, "--key", key)
    if code != 1 or "refuses the key: it is revoked" not in error:
        raise Failed(f"mount at a full node: {code}, {error}")


def a_full_node_follows_what_a_map_takes_away(nodes):
    """The file system of a node's DIR is full, so that it can keep no newer map. A key that is
    revoked lets nobody in there all the same, and status says why the node goes by an older map;
    all of the newer one holds when there is room."""
    if soak_disk.missing():
        raise Failed(f"{soak_disk.missing()} is missing")
    first, full = nodes.first, nodes.others[0]
    with open(full.path("shoal.conf"), encoding="ascii") as file:
        conf = file.read()
    disk = soak_disk.Disk(os.path.join(first.top, "image"), full.directory, DISK_BYTES)
    try:
        with open(full.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write(conf)
        nodes.start()
        content = put(os.path.join(first.mount, "file"), 6 * clusters.MIB)
        follows_on_a_full_disk(nodes, full, disk)
        disk.free()
        wait_until(lambda: own_status(full)["map_problem"] is None, "a map that is kept")
        if own_status(full)["map_newer"] != 0:
            raise Failed(f"a node with room goes by {own_status(full)}")
        maps_are_one(nodes)
        full.kill()
        full.start()
        wait_until(lambda: revoked(full) == 1, "word of it")
        same(os.path.join(first.mount, "file"), content)
        code, _, error = told(first, "umount", full.mount)
        if code != 0:
            raise Failed(f"umount of {full.mount}: {error}")
        clean(first)
    finally:
        full.close()
        disk.close()


def files_of(directory):
    """All that a directory holds but its log, its lock and its socket, byte by byte."""
    found = {}
    for top, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(top, name)
            if name not in ("lock", "shoal.log") and os.path.isfile(path):
                with open(path, "rb") as file:
                    found[os.path.relpath(path, directory)] = hashlib.sha256(file.read()).digest()
    return found


def slots_are_dealt(nodes):
    """Each hand-over of slots makes a version, and the next one begins with the next tick of the
    manager: when none came for many ticks there is nothing to hand over any more."""
    seen = [None, 0]

    def is_quiet():
        version = status(nodes.first)["node"]["map_version"]
        if version != seen[0]:
            seen[:] = [version, time.monotonic()]
        return time.monotonic() - seen[1] > 3

    wait_until(is_quiet, "the end of all hand-overs")


def a_copy_of_a_node_is_refused(nodes):
    """Of the first node, and of one that has joined, each of which runs: one line, and neither the
    copy nor the cluster is changed."""
    nodes.start()
    slots_are_dealt(nodes)
    for number, node in enumerate(nodes.all()):
        content = put(os.path.join(nodes.first.mount, f"before-{number}"), 300000)
        twin = Node(nodes.first, 8 + number, conf=False)
        os.rmdir(twin.directory)
        subprocess.run(["cp", "-a", node.directory, twin.directory], check=True)
        conf = os.path.join(twin.directory, "shoal.conf")
        with open(conf, encoding="ascii") as file:
            text = file.read()
        with open(conf, "w", encoding="ascii") as file:
            file.write(text.replace(node.source, twin.source))
        before, version = files_of(twin.directory), status(nodes.first)["node"]["map_version"]
        result = twin.run("up", twin.directory)
        if result.returncode != 1 or result.stderr.count("\n") != 1 or \
                f"runs already, at {node.source}" not in result.stderr:
            raise Failed(f"up of a copy: {result.returncode}, {result.stderr.strip()}")
        if files_of(twin.directory) != before:
            raise Failed("a copy that was refused is changed")
        if status(nodes.first)["node"]["map_version"] != version:
            raise Failed("a copy that was refused has made a version of the map")
        same(os.path.join(nodes.first.mount, f"before-{number}"), content)
        put(os.path.join(nodes.first.mount, f"behind-{number}"), 300000)


class Twin(Node):
    """A copy of a node's directory as on another machine: with an address and shared memory of its
    own."""

    def __init__(self, node, number):
        super().__init__(node.first, number, conf=False)
        os.rmdir(self.directory)
        subprocess.run(["cp", "-a", node.directory, self.directory], check=True)
        with open(self.path("shoal.conf"), encoding="ascii") as file:
            conf = file.read()
        with open(self.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write(conf.replace(node.source, self.source))

    def run(self, *words, limit_s=clusters.START_LIMIT_S):
        apart = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && exec "$@"',
                 "sh", self.shoal, *words]
        if words[0] != "up":
            return super().run(*words, limit_s=limit_s)
        return subprocess.run(apart, stdin=subprocess.DEVNULL, text=True, capture_output=True,
                              timeout=limit_s, check=False)


def is_refused(node, words):
    """Each start of it, by one line, which the first one leaves in DIR."""
    for _ in range(3):
        result = node.run("up", node.directory)
        if result.returncode != 1 or result.stderr.count("\n") != 1 or words not in result.stderr:
            raise Failed(f"up of a copy: {result.returncode}, {result.stderr.strip()}")
    if words not in text_of(node.path("refused")):
        raise Failed("DIR/refused does not say why")


def a_copy_elsewhere_is_refused(nodes):
    """Its map has an address where the node is no longer, so only the manager can tell."""
    nodes.start()
    node = nodes.others[0]
    content = put(os.path.join(nodes.first.mount, "file"), LOST_BYTES)
    older = shutil.copy(node.path("map"), os.path.join(nodes.first.top, "older-map"))
    node.stop()
    node.source = f"127.0.0.78:{free_port('127.0.0.78')}"
    node.start("--listen", node.source)
    wait_until(lambda: status(node)["node"]["told"], "its new address at the manager")
    slots_are_dealt(nodes)
    maps_are_one(nodes)
    before = versions(nodes)
    twin = Twin(node, 9)
    try:
        shutil.copy(older, twin.path("map"))
        is_refused(twin, "runs already, elsewhere")
        if versions(nodes) != before:
            raise Failed("a copy that was refused has made a version of the map")
        same(os.path.join(nodes.first.mount, "file"), content)
        put(os.path.join(nodes.first.mount, "more"), LOST_BYTES)
    finally:
        twin.close()


def a_backup_is_refused(nodes):
    """DIR was started since it was made; the newest one goes on."""
    nodes.start()
    node = nodes.others[0]
    backup, newest = (os.path.join(nodes.first.top, name) for name in ("backup", "newest"))
    node.stop()
    shutil.copytree(node.directory, backup)
    node.start()
    content = put(os.path.join(nodes.first.mount, "file"), LOST_BYTES)
    node.stop()
    shutil.move(node.directory, newest)
    shutil.copytree(backup, node.directory)
    is_refused(node, "was served later from another copy")
    shutil.rmtree(node.directory)
    shutil.move(newest, node.directory)
    node.start()
    same(os.path.join(nodes.first.mount, "file"), content)
    put(os.path.join(nodes.first.mount, "more"), LOST_BYTES)
    clean(nodes.first)


def a_copy_takes_over(nodes):
    """A node that is stopped is silent: its copy serves, and the node ends when it goes on."""
    nodes.start()
    node = nodes.others[0]
    content = put(os.path.join(nodes.first.mount, "file"), LOST_BYTES)
    maps_are_one(nodes)
    process = node.process()
    clusters.stop_process(process)
    twin = Twin(node, 9)
    try:
        twin.start()
        wait_until(lambda: status(twin)["node"]["told"], "the copy at the manager")
        same(os.path.join(nodes.first.mount, "file"), content)
        os.kill(process, signal.SIGCONT)
        wait_until(lambda: node.process() is None, "the end of a node whose copy serves")
        if "was served later from another copy" not in node.log_end():
            raise Failed(f"its log ends: {node.log_end()}")
        is_refused(node, "was served later from another copy")
        same(os.path.join(nodes.first.mount, "file"), content)
        put(os.path.join(nodes.first.mount, "more"), LOST_BYTES)
    finally:
        twin.close()


def targets(node, kind):
    return sum(target["kind"] == kind and target["node"] == status(node)["node"]["id"]
               for target in status(node)["targets"])


def directories(place, count):
    for number in range(count):
        os.makedirs(os.path.join(place, f"d{number}", "deep"), exist_ok=True)
        put(os.path.join(place, f"d{number}", "deep", "file"), 5000)


def nodes_have_roles(nodes):
    """One with metadata only, one with data only: directories go to the former, and are there after
    its death; while it is away what is made elsewhere is made."""
    first = nodes.first
    first.start()
    meta, store = Node(first, 4, conf=False), Node(first, 5, conf=False)
    try:
        for node, role, words in ((meta, "meta", "1 metadata target, 0 storage targets"),
                                  (store, "store", "0 metadata targets, 4 storage targets")):
            said = node.start("--listen", node.source, "--key", node.key_file, "--join",
                              first.source, "--roles", role, "--size", "256M")
            if f"{words}\n" not in said:
                raise Failed(f"a node that joins with {role} says: {said}")
            known_to_manager(node)
        if (targets(meta, "mdt"), targets(meta, "ost")) != (1, 0) or \
                (targets(store, "mdt"), targets(store, "ost")) != (0, 4):
            raise Failed(f"roles: {status(meta)['targets']} {status(store)['targets']}")
        code, _, error = told(meta, "up", meta.directory, "--roles", "store")
        if code != 1 or error.count("\n") != 1:
            raise Failed(f"other roles: {code}, {error}")
        slots_are_dealt(nodes)
        work = os.path.join(first.mount, "work")
        os.mkdir(work)
        directories(work, 60)
        mdts = [target for node in (first, meta) for target in status(node)["targets"]
                if target["kind"] == "mdt"]
        if [target["slots"] for target in mdts] != [SLOTS // 2] * 2 or \
                any(not SLOTS_OPEN_MIN <= target["slots_opened"] < SLOTS // 2 for target in mdts) \
                or sum(target["directories"] for target in mdts) != 2 + 2 * 60:
            raise Failed(f"slots: {mdts}")
        counts = first.run("stats", "--join", first.source, "--key",
                           os.path.join(first.top, "members.key"))
        if counts.returncode != 0:
            raise Failed(f"stats: {counts.stderr.strip()}")
        meta.kill()
        wait_until(lambda: "does not answer" in first.log_end(), "word of the node that is away")
        for number in range(20):
            os.mkdir(os.path.join(first.mount, f"meanwhile-{number}"))
        meta.start()
        directories(work, 80)
        if len(os.listdir(work)) != 80 or len(os.listdir(first.mount)) < 21:
            raise Failed("directories are missing")
        clean(first)
    finally:
        meta.close()
        store.close()


def lost(first, target, *words):
    return told(first, "target", "lost", str(target), first.directory, *words)


def refuses_to_lose(first, target, *words, says):
    code, text, error = lost(first, target, *words)
    if code not in (1, 2) or text or error.count("\n") != 1 or says not in error:
        raise Failed(f"target lost {target} {words}: {code}, {text} {error}")


def error_of(call):
    """0, or the errno of a call that must not take long."""
    start = time.monotonic()
    number = 0
    try:
        call()
    except OSError as error:
        number = error.errno
    if time.monotonic() - start > QUICK_S:
        raise Failed(f"a call took {time.monotonic() - start:.0f} s")
    return number


def lost_parts(path, content):
    """How many MiB of it answer EIO; the others must be as they were."""
    count = 0
    with open(path, "rb", buffering=0) as file:
        for part in range(len(content) // clusters.MIB):
            offset = part * clusters.MIB
            start = time.monotonic()
            try:
                if os.pread(file.fileno(), clusters.MIB, offset) != \
                        content[offset:offset + clusters.MIB]:
                    raise Failed(f"{path} has other bytes at {offset}")
            except OSError as error:
                if error.errno != errno.EIO or time.monotonic() - start > QUICK_S:
                    raise Failed(f"{path}: {error}, {time.monotonic() - start:.0f} s") from error
                count += 1
    return count


def problems_of(node):
    code, text, error = told(node, "fsck", node.directory, "--json")
    found = json.loads(text)
    if not found["finished"] or code != (1 if found["problems"] else 0):
        raise Failed(f"fsck: {code}, {text} {error}")
    return sorted((one["kind"], one["where"].split("/")[-1].rstrip(")"))
                  for one in found["problems"])


def unsynced(first, name):
    """A file of which each part is acknowledged, and not on disk yet as far as its mount knows."""
    file = os.open(os.path.join(first.mount, name), os.O_CREAT | os.O_RDWR, 0o644)
    if os.write(file, os.urandom(LOST_BYTES)) != LOST_BYTES:
        raise Failed("a write was cut")
    return file


def timed(call):
    """The errno of a call, or 0, and how long it took."""
    start = time.monotonic()
    return error_of(call), time.monotonic() - start


def part_of(path, part):
    def read():
        with open(path, "rb", buffering=0) as file:
            if len(os.pread(file.fileno(), clusters.MIB, part * clusters.MIB)) != clusters.MIB:
                raise Failed(f"{path} is cut")
    return read


def patience_is_counted_from_the_death(nodes):
    """What needs a node that is away waits until that has been away for the patience; from then on
    it fails at once, and nothing else does; and all goes on when the node is back."""
    nodes.start()
    maps_are_one(nodes)
    first, gone = nodes.first, nodes.others[0]
    place = os.path.join(first.top, "mount2")
    os.mkdir(place)
    first.mount_apart(place, "-o", f"patience={PATIENCE_S}")
    path = os.path.join(place, "whole")
    content = put(path, LOST_BYTES)
    small = put(os.path.join(place, "small"), 1000)
    same(path, content)
    file = os.open(path, os.O_RDWR)
    gone.kill()
    found = [(part, *timed(part_of(path, part))) for part in range(len(content) // clusters.MIB)]
    away = [part for part, number, _ in found if number == errno.EIO]
    waits = [took for _, number, took in found if number]
    if not away or len(away) == len(found) or any(number not in (0, errno.EIO)
                                                  for _, number, _ in found):
        raise Failed(f"parts of a file without a node: {found}")
    if not PATIENCE_S - AT_ONCE_S < waits[0] < PATIENCE_S + 3 or \
            any(took > AT_ONCE_S for took in waits[1:]):
        raise Failed(f"with a patience of {PATIENCE_S} s calls took {waits} s")
    for part in away:
        offset = part * clusters.MIB
        data = content[offset:offset + clusters.MIB]
        for number, took in (timed(part_of(path, part)),
                             timed(functools.partial(os.pwrite, file, data, offset))):
            if number != errno.EIO or took > AT_ONCE_S:
                raise Failed(f"what needs a node that is away ends with {number} after {took} s")
    same(os.path.join(place, "small"), small)
    is_back = lambda: all(timed(part_of(path, part))[0] == 0 for part in away)
    gone.start()
    wait_until(is_back, "its return")
    same(path, content)
    if os.pwrite(file, content, 0) != len(content):
        raise Failed("a write was cut")
    os.fsync(file)
    gone.kill()
    gone.start()
    same(path, content)
    # Taking back what those that are there have promised is not another wait.
    gone.kill()
    number, took = timed(functools.partial(os.posix_fallocate, file, 0, 2 * len(content)))
    if number != errno.EIO or not PATIENCE_S - AT_ONCE_S < took < PATIENCE_S + 3:
        raise Failed(f"fallocate ends with {number} after {took} s")
    gone.start()
    wait_until(is_back, "its return after a fallocate")
    same(path, content)
    os.close(file)


def answered(first, target, answer):
    """What the verb says to who answers so at a terminal."""
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer)
        return subprocess.run([first.shoal, "target", "lost", str(target), first.directory],
                              stdin=theirs, capture_output=True, text=True, timeout=60, check=False)
    finally:
        os.close(ours)
        os.close(theirs)


def lose_all(first, ids):
    """What is lost, once the daemon has been silent for long enough, is so for ever."""
    wait_until(lambda: "--yes" in lost(first, ids[0])[2], "silence of the dead daemon")
    for answer in (b"no\n", b"yes please\n", b"\n", b"\4"):
        result = answered(first, ids[0], answer)
        if result.returncode != 1 or "for ever" not in result.stdout or \
                "bytes of files" not in result.stdout or "nothing has changed" not in result.stderr:
            raise Failed(f"target lost, {answer}: {result}")
    result = answered(first, ids.pop(0), b"yes\n")
    if result.returncode != 0 or ": lost (map" not in result.stdout:
        raise Failed(f"target lost, yes: {result}")
    for target in ids:
        code, text, error = lost(first, target, "--yes")
        if code != 0 or f"target {target}: lost" not in text:
            raise Failed(f"target lost {target}: {code}, {text} {error}")
        refuses_to_lose(first, target, "--yes", says="is lost already")


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def comes_back(node, ids):
    node.start()
    wait_until(lambda: text_of(node.path("shoal.log")).count("declared lost") == len(ids),
               "its refusal")
    rows = {row["number"]: row["state"] for row in status(node)["targets"]}
    if any(rows[target] != "lost" for target in ids):
        raise Failed(f"targets that came back: {rows}")


def makes_new(mount):
    """A new file works; one that was made by an older map, which had the target, is removed."""
    path = os.path.join(mount, "new")
    try:
        same(path, put(path, LOST_BYTES))
    except OSError:
        os.unlink(path)
        return False
    return True


def targets_are_lost(nodes):
    """The daemon of a node dies for good: what lay on its targets answers EIO, at once, and nothing
    else does; nobody waits for them; and they don't come back."""
    first = nodes.first
    first.start()
    keeps, gone = Node(first, 4, conf=False), Node(first, 5, conf=False)
    try:
        for node, osts in ((keeps, "1"), (gone, "2")):
            node.start("--listen", node.source, "--key", node.key_file, "--join", first.source,
                       "--roles", "store", "--osts", osts, "--size", "256M")
            known_to_manager(node)
        wait_until(lambda: len({status(node)["node"]["map_version"]
                                for node in (first, keeps, gone)}) == 1, "one map at all nodes")
        rows = status(first)["cluster_targets"]
        ids = [row["id"] for row in rows if row["node"] == status(gone)["node"]["id"]]
        mdt = next(row["id"] for row in rows if row["kind"] == "mdt")
        if len(ids) != 2 or any(row["state"] != "there" for row in rows):
            raise Failed(f"targets of the cluster: {rows}")
        path = os.path.join(first.mount, "whole")
        content = put(path, LOST_BYTES)
        small = put(os.path.join(first.mount, "small"), 1000)
        put(os.path.join(first.mount, "removed"), LOST_BYTES)
        total = os.statvfs(first.mount).f_blocks
        for target, words, says in ((ids[0], ["--yes"], "its daemon answers"),
                                    (ids[0], [], "its daemon answers"),
                                    (mdt, [], "has the root of the file system"),
                                    (mdt, ["--yes"], "has the root of the file system"),
                                    (9999, ["--yes"], "there is no target 9999"),
                                    ("ost0", ["--yes"], "is no number of a target")):
            refuses_to_lose(first, target, *words, says=says)
        owed = unsynced(first, "owed")
        gone.kill()
        waiting = subprocess.Popen(["cat", path], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        os.unlink(os.path.join(first.mount, "removed"))
        lose_all(first, list(ids))
        if "Input/output error" not in waiting.communicate(timeout=QUICK_S)[1]:
            raise Failed("a program that waited for a lost target got no EIO")
        if [error_of(lambda: os.fsync(owed)) for _ in range(2)] != [errno.EIO, 0]:
            raise Failed("fsync does not tell once of what was lost")
        os.close(owed)
        if not 0 < lost_parts(path, content) < LOST_BYTES // clusters.MIB:
            raise Failed("none or all of a file is lost")
        same(os.path.join(first.mount, "small"), small)
        wait_until(lambda: makes_new(first.mount), "new files that lie elsewhere")
        if os.statvfs(first.mount).f_blocks >= total:
            raise Failed("df counts what is lost")
        for words in (["status"], ["sync"], ["df"]):
            code, text, error = told(first, *words, first.directory)
            if code != 0:
                raise Failed(f"{words}: {code}, {text} {error}")
        found = problems_of(first)
        if found != [("lost-data", "owed"), ("lost-data", "whole")]:
            raise Failed(f"fsck: {found}")
        comes_back(gone, ids)
        if lost_parts(path, content) == 0:
            raise Failed("a lost target serves again")
        os.unlink(path)
        os.unlink(os.path.join(first.mount, "owed"))
        if problems_of(first):
            raise Failed(f"fsck finds {problems_of(first)}")
    finally:
        gone.close()
        keeps.close()


def own_key_files(nodes):
    """Each node gets a copy of the members' key file for itself."""
    shared = os.path.join(nodes.first.top, "members.key")
    for number, node in enumerate(nodes.all()):
        node.key_file = os.path.join(nodes.first.top, f"members{number}.key")
        shutil.copy(shared, node.key_file)
        text = text_of(node.path("shoal.conf"))
        with open(node.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write(text.replace(f"key = {shared}\n", f"key = {node.key_file}\n"))


def signing(node):
    told = status(node)["node"]
    return told["signs_by"], told["members_keys"]


def keys_change(nodes):
    """The members' key is changed on one node after the other while all run: programs see nothing
    of that, in whatever order, as all sign by the older one until each node has the newer."""
    first = nodes.first
    own_key_files(nodes)
    nodes.start()
    old, keys = signing(first)
    if keys != [old]:
        raise Failed(f"a new cluster signs by {old} of {keys}")
    content = put(os.path.join(first.mount, "before"), LOST_BYTES)
    newer = os.path.join(first.top, "newer.key")
    first.key("new", newer)
    order = [nodes.others[1], first, nodes.others[0]]

    def start_anew(node):
        if any(signing(one)[0] != old for one in nodes.all()):
            raise Failed("a node signs by a key that others have not")
        node.stop()
        node.start()
        path = os.path.join(first.mount, os.path.basename(node.directory))
        same(path, put(path, LOST_BYTES))
        same(os.path.join(first.mount, "before"), content)

    for node in order:
        first.key("add", node.key_file, newer)
        start_anew(node)
    wait_until(lambda: {signing(node)[0] for node in order} == {signing(first)[1][0]},
               "that all sign by the newer key")
    same(os.path.join(first.mount, "before"), content)
    old = signing(first)[0]
    result = first.run("umount", first.mount)
    if result.returncode != 0:
        raise Failed(f"umount: {result.stderr.strip()}")
    os.unlink(os.path.join(first.top, "mount.key"))
    first.key("mount", newer, os.path.join(first.top, "mount.key"))
    first.mount_apart(first.mount)
    for node in order:
        shutil.copy(newer, node.key_file)
        start_anew(node)
    if any(signing(node) != (old, [old]) for node in order):
        raise Failed(f"keys at the end: {[signing(node) for node in order]}")


def renew(node, directory):
    return told(node, "key", "renew", directory)


def number_at(node):
    """Of its capability keys, whoever else is away."""
    text = node.run("status", node.directory, "--json").stdout
    return json.loads(text)["node"]["capability_number"]


def keys_are_renewed(nodes):
    """Again and again, asked at any node: a program that has a file open notices nothing. A node
    that is away may miss one renewal and holds up the next, which changes nothing then; and the
    number is still there when all have started anew."""
    nodes.start()
    maps_are_one(nodes)
    first, away, last = nodes.all()
    path = os.path.join(first.mount, "open")
    content = put(path, LOST_BYTES)
    file = os.open(path, os.O_RDWR)
    for number, asked in enumerate([first, last, away, first], 2):
        code, text, error = renew(first, asked.directory)
        if code != 0 or f"are signed by number {number} (map " not in text:
            raise Failed(f"key renew: {code}, {text} {error}")
        same(path, content)
        content = os.urandom(LOST_BYTES)
        os.pwrite(file, content, 0)
        os.fsync(file)
    wait_until(lambda: {number_at(node) for node in nodes.all()} == {5}, "the number at all nodes")
    wanted = status(away)["node"]["id"]
    # It tells its number each second, and before a start is over.
    away.stop()
    away.start()
    away.stop()
    code, text, error = renew(first, last.directory)
    if code != 0 or "are signed by number 6 (map " not in text:
        raise Failed(f"key renew with a node away: {code}, {text} {error}")
    code, _, error = renew(first, first.directory)
    if code != 1 or error.count("\n") != 1 or f"node {wanted} has not told" not in error:
        raise Failed(f"key renew that has to wait: {code}, {error}")
    if number_at(last) != 6:
        raise Failed(f"number {number_at(last)} behind a refusal")
    away.start()
    code, text, error = renew(first, away.directory)
    if code != 0 or "are signed by number 7 (map " not in text:
        raise Failed(f"key renew when all are there: {code}, {text} {error}")
    content = os.urandom(LOST_BYTES)
    os.pwrite(file, content, 0)
    os.fsync(file)
    os.close(file)
    same(path, content)
    for node in reversed(nodes.all()):
        node.stop()
    for node in nodes.all():
        node.start()
    wait_until(lambda: {number_at(node) for node in nodes.all()} == {7}, "the number after a start")
    same(path, content)


def an_older_manager_does_nothing(nodes):
    """It was put back as it was before nodes joined, so it would give their numbers away again. By
    its own node's map it does not start; where all of DIR is as old, it lets nobody in from what
    another node tells on; with the newest all goes on."""
    first = nodes.first
    older, newest = (os.path.join(first.top, name) for name in ("older", "newest"))
    first.start()
    first.stop()
    shutil.copytree(first.directory, older)
    first.start()
    for node in nodes.others:
        node.start()
        known_to_manager(node)
    content = put(os.path.join(first.mount, "file"), LOST_BYTES)
    first.stop()
    shutil.copytree(first.directory, newest)
    shutil.rmtree(first.path("manager"))
    shutil.copytree(os.path.join(older, "manager"), first.path("manager"))
    result = first.run("up", first.directory)
    if (result.returncode != 1 or result.stderr.count("\n") != 1
            or "older copy" not in result.stderr):
        raise Failed(f"up by an older one: {result.returncode}, {result.stderr.strip()}")
    if "older copy: this node has version" not in text_of(first.path("shoal.log")):
        raise Failed(f"its log ends: {first.log_end()}")
    shutil.rmtree(first.directory)
    shutil.copytree(older, first.directory)
    first.lose_rings()
    first.run("up", first.directory)
    wait_until(lambda: re.search("older copy: a node at [^ ]*, which it does not know, has",
                                 text_of(first.path("shoal.log"))), "its line")
    stranger = Node(first, 8)
    result = stranger.run("up", stranger.directory)
    if result.returncode != 1 or result.stderr.count("\n") != 1:
        raise Failed(f"a node may join: {result.returncode}, {result.stderr.strip()}")
    first.note_regions()
    result = first.run("down", first.directory)
    if "older copy" not in result.stderr:
        raise Failed(f"down of an older one: {result.returncode}, {result.stderr.strip()}")
    first.lose_rings()
    shutil.rmtree(first.directory)
    shutil.move(newest, first.directory)
    first.start()
    same(os.path.join(first.mount, "file"), content)
    same(os.path.join(first.mount, "more"), put(os.path.join(first.mount, "more"), LOST_BYTES))


TESTS = [nodes_have_roles, targets_are_lost, new_files_use_all_nodes, full_targets_get_no_new_files,
         each_node_may_die, all_may_die_at_once, a_node_that_is_away_holds_nobody_up,
         patience_is_counted_from_the_death, a_node_may_move, any_node_mounts,
         mounts_at_one_path_are_two, a_mount_outlives_its_daemon, a_mount_waits_for_its_cluster,
         any_address_leads_there, verbs_speak_of_all_nodes, who_is_away_is_told,
         what_cannot_join_is_refused, a_first_start_that_fails_is_forgotten, clocks_are_compared,
         a_revoked_key_lets_nobody_in,
         a_full_node_follows_what_a_map_takes_away, a_copy_of_a_node_is_refused,
         a_copy_elsewhere_is_refused, a_backup_is_refused, a_copy_takes_over, keys_change,
         keys_are_renewed, an_older_manager_does_nothing]


def main():
    def play(test):
        with Nodes(sys.argv[1]) as nodes:
            test(nodes)

    return drive(__doc__, TESTS, play)


if __name__ == "__main__":
    sys.exit(main())
