#!/usr/bin/python3
"""Rings in shared memory after kill -9: they are found by whatever path DIR is reached, one that is
lost is told of, and one that belongs to another state of DIR is refused by its name.

Usage: rings.py SHOAL

SHOAL is the command. The last line counts.
"""

import glob
import os
import shutil
import sys

import cluster as clusters
from cluster import Failed, KIB

FILES = 200


class Scene(clusters.Cluster):
    """Files that are acknowledged and, for the most part, on no disk yet."""

    def fill(self, first, mount=None):
        for number in range(first, first + FILES):
            with open(os.path.join(mount or self.mount, f"file{number}"), "wb") as file:
                file.write(b"%06d" % number * 2 * KIB)

    def check(self, count):
        names = {f"file{number}" for number in range(count)}
        found = set(os.listdir(self.mount))
        if found != names:
            raise Failed(f"{len(names - found)} files are lost, {len(found - names)} are new")
        for number in range(count):
            with open(os.path.join(self.mount, f"file{number}"), "rb") as file:
                if file.read() != b"%06d" % number * 2 * KIB:
                    raise Failed(f"file{number} has other bytes")

    def kill_and_unmount(self):
        self.kill()
        clusters.unmount(self.mount)

    def rings(self):
        return sorted(glob.glob(f"/dev/shm/shoal-{self.identity}-*"))

    def log_lines(self, words):
        with open(self.path("shoal.log"), encoding="utf-8") as file:
            return [line for line in file if words in line]

    def expect_lines(self, words, count):
        lines = self.log_lines(words)
        if len(lines) != count:
            raise Failed(f"{len(lines)} lines of the log say \"{words}\", {count} wanted: {lines}")


def moved(scene):
    """DIR is renamed after a kill, back after a clean end, and reached through a link."""
    scene.start()
    scene.fill(0)
    scene.kill_and_unmount()
    old = scene.directory
    scene.directory = old + ".moved"
    os.rename(old, scene.directory)
    scene.start()
    scene.check(FILES)
    scene.fill(FILES)
    scene.kill_and_unmount()
    os.rename(scene.directory, old)
    os.symlink(old, scene.directory)
    scene.start()
    scene.check(2 * FILES)
    scene.directory = old
    scene.stop()
    if scene.rings():
        raise Failed(f"a clean end leaves {scene.rings()}")
    scene.start()
    scene.check(2 * FILES)
    scene.expect_lines("is gone", 0)


def lost(scene):
    """A ring that is gone is told of once, but not after a clean end, a check, or a restart."""
    scene.start()
    scene.fill(0)
    scene.kill_and_unmount()
    os.unlink(next(path for path in scene.rings() if path.endswith("-mdt0")))
    scene.start()
    scene.expect_lines("mdt0: the ring /dev/shm/shoal-", 1)
    scene.expect_lines("is gone, though the machine still runs", 1)
    scene.stop()
    scene.start()
    scene.kill_and_unmount()
    result = scene.run("fsck", scene.directory)
    if scene.rings():
        raise Failed(f"a check leaves {scene.rings()}: {result.stdout}")
    scene.start()
    scene.kill_and_unmount()
    # As a restart of the machine leaves it: another boot's mark, no rings.
    for path in scene.rings():
        os.unlink(path)
    with open(scene.path("in-use"), "w", encoding="ascii") as file:
        file.write("0123456789abcdef" * 2 + "\n")
    scene.start()
    scene.expect_lines("is gone", 1)


def put_back(scene):
    """A copy of DIR is put back after a kill: the rings are of what came after it."""
    scene.start()
    scene.fill(0)
    scene.stop()
    copy = scene.directory + ".copy"
    shutil.copytree(scene.directory, copy)
    scene.start()
    scene.fill(FILES)
    result = scene.run("sync", scene.directory)
    if result.returncode != 0:
        raise Failed(f"sync: {result.stderr}")
    scene.kill_and_unmount()
    shutil.rmtree(scene.directory)
    os.rename(copy, scene.directory)
    result = scene.run("up", scene.directory, "--mount", scene.mount)
    if result.returncode != 1 or "remove the ring" not in result.stderr:
        raise Failed(f"the start with other rings answers {result.returncode}: {result.stderr}")
    named = [path for path in scene.rings() if path in result.stderr]
    if len(named) != 1:
        raise Failed(f"none of {scene.rings()} is named: {result.stderr}")
    for path in scene.rings():
        os.unlink(path)
    scene.start()
    scene.check(FILES)


def both(scene):
    """A copy of DIR that is started beside the first is refused, and the first goes on."""
    scene.start()
    scene.fill(0)
    scene.stop()
    copy = scene.directory + ".copy"
    shutil.copytree(scene.directory, copy)
    scene.start()
    result = scene.run("up", copy)
    if result.returncode != 1 or "/dev/shm/shoal-" not in result.stderr:
        raise Failed(f"the copy's start answers {result.returncode}: {result.stderr}")
    scene.fill(FILES)
    scene.kill_and_unmount()
    scene.start()
    scene.check(2 * FILES)


TESTS = [moved, lost, put_back, both]


def main():
    if len(sys.argv) != 2:
        print(__doc__.split("\n")[3], file=sys.stderr)
        return 2
    missing = clusters.missing()
    if missing:
        print(f"skipped, for want of {missing}")
        print(f"0 passed, 0 failed, {len(TESTS)} skipped")
        return 0
    failed = 0
    for test in TESTS:
        try:
            with Scene(sys.argv[1]) as scene:
                test(scene)
        except (Failed, OSError) as error:
            print(f"FAILED: {test.__name__}: {error}", flush=True)
            failed += 1
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
