"""What pages tell people to type on several machines, and in /etc/fstab: typed on machines of a
test (machines.py), word for word as it is printed but for what stands in the tables here.

    README.md                    the block of three machines, each line on the machine that it names
    docs/operating/keys.md       the line of /etc/fstab, mounted by mount(8) on the third
    docs/operating/operating.md  likewise
    docs/operating/nodes.md      "A disk that is gone": what is said of its targets, on the first
                                 machine, once the daemon of a fourth one is dead for good

What is in between, as the fourth machine's joining, is this test's own.
"""

import json
import os
import re

from cluster import Failed
from files_load import wait_until
from machines import ROOT, Machines

PAGES = ("README.md", "docs/operating/keys.md", "docs/operating/operating.md",
         "docs/operating/nodes.md")
# The addresses are those of README.md.
ADDRESSES = {"one": "10.0.0.1", "two": "10.0.0.2", "three": "10.0.0.3", "four": "10.0.0.4"}
DIR = "/var/lib/shoal-net"
MOUNT = "/mnt/shoal-net"
KEYS = "/etc/shoal"
# Words of pages, and what they are here.
WORDS = {"H1": ADDRESSES["one"], "H2": ADDRESSES["two"]}
LOST_WORDS = {"DIR": DIR}
# Exit statuses and words that the page tells of; of others 0.
ENDS = {f"shoal status {DIR}": (3, "does not answer"), f"shoal fsck {DIR}": (1, "lost-data")}
# As the page has it for scripts.
FOR_SCRIPTS = "shoal target lost"
PROMPT = re.compile(r"(\w+)#\s+(.*)")
LOST_LINE = re.compile(r" {7}(shoal .*?)\s+# .*")
FILE_MIB = 32


class Typed:
    """What was typed of a page: how many lines, and what went wrong."""

    def __init__(self):
        self.count = 0
        self.wrong = []

    def line(self, page, line, call):
        """Whether it did what the page says; what it said."""
        self.count += 1
        try:
            return call()
        except Failed as error:
            self.wrong.append(f"{page}: {line}: {error}")
            raise


def lines_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def replaced(line, table):
    for word, ours in table.items():
        line = re.sub(rf"\b{word}\b", ours, line)
    return line


def block_of_machines():
    """(machine, command), in order."""
    found = [match.groups() for match in map(PROMPT.fullmatch, lines_of("README.md")) if match]
    if {name for name, _ in found} != {"one", "two", "three"}:
        raise Failed(f"README.md: has {len(found)} lines of one, two and three")
    return found


def fstab_line(page):
    found = [line for line in lines_of(page) if line.split()[2:3] == ["fuse.shoal"]]
    if len(found) != 1:
        raise Failed(f"{page}: has {len(found)} lines of /etc/fstab")
    return found[0]


def lines_of_a_loss():
    page = "docs/operating/nodes.md"
    found = [match[1] for match in map(LOST_LINE.fullmatch, lines_of(page)) if match]
    if len(found) != 3 or not any(line.startswith(FOR_SCRIPTS) for line in found):
        raise Failed(f"{page}: has {found} of a disk that is gone")
    return found


def three_machines(machines, typed):
    """And that it is what the page says: two nodes, and a tree that the third one uses."""
    for name, command in block_of_machines():
        print(f"{name}# {command}", flush=True)
        typed.line("README.md", command, lambda name=name, command=command:
                   machines.must(name, command))
    machines.must("three", f"cp -r docs {MOUNT}/ && diff -r docs {MOUNT}/docs")
    # The first one's map has the second one's targets a moment after that was told.
    for name in ("one", "two"):
        wait_until(lambda name=name: f"{ADDRESSES[name]}:7400" in
                   machines.must("one", f"shoal status {DIR}"), f"a status that names {name}")


def key_for(machines, path):
    """Makes a mount's key on the first machine and carries it to the third."""
    machines.must("one", f"shoal key mount {KEYS}/members.key {path}")
    machines.must("one", f"scp -p {path} {ADDRESSES['three']}:{KEYS}/")


def fstab(machines, typed, page):
    """mount(8) mounts by the line alone."""
    line = fstab_line(page)
    ours = replaced(line, WORDS)
    print(f"three# mount, by {line}", flush=True)
    _, place, _, options, *_ = ours.split()
    key_for(machines, re.search(r"key=([^,]*)", options)[1])
    machines.must("three", f"mkdir -p {place}")
    machines.must("three", f"echo '{ours}' >/etc/fstab")
    typed.line(page, line, lambda: machines.must("three", f"mount {place}"))
    machines.must("three", f"diff -r docs {place}/docs")
    machines.must("three", f"umount {place}")


def status_of(machines, name):
    return json.loads(machines.run(name, f"shoal status {DIR} --json")[1])


def used_at(machines, name):
    return sum(target["bytes_total"] - target["bytes_free"]
               for target in status_of(machines, name)["targets"] if target["kind"] == "ost")


def join_fourth(machines):
    """A node with one storage target; answers the number of that."""
    machines.must("four", f"mkdir -p -m 700 {KEYS}")
    machines.must("one", f"scp -p {KEYS}/members.key {ADDRESSES['four']}:{KEYS}/")
    machines.must("four", f"shoal up {DIR} --listen {ADDRESSES['four']}:7400 --key "
                          f"{KEYS}/members.key --join {ADDRESSES['one']}:7400 --roles store "
                          "--osts 1 --size 64M")
    wait_until(lambda: status_of(machines, "four")["node"]["told"], "a word of the manager")
    node = status_of(machines, "four")["node"]["id"]

    def numbers():
        return [row["id"] for row in status_of(machines, "one")["cluster_targets"]
                if row["node"] == node]

    wait_until(numbers, "a map at the first machine that has it")
    return numbers()[0]


def a_part_lies_there(machines):
    """New files use it within a second or two."""
    def written():
        machines.must("three", f"dd if=/dev/urandom of={MOUNT}/whole bs=1M count={FILE_MIB} "
                               "conv=fsync")
        if used_at(machines, "four") >= 1 << 20:
            return True
        machines.must("three", f"rm {MOUNT}/whole")
        return False

    wait_until(written, "a part of a file at the fourth machine")


def patiently(machines, command):
    """Types it on the first machine until it ends as the page says; what it said."""
    told = [None, ""]
    status, text = ENDS.get(command, (0, ""))

    def is_so():
        told[:] = machines.run("one", command)
        return told[0] == status and text in told[1]

    try:
        wait_until(is_so, command)
    except Failed:
        raise Failed(f"status {told[0]}, not {status} with '{text}': {told[1].strip()}") from None
    return told[1]


def a_disk_that_is_gone(machines, typed):
    """Of the fourth machine. A daemon counts as dead for good when it has been silent for long
    enough; until then what is typed is refused."""
    lines = lines_of_a_loss()
    table = {**LOST_WORDS, "NUMBER": str(join_fourth(machines))}
    a_part_lies_there(machines)
    machines.must("four", f"kill -9 $(cat {DIR}/lock)")
    for line in lines:
        command = replaced(line, table)
        print(f"one# {command}", flush=True)
        if line.startswith(FOR_SCRIPTS):
            command += " --yes"
        text = typed.line(PAGES[3], line, lambda command=command: patiently(machines, command))
    if "whole" not in text:
        raise Failed(f"fsck does not name the file: {text.strip()}")


def line_count():
    return len(block_of_machines()) + 2 + len(lines_of_a_loss())


def run(programs):
    """How many lines there were, and which failed, as text."""
    typed = Typed()
    try:
        with Machines(ADDRESSES, programs) as machines:
            three_machines(machines, typed)
            for page in PAGES[1:3]:
                fstab(machines, typed, page)
            a_disk_that_is_gone(machines, typed)
    except Failed as error:
        if not typed.wrong:
            typed.count += 1
            typed.wrong.append(str(error))
    return typed.count, typed.wrong
