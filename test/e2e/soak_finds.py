#!/usr/bin/python3
"""What the soak's load finds when somebody changes what was acknowledged to it, on a local folder.

Usage: soak_finds.py SOAK_LOAD

The last line counts.
"""

import os
import shutil
import sys
import tempfile

import soak_load
from cluster import Failed, KIB, MIB

SEED = 7
WORK_S = 0.3


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 1]))


def flip_middle(path):
    flip(path, os.path.getsize(path) // 2)


def shorten(path):
    os.truncate(path, os.path.getsize(path) - 1)


def lengthen(path):
    os.truncate(path, os.path.getsize(path) + 1)


def swap_blocks(path):
    """As if a write were in another's place."""
    with open(path, "r+b") as file:
        first, second = (os.pread(file.fileno(), 4 * KIB, at) for at in (0, 64 * KIB))
        os.pwrite(file.fileno(), second, 0)
        os.pwrite(file.fileno(), first, 64 * KIB)


def flip_content(names):
    flip(next(name for name in names if os.path.getsize(name) > 100), 50)


def change_mode(names):
    os.chmod(names[0], 0o7000)


def remove_first(names):
    os.unlink(names[0])


def remove_last(names):
    os.unlink(names[-1])


def move(names):
    os.rename(names[0], names[1])


def make_again(names):
    """The same bytes under the same name, but another inode."""
    shutil.copy2(names[0], names[0] + ".copy")
    os.rename(names[0] + ".copy", names[0])


def add(names):
    with open(names[0] + "0", "wb"):
        pass


FILE_CHANGES = [flip_middle, shorten, lengthen, os.unlink]
NAME_CHANGES = [flip_content, change_mode, remove_first, remove_last, move, make_again, add]
TESTS = [(kind, size, change)
         for kind, size, changes in (("direct64k", 8 * MIB, FILE_CHANGES + [swap_blocks]),
                                     ("direct1m", 8 * MIB, FILE_CHANGES),
                                     ("sync4k", 2 * MIB, FILE_CHANGES),
                                     ("mixed", 4 * MIB, FILE_CHANGES), ("names", 0, NAME_CHANGES),
                                     ("many", 16 * MIB, [remove_first, remove_last, add]))
         for change in changes]


def names_of(kind, top):
    """What a change is given, or None while there isn't enough to change."""
    if kind in ("names", "many"):
        folder = os.path.join(top, f"{kind}-0", "d1")
        names = [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
        return names if sum(os.path.getsize(name) > 100 for name in names) > 2 else None
    path = os.path.join(top, f"{kind}-0", "file")
    return path if os.path.exists(path) and os.path.getsize(path) > 128 * KIB else None


def is_found(load, kind, change, top):
    names = None
    load.tell("check")
    load.gather({"checked"})
    while names is None:
        load.tell("go")
        load.run_for(WORK_S)
        load.tell("hold")
        load.gather({"held"})
        load.tell("check")
        load.gather({"checked"})
        names = names_of(kind, top)
    change(names)
    load.tell("check")
    try:
        load.gather({"checked"})
    except Failed:
        return True
    return False


def main():
    if len(sys.argv) != 2:
        print(__doc__.split("\n")[2], file=sys.stderr)
        return 2
    failed = 0
    for kind, size, change in TESTS:
        top = tempfile.mkdtemp(prefix="shoal-e2e-")
        load = soak_load.Load(os.path.abspath(sys.argv[1]), [(kind, size)], (top, top), SEED)
        try:
            if not is_found(load, kind, change, top):
                print(f"FAILED: {kind}: {change.__name__} was not found", flush=True)
                failed += 1
        finally:
            load.end()
            shutil.rmtree(top)
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
