"""Machines for a test on one machine: each with a network, mounts, processes, /etc, /run, /var/lib,
/var/log, /mnt and shared memory of its own, and an address at a network that joins them; gone
afterwards, however the test ends.

    with Machines({"one": "10.0.0.1", "two": "10.0.0.2"}, programs) as machines:
        status, text = machines.run("one", "ip address")

A machine is a shell at the root of the repository, so what it exports stays. `programs` is the
folder of the commands that are tried. `scp -p FILE ADDRESS:PLACE` copies to another machine, by the
disk that they share: there are no daemons for it. mount(8) finds the type fuse.shoal, as after an
installation.
"""

import os
import select
import shlex
import shutil
import subprocess
import tempfile

import cluster as clusters
from cluster import Failed

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LIMIT_S = 120
END_S = 30
# Of its own, and empty but for /etc.
FOLDERS = ("etc", "var/lib", "var/log", "mnt")
MEMORY = ("/run", "/dev/shm")

SCP = """#!/bin/sh
# scp -p FILE ADDRESS:PLACE, between the machines of a test.
[ $# -eq 3 ] && [ "$1" = -p ] || exit 2
case ${3%%:*} in
MACHINES*)
    echo "scp: nobody is at ${3%%:*}" >&2
    exit 1
    ;;
esac
exec cp -p "$2" "$to${3#*:}"
"""


def why_not():
    """What they lack here, or None."""
    missing = clusters.missing()
    if missing:
        return missing
    if not shutil.which("ip"):
        return "ip, which makes networks"
    if subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "true"],
                      capture_output=True, check=False).returncode != 0:
        return "the right to make namespaces"
    return None


class Shell:
    """One that goes on, in namespaces."""

    def __init__(self, words, output):
        self.output = output
        self.process = subprocess.Popen(["unshare", *words, "sh", "-c", "exec 3>&1; exec sh"],
                                        text=True, cwd=ROOT, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)
        self.statuses = self.process.stdout.fileno()

    def run(self, command, limit_s=LIMIT_S):
        """Its status, and what it said."""
        try:
            self.process.stdin.write(f"{{ {command}\n}} >{shlex.quote(self.output)} 2>&1 "
                                     "</dev/null 3>&-; echo $? >&3\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"no shell is left for: {command}") from None
        told = b""
        while not told.endswith(b"\n"):
            if not select.select([self.statuses], [], [], limit_s)[0]:
                raise Failed(f"did not end in {limit_s} s: {command}")
            part = os.read(self.statuses, 16)
            if not part:
                raise Failed(f"the shell has ended: {command}")
            told += part
        with open(self.output, encoding="utf-8", errors="replace") as file:
            return int(told), file.read()

    def must(self, command):
        """What it said; it has to succeed."""
        status, text = self.run(command)
        if status != 0:
            raise Failed(f"{command}: status {status}, {text.strip()}")
        return text

    def close(self):
        """The end of the first process of a machine is that of all."""
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Machines:
    """By name."""

    def __init__(self, addresses, programs):
        self.addresses = addresses
        self.programs = os.path.abspath(programs)
        self.top = tempfile.mkdtemp(prefix="shoal-machines-")
        self.shells = {}
        self.hub = None

    def path(self, *names):
        return os.path.join(self.top, *names)

    def make_programs(self):
        """What machines have in their paths beside the programs, and in /sbin."""
        for folder in ("bin", "sbin"):
            os.mkdir(self.path(folder))
        rows = "".join(f"{address}) to={shlex.quote(self.path(name))} ;;\n"
                       for name, address in self.addresses.items())
        with open(self.path("bin", "scp"), "w", encoding="ascii") as file:
            file.write(SCP.replace("MACHINES", rows))
        os.chmod(self.path("bin", "scp"), 0o755)
        os.symlink(os.path.join(self.programs, "shoal"), self.path("sbin", "mount.fuse.shoal"))

    def make_folders(self, name):
        for folder in FOLDERS[1:]:
            os.makedirs(self.path(name, folder))
        subprocess.run(["cp", "-a", "/etc", self.path(name, "etc")], check=True)
        shutil.rmtree(self.path(name, "etc", "shoal"), ignore_errors=True)

    def start_machine(self, name):
        """Its network is there before its /sbin hides what makes one."""
        self.make_folders(name)
        shell = Shell(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
                      self.path(name, "output"))
        self.shells[name] = shell
        shell.must("true")
        self.hub.must(f"ip link add to-{name} type veth peer name eth0 netns {shell.process.pid}")
        self.hub.must(f"ip link set to-{name} master bridge up")
        for words in (f"address add {self.addresses[name]}/24 dev eth0", "link set eth0 up",
                      "link set lo up"):
            shell.must(f"ip {words}")
        # A verb finds in the table of mounts also what lies beneath the folders that come now.
        shell.must("awk '/ - fuse.shoal / { print $5 }' /proc/self/mountinfo | "
                   "xargs -r -n 1 umount -l")
        for folder in FOLDERS:
            shell.must(f"mount --bind {shlex.quote(self.path(name, folder))} /{folder}")
        for folder in MEMORY:
            shell.must(f"mount -t tmpfs none {folder}")
        shell.must(f"mount --bind {shlex.quote(self.path('sbin'))} {os.path.realpath('/sbin')}")
        paths = f"{self.path('bin')}:{self.programs}"
        shell.must(f"export PATH={shlex.quote(paths)}:$PATH")

    def __enter__(self):
        try:
            self.make_programs()
            self.hub = Shell(["--net"], self.path("output"))
            self.hub.must("ip link add bridge type bridge")
            self.hub.must("ip link set bridge up")
            for name in self.addresses:
                self.start_machine(name)
        except BaseException:
            self.__exit__()
            raise
        return self

    def run(self, name, command):
        return self.shells[name].run(command)

    def must(self, name, command):
        return self.shells[name].must(command)

    def __exit__(self, *_):
        for shell in [*self.shells.values(), *([self.hub] if self.hub else [])]:
            shell.close()
        shutil.rmtree(self.top, ignore_errors=True)
