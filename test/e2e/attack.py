#!/usr/bin/python3
"""What a cluster of several nodes does with those who mean no good: who has only an address, who
has a key and sends what it is not for, and directories that belong elsewhere. Each is refused,
with one line where a person asked; nothing is changed, and a mount beside goes on.

Usage: attack.py SHOAL ATTACK [TEST...]

SHOAL is the command, ATTACK the program of attack.c. The last line counts.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import cluster as clusters
from cluster import Failed
from driver import drive
from files_load import Load, wait_until
from nodes import Node, Nodes, files_of, free_port, known_to_manager, listing, maps_are_one, \
    put, same, slots_are_dealt, status, told

HALF_HANDSHAKES = 300
HALF_MESSAGES = 80  # more than a node has buffers
ROUND_CHUNKS = 3  # of a storage target each: so one of each round is at the first node
PAUSE_MAX_S = 8  # of a machine that does much else; what was seen is printed
LOOK_S = 6
CLIENT_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"


class Rounds:
    """A file of chunks on all storage targets, written and read in a mount; how long one took."""

    def __init__(self, nodes):
        self.path = os.path.join(nodes.first.mount, "rounds")
        self.content = os.urandom(ROUND_CHUNKS * clusters.MIB)
        self.longest_s = 0.0
        self.count = 0
        self.problem = None
        self.over = False
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        try:
            while not self.over:
                start = time.monotonic()
                with open(self.path, "wb") as file:
                    file.write(self.content)
                same(self.path, self.content)
                self.longest_s = max(self.longest_s, time.monotonic() - start)
                self.count += 1
        except (Failed, OSError) as error:
            self.problem = error

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, kind, *_):
        self.over = True
        self.thread.join(PAUSE_MAX_S)
        if kind is None and (self.thread.is_alive() or self.problem):
            raise Failed(f"a mount beside it: {self.problem or 'it hangs'}")

    def go_on(self):
        """For a while, without a pause that is too long since the beginning."""
        count = self.count
        wait_until(lambda: self.count > count or self.problem, "a round")
        end = time.monotonic() + LOOK_S
        wait_until(lambda: time.monotonic() > end or self.problem, "the end of a look")
        if self.longest_s > PAUSE_MAX_S:
            raise Failed(f"a mount beside it waited {self.longest_s:.1f} s")
        return self.longest_s


@contextlib.contextmanager
def attacker(nodes, key, *words, address=None):
    """One that holds what it has got."""
    process = subprocess.Popen([nodes.attack, key, address or nodes.first.source,
                                *map(str, words)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        if line != "held\n":
            raise Failed(f"{words[0]} says {line}")
        yield
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait()


def does(nodes, key, *words):
    """What one said that has ended by itself."""
    result = subprocess.run([nodes.attack, key, nodes.first.source, *map(str, words)], text=True,
                            capture_output=True, check=False, timeout=120)
    if result.returncode != 0:
        raise Failed(f"{words[0]}: {result.stderr.strip()}")
    return result.stdout


def log_lines(node):
    with open(node.path("shoal.log"), encoding="utf-8") as file:
        return file.read().splitlines()


def mount_key(nodes):
    return os.path.join(nodes.first.top, "mount.key")


def members_key(nodes):
    return os.path.join(nodes.first.top, "members.key")


def strangers_hold_nobody_up(nodes):
    """Handshakes that do not go on, any bytes, connections by the hundred: a mount beside goes on,
    and they are worth a line now and then, not one each."""
    nodes.start()
    host, port = nodes.first.source.split(":")
    before = len(log_lines(nodes.first))
    start = time.monotonic()
    held = []
    with Rounds(nodes) as rounds:
        for number in range(HALF_HANDSHAKES):
            one = socket.create_connection((host, int(port)))
            with contextlib.suppress(ConnectionError):
                one.sendall(CLIENT_HELLO[:number % 12] if number % 2 else os.urandom(number))
            held.append(one)
        longest_s = rounds.go_on()
    for one in held:
        one.close()
    lines = log_lines(nodes.first)[before:]
    if len(lines) > 1 + (time.monotonic() - start) / 10:
        raise Failed(f"{len(lines)} lines, as {lines[:3]}")
    print(f"beside {HALF_HANDSHAKES} half handshakes the longest round took {longest_s:.2f} s")


def half_messages_hold_nobody_up(nodes):
    """By a key that is good: each keeps a buffer that others need, for a second at most."""
    nodes.start()
    maps_are_one(nodes)
    before = len(log_lines(nodes.first))
    with Rounds(nodes) as rounds, attacker(nodes, mount_key(nodes), "half", HALF_MESSAGES):
        longest_s = rounds.go_on()
    lines = [line for line in log_lines(nodes.first)[before:] if "was cut off" in line]
    if not lines or len(lines) > 1 + (LOOK_S + PAUSE_MAX_S) / 10 or \
            "half of a message" not in lines[0]:
        raise Failed(f"its lines: {lines}")
    print(f"beside {HALF_MESSAGES} half messages the longest round took {longest_s:.2f} s")


def messages_of_others_are_refused(nodes):
    """A mount's key where a member's is needed, capabilities that nobody has signed, a session's
    ticket at another key's connection; and the session's own goes on."""
    nodes.start()
    maps_are_one(nodes)
    slots_are_dealt(nodes)
    content = put(os.path.join(nodes.first.mount, "file"), 3 * clusters.MIB)
    before = status(nodes.first)["node"]["map_version"]
    answers = does(nodes, mount_key(nodes), "forge",
                   nodes.first.mount_key("other.key")).splitlines()
    members = [line for line in answers if line.startswith("member ")]
    rest = [line for line in answers if not line.startswith("member ")]
    if len(members) < 14 or any(not line.endswith(" NOT_PERMITTED") for line in members):
        raise Failed(f"messages of members: {members}")
    if rest != ["attach 0", "attach 0", "other session BAD_TICKET",
                "unsigned read BAD_CAPABILITY", "unsigned write BAD_CAPABILITY",
                "ticket at mdt BAD_TICKET", "ticket at ost BAD_TICKET",
                "request at mdt UNKNOWN_SESSION", "end of session BAD_TICKET", "own getattr 0"]:
        raise Failed(f"messages of others: {rest}")
    if status(nodes.first)["node"]["map_version"] != before:
        raise Failed("what was refused has made a version of the map")
    same(os.path.join(nodes.first.mount, "file"), content)


def capabilities_are_for_what_they_say(nodes):
    """A file's own, as it is signed: not for another file, session, right or offset, and not longer
    than the session."""
    nodes.start()
    maps_are_one(nodes)
    slots_are_dealt(nodes)
    content = put(os.path.join(nodes.first.mount, "file"), 3 * clusters.MIB)
    before = os.stat(os.path.join(nodes.first.mount, "file"))
    answers = does(nodes, mount_key(nodes), "capability").splitlines()
    refused = [f"{what} BAD_CAPABILITY" for what in (
        "other signature", "another file", "other rights", "another session", "beyond offset",
        "other offset")]
    if answers[:-1] != ["attach 0", "attach 0", "own write 0", *refused, "own write 0", "end 0"] \
            or answers[-1] not in ("ended FENCED", "ended UNKNOWN_SESSION"):
        raise Failed(f"writes by capabilities: {answers}")
    same(os.path.join(nodes.first.mount, "file"), content)
    after = os.stat(os.path.join(nodes.first.mount, "file"))
    if (after.st_mtime_ns, after.st_ctime_ns) != (before.st_mtime_ns, before.st_ctime_ns):
        raise Failed(f"another file has changed: {before}, {after}")


def readers_change_nothing(nodes):
    """By a key that only reads, whatever its mount says of itself."""
    nodes.start()
    key = nodes.first.mount_key("ro.key", "--ro")
    before = (sorted(os.listdir(nodes.first.mount)), os.stat(nodes.first.mount).st_ctime_ns)
    answers = does(nodes, key, "read").splitlines()
    if answers != ["attach 0", "mkdir READ_ONLY", "open READ_ONLY", "reopen READ_ONLY"]:
        raise Failed(f"a reader is answered {answers}")
    after = (sorted(os.listdir(nodes.first.mount)), os.stat(nodes.first.mount).st_ctime_ns)
    if after != before:
        raise Failed(f"a reader has changed {before} to {after}")


def other_versions_are_refused(nodes):
    """Of either kind of key; and a person is told which of the two to update."""
    nodes.start()
    for key in (mount_key(nodes), members_key(nodes)):
        for versions, answer in (((1, 9), "0"), ((2, 9), "TOO_NEW"), ((0, 0), "TOO_OLD")):
            said = does(nodes, key, "hello", *versions)
            if said != f"hello {answer}\n":
                raise Failed(f"versions {versions}: {said}")
    place = os.path.join(nodes.first.top, "mount9")
    os.mkdir(place)
    for number, text in ((70, "newer than the one there: update that"),
                         (71, "older than the one there: update this")):
        address = f"127.0.0.9:{free_port('127.0.0.9')}"
        with attacker(nodes, members_key(nodes), "door", number, address=address):
            for words in (["mount", address, place, "--key", mount_key(nodes)],
                          ["status", "--join", address, "--key", members_key(nodes)]):
                code, _, error = told(nodes.first, *words)
                if code != 1 or error.count("\n") != 1 or text not in error:
                    raise Failed(f"{words[0]} at another version: {code}, {error}")


def noise_breaks_nothing(nodes):
    """Requests of any content to all logs: refused or answered, and all that others have stays."""
    nodes.start()
    maps_are_one(nodes)
    content = put(os.path.join(nodes.first.mount, "file"), 3 * clusters.MIB)
    processes = [node.process() for node in nodes.all()]
    before = len(log_lines(nodes.first))
    seed = int.from_bytes(os.urandom(4), "little")
    work = Load(nodes.first)
    said = does(nodes, mount_key(nodes), "noise", LOOK_S, seed).strip()
    work.goes_on()
    _, longest = work.check()
    if [node.process() for node in nodes.all()] != processes:
        raise Failed(f"seed {seed}: a daemon has ended: {nodes.first.log_end()}")
    lines = log_lines(nodes.first)[before:]
    if len(lines) > 6:
        raise Failed(f"seed {seed}: {len(lines)} lines, as {lines[:3]}")
    same(os.path.join(nodes.first.mount, "file"), content)
    print(f"seed {seed}: {said}; a file beside it took {longest} s at most")


def refused(node, words, *texts):
    """One line, and the directory is as it was."""
    before = files_of(node.directory)
    code, out, error = told(node, *words)
    if code not in (1, 2) or out or error.count("\n") != 1 or \
            any(text not in error for text in texts):
        raise Failed(f"{' '.join(words)}: {code}, {out}{error}")
    if files_of(node.directory) != before:
        raise Failed(f"{' '.join(words)}: what was refused has changed files")


def what_is_elsewhere_s_is_refused(nodes):
    """Targets, a map, a whole directory of another cluster that has the same key."""
    with Nodes(nodes.first.shoal, 2) as others:
        shutil.copy(members_key(nodes), members_key(others))
        os.unlink(mount_key(others))
        others.first.mount_key("mount.key")
        nodes.start()
        others.start()
        ours, theirs = nodes.others[0], others.others[0]
        ours.stop()
        refused(ours, ["up", ours.directory, "--join", others.first.source],
                "is another cluster than the one that this directory has joined")
        theirs.stop()
        for name in ("mdt0", "ost0", "ost1"):
            own = ours.path(name) + ".own"
            os.rename(ours.path(name), own)
            shutil.copytree(theirs.path(name), ours.path(name))
            refused(ours, ["up", ours.directory], f"{name}/log belongs to another target")
            shutil.rmtree(ours.path(name))
            os.rename(own, ours.path(name))
        os.rename(ours.path("map"), ours.path("map.own"))
        shutil.copy(theirs.path("map"), ours.path("map"))
        refused(ours, ["up", ours.directory], "map is another cluster's")
        os.rename(ours.path("map.own"), ours.path("map"))
        ours.start()
        known_to_manager(ours)


def what_is_no_shoal_is_refused(nodes):
    """Where something else answers, a person hears so; and of a port that is taken."""
    first = nodes.first
    first.start()
    new = Node(first, 9, conf=False)
    words = ["--listen", new.source, "--key", new.key_file]
    place = os.path.join(first.top, "mount9")
    os.mkdir(place)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        address = "127.0.0.1:%d" % server.getsockname()[1]

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    stream, _ = server.accept()
                    with stream, contextlib.suppress(ConnectionError):
                        stream.recv(4096)
                        stream.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        threading.Thread(target=serve, daemon=True).start()
        for words in (["up", new.directory, "--join", address, *words],
                      ["mount", address, place, "--key", mount_key(nodes)],
                      ["status", "--join", address, "--key", members_key(nodes)]):
            code, _, error = told(first, *words)
            if code != 1 or error.count("\n") != 1 or \
                    f"what answers at {address} is no Shoal" not in error:
                raise Failed(f"{words[0]} where something else answers: {code}, {error}")
        if set(listing(new.directory)) - {"lock", "shoal.log"}:
            raise Failed(f"it has left {listing(new.directory)}")
        code, _, error = told(first, "up", new.directory, "--listen", address, "--key",
                              new.key_file, "--osts", "1", "--size", "64M")
        if code != 1 or error.count("\n") != 1 or "a port that is free" not in error:
            raise Failed(f"a port that is taken: {code}, {error}")


TESTS = [strangers_hold_nobody_up, half_messages_hold_nobody_up, messages_of_others_are_refused,
         capabilities_are_for_what_they_say,
         readers_change_nothing, other_versions_are_refused, noise_breaks_nothing,
         what_is_elsewhere_s_is_refused, what_is_no_shoal_is_refused]


def main():
    def play(test):
        with Nodes(sys.argv[1], 2) as nodes:
            nodes.attack = os.path.abspath(sys.argv[2])
            test(nodes)

    return drive(__doc__, TESTS, play, words=2)


sys.exit(main())
