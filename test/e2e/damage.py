#!/usr/bin/python3
"""Bytes that were changed: each field of each head of what lies in a node's DIR, and of the rings
of a killed one, one by one; files of two targets, or of two clusters, exchanged; files cut short.
A start refuses each with one line that says which file, where, and what to do; or has a copy,
tells, and everything acknowledged is there; or tells what is lost. Nothing else: no wrong bytes,
nothing lost in silence, no crash, no hang.

Usage: damage.py SHOAL HEADS [NAME]

HEADS is damage_heads, which prints the heads as the code defines them: a field without a row fails.
Runs in a mount namespace of its own. NAME runs the rows whose name begins so. The last line counts
the rows.
"""

import glob
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile

import cluster as clusters
from cluster import Failed, KIB, MIB

INSIDE = "SHOAL_DAMAGE_INSIDE"
LIMIT_S = 30
# Of every so many rows that are refused one is mended afterwards: the refusal has cost nothing.
MENDED_EVERY = 8
CHANGED = 0x10
BLOCK = 4096
REGION = 2 * BLOCK
SIZES = {"mdt_ring_bytes": MIB, "ost_ring_bytes": MIB, "ost_ring_data_bytes": MIB,
         "disk_log_bytes": 8 * MIB, "data_bytes_max": 16 * MIB, "mdt_changes_bytes": 8 * MIB,
         "ost_changes_bytes": 8 * MIB, "cache_bytes": 0}
RING_RECORDS = {"manager": 256 * KIB}
TARGETS = ["mdt0", "ost0", "manager"]
DEFECTS = ["Assertion", "Sanitizer", "runtime error"]
RESTORE = "restore DIR from a backup"

# LMDB's pages are not ours to define: a page's head, and behind it, of the first two, the meta.
PAGE = {"number": 0, "flags": 10, "lower": 12, "upper": 14}
META = {"magic": 16, "version": 20, "address": 24, "free.page_bytes": 40, "free.flags": 44,
        "free.depth": 46, "free.branches": 48, "free.leaves": 56, "free.overflows": 64,
        "free.entries": 72, "free.root": 80, "rows.flags": 92, "rows.depth": 94,
        "rows.branches": 96, "rows.leaves": 104, "rows.overflows": 112, "rows.entries": 120,
        "rows.root": 128, "transaction": 144}
LAST_PAGE = 136
# Of the older meta page nobody goes by the rest.
META_OLDER = {"magic", "version", "address", "free.page_bytes", "free.flags", "rows.flags",
              "transaction"}


class Expected:
    """words: of the line that refuses, or of lines of the log. sorts: what may have happened to
    files, beside nothing."""

    def __init__(self, refused, words, sorts=()):
        self.refused = refused
        self.words = words
        self.sorts = sorts


def refused(*words):
    return Expected(True, words)


def whole(*words):
    """Everything acknowledged is there."""
    return Expected(False, words)


def told(*words):
    """What no sync has told of may be lost, and blocks that are damaged can't be read."""
    return Expected(False, words, {"lost", "holed", "unreadable"})


def is_holed(data, whole):
    """Some of its bytes are zeros instead."""
    return len(data) == len(whole) and all(a in (0, b) for a, b in zip(data, whole))


def content(number):
    return b"%07d\n" % number * [1, 100, 700, 5000, 20000][number % 5]


class Scene(clusters.Cluster):
    """A cluster, and pictures of it to put back."""

    def __init__(self, shoal, afar=False):
        super().__init__(shoal, osts=2, mdts=2, sizes=SIZES, afar=afar)
        self.files = {}
        self.synced = set()

    def fill(self, first, count):
        for number in range(first, first + count):
            name = f"dir{number % 7}/file{number}"
            path = os.path.join(self.mount, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content(number))
            self.files[name] = content(number)

    def sync(self):
        result = self.run("sync", self.directory)
        if result.returncode:
            raise Failed(f"sync: {result.stderr.strip()}")
        self.synced = set(self.files)

    def rings(self):
        return glob.glob(f"/dev/shm/shoal-{self.identity}-*")

    def ring(self, target):
        return f"/dev/shm/shoal-{self.identity}-{target}"

    def keep(self, name):
        folder = os.path.join(self.top, name)
        os.makedirs(os.path.join(folder, "rings"))
        copy(self.directory, os.path.join(folder, "data"))
        for path in self.rings():
            copy(path, os.path.join(folder, "rings"))

    def put_back(self, name):
        folder = os.path.join(self.top, name)
        clusters.unmount(self.mount)
        shutil.rmtree(self.directory)
        for path in self.rings():
            os.unlink(path)
        copy(os.path.join(folder, "data"), self.directory)
        for path in glob.glob(os.path.join(folder, "rings", "*")):
            copy(path, "/dev/shm")
        with open(self.path("shoal.log"), "wb"):
            pass

    def log(self):
        try:
            with open(self.path("shoal.log"), encoding="utf-8", errors="replace") as file:
                return file.read()
        except OSError:
            return ""

    def look(self):
        """What has happened to files: sort -> names."""
        found = {}
        for folder, _, names in os.walk(self.mount):
            for name in names:
                path = os.path.join(folder, name)
                name = os.path.relpath(path, self.mount)
                try:
                    with open(path, "rb") as file:
                        found[name] = file.read()
                except OSError:
                    found[name] = None
        sorts = {"lost": {name for name in self.files if name not in found},
                 "new": {name for name in found if name not in self.files},
                 "unreadable": {name for name, data in found.items() if data is None}}
        changed = {name for name, data in found.items()
                   if data is not None and data != self.files.get(name, data)}
        sorts["holed"] = {name for name in changed - self.synced
                          if is_holed(found[name], self.files[name])}
        sorts["wrong"] = changed - sorts["holed"]
        sorts["lost after a sync"] = sorts["lost"] & self.synced
        return {sort: names for sort, names in sorts.items() if names}

    def paint(self):
        """A base with some rows; then a log of several batches behind it, and a ring with what no
        sync point has written: killed. And all of it stopped."""
        self.start()
        self.fill(0, 40)
        self.stop()
        self.start()
        for first in range(100, 180, 20):
            self.fill(first, 20)
            self.sync()
        self.fill(300, 20)
        self.kill()
        clusters.unmount(self.mount)
        self.keep("killed")
        self.start()
        self.stop()
        self.keep("stopped")


def copy(source, target):
    subprocess.run(["cp", "-a", "--sparse=always", source, target], check=True)


def flip(path, at, bits=CHANGED):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ bits]))


def read(path, size=-1, at=0):
    with open(path, "rb") as file:
        file.seek(at)
        return file.read(size)


def write(path, data):
    with open(path, "r+b") as file:
        file.write(data)


def exchange(one, other):
    os.rename(one, one + ".other")
    os.rename(other, one)
    os.rename(one + ".other", other)


def numbers(data, at, count):
    return struct.unpack_from(f"<{count}Q", data, at)


class Heads:
    """Where the fields of the heads lie."""

    def __init__(self, program):
        self.bytes = {}
        self.fields = {}
        result = subprocess.run([program], check=True, capture_output=True, text=True)
        for line in result.stdout.splitlines():
            head, field, *rest = line.split()
            if field == "bytes":
                self.bytes[head] = int(rest[0])
                self.fields[head] = {}
            else:
                self.fields[head][field] = int(rest[0])

    def at(self, head, field):
        return self.fields[head][field]


class Table:
    """The rows: name, picture, what changes the scene, what is expected."""

    def __init__(self, heads):
        self.heads = heads
        self.rows = []
        self.turn = 0

    def add(self, name, picture, change, expected):
        self.rows.append((name, picture, change, expected))

    def next_target(self, targets):
        self.turn += 1
        return targets[self.turn % len(targets)]

    def each(self, head, rows):
        """The fields of a head, each with its row; both must name the same."""
        if set(rows) != set(self.heads.fields[head]):
            raise Failed(f"fields and rows of {head} differ in "
                         f"{sorted(set(rows) ^ set(self.heads.fields[head]))}")
        return [(field, self.heads.at(head, field), row) for field, row in rows.items()]


def superblock_order(scene, target, heads):
    """Places of the newer superblock and of the older one."""
    blocks = read(scene.path(f"{target}/log"), REGION)
    at = heads.at("log_superblock", "sequence")
    newer = numbers(blocks, at, 1) > numbers(blocks, BLOCK + at, 1)
    return (0, BLOCK) if newer else (BLOCK, 0)


def needed_batches(scene, target, heads):
    """Places of those that a start reads."""
    log = read(scene.path(f"{target}/log"))
    newer, _ = superblock_order(scene, target, heads)
    tail = numbers(log, newer + heads.at("log_superblock", "tail_offset"), 1)[0]
    places = []
    for place in range(REGION, len(log), BLOCK):
        if log[place:place + 4] == b"SBAT" and \
           numbers(log, place + heads.at("log_batch", "offset"), 1)[0] >= tail:
            places.append(place)
    if len(places) < 3:
        raise Failed(f"{len(places)} batches of {target} are needed")
    return places


def add_superblocks(table):
    heads = table.heads
    fields = table.each("log_superblock", {field: None for field in (
        "magic", "format", "crc", "owner_id", "sequence", "region_bytes", "tail_offset",
        "tail_position", "term", "written_bytes", "tail_previous_crc", "losses", "stopped",
        "ring_log2", "starts", "log_id", "counted_from")})

    def change_one(target, which, at):
        return lambda scene: flip(scene.path(f"{target}/log"),
                                  superblock_order(scene, target, heads)[which] + at)

    for number, (field, at, _) in enumerate(fields):
        for which, age in enumerate(("newer", "older")):
            picture = ["killed", "stopped"][(number + which) % 2]
            target = table.next_target(TARGETS)
            table.add(f"superblock-{age}-{field}-{picture}-{target}", picture,
                      change_one(target, which, at),
                      whole(f"{target}: one of the superblocks of its log, at byte",
                            "was damaged, and is written anew"))

    def change_both(target, at):
        def change(scene):
            flip(scene.path(f"{target}/log"), at)
            flip(scene.path(f"{target}/log"), BLOCK + at)
        return change

    for target in TARGETS:
        line = refused(f"{target}/log is no disk log", "at bytes 0 and 4096", RESTORE)
        for picture in ("killed", "stopped"):
            table.add(f"superblocks-{picture}-{target}", picture,
                      change_both(target, heads.at("log_superblock", "crc")), line)
            table.add(f"superblocks-blank-{picture}-{target}", picture,
                      lambda scene, target=target: write(scene.path(f"{target}/log"),
                                                         bytes(REGION)), line)


def add_batches(table):
    heads = table.heads

    def change(target, index, at):
        return lambda scene: flip(scene.path(f"{target}/log"),
                                  needed_batches(scene, target, heads)[index] + at)

    batch = table.each("log_batch", {field: None for field in (
        "magic", "crc", "owner", "offset", "first_position", "last_position", "durable_upto",
        "payload_bytes", "previous_crc", "reserved")})
    record = table.each("log_record", {field: None for field in RECORD})
    places = [("batch-" + field, at) for field, at, _ in batch]
    places += [("batch-record-" + field, heads.bytes["log_batch"] + at) for field, at, _ in record]
    places.append(("batch-body", heads.bytes["log_batch"] + heads.bytes["log_record"] + 10))
    for name, at in places:
        target = table.next_target(["mdt0", "ost0"])
        table.add(f"{name}-{target}", "killed", change(target, 1, at),
                  refused(f"{target}/log: the disk log is damaged at byte", "is missing though",
                          RESTORE))
    for target in ("mdt0", "ost0"):
        table.add(f"batch-last-{target}", "killed", change(target, -1, places[-1][1]),
                  refused(f"the ring /dev/shm/shoal-", f"{target}/log disagree from its byte",
                          "restore a backup"))


RECORD = ("magic", "length", "position", "term", "durable_upto", "data_end", "crc",
          "operation_count")


def ring_first(scene, target, heads):
    """Where the ring's first record that the disk log lacks lies, and the data area's first byte
    that is needed."""
    head = read(scene.ring(target), heads.bytes["ring_header"])
    starts = heads.at("ring_header", "starts")
    size = heads.bytes["ring_start"]
    _, offset, _, data = max(numbers(head, starts + i * size, 4) for i in range(2))
    records = RING_RECORDS.get(target, MIB)
    return BLOCK + offset % records, BLOCK + records + data % MIB


def add_rings(table):
    heads = table.heads
    starts = heads.at("ring_header", "starts")
    newest = heads.at("ring_header", "newest")
    damaged = "start with --accept-loss to go on without"
    header = dict.fromkeys(("magic", "format", "crc", "owner_id", "boot_id", "log_id",
                            "record_bytes", "data_bytes", "starts", "newest"))

    def change(target, at):
        return lambda scene: flip(scene.ring(target), at)

    def change_record(target, at):
        return lambda scene: flip(scene.ring(target), ring_first(scene, target, heads)[0] + at)

    for field, at, _ in table.each("ring_header", header):
        if field in ("starts", "newest"):
            continue
        target = table.next_target(["mdt0", "ost0"])
        table.add(f"ring-{field}-{target}", "killed", change(target, at),
                  refused(f"-{target} is damaged: its header", damaged))
    for copy_number in range(2):
        at_copy = starts + copy_number * heads.bytes["ring_start"]
        for field, at, _ in table.each("ring_start", dict.fromkeys((
                "sequence", "offset", "position", "data_start", "previous_crc", "crc"))):
            target = table.next_target(["mdt0", "ost0"])
            table.add(f"ring-start{copy_number}-{field}-{target}", "killed",
                      change(target, at_copy + at), whole())
        at_copy = newest + copy_number * heads.bytes["ring_newest"]
        for field, at, _ in table.each("ring_newest", dict.fromkeys((
                "position", "end", "check", "reserved"))):
            target = table.next_target(["mdt0", "ost0"])
            table.add(f"ring-newest{copy_number}-{field}-{target}", "killed",
                      change(target, at_copy + at), whole())
    for field, at, _ in table.each("log_record", dict.fromkeys(RECORD)):
        target = table.next_target(["mdt0", "ost0"])
        table.add(f"ring-record-{field}-{target}", "killed", change_record(target, at),
                  refused(f"-{target} is damaged: record", "is not whole", damaged))
    table.add("ring-record-body", "killed",
              change_record("mdt0", heads.bytes["log_record"] + 10),
              refused("-mdt0 is damaged: record", "is not whole", damaged))

    def change_starts(scene):
        for i in range(2):
            flip(scene.ring("mdt0"), starts + i * heads.bytes["ring_start"])

    table.add("ring-starts", "killed", change_starts,
              refused("-mdt0 is damaged: its header", damaged))
    table.add("ring-data", "killed",
              lambda scene: flip(scene.ring("ost0"), ring_first(scene, "ost0", heads)[1]),
              told("target 16: block", "does not match its checksum"))
    for name, size in (("half", MIB // 2), ("longer", MIB + 2 * BLOCK)):
        table.add("ring-" + name, "killed",
                  lambda scene, size=size: os.truncate(scene.ring("mdt0"), size),
                  refused("-mdt0 is damaged: its header", damaged))
    for name, size in (("empty", 0), ("short", 100)):
        table.add("ring-" + name, "killed",
                  lambda scene, size=size: os.truncate(scene.ring("mdt0"), size),
                  told("mdt0: the ring /dev/shm/shoal-", "is gone", "is lost"))
    table.add("ring-blank-head", "killed",
              lambda scene: write(scene.ring("mdt0"), bytes(BLOCK)),
              told("mdt0: the ring /dev/shm/shoal-", "is gone", "is lost"))
    table.add("ring-gone", "killed", lambda scene: os.unlink(scene.ring("ost0")),
              told("ost0: the ring /dev/shm/shoal-", "is gone", "is lost"))
    for one, other in (("mdt0", "mdt1"), ("ost0", "ost1")):
        table.add(f"rings-exchanged-{one}", "killed",
                  lambda scene, one=one, other=other: exchange(scene.ring(one), scene.ring(other)),
                  refused(f"-{one} belongs to another log", "start and stop"))


def data_block(scene):
    """Where a whole block of some file lies in the data file of ost0."""
    data = read(scene.path("ost0/data"))
    for number in range(320):
        if len(content(number)) >= 2 * BLOCK:
            place = data.find(content(number)[:BLOCK])
            if place >= 0:
                return place
    raise Failed("no block of a file is found")


def add_data(table):
    for field, at, _ in table.each("store_label", dict.fromkeys((
            "magic", "format", "target", "label", "reserved", "crc"))):
        picture = ["killed", "stopped"][table.turn % 2]
        table.turn += 1
        line = refused("the first block of ost0/data is not Shoal's", RESTORE) \
            if field == "magic" else refused("the label of ost0/data, at byte 0, is damaged",
                                             RESTORE)
        table.add(f"label-{field}-{picture}", picture,
                  lambda scene, at=at: flip(scene.path("ost0/data"), at), line)
    table.add("label-blank", "stopped", lambda scene: write(scene.path("ost0/data"), bytes(BLOCK)),
              refused("ost0/data is not the data file that the index in ost0 is about",
                      "put the right one back"))
    table.add("data-block", "stopped",
              lambda scene: flip(scene.path("ost0/data"), data_block(scene) + 10),
              told("target 16: block", "does not match its checksum", "restore the file"))
    for size in (0, 100, BLOCK, 40 * BLOCK):
        table.add(f"data-cut-{size}", "stopped",
                  lambda scene, size=size: os.truncate(scene.path("ost0/data"), size),
                  refused("ost0/data ", "is not the data file" if size == 0 else "was cut short"))
    for target in TARGETS:
        table.add(f"log-cut-{target}", "killed",
                  lambda scene, target=target: os.truncate(scene.path(f"{target}/log"), 4 * MIB),
                  refused(f"{target}/log was cut short: it has 4194304 bytes, and had 8388608",
                          RESTORE))


def meta_order(scene, target):
    """Numbers of the newer meta page and of the older one."""
    pages = read(scene.path(f"{target}/base.mdb"), 2 * BLOCK)
    ages = [numbers(pages, page * BLOCK + META["transaction"], 1) for page in range(2)]
    return (0, 1) if ages[0] > ages[1] else (1, 0)


def base_root(scene, target):
    newer = meta_order(scene, target)[0]
    return numbers(read(scene.path(f"{target}/base.mdb")), newer * BLOCK + META["rows.root"], 1)[0]


def base_leaf(scene, target):
    """The last leaf with rows, below the root."""
    pages = read(scene.path(f"{target}/base.mdb"))
    page = base_root(scene, target)
    while struct.unpack_from("<H", pages, page * BLOCK + PAGE["flags"])[0] == 1:
        lower = struct.unpack_from("<H", pages, page * BLOCK + PAGE["lower"])[0]
        place = struct.unpack_from("<H", pages, page * BLOCK + lower - 2)[0]
        page = struct.unpack_from("<I", pages, page * BLOCK + place)[0]
    return page


def first_node(scene, target, page):
    return struct.unpack("<H", read(scene.path(f"{target}/base.mdb"), 2, page * BLOCK + 16))[0]


def set_last_page(scene, more):
    path = scene.path("mdt0/base.mdb")
    at = meta_order(scene, "mdt0")[0] * BLOCK + LAST_PAGE
    page = numbers(read(path), at, 1)[0]
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(struct.pack("<Q", page + more))


def add_bases(table):
    def change_meta(target, which, at):
        return lambda scene: flip(scene.path(f"{target}/base.mdb"),
                                  meta_order(scene, target)[which] * BLOCK + at)

    def change_page(target, find, at):
        return lambda scene: flip(scene.path(f"{target}/base.mdb"),
                                  find(scene, target) * BLOCK + at)

    def change_node(target, find, at):
        def change(scene):
            page = find(scene, target)
            flip(scene.path(f"{target}/base.mdb"),
                 page * BLOCK + first_node(scene, target, page) + at)
        return change

    def line(target):
        return refused(f"{target}/base.mdb is damaged", "at byte", RESTORE)

    for field, at in {**{"number": 0, "flags": 10}, **META}.items():
        target = table.next_target(TARGETS)
        table.add(f"meta-newer-{field}-{target}", ["killed", "stopped"][table.turn % 2],
                  change_meta(target, 0, at), line(target))
        target = table.next_target(TARGETS)
        used = field in META_OLDER or field in PAGE
        table.add(f"meta-older-{field}-{target}", ["killed", "stopped"][table.turn % 2],
                  change_meta(target, 1, at), line(target) if used else whole())
    # A page more than there are is a page that nobody uses.
    table.add("meta-newer-last_page", "stopped", lambda scene: set_last_page(scene, -1),
              line("mdt0"))
    table.add("meta-newer-last_page-above", "stopped", lambda scene: set_last_page(scene, 1),
              whole())
    for name, find in (("root", base_root), ("leaf", base_leaf)):
        for target in ("mdt0", "ost0"):
            for field, at in {**PAGE, "place": 16}.items():
                table.add(f"page-{name}-{field}-{target}", "stopped",
                          change_page(target, find, at), line(target))
    for field, at in (("value_bytes", 0), ("flags", 4), ("key_bytes", 6)):
        table.add(f"row-{field}", "stopped", change_node("mdt0", base_leaf, at), line("mdt0"))
    table.add("row-value", "stopped", change_node("mdt0", base_leaf, 8 + 24 + 20),
              told("mdt0/base.mdb: damaged rows: 1, the first at byte", "shoal fsck"))
    table.add("base-empty", "stopped",
              lambda scene: os.truncate(scene.path("mdt0/base.mdb"), 0),
              refused("mdt0: the base holds records up to 0", "some are missing",
                      "put the right one back"))
    for size in (100, 3 * BLOCK, 12 * BLOCK):
        table.add(f"base-cut-{size}", "stopped",
                  lambda scene, size=size: os.truncate(scene.path("mdt0/base.mdb"), size),
                  line("mdt0"))
    table.add("base-lock", "killed",
              lambda scene: write(scene.path("mdt0/base.mdb-lock"), b"\x5a" * 8192), whole())


def add_exchanges(table):
    for one, other in (("mdt0", "mdt1"), ("ost0", "ost1"), ("manager", "mdt0"), ("mdt0", "ost0")):
        for name in ("log", "base.mdb", ""):
            words = ("put the right one back",) if name == "base.mdb" else \
                ("belongs to another target", "put the right ones back")
            table.add(f"exchanged-{one}-{other}-{name or 'folder'}", "stopped",
                      lambda scene, one=one, other=other, name=name:
                      exchange(scene.path(os.path.join(one, name)).rstrip("/"),
                               scene.path(os.path.join(other, name)).rstrip("/")),
                      refused(*words))
    table.add("exchanged-data", "stopped",
              lambda scene: exchange(scene.path("ost0/data"), scene.path("ost1/data")),
              refused("ost0/data belongs to target 17, not to 16", "put the right file back"))


def add_other_cluster(table, other):
    """other is a scene whose pictures have the same names."""
    def change(name):
        def put(scene):
            clusters.remove(scene.path(name))
            copy(os.path.join(other.top, "stopped", "data", name), scene.path(name))
        return put

    words = {"manager": "another cluster", "mdt0": "mdt0: ", "ost0": "ost0"}
    for target in ("manager", "mdt0", "ost0"):
        table.add(f"other-cluster-{target}-log", "stopped", change(target + "/log"),
                  refused(f"{target}/log belongs to another target", "put the right ones back"))
        table.add(f"other-cluster-{target}", "stopped", change(target),
                  refused(f"{target}/log belongs to another target", "put the right ones back"))
        table.add(f"other-cluster-{target}-base", "stopped", change(target + "/base.mdb"),
                  refused(words[target]))
    table.add("other-cluster-data", "stopped", change("ost0/data"),
              refused("ost0/data is not the data file that the index in ost0 is about",
                      "put the right one back"))


def change_text(name, old, new):
    def change(scene):
        text = read(scene.path(name)).decode()
        if old not in text:
            raise Failed(f"{name} does not hold {old}")
        with open(scene.path(name), "w", encoding="ascii") as file:
            file.write(text.replace(old, new, 1))
    return change


def flip_setting(key):
    """A value's first digit becomes another one, which has a meaning, too: of a letter 0, else the
    one that has another lowest bit."""
    def change(scene):
        path = scene.path("shoal.conf")
        at = read(path).index(f"\n{key} = ".encode()) + len(key) + 4
        digit = read(path, 1, at)[0]
        flip(path, at, 1 if digit <= ord("9") else digit ^ ord("0"))
    return change


def mark_refused(text):
    def change(scene):
        with open(scene.path("refused"), "wb") as file:
            file.write(text)
    return change


def add_texts(table):
    for key, words in (("format", ("format 2", "the version that made it")),
                       ("osts", ("osts = 3", "the numbers it was made with")),
                       ("mdts", ("mdts = 3", "the numbers it was made with")),
                       ("id", ("belongs to another target", "put the right ones back")),
                       ("name_hash_key", ("name_hash_key", "put")),
                       ("disk_log_bytes", ("bytes, configured are", "put disk_log_bytes back"))):
        table.add("conf-" + key, "stopped", flip_setting(key), refused(*words))
    table.add("conf-key", "stopped", change_text("shoal.conf", "osts", "nsts"),
              refused("shoal.conf", "nsts = 2"))
    table.add("conf-section", "stopped", change_text("shoal.conf", "[sizes]", "[rizes]"),
              refused("shoal.conf", "has no meaning"))
    table.add("conf-empty", "stopped", lambda scene: os.truncate(scene.path("shoal.conf"), 0),
              refused("shoal.conf lacks"))
    # The other rings have their rows in refusals.py.
    table.add("ring-other-size", "killed",
              change_text("shoal.conf", f"ost_ring_data_bytes = {MIB}",
                          f"ost_ring_data_bytes = {MIB // 2}"),
              refused(f"set ost_ring_data_bytes back to {MIB}", "start and stop once"))
    for picture in ("killed", "stopped"):
        table.add(f"targets-{picture}", picture, change_text("targets", "ost1", "ost3"),
                  refused("shoal.conf: osts = 2, mdts = 2, but \"targets\" lists others"))
        table.add(f"targets-empty-{picture}", picture,
                  lambda scene: os.truncate(scene.path("targets"), 0), refused("\"targets\""))
    # A mark that a copy of the node serves; and what is left of such a one.
    table.add("refused", "stopped", mark_refused(b"node 1 runs already, elsewhere: end this copy"),
              refused("node 1 runs already, elsewhere: end this copy"))
    for name, text in (("empty", b""), ("changed", b"node 1 runs\x0a already"),
                       ("long", b"x" * 5000), ("bits", bytes(range(256)))):
        table.add(f"refused-{name}", "stopped", mark_refused(text),
                  refused("refused is there", "start that one"))
    # What they say is of no use to who has the rest.
    table.add("in-use", "killed", lambda scene: flip(scene.path("in-use"), 3, 1), whole())
    table.add("in-use-empty", "killed", lambda scene: os.truncate(scene.path("in-use"), 0), whole())
    table.add("lock", "killed", lambda scene: write(scene.path("lock"), b"\xff" * 16), whole())


def make_table(heads, other):
    table = Table(heads)
    add_superblocks(table)
    add_batches(table)
    add_rings(table)
    add_data(table)
    add_bases(table)
    add_exchanges(table)
    add_other_cluster(table, other)
    add_texts(table)
    if set(heads.fields) != {"log_record", "ring_header", "ring_start", "ring_newest",
                             "log_superblock", "log_batch", "store_label"}:
        raise Failed(f"of the heads {sorted(heads.fields)} some have no rows")
    return table.rows


def start(scene):
    """`up`: its CompletedProcess."""
    try:
        return subprocess.run([scene.shoal, "up", scene.directory, "--mount", scene.mount],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"it does not end in {LIMIT_S} s") from None


def lack(text, words):
    return next((f"\"{word}\" is not said: {text.strip()[-400:]}" for word in words
                 if word not in text), None)


def judge_refusal(result, words):
    if result.returncode != 1:
        return f"exit status {result.returncode}: {result.stderr.strip()}"
    if result.stderr.count("\n") != 1:
        return f"{result.stderr.count(chr(10))} lines: {result.stderr.strip()}"
    return lack(result.stderr, words)


def judge_service(scene, result, expected):
    if result.returncode:
        return f"it is refused: {result.stderr.strip()}"
    sorts = scene.look()
    for sort, names in sorts.items():
        if sort not in expected.sorts:
            return f"{len(names)} files are {sort}, as {min(names)}; the log ends: " + \
                scene.log_end()
    down = scene.run("down", scene.directory)
    if down.returncode:
        return f"down: {down.stderr.strip()}"
    return lack(scene.log(), expected.words)


def play(scene, row, mend):
    """What is wrong, or None."""
    _, picture, change, expected = row
    scene.put_back(picture)
    change(scene)
    try:
        result = start(scene)
        if expected.refused:
            problem = judge_refusal(result, expected.words)
        else:
            problem = judge_service(scene, result, expected)
        defect = next((word for word in DEFECTS if word in scene.log() + result.stderr), None)
        if defect:
            problem = f"{defect}: {scene.log()[-600:]}"
    finally:
        process = scene.process()
        if process is not None:
            clusters.end_process(process)
    if problem is None and expected.refused and mend:
        problem = play(scene, ("", picture, lambda scene: None, whole()), False)
    return problem


class Serving:
    """A row of what changes below a daemon that serves, or in a base that is larger than a start
    looks through. words: of its log. sorts: what may happen to files meanwhile. later: of the line
    by which the next start, which looks through all, is refused."""

    def __init__(self, name, picture, change, words, sorts=(), later=(), small=False):
        self.name = name
        self.picture = picture
        self.change = change
        self.words = words
        self.sorts = set(sorts)
        self.later = later
        self.small = small


HIDDEN = ("lost", "lost after a sync", "unreadable")
# What env_fault says, where LMDB follows a changed page out of the file.
FAULT = "cannot be read: the disk reported an error, or the file was made shorter"
CHECK_BYTES = 64 * KIB


def add_serving(heads):
    def page(find, at):
        return lambda scene: flip(scene.path("mdt0/base.mdb"), find(scene, "mdt0") * BLOCK + at)

    def row(scene):
        leaf = base_leaf(scene, "mdt0")
        flip(scene.path("mdt0/base.mdb"),
             leaf * BLOCK + first_node(scene, "mdt0", leaf) + 8 + 24 + 20)

    def batch(scene):
        flip(scene.path("mdt0/log"),
             needed_batches(scene, "mdt0", heads)[1] + heads.bytes["log_batch"] + 4)

    rows = [Serving("serving-data-block", "stopped",
                    lambda scene: flip(scene.path("ost0/data"), data_block(scene) + 10),
                    ("target 16: block", "does not match its checksum", "restore the file"),
                    {"unreadable"}),
            Serving("serving-row-value", "stopped", row, (), {"unreadable"}),
            Serving("serving-log-batch", "killed", batch, (),
                    later=("mdt0/log: the disk log is damaged at byte", RESTORE))]
    for name, find in (("root", base_root), ("leaf", base_leaf)):
        for field, at in {**PAGE, "place": 16}.items():
            rows.append(Serving(f"serving-page-{name}-{field}", "stopped", page(find, at), (),
                                HIDDEN, ("mdt0/base.mdb is damaged", "at byte", RESTORE)))
    return rows + add_large(page)


def add_large(page):
    """Bases that are larger than a start looks through."""
    rows = []
    for name, find in (("root", base_root), ("leaf", base_leaf)):
        for field, at in {**PAGE, "place": 16}.items():
            rows.append(Serving(f"large-page-{name}-{field}", "stopped", page(find, at),
                                (f"base_check_bytes is {CHECK_BYTES}",), HIDDEN,
                                ("mdt0/base.mdb is damaged", "at byte", RESTORE), small=True))
    return rows


def set_check_bytes(scene, size):
    with open(scene.path("shoal.conf"), "r+", encoding="ascii") as file:
        lines = [line for line in file if not line.startswith("base_check_bytes")]
        lines.insert(lines.index("[sizes]\n") + 1, f"base_check_bytes = {size}\n")
        file.seek(0)
        file.writelines(lines)
        file.truncate()


def serve_damaged(scene, row):
    """What is wrong of what is served."""
    result = start(scene)
    if result.returncode:
        # A start reads some rows, and may so find what it was not looking for.
        found = FAULT in scene.log() or (row.small and judge_refusal(result, ("mdt0",)) is None)
        return None if found else f"it is refused: {result.stderr.strip()}"
    if not row.small:
        row.change(scene)
    bad = set(scene.look()) - row.sorts
    if bad:
        return f"files are {sorted(bad)}; the log ends: {scene.log_end()}"
    if scene.process() is None and FAULT not in scene.log():
        return f"the daemon has ended without a line: {scene.log_end()}"
    return lack(scene.log(), row.words)


def play_serving(scene, row):
    """What is wrong, or None: wrong bytes, an end without a line, a next start that takes it."""
    scene.put_back(row.picture)
    if row.small:
        row.change(scene)
        set_check_bytes(scene, CHECK_BYTES)
    try:
        problem = serve_damaged(scene, row)
        if scene.process() is not None:
            scene.kill()
        clusters.unmount(scene.mount)
        if problem is None and row.later:
            set_check_bytes(scene, MIB)
            problem = judge_refusal(start(scene), row.later)
        defect = next((word for word in DEFECTS if word in scene.log()), None)
        return f"{defect}: {scene.log()[-600:]}" if defect else problem
    finally:
        process = scene.process()
        if process is not None:
            clusters.end_process(process)


class Joiner(clusters.Cluster):
    """A second node: only where a node has an address there is a map in its DIR."""

    def __init__(self, first):
        self.first = first
        self.afar = False
        self.apart = True
        self.shoal = first.shoal
        self.top = first.top
        self.identity = "none"
        self.regions = set()
        self.directory = os.path.join(first.top, "joiner")
        self.mount = os.path.join(first.top, "joiner-mount")
        os.mkdir(self.directory)
        os.mkdir(self.mount)
        with socket.socket() as free:
            free.bind(("127.0.0.2", 0))
            self.source = "127.0.0.2:%d" % free.getsockname()[1]
        with open(self.path("shoal.conf"), "w", encoding="ascii") as file:
            file.write(f"[cluster]\nformat = 3\nosts = 1\n\n[network]\nlisten = {self.source}\n"
                       f"key = {first.top}/members.key\njoin = {first.source}\n\n[sizes]\n")
            for name, value in {**clusters.SIZES, **SIZES}.items():
                file.write(f"{name} = {value}\n")

    def start(self):
        result = self.run("up", self.directory)
        if result.returncode:
            raise Failed(f"up of a node: {result.stderr.strip()}")
        self.note_regions()

    def close(self):
        self.note_regions()
        process = self.process()
        if process is not None:
            clusters.end_process(process)
        for path in filter(os.path.exists, self.regions):
            os.unlink(path)


MAP_PARTS = 16


def map_rows(whole_map):
    """Each sixteenth of a map's bytes, its ends, and what was cut off."""
    size = len(whole_map)
    for part in range(MAP_PARTS + 1):
        at = min(size * part // MAP_PARTS, size - 1)
        yield f"byte {at}", whole_map[:at] + bytes([whole_map[at] ^ CHANGED]) + whole_map[at + 1:]
    for length in (0, 3, 20, size // 2, size - 1):
        yield f"cut to {length}", whole_map[:length]


def play_maps(node, again):
    """A node's map, changed in each way: each start is refused by a line; by what that says to do,
    and with the map as it was, it starts. Yields name and problem."""
    whole_map = read(node.path("map"))
    for name, data in map_rows(whole_map):
        with open(node.path("map"), "wb") as file:
            file.write(data)
        yield f"map, {name}", judge_refusal(node.run("up", node.directory), (
            "map cannot be read", "remove it, and the manager is asked anew"))
    os.unlink(node.path("map"))
    again()
    yield "map, removed", None if os.path.exists(node.path("map")) else "there is none again"


def maps_of_nodes(shoal):
    """What came of each row of a first node's map and of one that has joined."""
    with Scene(shoal, afar=True) as first:
        first.start()
        joiner = Joiner(first)
        try:
            joiner.start()
            joiner.stop()
            yield from play_maps(joiner, joiner.start)
            joiner.stop()
            first.stop()
            yield from play_maps(first, first.start)
        finally:
            joiner.close()


def both_copies(scene):
    """DIR copied while killed, and both started: the second is refused, the first goes on."""
    scene.put_back("killed")
    second = scene.directory + ".copy"
    copy(scene.directory, second)
    scene.start()
    result = scene.run("up", second)
    problem = judge_refusal(result, ("/dev/shm/shoal-", "in use by another process"))
    if problem is None:
        problem = judge_service(scene, start_again(scene), whole())
    shutil.rmtree(second)
    return problem


def start_again(scene):
    scene.kill()
    clusters.unmount(scene.mount)
    return start(scene)


def enter():
    """A mount namespace of its own, with the cluster in memory."""
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "/usr/bin/python3",
                              *sys.argv])
    os.environ["SHOAL_MACHINE_ROOT"] = "/nowhere"
    os.makedirs("/run/shoal", exist_ok=True)
    top = tempfile.mkdtemp(prefix="shoal-damage-")
    for path, size in (("/run/shoal", "16M"), ("/dev/shm", "256M"), (top, "2G")):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode=755,size={size}", "none", path],
                       check=True)
    tempfile.tempdir = top
    return top


def run_rows(scene, rows):
    """Passed and failed."""
    failed = refusals = 0
    for row in rows:
        refusals += row[3].refused
        try:
            problem = play(scene, row, row[3].refused and refusals % MENDED_EVERY == 1)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            problem = str(error)
        if problem:
            failed += 1
            print(f"FAILED: {row[0]}: {problem}", flush=True)
    return len(rows) - failed, failed


def main():
    if len(sys.argv) not in (3, 4):
        print(next(line for line in __doc__.split("\n") if line.startswith("Usage:")),
              file=sys.stderr)
        return 2
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, 1 skipped")
        return 0
    top = enter()
    chosen = sys.argv[3] if len(sys.argv) == 4 else ""
    try:
        with Scene(sys.argv[1]) as scene, Scene(sys.argv[1]) as other:
            scene.paint()
            other.paint()
            rows = make_table(Heads(sys.argv[2]), other)
            passed, failed = run_rows(scene, [row for row in rows if row[0].startswith(chosen)])
            for row in add_serving(Heads(sys.argv[2])):
                if row.name.startswith(chosen):
                    problem = play_serving(scene, row)
                    passed += problem is None
                    failed += problem is not None
                    if problem:
                        print(f"FAILED: {row.name}: {problem}", flush=True)
            for name, problem in maps_of_nodes(sys.argv[1]) if "maps".startswith(chosen) else ():
                passed += problem is None
                failed += problem is not None
                if problem:
                    print(f"FAILED: {name}: {problem}", flush=True)
            if "copies".startswith(chosen):
                problem = both_copies(scene)
                passed += problem is None
                failed += problem is not None
                if problem:
                    print(f"FAILED: copies: {problem}", flush=True)
    finally:
        subprocess.run(["umount", "-l", top], check=False)
        os.rmdir(top)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
