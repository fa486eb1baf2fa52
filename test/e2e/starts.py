#!/usr/bin/python3
"""Mounts that are not there yet, or not any more, and daemons in the foreground: what is said of
them, and what ends them.

Usage: starts.py SHOAL [TEST...]

SHOAL is the command; shoald lies beside it. The last line counts.
"""

import contextlib
import fcntl
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading

import cluster as clusters
from cluster import Failed
from driver import Skipped, drive
from files_load import wait_until
from nodes import (AT_ONCE_S, QUICK_S, Node, Nodes, comes_without_its_mount, free_port,
                   known_to_manager, own_process, put, same, status, told)

SESSIONS = 16
WAYS = ("apart", "inside")
FAILED_STARTS, SCRUBS, SCRUBBED_FILES, STOPS_BESIDE_VERBS = 5, 5, 1000, 12


def expect(holds, why):
    if not holds:
        raise Failed(why)


class Configured:
    """The shoal.conf of a node, and what a test adds to it."""

    def __init__(self, node):
        self.node = node
        with open(node.path("shoal.conf"), encoding="ascii") as file:
            self.text = file.read()

    def mounts(self, way, patience_s):
        with open(self.node.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write(f"{self.text}\n[mount]\nmount = {way}\nmount_point = {self.node.mount}\n"
                       f"\n[limits]\nrequest_timeout_ms = {patience_s * 1000}\n")


def json_of(node):
    """Also where other nodes are away."""
    code, text, error = told(node, "status", node.directory, "--json")
    expect(code in (0, 3), f"status: {code}, {error}")
    return json.loads(text)


def says_that_it_waits(node, asks, why, text_of_why):
    """In the table, and in JSON; for how long, whom it asks, and why."""
    _, text, error = told(node, "status", node.directory)
    line = re.search(rf"\nmounted    -\n +the mount at {re.escape(node.mount)} waits for its "
                     rf"cluster since (\d+) s, asks {re.escape(asks + text_of_why)}", text)
    expect(line, f"status of a node whose mount waits: {text} {error}")
    row = json_of(node)
    waits = row["mount_waits"]
    expect(row["mounts"] == [] and waits and waits["path"] == node.mount and
           waits["for_s"] >= int(line[1]) and waits["asks"] == asks and waits["why"] == why,
           f"status --json of a node whose mount waits: {waits}, {row['mounts']}")


def waits_no_more(node):
    """Its daemon serves."""
    row = json_of(node)
    _, text, _ = told(node, "status", node.directory)
    expect(row["mounts"] == [] and row["mount_waits"] is None and "waits" not in text and
           node.process() is not None and not os.path.ismount(node.mount),
           f"a node whose mount waits no more: {row['mount_waits']}, {row['mounts']}, {text}")


def up_is_told_of_an_umount(node):
    """`up` that still waits itself; the daemon goes on."""
    with clusters.child([node.shoal, "up", node.directory], stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True) as up:
        wait_until(lambda: told(node, "status", node.directory)[0] == 3 and
                   json_of(node)["mount_waits"], "the mount that waits")
        code, _, error = told(node, "umount", node.mount)
        expect(code == 0, f"umount of a mount that `up` waits for: {code}, {error}")
        text, error = up.communicate(timeout=QUICK_S)
    expect(up.returncode == 3 and "waits no more, as `shoal umount` asked" in text,
           f"up of a mount that waits no more: {up.returncode}, {text} {error}")
    waits_no_more(node)


def a_waiting_mount_is_told_and_ended(nodes):
    """By `shoal umount`, by its mount point and by its directory, which leaves the node; it is
    mounted when it is asked for anew."""
    nodes.start()
    first, node = nodes.all()
    content = put(os.path.join(first.mount, "file"), 6 * clusters.MIB)
    conf = Configured(node)
    silent = ", which does not answer: is the first node up?"
    for way in WAYS:
        node.stop()
        conf.mounts(way, AT_ONCE_S)
        node.start()
        serves = own_process(node)
        for one in nodes.all():
            one.kill()
        # It leaves a dead mount there, which goes, too.
        clusters.end_process(serves)
        comes_without_its_mount(node)
        says_that_it_waits(node, first.source, "silent", silent)
        code, _, error = told(node, "umount", first.directory)
        expect(code == 1 and error.count("\n") == 1, f"umount of one that is down: {code}, {error}")
        code, _, error = told(node, "umount", node.mount)
        expect(code == 0 and error == "", f"umount of a mount that waits: {code}, {error}")
        waits_no_more(node)
        code, _, error = told(node, "umount", node.directory)
        expect(code == 1 and "is not mounted" in error, f"umount once more: {code}, {error}")
        node.stop()
        comes_without_its_mount(node)
        code, _, error = told(node, "umount", node.directory)
        expect(code == 0, f"umount of the directory of one that waits: {code}, {error}")
        waits_no_more(node)
        node.stop()
        conf.mounts(way, 12 * QUICK_S)
        up_is_told_of_an_umount(node)
        first.start()
        known_to_manager(node)
        waits_no_more(node)
        code, _, error = told(node, "up", node.directory, "--mount", node.mount)
        expect(code == 0, f"up of one whose mount was given up: {code}, {error}")
        same(os.path.join(node.mount, "file"), content)
        with open(node.path("shoal.log"), encoding="utf-8") as file:
            text = file.read()
        expect(f"the mount at {node.mount} waits no more" in text and
               f"asks {first.source}{silent}" in text, f"its log: {text}")


def fill_sessions(first, mounted):
    """By mounts, whose places are added."""
    for _ in range(SESSIONS):
        place = os.path.join(first.top, f"mount-full-{len(mounted)}")
        os.makedirs(place, exist_ok=True)
        code, _, error = told(first, "mount", first.directory, place, "-o", "patience=2")
        if code != 0:
            expect(mounted and "raise sessions_max" in error, f"mount: {code}, {error}")
            return
        mounted.append(place)
    raise Failed(f"{len(mounted)} mounts find a place")


def a_full_cluster_is_told_from_a_silent_one(nodes):
    """A mount waits for a place for its session, and gets it when another one ends."""
    first, node = nodes.all()
    with open(first.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write(f"\n[limits]\nsessions_max = {SESSIONS}\n")
    nodes.start()
    conf = Configured(node)
    mounted = []
    for way in WAYS:
        node.stop()
        conf.mounts(way, AT_ONCE_S)
        fill_sessions(first, mounted)
        code, text, error = told(node, "up", node.directory)
        expect(code == 3 and "waits for its cluster" in text, f"up: {code}, {text} {error}")
        wait_until(lambda: (json_of(node)["mount_waits"] or {}).get("why") == "full",
                   "word of a full cluster")
        says_that_it_waits(node, first.source, "full", ", which has as many sessions as it takes")
        code, _, error = told(first, "umount", mounted.pop())
        expect(code == 0, f"umount: {error}")
        wait_until(lambda: status(node)["mounts"], "the mount that has a place")
        expect(status(node)["mount_waits"] is None, "it still says that it waits")


def abort(mount):
    """Cuts the connection of a mount, as an administrator can, and as Shoal itself does where the
    kernel refuses what serves it."""
    path = f"/sys/fs/fuse/connections/{os.minor(os.stat(mount).st_dev)}/abort"
    if not os.path.exists(path):
        raise Skipped(path)
    with open(path, "w", encoding="ascii") as file:
        file.write("1")


def says_that_it_died(node):
    """In the log, the table, and JSON; answers how often in the log."""
    wait_until(lambda: json_of(node)["mount_ended"], "word of the mount that was cut")
    row = json_of(node)
    text = f"the mount at {node.mount} has died, as its connection with the kernel was cut: " \
           f"`shoal up {node.directory} --mount {node.mount}` mounts again"
    code, table, _ = told(node, "status", node.directory)
    expect(row["mounts"] == [] and row["mount_ended"] == {"path": node.mount, "why": "cut"} and
           code == 0 and f"mounted    -\n           {text}\n" in table,
           f"status of a node whose mount was cut: {code}, {row['mount_ended']}, {table}")
    with open(node.path("shoal.log"), encoding="utf-8") as file:
        return file.read().count(text)


def a_mount_inside_that_is_cut_is_told(nodes):
    """The daemon that serves it goes on, says so, and mounts again when it is asked; `umount` and
    `down` take the dead one away."""
    first = nodes.first
    with open(first.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write("\n[mount]\nmount = inside\n")
    code, _, error = told(first, "up", first.directory, "--mount", first.mount)
    expect(code == 0, f"up: {error}")
    first.note_regions()
    process = first.process()
    content = put(os.path.join(first.mount, "file"), 6 * clusters.MIB)
    for count in range(1, 4):
        abort(first.mount)
        expect(says_that_it_died(first) == count, "the log does not say it once")
        if count > 1:
            code, _, error = told(first, "umount", first.mount)
            expect(code == 0 and not os.path.ismount(first.mount),
                   f"umount of a dead mount: {code}, {error}")
            expect(json_of(first)["mount_ended"] is None, "it is told still")
        code, _, error = told(first, "up", first.directory, "--mount", first.mount)
        expect(code == 0 and first.process() == process, f"up of a dead mount: {code}, {error}")
        same(os.path.join(first.mount, "file"), content)
        expect(status(first)["mount_ended"] is None, "it is told of one that lives")
    abort(first.mount)
    says_that_it_died(first)
    code, _, error = told(first, "down", first.directory)
    expect(code == 0 and not os.path.ismount(first.mount), f"down of a dead mount: {code}, {error}")


def what_lies_there_now_is_not_the_mount(nodes):
    """One that was cut, and taken away by hand: nothing is told of it any more, and what was
    mounted there since hinders no `down` and stays."""
    first = nodes.first
    with open(first.path("shoal.conf"), "a", encoding="ascii") as file:
        file.write("\n[mount]\nmount = inside\n")
    code, _, error = told(first, "up", first.directory, "--mount", first.mount)
    expect(code == 0, f"up: {error}")
    first.note_regions()
    abort(first.mount)
    says_that_it_died(first)
    subprocess.run(["umount", first.mount], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", first.mount], check=True)
    try:
        wait_until(lambda: json_of(first)["mount_ended"] is None, "that it is told no more")
        code, _, error = told(first, "down", first.directory)
        expect(code == 0 and os.path.ismount(first.mount), f"down: {code}, {error}")
    finally:
        subprocess.run(["umount", first.mount], check=False)


def up_beneath(node, script):
    """`shoal up` of a node that is to mount, in a mount namespace that the script has changed."""
    result = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "sh", "-c", script + ' && exec "$@"',
         "sh", node.shoal, "up", node.directory, "--mount", node.mount], text=True,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=clusters.START_LIMIT_S, check=False)
    return result.returncode, result.stderr


def a_mount_that_the_kernel_refuses_is_told(nodes):
    """At a start, which fails with one line, and of a daemon that runs, which goes on: the device
    is gone, or something else; this process may not mount; the mount point is gone."""
    first = nodes.first
    other = os.path.join(first.top, "other")
    with open(other, "w", encoding="ascii") as file:
        file.write("no device\n")
    bare = 'setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$@"; exit'
    cases = [(f"mount --bind {other} /dev/fuse", "/dev/fuse is something else"),
             ("mount -t tmpfs none /dev", "/dev/fuse: No such file or directory; mounting needs"),
             (bare, f"{first.mount}: mounting needs root"),
             (f"mount -t tmpfs none {first.top} && mkdir {first.directory} && "
              f"mount --bind /proc/self/fd/3 {first.directory}",
              f"{first.mount}: the mount point doesn't exist; create it: mkdir -p {first.mount}")]
    conf = Configured(first)
    for way in WAYS:
        conf.mounts(way, QUICK_S)
        for runs in (False, True):
            if runs:
                code, _, error = told(first, "up", first.directory)
                expect(code == 0 and told(first, "umount", first.mount)[0] == 0, f"up: {error}")
                first.note_regions()
            for script, says in cases:
                code, error = up_beneath(first, f"exec 3<{first.directory}; {script}")
                expect(code == 1 and error.count("\n") == 1 and says in error,
                       f"{way}, {script}: {code}, {error}")
                expect((first.process() is not None) == runs and not os.path.ismount(first.mount),
                       f"{way}, {script}: the daemon runs or has mounted")
        code, _, error = told(first, "up", first.directory, "--mount", first.mount)
        expect(code == 0 and os.path.ismount(first.mount), f"{way}: mounts no more: {error}")
        first.stop()


def ends_beside(node, threads, over):
    """By SIGTERM, while these are at work, until they are told that it is over."""
    for thread in threads:
        thread.start()
    os.kill(node.process(), signal.SIGTERM)
    try:
        wait_until(lambda: node.process() is None, "that the daemon has ended")
    finally:
        over.set()
    for thread in threads:
        thread.join()


def a_stop_beside_verbs_is_clean(nodes):
    """Of those who look at the mount of its process meanwhile."""
    first = nodes.first
    Configured(first).mounts("inside", QUICK_S)
    for turn in range(STOPS_BESIDE_VERBS):
        first.start()
        over = threading.Event()

        def ask(over=over):
            while not over.is_set():
                with contextlib.suppress(OSError):
                    control_says(first, "status", "--own")

        askers = [threading.Thread(target=ask, daemon=True) for _ in range(8)]
        ends_beside(first, askers, over)
        with open(first.path("shoal.log"), encoding="utf-8") as file:
            stops = file.read().count("stopped, all of it is on disk")
        expect(stops == turn + 1, f"turn {turn}: not a clean end")


class Shoald:
    """A node whose daemon runs in the foreground, as a child of this program, made by words alone;
    what it says lies in its log."""

    def __init__(self, first, number):
        self.shoal = first.shoal
        self.directory = os.path.join(first.top, f"foreground{number}")
        self.mount = os.path.join(first.top, f"mount-foreground{number}")
        os.mkdir(self.mount)
        host = f"127.0.0.{number}"
        self.source = f"{host}:{free_port(host)}"
        self.key = os.path.join(first.top, "members.key")
        self.log = os.path.join(first.top, f"foreground{number}.log")
        self.run = first.run
        self.child = None

    def words_of_a_new_one(self, *words):
        return ["--listen", self.source, "--key", self.key, "--osts", "1", "--size", "64M", *words]

    def start(self, *words):
        with open(self.log, "a", encoding="utf-8") as log:
            self.child = subprocess.Popen(
                [os.path.join(os.path.dirname(self.shoal), "shoald"), self.directory, *words],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(lambda: self.child.poll() is not None or self.is_up(), "shoald")
        expect(self.child.poll() is None, f"shoald ended: {self.said()}")

    def is_up(self):
        return os.path.exists(self.directory) and \
            told(self, "status", self.directory)[0] in (0, 3)

    def said(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def ends(self, how):
        """How: what ends it. With the exit status of a clean end, and all on disk."""
        stops = self.said().count("stopped, all of it is on disk")
        how()
        code = self.child.wait(timeout=clusters.START_LIMIT_S)
        self.child = None
        expect(code == 0 and self.said().count("stopped, all of it is on disk") == stops + 1,
               f"shoald ended with {code}: {self.said()}")

    def terminate(self):
        self.ends(self.child.terminate)

    def down(self):
        def ask():
            code, _, error = told(self, "down", self.directory)
            expect(code == 0, f"down of a shoald: {error}")
        self.ends(ask)

    def close(self):
        clusters.unmount(self.mount)
        if self.child:
            self.child.kill()
            self.child.wait()


def shoald_refuses(node, says, *words):
    """At once, with one line, and nothing made or changed."""
    program = os.path.join(os.path.dirname(node.shoal), "shoald")
    result = subprocess.run([program, node.directory, *words], text=True, capture_output=True,
                            stdin=subprocess.DEVNULL, timeout=QUICK_S, check=False)
    expect(result.returncode in (1, 2) and says in result.stderr and
           result.stderr.count("\n") == 1, f"shoald {words}: {result.returncode}, {result.stderr}")


def fresh_shoalds(first, second):
    """A cluster of two, the first of which mounts."""
    shoald_refuses(second, "--listen", "--join", first.source, "--key", second.key)
    shoald_refuses(second, "key", "--listen", second.source)
    expect(not os.path.exists(second.directory), "a refused shoald has left a directory")
    first.start(*first.words_of_a_new_one("--mount", first.mount))
    second.start(*second.words_of_a_new_one("--join", first.source))
    shoald_refuses(second, "in use by process", *second.words_of_a_new_one())
    known_to_manager(second)
    wait_until(lambda: {target["node"] for target in status(first)["cluster_targets"]} == {1, 2},
               "targets of both nodes")


def shoald_makes_nodes(nodes):
    """A cluster of two nodes by shoald alone, as a unit of systemd runs it: they join, serve and
    mount; SIGTERM, SIGINT and `shoal down` end them, and they come back by their directories."""
    pair = Shoald(nodes.first, 5), Shoald(nodes.first, 6)
    first, second = pair
    file = os.path.join(first.mount, "file")
    try:
        fresh_shoalds(first, second)
        content = put(file, 6 * clusters.MIB)
        used = [target["bytes_total"] - target["bytes_free"] for node in pair
                for target in status(node)["targets"] if target["kind"] == "ost"]
        expect(len(used) == 2 and all(used), f"a file of 6 MiB takes {used} of the two nodes")
        second.terminate()
        code, text, _ = told(first, "status", first.directory)
        expect(code == 3 and f"node 2, at {second.source}, does not answer" in text, text)
        second.start()
        same(file, content)
        second.ends(lambda: second.child.send_signal(signal.SIGINT))
        code, _, error = told(first, "umount", first.mount)
        expect(code == 0, f"umount: {error}")
        first.terminate()
        # In the other order: it waits for the first one, and has joined before.
        second.start("--mount", second.mount)
        second.down()
        second.start()
        first.start("--mount", first.mount)
        known_to_manager(second)
        same(file, content)
        # The same directory, in the background.
        second.down()
        code, _, error = told(second, "up", second.directory)
        expect(code == 0, f"up of what shoald has made: {error}")
        same(file, content)
        code, _, error = told(second, "down", second.directory)
        expect(code == 0, f"down: {error}")
        first.down()
        expect(not os.path.ismount(first.mount), "shoald has left its mount")
    finally:
        for node in pair:
            node.close()


def an_address_that_is_taken_makes_no_node(nodes):
    """Neither a first one nor one that would join: no DIR is made, the cluster hears of none."""
    nodes.first.start()
    before = len(status(nodes.first)["targets"])
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        for words in ((), ("--join", nodes.first.source)):
            folder = os.path.join(nodes.first.top, "nowhere")
            code, _, error = told(nodes.first, "up", folder, "--listen", taken, "--key",
                                  os.path.join(nodes.first.top, "members.key"), *words)
            expect(code == 1 and error.count("\n") == 1 and
                   f"{taken} cannot be listened at: " in error, f"up: {code}, {error}")
            expect(not os.path.exists(os.path.join(folder, "shoal.conf")), "a shoal.conf is left")
    _, text, _ = told(nodes.first, "status", nodes.first.directory)
    expect("node 2" not in text and len(status(nodes.first)["targets"]) == before, text)


def a_node_without_storage_targets_has_another(nodes):
    """By a shoal.conf that leaves metadata targets to the manager, of which there are enough."""
    with clusters.Cluster(nodes.first.shoal, osts=1, mdts=8, afar=True) as first:
        first.start()
        node = Node(first, 2, osts=0)
        try:
            node.start()
            kinds = [target["kind"] for target in status(node)["targets"]]
            expect(kinds == ["mdt"], f"targets of such a node: {kinds}")
        finally:
            node.close()


def control_says(node, *words):
    """One request at the control socket, as the verbs send it; its status. OSError: it was cut."""
    text = b"".join(word.encode() + b"\0" for word in words)
    with socket.socket(socket.AF_UNIX) as to:
        to.settimeout(AT_ONCE_S)
        to.connect(node.path("control.sock"))
        to.sendall(struct.pack("<I", len(text)) + text)

        def take(size):
            got = b""
            while len(got) < size:
                part = to.recv(size - len(got))
                if not part:
                    raise OSError("the daemon has closed it")
                got += part
            return got

        while (size := struct.unpack("<I", take(4))[0]):
            take(size)
        return struct.unpack("<I", take(4))[0]


def a_start_that_fails_takes_no_mount(nodes):
    """Who asks for a mount while it ends, as its own can't be made, is refused, and it ends."""
    nodes.start()
    node = nodes.others[0]
    node.stop()
    over = threading.Event()

    def ask():
        while not over.is_set():
            with contextlib.suppress(OSError):
                control_says(node, "mount", node.mount)

    askers = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    try:
        with open(node.path("mount.lock"), "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as a process of the mount holds it
            for asker in askers:
                asker.start()
            for _ in range(FAILED_STARTS):
                code, _, error = told(node, "up", node.directory, "--mount", node.mount)
                expect(code == 1, f"up: {code}, {error}")
                wait_until(lambda: node.process() is None, "that the daemon has ended")
    finally:
        over.set()
        for asker in askers:
            asker.join()


def a_stop_amid_the_scrub_ends(nodes):
    """The thread that scrubs, and then ends the mount, may have begun I/O of the mount's requests:
    that goes on until they have ended."""
    first = nodes.first
    first.start()
    Configured(first).mounts("inside", 60)
    for number in range(SCRUBBED_FILES):
        put(os.path.join(first.mount, f"file{number}"), 64 * clusters.KIB)
    for _ in range(SCRUBS):
        first.kill()
        clusters.unmount(first.mount)
        first.start()
        over = threading.Event()

        def load(number, over=over):
            path = os.path.join(first.mount, f"load{number}")
            with contextlib.suppress(OSError), open(path, "wb", buffering=0) as file:
                while not over.is_set():
                    os.pwrite(file.fileno(), bytes(64 * clusters.KIB), number << 16)
                    os.fsync(file.fileno())

        writers = [threading.Thread(target=load, args=(number,)) for number in range(8)]
        ends_beside(first, writers, over)
        first.start()


TESTS = [a_node_without_storage_targets_has_another, a_start_that_fails_takes_no_mount,
         a_stop_amid_the_scrub_ends, an_address_that_is_taken_makes_no_node,
         a_waiting_mount_is_told_and_ended, a_full_cluster_is_told_from_a_silent_one,
         a_stop_beside_verbs_is_clean, what_lies_there_now_is_not_the_mount,
         a_mount_inside_that_is_cut_is_told, a_mount_that_the_kernel_refuses_is_told,
         shoald_makes_nodes]


def main():
    def play(test):
        with Nodes(sys.argv[1], count=2) as nodes:
            test(nodes)

    return drive(__doc__, TESTS, play)


if __name__ == "__main__":
    sys.exit(main())
