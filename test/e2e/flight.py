#!/usr/bin/python3
"""A thousand calls under way at a mount, and what may befall it or them: none is left without an
answer, and afterwards the mount point serves, or can be mounted, again.

Usage: flight.py SHOAL FLIGHT [TEST]

SHOAL is the command, FLIGHT the program of flight.c; a TEST is a word of the list below. The last
line counts.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import time

import cluster as clusters
from cluster import Failed, MIB
from driver import Skipped, drive

THREADS = 1000
LIMIT_S = 120
ENDS_S = 1.0  # what a call may take whose mount has ended
CLOSES_S = 10  # what a process may that has its open files to close
SIZES = {"disk_log_bytes": 256 * MIB, "mdt_ring_bytes": 32 * MIB, "ost_ring_bytes": 8 * MIB,
         "ost_ring_data_bytes": 32 * MIB, "data_bytes_max": 1024 * MIB}
# The kernel says the second of what the daemon had taken, and the third of what it was just handing
# to a thread that was killed.
GONE = {"ENOTCONN", "ECONNABORTED"} | ({"ECANCELED"} if clusters.CHANNEL == "uring" else set())
PROCESSORS = "/sys/devices/system/cpu"
CONNECTIONS = "/sys/fs/fuse/connections"
# Version 1 and 2 of control groups.
GROUPS = {"/sys/fs/cgroup/memory": ("memory.limit_in_bytes", "memory.usage_in_bytes"),
          "/sys/fs/cgroup": ("memory.max", "memory.current")}


def wait_until(holds, what, limit_s=LIMIT_S):
    end = time.monotonic() + limit_s
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"{what} has not come in {limit_s} s")
        time.sleep(0.01)


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def write(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


class Flight:
    """flight.c while it runs. Its threads' calls are all under way or answered at any time."""

    def __init__(self, program, place):
        self.process = subprocess.Popen([program, place, str(THREADS)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, bufsize=1)

    def line(self, limit_s):
        if not select.select([self.process.stdout], [], [], limit_s)[0]:
            raise Failed(f"a call has had no answer for {limit_s} s")
        return self.process.stdout.readline().strip()

    def expect(self, word):
        line = self.line(LIMIT_S)
        if line != word:
            raise Failed(f"instead of {word}: {line or 'the end'}")

    def goes_on(self):
        """Each thread, a whole turn."""
        self.process.stdin.write("\n")
        self.expect("turn")

    def waits(self):
        """Whether each thread has a call that waits for the mount."""
        count = 0
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            count += read(f"/proc/{self.process.pid}/task/{thread}/wchan") in WAITS
        return count == THREADS

    def ends(self, limit_s, errors, since):
        """That all threads end in time, with one of these errors; whether any did."""
        line = self.line(limit_s)
        took_s = time.monotonic() - since
        words = line.split()
        met = dict(zip(words[2::2], words[3::2]))
        if words[:1] != ["turns"] or not set(met) <= errors:
            raise Failed(f"instead of {errors or 'no error'}: {line}")
        self.process.wait(LIMIT_S)
        if took_s > limit_s:
            raise Failed(f"the last call was answered after {took_s:.2f} s")
        return took_s

    def is_told(self, since):
        """That all calls end soon, as their mount has."""
        return self.ends(ENDS_S, GONE, since)

    def stop(self):
        self.process.stdin.close()
        return self.ends(LIMIT_S, set(), time.monotonic())

    def close(self):
        self.process.kill()
        self.process.wait(LIMIT_S)
        self.process.stdin.close()
        self.process.stdout.close()


# What a thread is in that has a request at the mount: of its own, for a name that another one
# looks up, or for a lock that such a one has.
WAITS = {"request_wait_answer", "d_alloc_parallel", "fuse_wait_answer"}


@contextlib.contextmanager
def flying(cluster, program):
    place = os.path.join(cluster.mount, "flight")
    os.makedirs(place, exist_ok=True)
    flight = Flight(program, place)
    try:
        flight.expect("ready")
        yield flight
    finally:
        flight.close()


def server(cluster):
    """The process that serves the mount."""
    return cluster.mount_process(cluster.mount) if cluster.apart else cluster.process()


@contextlib.contextmanager
def standing(cluster, flight):
    """While the server of the mount stands still, with all calls under way."""
    process = server(cluster)
    clusters.stop_process(process)
    try:
        wait_until(flight.waits, "a call of each thread")
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGCONT)


def serves_again(cluster, program):
    """Whatever has ended is started, and serves."""
    clusters.unmount(cluster.mount)
    if cluster.apart and cluster.process():
        wait_until(lambda: server(cluster) is None, "the end of the mount's process", CLOSES_S)
        cluster.mount_apart(cluster.mount)
    elif not cluster.apart:
        cluster.start()
    with flying(cluster, program) as flight:
        flight.goes_on()
        flight.stop()


def a_server_stands_still(cluster, program):
    with flying(cluster, program) as flight:
        for _ in range(3):
            with standing(cluster, flight):
                pass
            flight.goes_on()
        flight.stop()


def programs_are_killed(cluster, program):
    """With all their calls under way, at a server that stands still and goes on; and at one that
    goes on all the time."""
    with flying(cluster, program) as flight:
        with standing(cluster, flight):
            flight.process.kill()
        since = time.monotonic()
        flight.process.wait(LIMIT_S)
        took_s = time.monotonic() - since
    with flying(cluster, program) as flight:
        flight.process.kill()
        flight.process.wait(LIMIT_S)
    with flying(cluster, program) as flight:
        flight.goes_on()
        flight.stop()
    return f"ended {took_s:.2f} s after the server went on"


def unmounted_by_force(cluster, _):
    subprocess.run(["umount", "-f", cluster.mount], check=False, stderr=subprocess.DEVNULL)


def connection_is_aborted(cluster, _):
    # Its number is the minor number of what is mounted; a stat would ask the mount.
    for line in open("/proc/self/mountinfo", encoding="utf-8"):
        words = line.split()
        if words[4] == cluster.mount:
            write(f"{CONNECTIONS}/{words[2].split(':')[1]}/abort", "1")
            return
    raise Failed("it is not mounted")


def server_is_killed(cluster, process):
    clusters.end_process(process)


def told_after(end):
    """A test: what ends the mount, while it serves and while it stands still. Over io_uring the
    kernel keeps what it is handing to a thread that stands still until that goes on, or is killed.
    """
    def play(cluster, program):
        took = []
        with flying(cluster, program) as flight:
            since = time.monotonic()
            end(cluster, server(cluster))
            took.append(flight.is_told(since))
        serves_again(cluster, program)
        with flying(cluster, program) as flight:
            with standing(cluster, flight) as process:
                since = time.monotonic()
                end(cluster, process)
                if clusters.CHANNEL == "uring" and end is not server_is_killed:
                    os.kill(process, signal.SIGCONT)
                    since = time.monotonic()
                took.append(flight.is_told(since))
        serves_again(cluster, program)
        return f"told after {took[0]:.2f} s, {took[1]:.2f} s by one that stood still"
    return play


def processors_come_and_go(cluster, program):
    others = [one for one in sorted(os.listdir(PROCESSORS))
              if os.path.exists(f"{PROCESSORS}/{one}/online")
              and read(f"{PROCESSORS}/{one}/online") == "1"]
    # The first one that may go stays where all may: something has to run.
    if len(others) == os.cpu_count():
        others.pop(0)
    if not others:
        raise Skipped("a processor that can be taken offline")
    taken = []
    with flying(cluster, program) as flight:
        try:
            for one in others:
                try:
                    write(f"{PROCESSORS}/{one}/online", "0")
                except OSError as error:
                    raise Skipped(f"the right to take {one} offline: {error.strerror}") from None
                taken.append(one)
                flight.goes_on()
        finally:
            for one in taken:
                write(f"{PROCESSORS}/{one}/online", "1")
        flight.goes_on()
        flight.stop()
    return f"{len(taken)} went and came back"


def limits_memory(top):
    control = f"{top}/cgroup.subtree_control"
    return os.path.exists(f"{top}/{GROUPS[top][0]}") or \
        os.path.exists(control) and "memory" in read(control).split()


def memory_is_short(cluster, program):
    """The server's control group has no byte to spare: it goes on with what the kernel takes from
    others, or is killed for it, which is told as any end is."""
    top = next(filter(limits_memory, GROUPS), None)
    if top is None:
        raise Skipped("a control group for memory")
    limit, used = GROUPS[top]
    group = f"{top}/shoal-flight-{os.getpid()}"
    try:
        os.mkdir(group)
    except OSError as error:
        raise Skipped(f"the right to make a control group: {error.strerror}") from None
    process = server(cluster)
    try:
        write(f"{group}/cgroup.procs", str(process))
        with flying(cluster, program) as flight:
            flight.goes_on()
            for spare in (4 * MIB, 256 << 10, 0):
                with contextlib.suppress(OSError):  # less than can't be taken away
                    write(f"{group}/{limit}", str(int(read(f"{group}/{used}")) + spare))
                with contextlib.suppress(BrokenPipeError):  # all were told since the last turn
                    flight.process.stdin.write("\n")
                line = flight.line(LIMIT_S)
                if line != "turn":
                    break
            if line == "turn":
                flight.process.stdin.close()
                line = flight.line(LIMIT_S)
            words = line.split()
            if words[:1] != ["turns"] or not set(words[2::2]) <= GONE:
                raise Failed(f"beside a server that is short of memory: {line}")
            how = "it went on"
            if words[2:]:
                wait_until(lambda: not os.path.exists(f"/proc/{process}"), "the server's end")
                how = "it was killed, and all were told"
        with contextlib.suppress(OSError):
            write(f"{group}/{limit}", "max" if limit == "memory.max" else "-1")
        if not os.path.exists(f"/proc/{process}"):
            serves_again(cluster, program)
    finally:
        with contextlib.suppress(OSError):
            for one in read(f"{group}/cgroup.procs").split():
                write(f"{top}/cgroup.procs", one)
        wait_until(lambda: not read(f"{group}/cgroup.procs"), "the end of the group's processes")
        os.rmdir(group)
    return how


TESTS = {"stands-still": a_server_stands_still, "killed-programs": programs_are_killed,
         "umount-f": told_after(unmounted_by_force), "abort": told_after(connection_is_aborted),
         "killed-server": told_after(server_is_killed), "processors": processors_come_and_go,
         "memory": memory_is_short}


def main():
    def play(of):
        name, apart = of
        with clusters.Cluster(sys.argv[1], sizes=SIZES, apart=apart) as cluster:
            cluster.start()
            told = TESTS[name](cluster, sys.argv[2])
            if told:
                print(f"{name}: {told}", flush=True)

    return drive(__doc__, [(name, apart) for name in TESTS for apart in (False, True)], play,
                 words=2, name=lambda of: f"{of[0]} {'apart' if of[1] else 'inside'}")


sys.exit(main())
