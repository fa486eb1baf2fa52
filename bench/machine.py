"""Settings of the machine that figures depend on, put back in any case; whether it is quiet."""

import contextlib
import os
import signal
import sys
import time

from mounts import Failed

# For how long an idle processor of a virtual machine polls before it halts. Machines come with 0:
# each wake-up of a processor that has nothing else to do is a trip to the host.
POLL_PATH = "/sys/module/haltpoll/parameters/guest_halt_poll_ns"
POLL_NS = 200000
IDLE_PATH = "/sys/devices/system/cpu/cpuidle"  # who decides what idle processors do
URING_PATH = "/sys/module/fuse/parameters/enable_uring"
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOOK_S = 1.0
SHARE_MAX = 0.05  # of one processor


def setting_read(path):
    """None: this machine has no such setting."""
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return None


def setting_write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{value}\n")


def end_by_signal(number, _):
    """By an exception, so that what is to be put back is, and mounts are ended. A second signal
    does not get in between."""
    for one in ENDING:
        signal.signal(one, signal.SIG_IGN)
    sys.exit(128 + number)


@contextlib.contextmanager
def kept(*paths):
    """While it lasts settings may change, by whomever: mounts set enable_uring. When it ends they
    are as before, however it ends. Without paths: all that figures depend on."""
    before = {path: setting_read(path) for path in paths or (POLL_PATH, URING_PATH)}
    try:
        yield
    finally:
        for path, value in before.items():
            if value is not None and setting_read(path) != value:
                try:
                    setting_write(path, value)
                except OSError as problem:
                    print(f"{path} is not put back to {value}: {problem}", file=sys.stderr)


@contextlib.contextmanager
def kept_to_the_end():
    """Of all settings, for a whole program: also where a signal ends it."""
    before = {one: signal.signal(one, end_by_signal) for one in ENDING
              if signal.getsignal(one) != signal.SIG_IGN}  # as nohup has it
    try:
        with kept():
            try:
                yield
            finally:
                for one in before:
                    signal.signal(one, signal.SIG_IGN)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def poll_read():
    """None: idle processors of this machine have no such setting, or don't go by it."""
    value = setting_read(POLL_PATH)
    driver, governor = (setting_read(os.path.join(IDLE_PATH, name))
                        for name in ("current_driver", "current_governor_ro"))
    if value is None or driver == "none" or governor not in (None, "haltpoll"):
        return None
    return int(value)


def poll_write(value_ns):
    setting_write(POLL_PATH, value_ns)


@contextlib.contextmanager
def idle_polls(value_ns):
    """While it lasts, idle processors poll so long. None: as they do."""
    if value_ns is None:
        yield
        return
    if poll_read() is None:
        raise Failed(f"{POLL_PATH} is not here, or moves nothing: idle processors are as they are")
    with kept(POLL_PATH):
        poll_write(value_ns)
        yield


@contextlib.contextmanager
def uring_offered():
    """While it lasts the kernel offers FUSE over io_uring to mounts; False: it can't."""
    with kept(URING_PATH):
        try:
            setting_write(URING_PATH, "Y")
        except OSError:
            yield False
        else:
            yield True


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
