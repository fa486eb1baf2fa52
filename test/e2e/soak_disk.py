"""A small disk below a cluster's directory, which is filled and freed again."""

import errno
import os
import shutil
import subprocess

import cluster as clusters
from cluster import Failed, MIB

STEP_MIN = 4096
STEP = 64 * MIB


def missing():
    """Why there can't be one here, or None."""
    if not shutil.which("mkfs.ext4"):
        return "mkfs.ext4"
    if not os.path.exists("/dev/loop-control"):
        return "/dev/loop-control"
    return None


class Disk:
    """ext4 in a file, mounted at `directory`."""

    def __init__(self, image, directory, size):
        self.directory = directory
        self.filler = os.path.join(directory, "filler")
        self.full = False
        with open(image, "wb") as file:
            file.truncate(size)
        for words in (["mkfs.ext4", "-q", "-m", "0", image],
                      ["mount", "-o", "loop", image, directory]):
            result = subprocess.run(words, capture_output=True, text=True, check=False)
            if result.returncode != 0:
                raise Failed(f"{words[0]}: {result.stderr.strip()}")

    def fill(self):
        """To the last block, also what came free since the last time."""
        self.full = True
        file = os.open(self.filler, os.O_WRONLY | os.O_CREAT, 0o600)
        size = os.fstat(file).st_size
        step = STEP
        try:
            while step >= STEP_MIN:
                try:
                    os.posix_fallocate(file, size, step)
                    size += step
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    step //= 2
        finally:
            os.close(file)

    def free(self):
        os.unlink(self.filler)
        # ext4 hands freed blocks out when its journal has them.
        directory = os.open(self.directory, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)
        self.full = False

    def close(self):
        clusters.unmount(self.directory)
