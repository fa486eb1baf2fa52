"""Names that a process of its own makes, moves, links and takes away in a mount while a test does
something below it; and what has been acknowledged of them, as a tree that can be compared.

    work = NamesLoad(cluster, seed)
    work.goes_on()
    ...
    count, longest_s = work.check()
"""

import json
import os
import random
import subprocess
import sys
import time

from cluster import Failed
from files_load import wait_until

TOPS = 24
NAMES = 4
ERRORS_EXPECTED = (FileExistsError, FileNotFoundError, NotADirectoryError, IsADirectoryError)


class Tree:
    """What the names are: a directory is a dict, a file a one-element list that all its names
    share."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.top = {}
        self.files = 0

    def directories(self):
        found = [("", self.top)]
        for path, directory in found:
            found += [(f"{path}/{name}", below) for name, below in sorted(directory.items())
                      if isinstance(below, dict)]
        return found

    def place(self):
        path, directory = self.random.choice(self.directories())
        names = TOPS if not path else NAMES
        return path, directory, f"n{self.random.randrange(names)}"

    def step(self, folder):
        """One operation on both; they must agree on whether it can be done."""
        kind = self.random.choice(("mkdir", "mkdir", "make", "make", "rename", "rename", "rename",
                                   "link", "unlink", "rmdir"))
        path, directory, name = self.place()
        other_path, other, other_name = self.place()
        here = f"{folder}{path}/{name}"
        there = f"{folder}{other_path}/{other_name}"
        what = directory.get(name)
        gone = other.get(other_name)
        if kind == "mkdir":
            self.agree(what is None, lambda: os.mkdir(here), here)
            directory.setdefault(name, {})
        elif kind == "make" and not isinstance(what, dict):
            self.files += 1
            with open(here, "w", encoding="ascii") as file:
                file.write(f"file {self.files}")
            if what is None:
                directory[name] = [f"file {self.files}"]
            else:
                what[0] = f"file {self.files}"
        elif kind == "link" and isinstance(what, list):
            self.agree(gone is None, lambda: os.link(here, there), f"{here} to {there}")
            other.setdefault(other_name, what)
        elif kind == "unlink" and isinstance(what, list):
            os.unlink(here)
            del directory[name]
        elif kind == "rmdir" and isinstance(what, dict):
            try:
                os.rmdir(here)
                fine = True
            except OSError:
                fine = False
            if fine != (not what):
                raise Failed(f"rmdir {here}: {fine} of what has {len(what)} names")
            if fine:
                del directory[name]
        elif kind == "rename" and what is not None:
            self.rename(folder, (path, directory, name), (other_path, other, other_name))

    @staticmethod
    def agree(should, act, what):
        try:
            act()
            did = True
        except ERRORS_EXPECTED:
            did = False
        if did != should:
            raise Failed(f"{what}: {did}, must be {should}")

    def rename(self, folder, old, new):
        path, directory, name = old
        other_path, other, other_name = new
        what = directory[name]
        gone = other.get(other_name)
        below = f"{path}/{name}"
        loops = isinstance(what, dict) and f"{other_path}/".startswith(f"{below}/")
        above = isinstance(gone, dict) and f"{path}/".startswith(f"{other_path}/{other_name}/")
        fits = gone is None or isinstance(gone, dict) == isinstance(what, dict)
        same = gone is what
        may = same or (not loops and not above and fits and not (isinstance(gone, dict) and gone))
        try:
            os.rename(f"{folder}{below}", f"{folder}{other_path}/{other_name}")
            did, why = True, ""
        except OSError as error:
            did, why = False, error.strerror
        if did != may:
            raise Failed(f"rename {below} to {other_path}/{other_name}: {did} {why}, must be {may}")
        if did and not same:
            del directory[name]
            other[other_name] = what

    def plain(self):
        """As it can be written down: names of one file say which."""
        numbers = {}

        def one(what):
            if isinstance(what, dict):
                return {name: one(below) for name, below in sorted(what.items())}
            return [what[0], numbers.setdefault(id(what), len(numbers))]
        return one(self.top)


def seen(folder):
    """The same, as the mount has it."""
    numbers = {}

    def one(path):
        state = os.lstat(path)
        if os.path.isdir(path):
            return {name: one(os.path.join(path, name)) for name in sorted(os.listdir(path))}
        with open(path, encoding="ascii") as file:
            return [file.read(), numbers.setdefault(state.st_ino, len(numbers))]
    return one(folder)


def load(folder, told, stop, seed):
    """Steps until there is a file `stop`; a + for each, then the tree and the longest time."""
    tree = Tree(seed)
    longest_s = 0.0
    with open(told, "ab", buffering=0) as out:
        while not os.path.exists(stop):
            start = time.monotonic()
            tree.step(folder)
            longest_s = max(longest_s, time.monotonic() - start)
            out.write(b"+")
    with open(told + ".tree", "w", encoding="ascii") as file:
        json.dump({"longest_s": longest_s, "tree": tree.plain()}, file)


class NamesLoad:
    """A process of its own: one that forks while names of the mount are asked for may wait."""

    def __init__(self, cluster, seed, mount=None):
        name = f"names{seed}"
        self.folder = os.path.join(mount or cluster.mount, name)
        self.told = os.path.join(cluster.top, f"{name}.told")
        self.stop = os.path.join(cluster.top, f"{name}.stop")
        self.seed = seed
        os.mkdir(self.folder)
        self.errors = open(self.told + ".errors", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), self.folder, self.told, self.stop,
             str(seed)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)

    def count(self):
        try:
            return os.path.getsize(self.told)
        except FileNotFoundError:
            return 0

    def goes_on(self, steps=200):
        count = self.count() + steps
        wait_until(lambda: self.process.poll() is not None or self.count() >= count, "progress")

    def check(self):
        """Ends it; how many steps it made, and the longest time of one."""
        with open(self.stop, "w", encoding="ascii"):
            pass
        status = self.process.wait()
        self.errors.seek(0)
        words = self.errors.read().strip().split("\n")[-1]
        self.errors.close()
        if status != 0:
            raise Failed(f"names, seed {self.seed}: {words}")
        with open(self.told + ".tree", encoding="ascii") as file:
            end = json.load(file)
        is_so = seen(self.folder)
        if json.loads(json.dumps(is_so)) != renumbered(end["tree"]):
            raise Failed(f"names, seed {self.seed}: the mount has other names than were made")
        return self.count(), end["longest_s"]


def renumbered(tree):
    """Files counted in the order in which a walk meets them."""
    numbers = {}

    def one(what):
        if isinstance(what, dict):
            return {name: one(below) for name, below in what.items()}
        return [what[0], numbers.setdefault(what[1], len(numbers))]
    return one(tree)


if __name__ == "__main__":
    load(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
