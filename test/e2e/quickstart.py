#!/usr/bin/python3
"""Runs the commands that pages tell people to type.

Usage: quickstart.py PAGE...

The lines of all blocks marked ```sh are run, in order, by one shell for each page, from the root of
the repository; each has to succeed. The default folders become ones of our own, and ports of
loopback addresses free ones, so that a cluster which somebody runs there is left alone. LEFT_OUT
are steps of ./dev test themselves. What the pages say of several machines is typed on such, in
network namespaces, once README.md is among the pages (machine_pages.py). The last line counts.
"""

import glob
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile

import machine_pages
import machines

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LEFT_OUT = ("./dev test", "./dev demo", "./dev demo --quick", "./dev demo --nodes 3")
DEFAULT_FOLDERS = {"/var/lib/shoal": "data", "/mnt/shoal": "mount", "/etc/shoal": "etc"}
ADDRESS = re.compile(r"(127\.0\.0\.\d+):(\d+)")
LIMIT_S = 900


def commands_of(page):
    """(line number, command), comments at the end of the line cut off."""
    inside = False
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.startswith("```"):
                inside = line.strip() == "```sh"
            elif inside and line.strip():
                yield number, re.sub(r"\s+# .*", "", line.strip())


def free_ports(wanted):
    """Of each port that the page names, one that is free at all addresses."""
    sockets = {port: socket.socket() for port in sorted(wanted)}
    for one in sockets.values():
        one.bind(("", 0))
    ports = {port: one.getsockname()[1] for port, one in sockets.items()}
    for one in sockets.values():
        one.close()
    return ports


def script_of(commands, top):
    """A shell's input that tells the status of each command on descriptor 3."""
    lines = []
    ports = free_ports({port for _, command in commands for _, port in ADDRESS.findall(command)})
    for number, command in commands:
        if command == "./dev up":
            command = "./dev up /var/lib/shoal /mnt/shoal"
        for folder, ours in DEFAULT_FOLDERS.items():
            command = command.replace(folder, os.path.join(top, ours))
        command = ADDRESS.sub(lambda found: f"{found[1]}:{ports[found[2]]}", command)
        lines.append(f"echo '$' {shlex.quote(command)}\n{command} </dev/null\n"
                     f"echo {number} $? >&3\n")
    return "".join(lines)


def run_page(page, top):
    """How many commands there were, and which failed, as text."""
    commands = [row for row in commands_of(page) if row[1] not in LEFT_OUT]
    reader, writer = os.pipe()
    shell = subprocess.Popen(["sh", "-c", f"exec 3>&{writer}; exec sh"], cwd=ROOT, text=True,
                             stdin=subprocess.PIPE, pass_fds=[writer])
    os.close(writer)
    shell.communicate(script_of(commands, top), timeout=LIMIT_S)
    with open(reader, encoding="ascii") as told:
        statuses = dict(map(int, line.split()) for line in told)
    return len(commands), [f"{page}:{number}: {command}: "
                           + (f"status {statuses[number]}" if number in statuses else "not run")
                           for number, command in commands if statuses.get(number) != 0]


def end_cluster(top):
    """Whatever the page has left running; a node that has joined before the first one."""
    data, mount, _ = (os.path.join(top, ours) for ours in DEFAULT_FOLDERS.values())
    for conf in sorted(glob.glob(f"{data}*/shoal.conf"), reverse=True):
        subprocess.run([os.path.join(ROOT, "build", "bin", "shoal"), "down", os.path.dirname(conf)],
                       capture_output=True, check=False)
    for place in glob.glob(f"{mount}*"):
        subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)
    shutil.rmtree(top, ignore_errors=True)


def main():
    if len(sys.argv) < 2:
        print("usage: quickstart.py PAGE...", file=sys.stderr)
        return 2
    passed = 0
    failed = []
    for page in sys.argv[1:]:
        top = tempfile.mkdtemp(prefix="shoal-quickstart-")
        try:
            count, wrong = run_page(page, top)
        finally:
            end_cluster(top)
        if count == 0:
            wrong = [f"{page}: has no command"]
        passed += count - len(wrong)
        failed += wrong
    skipped = 0
    if machine_pages.PAGES[0] in sys.argv[1:]:
        missing = machines.why_not()
        if missing:
            print(f"skipped, for want of {missing}: lines of several machines")
            skipped = machine_pages.line_count()
        else:
            count, wrong = machine_pages.run(os.path.join(ROOT, "build", "bin"))
            passed += count - len(wrong)
            failed += wrong
    for line in failed:
        print(line)
    print(f"{passed} passed, {len(failed)} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


sys.exit(main())
