"""Files that a process of its own makes in a mount while a test does something below it, and what
is acknowledged of them.

    work = Load(cluster)
    work.goes_on()
    ...
    count, longest_s = work.check()
"""

import os
import subprocess
import sys
import time

from cluster import Failed

LIMIT_S = 60


def wait_until(is_so, what):
    end = time.monotonic() + LIMIT_S
    while not is_so():
        if time.monotonic() > end:
            raise Failed(f"{what} did not happen within {LIMIT_S} s")
        time.sleep(0.01)


def content_of(number):
    return b"%08d" % number * (1 + number % 3 * 3000)


def load(folder, told, stop):
    """Makes files, syncs every second one, renames; writes a + for each that is acknowledged,
    until there is a file `stop`. The last word says the longest time that one took."""
    longest_s = 0.0
    number = 0
    while not os.path.exists(stop):
        start = time.monotonic()
        path = os.path.join(folder, f"f{number}")
        descriptor = os.open(path + ".new", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        try:
            os.write(descriptor, content_of(number))
            if number % 2:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(path + ".new", path)
        longest_s = max(longest_s, time.monotonic() - start)
        os.write(told, b"+")
        number += 1
    os.write(told, b" %.1f" % longest_s)


class Load:
    """A process of its own: one that forks while files of the mount are open may wait for them."""

    def __init__(self, cluster, mount=None, name="load"):
        self.folder = os.path.join(mount or cluster.mount, name)
        self.told = os.path.join(cluster.top, f"{name}.told")
        self.stop = os.path.join(cluster.top, f"{name}.stop")
        os.mkdir(self.folder)
        self.errors = open(self.told + ".errors", "w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), self.folder, self.told, self.stop],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.errors)

    def count(self):
        """How many files are acknowledged."""
        try:
            with open(self.told, "rb") as file:
                return file.read().count(b"+")
        except FileNotFoundError:
            return 0

    def goes_on(self, files=50):
        count = self.count() + files
        wait_until(lambda: self.process.poll() is not None or self.count() >= count, "progress")

    def ended(self):
        """The last line of what it said, when it has ended: empty if all went well."""
        try:
            self.process.wait(2 * LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise Failed("a call is not answered") from None
        self.errors.seek(0)
        lines = self.errors.read().strip().split("\n")
        self.errors.close()
        return lines[-1]

    def check(self):
        """Ends it and compares; how many files, and the longest time of one."""
        with open(self.stop, "w", encoding="ascii"):
            pass
        error = self.ended()
        if error:
            raise Failed(f"a program saw an error: {error}")
        self.compare()
        with open(self.told, encoding="ascii") as file:
            return self.count(), file.read().split()[-1]

    def compare(self):
        names = set(os.listdir(self.folder))
        for number in range(self.count()):
            name = f"f{number}"
            if name not in names:
                raise Failed(f"{name} was acknowledged and is gone")
            with open(os.path.join(self.folder, name), "rb") as file:
                if file.read() != content_of(number):
                    raise Failed(f"{name} has other bytes")


if __name__ == "__main__":
    load(sys.argv[1], os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644),
         sys.argv[3])
