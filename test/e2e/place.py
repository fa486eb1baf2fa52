"""A cluster of several nodes in network namespaces for a test, as ./dev cluster makes it; gone
afterwards, however the test ends.

    with Place(shoal, 3) as place:
        place.start()
        ...place.at(node)...
"""

import os
import shutil
import subprocess
import tempfile

import cluster as clusters
from cluster import Failed

TOOL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "cluster")


def why_not():
    """What such a cluster lacks here, or None."""
    missing = clusters.missing()
    if missing:
        return missing
    if not shutil.which("ip") or not shutil.which("nsenter"):
        return "ip or nsenter, which make networks"
    if subprocess.run(["unshare", "--net", "true"], capture_output=True,
                      check=False).returncode != 0:
        return "the right to make network namespaces"
    return None


class Place:
    """Of one test: where its nodes are, until it ends."""

    def __init__(self, shoal, nodes, mdts=1):
        self.mdts = mdts
        self.shoal = os.path.abspath(shoal)
        self.nodes = range(1, nodes + 1)
        self.name = f"shoal-e2e-{os.getpid()}"
        self.top = tempfile.mkdtemp(prefix="shoal-e2e-")
        self.directory = os.path.join(self.top, "data")
        self.mounts = os.path.join(self.top, "mounts")
        self.mount = os.path.join(self.mounts, "1")

    def tool(self, *words, check=True):
        result = subprocess.run([TOOL, "--name", self.name, "--mdts", str(self.mdts), self.shoal,
                                 *words], text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if check and result.returncode != 0:
            raise Failed(f"cluster {words[0]}: {result.stderr.strip()}")
        return result

    def start(self):
        self.tool(str(len(self.nodes)), self.directory, self.mounts)

    def stop(self):
        self.tool("stop", self.directory, self.mounts)

    def path(self, node, *names):
        return os.path.join(self.directory, str(node), *names)

    def at(self, node, *names):
        return os.path.join(self.mounts, str(node), *names)

    def process(self, node):
        with open(self.path(node, "lock"), encoding="ascii") as file:
            return int(file.read())

    def up(self, node):
        self.tool("run", str(node), "shoal", "up", self.path(node))

    def link(self, node, state):
        subprocess.run(["ip", "-n", f"{self.name}-net", "link", "set", f"to-{node}", state],
                       check=True)

    def within(self, space, *words):
        """The words as they run in a node's network, or in "net", which joins all."""
        return ["nsenter", f"--net=/run/netns/{self.name}-{space}", "--", *words]

    def __enter__(self):
        return self

    def end(self):
        """All processes and mounts; what lies on disk stays."""
        for node in self.nodes:
            clusters.unmount(self.at(node))
            try:
                clusters.end_process(self.process(node))
            except (OSError, ValueError):
                pass
        self.tool("stop", self.directory, self.mounts, check=False)

    def __exit__(self, *_):
        self.end()
        shutil.rmtree(self.top, ignore_errors=True)


def same(path, content):
    with open(path, "rb") as file:
        if file.read() != content:
            raise Failed(f"{path} has other bytes")
