"""Settings of the machine that figures depend on, put back in any case; whether it is quiet."""

import contextlib
import os
import time

from mounts import Failed

# For how long an idle processor of a virtual machine polls before it halts. Machines come with 0:
# each wake-up of a processor that has nothing else to do is a trip to the host.
POLL_PATH = "/sys/module/haltpoll/parameters/guest_halt_poll_ns"
POLL_NS = 200000
URING_PATH = "/sys/module/fuse/parameters/enable_uring"
LOOK_S = 1.0
SHARE_MAX = 0.05  # of one processor


def poll_read():
    """None: this machine has no such setting."""
    try:
        with open(POLL_PATH, encoding="ascii") as file:
            return int(file.read())
    except OSError:
        return None


def poll_write(value_ns):
    with open(POLL_PATH, "w", encoding="ascii") as file:
        file.write(f"{value_ns}\n")


@contextlib.contextmanager
def idle_polls(value_ns):
    """While it lasts, idle processors poll so long; as before when it ends, also by a signal that
    ends the program by an exception. None: as they do."""
    if value_ns is None:
        yield
        return
    before_ns = poll_read()
    if before_ns is None:
        raise Failed(f"{POLL_PATH} is not here: idle processors are as they are")
    try:
        poll_write(value_ns)
        yield
    finally:
        poll_write(before_ns)


@contextlib.contextmanager
def uring_offered():
    """While it lasts the kernel offers FUSE over io_uring to mounts; False: it can't."""
    before = None
    try:
        with contextlib.suppress(OSError):
            with open(URING_PATH, "r+", encoding="ascii") as file:
                before = file.read().strip()
                file.write("Y\n")
        yield before is not None
    finally:
        if before is not None:
            with open(URING_PATH, "w", encoding="ascii") as file:
                file.write(before + "\n")


def ticks():
    """Processor time so far of each process, by its number, with its name and its parent."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                text = file.read()
            fields = text.rsplit(")", 1)[1].split()
            found[int(name)] = (int(fields[11]) + int(fields[12]),
                                text.split("(", 1)[1].rsplit(")", 1)[0], int(fields[1]))
    return found


def is_of(process_id, ancestor, processes):
    while process_id in processes:
        if process_id == ancestor:
            return True
        process_id = processes[process_id][2]
    return False


def check_quiet():
    """Failed: another process than this one and what it has started uses the machine."""
    before, begun_s = ticks(), time.monotonic()
    time.sleep(LOOK_S)
    after, seconds = ticks(), time.monotonic() - begun_s
    for process_id, (used, name, _) in after.items():
        share = (used - before.get(process_id, (0,))[0]) / os.sysconf("SC_CLK_TCK") / seconds
        if share > SHARE_MAX and not is_of(process_id, os.getpid(), after):
            raise Failed(f"process {process_id} ({name}) takes {share * 100:.0f} % of a processor: "
                         f"figures beside it would say nothing; end it first")
