"""What runs on a mount until the power goes, and what has to be there afterwards.

Each worker is a thread with a folder of its own. It notes, outside of the mount, what it did, when
that began and when it was acknowledged, and what an acknowledged fsync covers. check() compares
what is there after the cut; it raises Failed with one line.

    Names   makes, moves, links and removes names: what is there is the state after a first part of
            what was done, at least as long as the last fsync covers
    Data    writes, overwrites and cuts blocks of files: each block is whole, of the last write that
            an fsync covers or of a later one
    Small   replaces a small file by write, fsync, rename: one whole version, not older than covered
"""

import mmap
import os
import random
import stat
import struct
import threading
import time
import zlib

from cluster import Failed, KIB

BLOCK = 4 * KIB


class Worker(threading.Thread):
    """Does steps until one fails: the mount has gone then."""

    def __init__(self, mount, name, seed, sync_share):
        super().__init__(name=name)
        self.folder = os.path.join(mount, name)
        self.rng = random.Random(f"{seed} {name}")
        self.sync_share = sync_share  # of what would be a step's chance of an fsync
        self.ends = threading.Event()
        self.steps_done = 0
        self.syncs_done = 0
        self.problem = None

    def run(self):
        try:
            os.makedirs(self.folder)
            while not self.ends.is_set():
                self.step()
                self.steps_done += 1
        except OSError:
            pass
        except Exception as error:  # a fault of the test, which may not pass for a lost mount
            self.problem = f"{type(error).__name__}: {error}"

    def path(self, name):
        return os.path.join(self.folder, name)

    def step(self):
        raise NotImplementedError

    def check(self):
        raise NotImplementedError


def sync_path(path):
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class Names(Worker):
    """operations: (what, names..., number), in order; begun and acknowledged are their times."""

    NAMES_MAX = 24

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.operations = []
        self.begun = []
        self.acknowledged = []
        self.covered = 0  # so many of the first operations
        self.state = {}
        self.number = 0

    def choose(self):
        """Something that can be done now."""
        rng, state = self.rng, self.state
        self.number += 1
        new = f"{self.number}"
        files = sorted(name for name, entry in state.items() if entry[0] == "file")
        folders = sorted(name for name, entry in state.items() if entry[0] == "folder")
        full = len(state) >= self.NAMES_MAX
        kind = rng.choice(["remove", "move", "mode"] if full and files else
                          ["file", "file", "folder", "symlink", "move", "move", "over", "link",
                           "remove", "remove_folder", "mode"])
        if kind in ("move", "mode", "link", "remove") and files:
            return (kind, rng.choice(files), new)
        if kind == "over" and len(files) > 1:
            return (kind, *rng.sample(files, 2))
        if kind == "remove_folder" and folders:
            return (kind, rng.choice(folders), new)
        return (kind if kind in ("folder", "symlink") else "file", new, new)

    def do(self, operation):
        kind, name, other = operation
        if kind == "file":
            os.close(os.open(self.path(name), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        elif kind == "folder":
            os.mkdir(self.path(name), 0o700)
        elif kind == "symlink":
            os.symlink(f"to-{name}", self.path(name))
        elif kind in ("move", "over"):
            os.rename(self.path(name), self.path(other))
        elif kind == "link":
            os.link(self.path(name), self.path(other))
        elif kind == "remove":
            os.unlink(self.path(name))
        elif kind == "remove_folder":
            os.rmdir(self.path(name))
        else:
            os.chmod(self.path(name), self.mode_of(other))

    @staticmethod
    def mode_of(number):
        return 0o400 + int(number) % 256

    def apply(self, state, operation):
        """The state behind it: name -> (kind, file's number, its mode)."""
        kind, name, other = operation
        if kind == "file":
            state[name] = ("file", name, 0o600)
        elif kind in ("folder", "symlink"):
            state[name] = (kind, name, 0)
        elif kind == "move":
            state[other] = state.pop(name)
        elif kind == "over":
            # Both may be names of one file: then a rename does nothing.
            if state[name][1] != state[other][1]:
                state[other] = state.pop(name)
        elif kind == "link":
            state[other] = state[name]
        elif kind == "mode":
            file = state[name][1]
            for each, entry in state.items():
                if entry[:2] == ("file", file):
                    state[each] = ("file", file, self.mode_of(other))
        else:
            del state[name]

    def step(self):
        files = [name for name, entry in self.state.items() if entry[0] == "file"]
        if files and self.rng.random() < 0.05 * self.sync_share:
            count = len(self.operations)
            sync_path(self.path(self.rng.choice(sorted(files))) if self.rng.random() < 0.7
                      else self.folder)
            self.covered = count
            self.syncs_done += 1
            return
        operation = self.choose()
        self.operations.append(operation)
        self.begun.append(time.monotonic_ns())
        self.do(operation)
        self.acknowledged.append(time.monotonic_ns())
        self.apply(self.state, operation)

    @staticmethod
    def shape(state):
        """What can be seen of a state: which names are one file, by their least name."""
        least = {}
        for name in sorted(state):
            if state[name][0] == "file":
                least.setdefault(state[name][1], name)
        return {name: (kind, least[number] if kind == "file" else "", mode)
                for name, (kind, number, mode) in state.items()}

    def found(self):
        """The same of what is there."""
        state = {}
        for entry in os.scandir(self.folder):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                if os.readlink(entry.path) != f"to-{entry.name}":
                    raise Failed(f"{entry.path} points to {os.readlink(entry.path)}")
                state[entry.name] = ("symlink", "", 0)
            elif stat.S_ISDIR(status.st_mode):
                state[entry.name] = ("folder", "", 0)
            else:
                state[entry.name] = ("file", status.st_ino, status.st_mode & 0o777)
        return self.shape(state)

    def check(self):
        """*interval: how many operations survived, at least and at most."""
        if not os.path.isdir(self.folder):
            if self.covered > 0:
                raise Failed(f"{self.folder} is gone, which an fsync covers")
            self.interval = (0, 0)
            return
        found = self.found()
        state = {}
        counts = [0] if self.shape(state) == found else []
        for count, operation in enumerate(self.operations, 1):
            self.apply(state, operation)
            if self.shape(state) == found:
                counts.append(count)
        if not counts:
            raise Failed(f"the names in {self.folder} are no first part of what was done: "
                         f"{sorted(found)}")
        if counts[-1] < self.covered:
            raise Failed(f"{self.folder} is as after {counts[-1]} operations, though an fsync "
                         f"covers {self.covered} of {len(self.operations)}")
        self.interval = (counts[0], counts[-1])


def check_order(workers):
    """What was acknowledged before something that survived began has survived."""
    for later in workers:
        least = later.interval[0]
        if least == 0:
            continue
        began = later.begun[least - 1]
        for worker in workers:
            before = sum(1 for at in worker.acknowledged if at < began)
            if worker.interval[1] < before:
                raise Failed(f"{later.folder} has operation {least}, which began after "
                             f"{worker.folder} had finished {before}, of which "
                             f"{worker.interval[1]} survived: metadata are no prefix")


def block_of(file, block, version):
    return struct.pack("<IIQ", file, block, version) * (BLOCK // 16)


def read_block(data, what):
    """(file, block, version), or None for zeros; Failed when it is not whole."""
    if data.count(0) == len(data):
        return None
    if data != data[:16] * (len(data) // 16):
        raise Failed(f"{what} is torn: neither old nor new")
    return struct.unpack("<IIQ", data[:16])


class Data(Worker):
    """Each file's history: (first block, count, version) of writes, (blocks,) of truncations."""

    FILES = 4
    BLOCKS_MAX = 1024

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.histories = {}
        self.covered = {}  # file -> so many of its first entries
        self.version = 0
        # Of whole pages: the kernel cuts other writes within blocks.
        self.memory = mmap.mmap(-1, 256 * BLOCK)

    def write(self, descriptor, file, history, blocks):
        rng = self.rng
        count = rng.choice([1, 1, 2, 4, 15, 16, 17, 64, 256])
        first = rng.randrange(min(blocks + 8, self.BLOCKS_MAX - count) + 1)
        self.version += 1
        history.append((first, count, self.version))
        data = memoryview(self.memory)[:count * BLOCK]
        data[:] = b"".join(block_of(file, block, self.version)
                           for block in range(first, first + count))
        at = 0
        while at < len(data):
            at += os.pwrite(descriptor, data[at:], first * BLOCK + at)

    def step(self):
        rng = self.rng
        file = rng.randrange(self.FILES)
        history = self.histories.setdefault(file, [])
        descriptor = os.open(self.path(str(file)), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            for _ in range(rng.randrange(1, 6)):
                blocks = self.sizes(history)[-1]
                if blocks > 0 and rng.random() < 0.1:
                    cut = rng.randrange(blocks + 1)
                    history.append((cut,))
                    os.ftruncate(descriptor, cut * BLOCK)
                else:
                    self.write(descriptor, file, history, blocks)
            if rng.random() < 0.3 * self.sync_share:
                covered = len(history)
                if rng.random() < 0.5:
                    os.fsync(descriptor)
                else:
                    os.fdatasync(descriptor)
                self.covered[file] = covered
                self.syncs_done += 1
        finally:
            os.close(descriptor)

    @staticmethod
    def sizes(history):
        """In blocks, before the first entry and behind each."""
        sizes = [0]
        for entry in history:
            sizes.append(entry[0] if len(entry) == 1 else max(sizes[-1], entry[0] + entry[1]))
        return sizes

    def allowed(self, history, covered):
        """block -> versions that it may have; None is zeros."""
        allowed = [{None} for _ in range(self.BLOCKS_MAX)]
        for at, entry in enumerate(history):
            if len(entry) == 1:
                touched, version = range(entry[0], self.BLOCKS_MAX), None
            else:
                touched, version = range(entry[0], entry[0] + entry[1]), entry[2]
            for block in touched:
                if at < covered:
                    allowed[block] = {version}
                else:
                    allowed[block].add(version)
        return allowed

    def check_file(self, file, history):
        path = self.path(str(file))
        covered = self.covered.get(file, 0)
        if not os.path.exists(path):
            if covered > 0:
                raise Failed(f"{path} is gone, which an fsync covers")
            return
        with open(path, "rb") as opened:
            data = opened.read()
        if len(data) != os.stat(path).st_size or len(data) % BLOCK != 0:
            raise Failed(f"{path} has {len(data)} bytes")
        sizes = self.sizes(history)[covered:]
        if not min(sizes) <= len(data) // BLOCK <= max(sizes):
            raise Failed(f"{path} has {len(data) // BLOCK} blocks, not {min(sizes)} to "
                         f"{max(sizes)}")
        allowed = self.allowed(history, covered)
        for block in range(len(data) // BLOCK):
            what = f"block {block} of {path}"
            got = read_block(data[block * BLOCK:(block + 1) * BLOCK], what)
            if got is not None and got[:2] != (file, block):
                raise Failed(f"{what} has the content of block {got[1]} of file {got[0]}")
            version = got[2] if got else None
            if version not in allowed[block]:
                raise Failed(f"{what} has version {version}, not of {allowed[block]}")

    def check(self):
        for file, history in self.histories.items():
            self.check_file(file, history)


class Small(Worker):
    """Version N of the file says so, behind a checksum."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.version = 0
        self.covered = 0
        self.renamed = 0

    def content(self, version):
        rng = random.Random(f"{self.name} {version}")
        body = b"%d " % version + rng.randbytes(rng.choice([10, 500, 3000, 5000, 40000]))
        return struct.pack("<I", zlib.crc32(body)) + body

    def step(self):
        time.sleep(self.rng.random() * 0.05 * (1 - self.sync_share))
        self.version += 1
        temporary = self.path("temporary")
        with open(temporary, "wb") as file:
            file.write(self.content(self.version))
            file.flush()
            os.fsync(file.fileno())
        # It covers what was renamed before it began.
        self.covered = self.renamed
        self.syncs_done += 1
        os.rename(temporary, self.path("current"))
        self.renamed = self.version
        if self.rng.random() < 0.2:
            sync_path(self.folder)
            self.covered = self.version

    def check(self):
        path = self.path("current")
        if not os.path.exists(path):
            if self.covered > 0:
                raise Failed(f"{path} is gone, of which an fsync covers version {self.covered}")
            return
        with open(path, "rb") as file:
            data = file.read()
        crc, body = data[:4], data[4:]
        if len(data) < 4 or struct.unpack("<I", crc)[0] != zlib.crc32(body):
            raise Failed(f"{path} is not whole: {len(data)} bytes")
        version = int(body.split(b" ")[0])
        if not self.covered <= version <= self.version:
            raise Failed(f"{path} has version {version}, not {self.covered} to {self.version}")


def snapshot(folder):
    """What is below, to be the same after the next cut."""
    result = {}
    for path, folders, files in os.walk(folder):
        for name in folders + files:
            whole = os.path.join(path, name)
            status = os.lstat(whole)
            crc = 0
            if stat.S_ISREG(status.st_mode):
                with open(whole, "rb") as file:
                    crc = zlib.crc32(file.read())
            result[whole] = (status.st_mode, status.st_nlink, status.st_ino,
                             0 if stat.S_ISDIR(status.st_mode) else status.st_size, crc)
    return result
