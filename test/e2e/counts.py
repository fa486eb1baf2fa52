#!/usr/bin/python3
"""What each operation of a program costs in messages, records and flushes, held against the table
in docs/internals/costs.md.

Usage: counts.py SHOAL [--write]

SHOAL is the command. --write puts what was counted into the table instead. The last line counts.

The operations are made one by one through a mount by TCP with a key, on two metadata and two
storage targets, and the counters of all targets are read before and after each. A row gives the
median of its operations, so that what the targets do beside them is in none, and of flushes those
that were asked for, as on a slow machine the one of each second is in most. Besides, the directory
that a program makes, renames and removes names in is asked for no more often than a kernel must,
and a small file that nothing is known of costs one request of each kind, and one read of a disk.
"""

import ctypes
import json
import os
import re
import statistics
import sys

import cluster as clusters
from cluster import Failed

TIMES = 15
LOOKS = 1000
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)),
                     "../../docs/internals/costs.md")
KERNEL = "6.18"  # whose requests that table has; another one may ask otherwise
COMMITS = os.path.join(os.path.dirname(TABLE), "fuse.md")
HEAD = ["| operation | client asks metadata | client asks storage | between targets "
        "| records of metadata | of storage | flushes of metadata | of storage |",
        "|---|---|---|---|---|---|---|---|"]
BESIDE = {"session_attach", "session_renew", "session_begin", "session_floor", "sessions_ended",
          "map_get", "map_wait", "map_changes", "log_starts", "node_tell", "group_tell"}
# What the kernel asks for when it has kept it for as long as it may.
KEPT = {"lookup", "getattr"}
AT_FDCWD = -100
RENAME_EXCHANGE = 2
LIBC = ctypes.CDLL(None, use_errno=True)
NAME = re.compile(r"\| ([^|]*) \|")


class Counters:
    """Of all targets, at one moment at which nothing is under way."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.values = {}
        self.under_way = 0  # files that are open, and orders to storage targets
        self.asked_of = 0   # files whose blocks were counted anew
        self.asked_before = 0

    def read(self):
        result = self.cluster.run("stats", self.cluster.directory, "--json")
        if result.returncode != 0:
            raise Failed(f"stats: {result.stderr.strip()}")
        answer = json.loads(result.stdout)
        values = {(one["target"], one["operation"]): one["count"] for one in answer["operations"]
                  if one["operation"] not in BESIDE | KEPT}
        values.update({(one["target"], one["name"]): one["value"] for one in answer["counters"]
                       if one["name"] in ("records", "sync_points", "sync_points_unasked",
                                          "promises_kept")})
        self.under_way = self.sum_of(answer, "opens", "orders")
        self.asked_of = self.sum_of(answer, "counted")
        return values

    @staticmethod
    def sum_of(answer, *names):
        return sum(one["value"] for one in answer["counters"] if one["name"] in names)

    def settled(self, done=lambda now: True):
        """What they are when nothing is open or ordered and they stand still: closes, ends of
        transactions and cuts come behind the answer."""
        before = self.read()
        for _ in range(LOOKS):
            now = self.read()
            if now == before and self.under_way == 0 and done(now):
                return now
            before = now
        raise Failed(f"counters did not stand still in {LOOKS} looks")

    def grown(self, now):
        return {key: value - self.values.get(key, 0) for key, value in now.items()
                if value != self.values.get(key, 0)}

    def commits_are_answered(self, now):
        """A commit between targets is answered, and its request counted, once it is on disk: up
        to a second behind the record that keeps the promise."""
        grown = self.grown(now)
        return sum(value for (_, name), value in grown.items() if name == "promises_kept") <= \
            sum(value for (_, name), value in grown.items() if name == "cross_commit")

    def begin(self):
        self.values = self.settled(self.commits_are_answered)
        self.asked_before = self.asked_of

    def end(self, files_asked_of):
        """With commits by the promises that they kept, and without the flush that they wait
        for, and those that nobody asked for. When the blocks of so many files were counted."""
        grown = self.grown(self.settled(
            lambda _: self.asked_of >= self.asked_before + files_asked_of))
        for target in {target for target, _ in grown}:
            unasked = grown.pop((target, "sync_points_unasked"), 0)
            if unasked:
                grown[target, "sync_points"] -= unasked
        return {(target, "cross_commit" if name == "promises_kept" else name): value
                for (target, name), value in grown.items() if name != "cross_commit"}


class Costs:
    """Of some operations of one kind, each counted alone."""

    def __init__(self):
        self.seen = []

    def add(self, counted):
        self.seen.append({})
        for (target, name), count in counted.items():
            column = self.column(target, name)
            self.seen[-1][column, name] = self.seen[-1].get((column, name), 0) + count

    @staticmethod
    def column(target, name):
        side = "metadata" if target.startswith("mdt") else "storage"
        if name in ("records", "sync_points"):
            return name, side
        return "between" if name.startswith("cross_") or name == "chunk_cut" else side

    def row(self, operation):
        names = sorted({key for one in self.seen for key in one}, key=lambda key: key[1])
        middle = {key: round(statistics.median(one.get(key, 0) for one in self.seen))
                  for key in names}
        cells = [operation]
        for column in ("metadata", "storage", "between"):
            cells.append(", ".join(name if count == 1 else f"{count} {name}"
                                   for (of, name), count in middle.items()
                                   if of == column and count))
        cells += [str(middle.get(((name, side), name), 0)) for name in ("records", "sync_points")
                  for side in ("metadata", "storage")]
        return "| " + " | ".join(cells) + " |"


class Table:
    """Rows as they are counted."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.counters = Counters(cluster)
        self.rows = []

    def path(self, *names):
        return os.path.join(self.cluster.mount, *names)

    def count(self, operation, run, elsewhere=None, files_asked_of=0):
        """run(i) for each i. With elsewhere: the name of those that other targets were asked about,
        of which there must be some. A call is over when the blocks of so many files were counted
        behind it."""
        here, there = Costs(), Costs()
        for number in range(TIMES):
            self.counters.begin()
            run(number)
            counted = self.counters.end(files_asked_of)
            crossed = any(name == "cross_prepare" for _, name in counted)
            (there if elsewhere and crossed else here).add(counted)
        for name, costs in ((operation, here), (elsewhere, there)):
            if name and not costs.seen:
                raise Failed(f"{name}: none of {TIMES} was one")
            if name:
                self.rows.append(costs.row(name))

    def files(self):
        def write(number, size, flags=0, sync=False):
            file = os.open(self.path("d", f"f{number}"), os.O_WRONLY | flags, 0o644)
            os.write(file, b"x" * size)
            if sync:
                os.fsync(file)
            os.close(file)

        def read(number):
            file = os.open(self.path("d", f"f{number}"), os.O_RDONLY)
            os.read(file, 50000)
            os.close(file)

        new = os.O_CREAT | os.O_EXCL
        self.count("create, close", lambda number: os.close(
            os.open(self.path("d", f"f{number}"), os.O_WRONLY | new, 0o644)))
        self.count("open, write 2,000 bytes, close", lambda number: write(number, 2000))
        self.count("open, write 2,000 bytes, fsync, close",
                   lambda number: write(number, 2000, sync=True))
        self.count("open, read 2,000 bytes, close", read)
        self.remove_files("unlink, 2,000 bytes")
        self.count("create, write 50,000 bytes, close",
                   lambda number: write(number, 50000, new))
        self.count("open, read 50,000 bytes, close", read)
        self.count("open, write 50,000 bytes, fsync, close",
                   lambda number: write(number, 50000, sync=True))

        self.count("open, list 15 names, close", lambda _: os.listdir(self.path("d")))
        self.count("chmod", lambda number: os.chmod(self.path("d", f"f{number}"), 0o600))
        self.count("truncate, 50,000 bytes to 30,000",
                   lambda number: os.truncate(self.path("d", f"f{number}"), 30000),
                   files_asked_of=1)
        self.count("symlink",
                   lambda number: os.symlink("f", self.path("d", f"l{number}")))
        self.count("readlink", lambda number: os.readlink(self.path("d", f"l{number}")))
        for number in range(TIMES):
            os.unlink(self.path("d", f"l{number}"))

    def remove_files(self, operation):
        self.count(operation, lambda number: os.unlink(self.path("d", f"f{number}")))

    def directories(self):
        deep = ("d", "e", "g")
        os.makedirs(self.path(*deep))
        self.count("mkdir", lambda number: os.mkdir(self.path(*deep, f"s{number}")))
        self.count("rmdir", lambda number: os.rmdir(self.path(*deep, f"s{number}")))
        self.count("mkdir here", lambda number: os.mkdir(self.path("d", f"s{number}")),
                   "mkdir elsewhere")

    def make_files(self, name):
        for number in range(TIMES):
            os.close(os.open(self.path("d", f"{name}{number}"), os.O_WRONLY | os.O_CREAT, 0o644))

    def names(self):
        """Of files of d, whose directories lie here and elsewhere."""
        self.count("rename", lambda number: os.rename(self.path("d", f"f{number}"),
                                                      self.path("d", f"r{number}")))
        self.count("rename into another directory",
                   lambda number: os.rename(self.path("d", f"r{number}"),
                                            self.path("d", f"s{number}", "x")),
                   "rename into a directory elsewhere")
        self.make_files("f")
        self.count("exchange with a name in another directory",
                   lambda number: exchange(self.path("d", f"f{number}"),
                                           self.path("d", f"s{number}", "x")),
                   "exchange with a name in a directory elsewhere")
        self.make_files("over")
        self.count("rename over a name",
                   lambda number: os.rename(self.path("d", f"over{number}"),
                                            self.path("d", f"f{number}")))
        self.make_files("over")
        self.count("rename over a name in another directory",
                   lambda number: os.rename(self.path("d", f"over{number}"),
                                            self.path("d", f"s{number}", "x")),
                   "rename over a name in a directory elsewhere")
        self.count("link", lambda number: os.link(self.path("d", f"f{number}"),
                                                  self.path("d", f"s{number}", "y")),
                   "link into a directory elsewhere")
        for number in range(TIMES):
            os.unlink(self.path("d", f"s{number}", "x"))
        self.count("unlink of one name of two",
                   lambda number: os.unlink(self.path("d", f"s{number}", "y")),
                   "unlink of one name of two, its inode elsewhere")
        self.count("rmdir here", lambda number: os.rmdir(self.path("d", f"s{number}")),
                   "rmdir, its inode elsewhere")


def exchange(one, other):
    """renameat2(2), which this library has no words for."""
    result = LIBC.renameat2(AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), RENAME_EXCHANGE)
    if result != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


FILES = 300  # made, renamed and removed
ASKED_MAX = FILES // 2  # of 3 * FILES changes; where more than a second lies between two


def directory_asked(cluster):
    """How often the metadata target was asked for attributes of a directory while names in it came
    and went: the answers to these have them."""
    def asked():
        result = cluster.run("stats", cluster.directory, "--json")
        if result.returncode != 0:
            raise Failed(f"stats: {result.stderr.strip()}")
        return sum(one["count"] for one in json.loads(result.stdout)["operations"]
                   if one["operation"] == "getattr")

    folder = os.path.join(cluster.mount, "asked")
    os.mkdir(folder)
    before = asked()
    for number in range(FILES):
        os.close(os.open(os.path.join(folder, f"f{number}"), os.O_WRONLY | os.O_CREAT, 0o644))
        os.rename(os.path.join(folder, f"f{number}"), os.path.join(folder, f"r{number}"))
        os.unlink(os.path.join(folder, f"r{number}"))
    links = os.stat(folder).st_nlink
    os.mkdir(os.path.join(folder, "d"))
    if os.stat(folder).st_nlink != links + 1:
        raise Failed("a directory does not tell of one that was just made in it")
    return asked() - before


def commits_asked(shoal):
    """What the kernel asks the mount for when a small file is made anew: rows of that table."""
    def asked():
        result = cluster.run("stats", cluster.directory, "--json")
        if result.returncode != 0:
            raise Failed(f"stats: {result.stderr.strip()}")
        return {one["operation"]: one["count"] for one in json.loads(result.stdout)["operations"]
                if one["target"] == "mount" and "FORGET" not in one["operation"]}

    def commit():
        with open(os.path.join(cluster.mount, "d", "new"), "wb", buffering=0) as file:
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
        os.rename(file.name, os.path.join(cluster.mount, "d", "file"))

    seen = []
    with clusters.Cluster(shoal) as cluster:
        cluster.start()
        os.mkdir(os.path.join(cluster.mount, "d"))
        commit()
        for _ in range(TIMES):
            before = asked()
            commit()
            now = asked()
            for _ in range(LOOKS):
                if now.get("RELEASE") != before.get("RELEASE"):
                    break
                now = asked()  # nobody waits for it
            else:
                raise Failed("a close sends no RELEASE")
            seen.append({name: now[name] - before.get(name, 0) for name in now})
    middle = {name: round(statistics.median(one.get(name, 0) for one in seen))
              for one in seen for name in one}
    return {name: count for name, count in middle.items() if count}


COLD_BYTES = 50 << 10
# Requests of the kernel, messages to targets, and what these read of their data files.
COLD = {name: 1 for name in ("LOOKUP", "OPEN", "READ", "lookup", "open", "chunk_read",
                             "disk_reads")}


def cold_reads(shoal):
    """Of small files, each read whole for the first time since the cluster has started: what most
    of them cost of COLD, and what each cost the disks."""
    def asked():
        result = cluster.run("stats", cluster.directory, "--json")
        if result.returncode != 0:
            raise Failed(f"stats: {result.stderr.strip()}")
        answer = json.loads(result.stdout)
        counted = dict.fromkeys(COLD, 0)
        for name, count in [(one["operation"], one["count"]) for one in answer["operations"]] + \
                [(one["name"], one["value"]) for one in answer["counters"]]:
            if name in counted:
                counted[name] += count
        return counted

    def read(number):
        file = os.open(os.path.join(folder, str(number)), os.O_RDONLY)
        try:
            return os.read(file, COLD_BYTES + 1)
        finally:
            os.close(file)

    seen = []
    with clusters.Cluster(shoal) as cluster:
        cluster.start()
        folder = os.path.join(cluster.mount, "d")
        os.mkdir(folder)
        contents = [os.urandom(COLD_BYTES) for _ in range(TIMES)]
        for number, content in enumerate(contents):
            with open(os.path.join(folder, str(number)), "wb", buffering=0) as file:
                file.write(content)
        cluster.stop()
        cluster.start()
        for number, content in enumerate(contents):
            os.stat(folder)
            before = asked()
            if read(number) != content:
                raise Failed(f"file {number} is not as it was written")
            for _ in range(LOOKS):
                now = asked()
                if all(now[name] > before[name] for name in COLD):
                    break  # a request may be counted behind its answer
            seen.append({name: now[name] - before[name] for name in COLD})
    return {name: round(statistics.median(one[name] for one in seen)) for name in COLD}, \
        [one["disk_reads"] for one in seen]


def commits_said():
    with open(COMMITS, encoding="utf-8") as file:
        text = file.read().split("## A small file's commit")[1].split("\n## ")[0]
    return {name: int(count) for name, count in re.findall(r"\| ([A-Z]+) \| (\d+) \|", text)}


def counted(shoal):
    with clusters.Cluster(shoal, afar=True, mdts=2) as cluster:
        cluster.start()
        table = Table(cluster)
        os.mkdir(table.path("d"))
        table.files()
        table.directories()
        table.names()
        return table.rows, directory_asked(cluster)


def compare(rows, asked, commits, cold):
    with open(TABLE, encoding="utf-8") as file:
        said = {NAME.match(line).group(1): line for line in file.read().split("\n")
                if NAME.match(line)}
    failed = 0
    for row in rows:
        name = NAME.match(row).group(1)
        if said.get(name) != row:
            failed += 1
            print(f"FAILED {name}\n  said:    {said.get(name)}\n  counted: {row}")
    if asked > ASKED_MAX:
        failed += 1
        print(f"FAILED a directory of {3 * FILES} changes was asked for {asked} times")
    skipped = 0 if commits else 2
    if skipped:
        print(f"skipped: Linux {KERNEL} is missing, which the requests of a commit and of a read "
              "are told of")
    elif commits != commits_said():
        failed += 1
        print(f"FAILED a small file's commit\n  said:    {commits_said()}\n  counted: {commits}")
    if cold and cold != (COLD, [1] * TIMES):
        failed += 1
        print(f"FAILED a small file read cold\n  said:    {COLD}\n  counted: {cold}")
    print(f"{len(rows) + 3 - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def write(rows):
    with open(TABLE, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first = lines.index(HEAD[0])
    after = next(at for at in range(first, len(lines) + 1)
                 if at == len(lines) or not lines[at].startswith("|"))
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write("\n".join(lines[:first] + HEAD + rows + lines[after:]))
    return 0


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        sys.exit(__doc__)
    lacks = clusters.missing()
    if lacks:
        print(f"skipped: {lacks}\n0 passed, 0 failed, 1 skipped")
        return 0
    rows, asked = counted(sys.argv[1])
    if sys.argv[2:]:
        return write(rows)
    same_kernel = os.uname().release.startswith(f"{KERNEL}.")
    return compare(rows, asked, commits_asked(sys.argv[1]) if same_kernel else None,
                   cold_reads(sys.argv[1]) if same_kernel else None)


if __name__ == "__main__":
    sys.exit(main())
