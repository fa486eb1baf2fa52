#!/usr/bin/python3
"""`shoal doctor` on folders that stand for machines: what it says of each setting, what it changes
and takes back, what it refuses, and what `up` says of them. This machine is looked at, not changed.

Usage: doctor.py SHOAL [TEST...]

SHOAL is the command. The last line counts.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

import cluster as clusters
from cluster import Failed
from driver import drive

LIMIT_S = 60
NOBODY = 65534
URING = "sys/module/fuse/parameters/enable_uring"
HALT = "sys/module/haltpoll/parameters/guest_halt_poll_ns"
HALT_START = "sys/module/haltpoll/parameters/guest_halt_poll_grow_start"
READ_AHEAD = "sys/class/bdi/0:45/read_ahead_kb"
KEPT = "var/lib/shoal-doctor/kept"
LOCK = "var/lib/shoal-doctor/lock"
CONF = "etc/tmpfiles.d/shoal-doctor.conf"
CONF_HEAD = "# Written by `shoal doctor --fix --persist`; `shoal doctor --undo` removes it.\n"
MOUNTS = """21 30 0:20 / /sys {sys} - sysfs sysfs rw
22 30 0:21 / /dev/shm rw - tmpfs tmpfs rw,size={shared}k
23 30 0:45 / /mnt/shoal rw - fuse.shoal /var/lib/shoal rw
"""
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            1024                 {files} files
Max locked memory         65536                8388608              bytes
"""
SLEEP = "sys/devices/system/cpu/cpu0/cpuidle/state1/"
# Everything costs something, and in each way.
POOR = {
    URING: "N\n", HALT: "0\n", HALT_START: "50000\n", READ_AHEAD: "128\n",
    SLEEP + "name": "C6\n", SLEEP + "latency": "133\n", SLEEP + "disable": "0\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
    "sys/block/vda/device/vendor": "0x1af4\n", "sys/block/vda/cache_type": "write back\n",
    "sys/block/vda/queue/write_cache": "write through\n",
    "proc/self/mountinfo": MOUNTS.format(sys="rw", shared=65536),
    "proc/self/limits": LIMITS.format(files=1024),
    "etc/tmpfiles.d/other.conf": "",
}
RICH = POOR | {
    URING: "Y\n", HALT: "200000\n", HALT_START: "200000\n", READ_AHEAD: "1024\n",
    SLEEP + "disable": "1\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/block/vda/queue/write_cache": "write back\n",
    "proc/self/mountinfo": MOUNTS.format(sys="rw", shared=1048576),
    "proc/self/limits": LIMITS.format(files=20000),
}
READ_ONLY = {"proc/self/mountinfo": MOUNTS.format(sys="ro", shared=65536)}
FIXED = {HALT: "200000\n", HALT_START: "200000\n", READ_AHEAD: "1024\n"}
ALL_KEPT = ("shoal-doctor 1\nguest_halt_poll_ns 0 200000\n"
            "guest_halt_poll_grow_start 50000 200000\nread_ahead_kb 128 1024 /mnt/shoal\nend\n")
NOTE = ("shoal up: note: settings of this machine cost more than a fifth of its speed: `shoal "
        "doctor` tells which, `shoal doctor --fix` changes them")


class Machine:
    """A folder of files that stands for a machine."""

    def __init__(self, shoal, *parts):
        self.shoal = os.path.abspath(shoal)
        self.top = tempfile.mkdtemp(prefix="shoal-doctor-")
        self.root = os.path.join(self.top, "machine")
        for part in parts:
            for path, text in part.items():
                self.put(path, text)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top, ignore_errors=True)

    def put(self, path, text):
        whole = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="ascii") as file:
            file.write(text)

    def files(self):
        """All but the lock, which stays where it was made."""
        found = {}
        for folder, _, names in os.walk(self.root):
            for name in names:
                whole = os.path.join(folder, name)
                with open(whole, encoding="ascii") as file:
                    found[os.path.relpath(whole, self.root)] = file.read()
        found.pop(LOCK, None)
        return found

    def run(self, *words, command=()):
        return subprocess.run([*(command or [self.shoal]), "doctor", *words],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=LIMIT_S, check=False,
                              env={**os.environ, "SHOAL_MACHINE_ROOT": self.root})

    def expect(self, what, words, status, out=None):
        result = self.run(*words)
        if result.returncode != status or result.stderr or (out is not None and
                                                            result.stdout != out):
            raise Failed(f"{what}: status {result.returncode}, {result.stdout}{result.stderr}")
        return result.stdout

    def expect_files(self, what, *parts):
        wanted = {}
        for part in parts:
            wanted |= part
        found = self.files()
        if found != wanted:
            wrong = sorted(path for path in set(found) | set(wanted)
                           if found.get(path) != wanted.get(path))
            raise Failed(f"{what}: {wrong[0]} is {found.get(wrong[0])!r}")


def it_tells(shoal):
    """A line for each setting, in columns; nothing is changed, and nothing timed."""
    with Machine(shoal, POOR) as machine:
        lines = machine.expect("doctor", [], 1).splitlines()
        rows = {line.split()[0]: line for line in lines[1:]}
        wanted = {"enable_uring": "not offered io_uring until one by root sets it",
                  "guest_halt_poll_ns": "`shoal doctor --fix`",
                  "guest_halt_poll_grow_start": "`shoal doctor --fix`",
                  "idle_sleep_us": "cpupower", "read_ahead_kb": "`shoal doctor --fix`",
                  "open_files": "ulimit -Hn", "locked_memory": "-", "huge_pages": "echo madvise",
                  "write_cache": "its cache gets no flush", "shared_memory": "--shm-size"}
        if list(rows) != list(wanted) or len(lines) != len(rows) + 1:
            raise Failed(f"it has {list(rows)}")
        at = lines[0].index("what to do")
        for name, text in wanted.items():
            if text not in rows[name][at:] or rows[name][at - 2:at] != "  ":
                raise Failed(f"it says {rows[name]}")
        machine.expect_files("doctor", POOR)


def it_tells_whether_io_uring_is_offered(shoal):
    """And what to do about it; none of it is a fault."""
    disabled = {"proc/sys/kernel/io_uring_disabled": "2\n"}
    for files, value, text in (
            (RICH, "Y", "mounts are offered io_uring"),
            (RICH | {"proc/sys/kernel/io_uring_disabled": "0\n"}, "Y", "are offered io_uring"),
            (RICH | {URING: "N\n"}, "N", "`echo Y >/sys/module/fuse/parameters/enable_uring`"),
            (RICH | disabled, "disabled", "`sysctl kernel.io_uring_disabled=0`"),
            ({"etc/hostname": "one\n"}, None, "Linux 6.14")):
        with Machine(shoal, files) as machine:
            line = machine.expect("doctor", [], 0).splitlines()[1]
            row = json.loads(machine.expect("doctor --json", ["--json"], 0))["settings"][0]
            if not line.startswith("enable_uring ") or text not in line or row["value"] != value:
                raise Failed(f"of {value} it says {line}, {row}")


def it_tells_json(shoal):
    """The same as JSON."""
    with Machine(shoal, POOR, {".dockerenv": ""}) as machine:
        told = json.loads(machine.expect("doctor --json", ["--json"], 1))
        rows = {row["setting"]: row for row in told["settings"]}
        halt = {"setting": "guest_halt_poll_ns", "of": None, "state": "costs", "value": "0",
                "wanted": "200000", "fixable": True, "error": None,
                "measured": "waking an idle CPU", "now_us": None, "wanted_us": None}
        if told["container"] is not True or rows["guest_halt_poll_ns"] != halt:
            raise Failed(f"it says {told}")
        states = [rows[name]["state"] for name in ("open_files", "locked_memory", "write_cache")]
        if states != ["unsafe", "good", "unsafe"] or rows["read_ahead_kb"]["of"] != "/mnt/shoal":
            raise Failed(f"it says {told}")
        machine.expect_files("doctor --json", POOR, {".dockerenv": ""})


def all_is_well(shoal):
    """Exit status 0, and nothing to change; also of a machine that has none of the settings."""
    for files in (RICH, {"etc/hostname": "one\n"}):
        with Machine(shoal, files) as machine:
            machine.expect("doctor", [], 0)
            machine.expect("doctor --fix", ["--fix"], 0, "there is nothing to change\n")
            machine.expect("doctor --undo", ["--undo"], 0, "there is nothing to take back\n")
            machine.expect_files("a machine that is well", files)


def it_fixes(shoal):
    """The old values are kept, and come back."""
    with Machine(shoal, POOR) as machine:
        machine.expect("doctor --fix", ["--fix"], 0,
                       "guest_halt_poll_ns: 200000, was 0\n"
                       "guest_halt_poll_grow_start: 200000, was 50000\n"
                       "read_ahead_kb of /mnt/shoal: 1024, was 128\n")
        machine.expect_files("doctor --fix", POOR, FIXED, {KEPT: ALL_KEPT})
        machine.expect("again", ["--fix"], 0, "there is nothing to change\n")
        machine.expect_files("again", POOR, FIXED, {KEPT: ALL_KEPT})
        machine.put(HALT, "300000\n")
        told = json.loads(machine.expect("doctor --undo", ["--undo", "--json"], 0))
        outcomes = [row["outcome"] for row in told["changes"]]
        if outcomes != ["foreign", "changed", "changed"] or told["conf_changed"]:
            raise Failed(f"it says {told}")
        machine.expect_files("doctor --undo", POOR, {HALT: "300000\n"})


def it_persists(shoal):
    """A file for systemd-tmpfiles, without what a start makes anew; it goes with the undo."""
    with Machine(shoal, POOR) as machine:
        text = machine.expect("doctor --fix --persist", ["--fix", "--persist"], 0)
        if not text.endswith("/etc/tmpfiles.d/shoal-doctor.conf: written\n"):
            raise Failed(f"it says {text}")
        conf = CONF_HEAD + "".join(f"w /{path} - - - - {FIXED[path]}"
                                   for path in (HALT, HALT_START))
        machine.expect_files("it", POOR, FIXED, {KEPT: ALL_KEPT, CONF: conf})
        if os.stat(os.path.join(machine.root, CONF)).st_mode & 0o777 != 0o644:
            raise Failed("others may not read it")
        text = machine.expect("doctor --undo", ["--undo"], 0)
        if not text.endswith("/etc/tmpfiles.d/shoal-doctor.conf: removed\n"):
            raise Failed(f"it says {text}")
        machine.expect_files("doctor --undo", POOR)


def after_a_restart(shoal):
    """The kernel has its own values again: an undo takes them for what was before."""
    with Machine(shoal, POOR) as machine:
        machine.expect("doctor --fix", ["--fix"], 0)
        for path in FIXED:
            machine.put(path, POOR[path])
        text = machine.expect("doctor --undo", ["--undo"], 0)
        if text.count(", as before\n") != len(FIXED):
            raise Failed(f"it says {text}")
        machine.expect_files("doctor --undo", POOR)


# Each: name, words, exit status, what the one line says, and what the machine has besides.
REFUSED = [
    ("word", ["--mend"], 2, "there is no option --mend", {}),
    ("place", ["/var/lib/shoal"], 2, "is not understood", {}),
    ("empty-word", [""], 2, '"" is not understood', {}),
    ("both", ["--fix", "--undo"], 2, "exclude each other", {}),
    ("persist-alone", ["--persist"], 2, "--persist goes with --fix", {}),
    ("persist-undo", ["--undo", "--persist"], 2, "--persist goes with --fix", {}),
    ("read-only", ["--fix"], 1, "read-only: /sys is mounted read-only", READ_ONLY),
    ("read-only-persist", ["--fix", "--persist"], 1, "guest_halt_poll_ns: read-only", READ_ONLY),
    ("container", ["--fix"], 1, "this is a container, so run it on the host",
     READ_ONLY | {".dockerenv": ""}),
    ("container-podman", ["--fix"], 1, "this is a container, so run it on the host",
     READ_ONLY | {"run/.containerenv": ""}),
    ("container-undo", ["--undo"], 1, "may not be set back here: read-only",
     READ_ONLY | FIXED | {KEPT: ALL_KEPT, CONF: CONF_HEAD}),
    ("conf-of-others", ["--fix", "--persist"], 1, "was not written by doctor", {CONF: "w /x\n"}),
    ("conf-of-others-empty", ["--fix", "--persist"], 1, "was not written by doctor", {CONF: ""}),
    ("conf-of-others-undo", ["--undo"], 1, "was not written by doctor",
     FIXED | {CONF: CONF_HEAD[1:], KEPT: ALL_KEPT}),
    ("kept-empty", ["--undo"], 1, "holds what no doctor has written", FIXED | {KEPT: ""}),
    ("kept-cut", ["--undo"], 1, "holds what no doctor has written",
     FIXED | {KEPT: ALL_KEPT[:-4]}),
    ("kept-other-value", ["--undo"], 1, "holds what no doctor has written",
     FIXED | {KEPT: ALL_KEPT.replace("50000 ", "50000;reboot ")}),
    ("kept-other-setting", ["--undo"], 1, "holds what no doctor has written",
     FIXED | {KEPT: ALL_KEPT.replace("read_ahead_kb", "../../sysrq")}),
    ("kept-large", ["--undo"], 1, "holds what no doctor has written",
     FIXED | {KEPT: "x" * 100000}),
    ("kept-newer", ["--undo"], 1, "written by a newer version",
     FIXED | {KEPT: ALL_KEPT.replace("doctor 1", "doctor 2")}),
    ("kept-bad-fix", ["--fix", "--persist"], 1, "holds what no doctor has written",
     {KEPT: "shoal-doctor\n"}),
]


def expect_refusal(machine, name, result, status, text):
    if result.returncode != status or text not in result.stderr or result.stdout or \
            result.stderr.count("\n") != 1:
        raise Failed(f"{name}: status {result.returncode}, {result.stdout}{result.stderr}")


def it_refuses(shoal):
    """One line, and nothing changed."""
    for name, words, status, text, files in REFUSED:
        with Machine(shoal, POOR, files) as machine:
            expect_refusal(machine, name, machine.run(*words), status, text)
            machine.expect_files(name, POOR, files)


def it_refuses_persist_without_tmpfiles(shoal):
    """A machine that has no systemd-tmpfiles keeps its settings, too."""
    with Machine(shoal, POOR) as machine:
        shutil.rmtree(os.path.join(machine.root, "etc"))
        before = machine.files()
        expect_refusal(machine, "no folder", machine.run("--fix", "--persist"), 1,
                       "cannot be written, as --persist asks")
        machine.expect_files("no folder", before)


def it_refuses_others_than_root(shoal):
    """Who may not write says so."""
    with Machine(shoal, POOR) as machine:
        program = os.path.join(machine.top, "shoal")
        shutil.copy(machine.shoal, program)
        os.chmod(machine.top, 0o755)
        command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", program]
        expect_refusal(machine, "nobody", machine.run("--fix", command=command), 1,
                       "run it as root")
        machine.expect_files("nobody", POOR)
        if machine.run(command=command).returncode != 1:
            raise Failed("nobody may not look")


def values_here():
    """Of this machine, as they are."""
    found = {}
    for path in (URING, HALT, HALT_START):
        with contextlib.suppress(OSError), open("/" + path, encoding="ascii") as file:
            found[path] = file.read()
    return found


def it_times_this_machine(shoal):
    """Each setting that decides a time has one, in microseconds, and stays as it is."""
    before = values_here()
    result = subprocess.run([shoal, "doctor", "--json"], stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, timeout=LIMIT_S, check=False)
    rows = {row["setting"]: row for row in json.loads(result.stdout)["settings"]}
    if result.returncode not in (0, 1) or result.stderr or len(rows) != 10:
        raise Failed(f"status {result.returncode}, {result.stdout}{result.stderr}")
    if values_here() != before:
        raise Failed(f"it changed {before}")
    halt = rows["guest_halt_poll_ns"]
    if len(os.sched_getaffinity(0)) > 1 and halt["state"] in ("good", "costs") and \
            not (halt["now_us"] > 0 and halt["wanted_us"] > 0):
        raise Failed(f"it says {halt}")


def up_tells(shoal):
    """In one line, where the settings that are known to cost much may be changed here."""
    cases = [("poor", POOR, True), ("rich", RICH, False), ("read-only", POOR | READ_ONLY, False),
             ("polls", POOR | {HALT: "50000\n"}, False)]
    for name, files, tells in cases:
        with Machine(shoal, files) as machine, clusters.Cluster(shoal, osts=1) as cluster:
            result = subprocess.run([shoal, "up", cluster.directory, "--mount", cluster.mount],
                                    stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                    timeout=clusters.START_LIMIT_S, check=False,
                                    env={**os.environ, "SHOAL_MACHINE_ROOT": machine.root})
            lines = [line for line in result.stderr.splitlines() if "doctor" in line]
            if result.returncode or lines != [NOTE] * tells:
                raise Failed(f"{name}: status {result.returncode}, {result.stderr}")
            cluster.stop()
            machine.expect_files(name, files)


TESTS = [it_tells, it_tells_whether_io_uring_is_offered, it_tells_json, all_is_well, it_fixes,
         it_persists, after_a_restart, it_refuses, it_refuses_persist_without_tmpfiles,
         it_refuses_others_than_root, it_times_this_machine, up_tells]


def main():
    return drive(__doc__, TESTS, lambda test: test(sys.argv[1]))


if __name__ == "__main__":
    sys.exit(main())
