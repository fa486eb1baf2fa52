"""The two places that are compared, a cluster's mount and a folder of the local file system, and
the programs that the demo runs on them. Whatever is started here is ended by Programs.end or
Cluster.end, by its own process id."""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time

UP_WAIT_S = 120
DOWN_WAIT_S = 120


class Failed(Exception):
    """One line that says what could not be done."""


class Programs:
    """Child processes, each in a session of its own, that tell in lines of JSON what they do."""

    def __init__(self, log_folder):
        self.log_folder = log_folder
        self.running = {}

    def start(self, name, command):
        log = os.path.join(self.log_folder, name + ".log")
        with open(log, "a", encoding="utf-8") as errors:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       stderr=errors, text=True, start_new_session=True)
        self.running[process.pid] = (process, log)
        return process

    def events(self, process):
        """What the process tells, until it ends; its failure is ours."""
        _, log = self.running[process.pid]
        for line in process.stdout:
            yield json.loads(line)
        status = process.wait()
        self.forget(process)
        if status != 0:
            raise Failed(f"{process.args[1]} ended with status {status}: {last_line(log)}")

    def go_on(self, process):
        """What the process waits for that has told where it halts."""
        process.stdin.write("\n")
        process.stdin.flush()

    def run(self, name, command):
        return list(self.events(self.start(name, command)))

    def kill(self, process):
        """The process and all that it started, at once."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        self.forget(process)

    def forget(self, process):
        process.stdin.close()
        process.stdout.close()
        self.running.pop(process.pid, None)

    def end(self):
        for process, _ in list(self.running.values()):
            self.kill(process)


def last_line(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file if line.strip()]
    except OSError as error:
        return str(error)
    return lines[-1] if lines else "it said nothing"


def drop_caches():
    """The kernel forgets what it has read; False where that isn't allowed."""
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
            file.write("3\n")
    except OSError:
        return False
    return True


def is_mounted(path):
    with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
        return any(line.split(" ")[1] == path.replace(" ", "\\040") for line in file)


class Local:
    """A folder of the local file system."""

    name = "local"

    def __init__(self, folder):
        self.root = folder
        os.makedirs(folder)

    def make_cold(self):
        drop_caches()


class Cluster:
    """A cluster in a folder, and its mount."""

    name = "shoal"

    def __init__(self, shoal, folder, mount_point, log_folder):
        self.shoal = shoal
        self.folder = folder
        self.root = mount_point
        self.log = os.path.join(log_folder, "cluster.log")
        self.regions = set()

    def verb(self, *words, wait_s=60):
        """What `shoal ...` prints; its failure is ours."""
        try:
            result = subprocess.run([self.shoal, *words], stdin=subprocess.DEVNULL, text=True,
                                    capture_output=True, timeout=wait_s, check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"shoal {words[0]} did not return within {wait_s} s") from None
        with open(self.log, "a", encoding="utf-8") as log:
            log.write(f"shoal {' '.join(words)}: {result.returncode}\n{result.stderr}")
        if result.returncode != 0:
            raise Failed(result.stderr.strip() or f"shoal {words[0]} failed without a word")
        return result.stdout

    def up(self):
        """Starts it; the seconds until the mount has answered."""
        started_s = time.monotonic()
        self.verb("up", self.folder, "--mount", self.root, wait_s=UP_WAIT_S)
        os.listdir(self.root)
        seconds = time.monotonic() - started_s
        self.regions |= shared_regions(self.process_id())
        return seconds

    def down(self):
        self.verb("down", self.folder, wait_s=DOWN_WAIT_S)
        if is_mounted(self.root):
            raise Failed(f"shoal down returned, and {self.root} is still mounted")

    def make_cold(self):
        """Stopped and started anew: neither the kernel nor the daemon has any of it in memory."""
        self.down()
        drop_caches()
        self.up()

    def process_id(self):
        """Who holds the lock of the folder, also when it no longer answers; None: nobody."""
        try:
            with open(os.path.join(self.folder, "lock"), encoding="ascii") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return int(lock.read())
        except FileNotFoundError:
            pass
        return None

    def operation_counts(self):
        """How many requests of each kind the mount has answered since it began."""
        rows = json.loads(self.verb("stats", self.folder, "--json"))
        return {row["operation"]: row["count"] for row in rows["operations"]
                if row["target"] == "mount"}

    def kill(self):
        """kill -9 of the daemon; returns when it is gone."""
        process_id = self.process_id()
        if process_id:
            kill_process(process_id)

    def end(self):
        """Leaves nothing running and nothing mounted, whatever state it was in."""
        process_id = self.process_id()
        if process_id:
            self.regions |= shared_regions(process_id)
            try:
                self.down()
            except Failed:
                self.kill()
        if is_mounted(self.root):
            subprocess.run(["umount", "--lazy", self.root], capture_output=True, check=False)
        for region in filter(os.path.exists, self.regions):
            os.unlink(region)
        try:
            shutil.copy(os.path.join(self.folder, "shoal.log"), os.path.dirname(self.log))
        except OSError:
            pass


def shared_regions(process_id):
    """The daemon's rings, which outlive it when it is killed."""
    with open(f"/proc/{process_id}/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.split(maxsplit=5)[-1].strip() for line in file}
    return {path for path in paths if path.startswith(("/dev/shm/shoal-", "/run/shoal-"))}


def kill_process(process_id):
    """kill -9, and the wait until it is gone."""
    try:
        handle = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    try:
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        gone = select.poll()
        gone.register(handle, select.POLLIN)
        if not gone.poll(30_000):
            raise Failed(f"process {process_id} outlives kill -9")
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)
