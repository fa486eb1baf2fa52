"""Shows that the demo notices what it is there to notice: images that are not images, files that
changed, went or came, and promises that broke. Standard library only; nothing is trained."""

import gzip
import importlib.machinery
import importlib.util
import os
import shutil
import struct
import sys
import tempfile
import types
import unittest

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "demo")
sys.path.insert(0, DEMO)
sys.dont_write_bytecode = True

import places
import prepare

COUNTS = {"train": 40, "t10k": 20}


def load_driver():
    """demo/demo has no extension."""
    loader = importlib.machinery.SourceFileLoader("driver", os.path.join(DEMO, "demo"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("driver", loader))
    loader.exec_module(module)
    return module


def idx(sizes, data):
    return bytes([0, 0, 8, len(sizes)]) + struct.pack(f">{len(sizes)}I", *sizes) + data


class Images(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="shoal-demo-")
        self.addCleanup(shutil.rmtree, self.top)
        self.root = os.path.join(self.top, "images")
        self.manifest = os.path.join(self.top, "manifest")
        for name, count in COUNTS.items():
            pixels = bytes(at * 7 % 256 for at in range(count * 784))
            self.source(name + "-images-idx3", idx((count, 28, 28), pixels))
            self.source(name + "-labels-idx1", idx((count,), bytes(at % 10 for at in range(count))))

    def source(self, name, data):
        with gzip.open(os.path.join(self.top, name + "-ubyte.gz"), "wb") as file:
            file.write(data)

    def write(self, part=1):
        return prepare.write(self.root, self.manifest, part, 2, self.top)

    def verify(self):
        return prepare.verify(self.root, self.manifest, 2)

    def a_file(self):
        return os.path.join(self.root, sorted(prepare.read_manifest(self.manifest))[7])

    def test_what_is_written_verifies(self):
        self.assertEqual(self.write()["files"], 60)
        self.assertEqual((self.verify()["files"], self.verify()["wrong"]), (60, 0))
        self.assertEqual(os.path.getsize(self.a_file()), prepare.FILE_BYTES)

    def test_a_part_is_a_part(self):
        self.assertEqual(self.write(part=20)["files"], 3)
        self.assertEqual(self.verify()["wrong"], 0)

    def test_an_image_is_four_times_as_large_within_a_margin(self):
        grey = bytes(range(28)) * 28
        data = prepare.image_file(grey)
        pixels = data[len(prepare.HEADER):]
        for row, column in ((0, 0), (8, 7), (8, 8), (119, 119), (127, 127), (60, 64)):
            inside = 8 <= row < 120 and 8 <= column < 120
            want = grey[(row - 8) // 4 * 28 + (column - 8) // 4] if inside else 0
            at = (row * 128 + column) * 3
            self.assertEqual(pixels[at:at + 3], bytes([want] * 3), (row, column))

    def test_a_flipped_bit_is_found(self):
        self.write()
        with open(self.a_file(), "r+b") as file:
            file.seek(30000)
            byte = file.read(1)[0]
            file.seek(30000)
            file.write(bytes([byte ^ 1]))
        self.assertEqual(self.verify()["wrong"], 1)

    def test_a_missing_and_a_cut_file_are_found(self):
        self.write()
        os.unlink(self.a_file())
        self.assertEqual(self.verify()["wrong"], 1)
        with open(self.a_file(), "wb"):
            pass
        self.assertEqual(self.verify()["wrong"], 1)

    def test_a_file_too_many_is_found(self):
        self.write()
        with open(os.path.join(self.root, "train", "more"), "wb"):
            pass
        found = self.verify()
        self.assertEqual((found["wrong"], found["examples"]),
                         (1, ["train/more: was never written"]))

    def test_nothing_is_overwritten(self):
        self.write()
        with self.assertRaises(FileExistsError):
            self.write()

    def test_bad_sources_are_refused(self):
        good = idx((40,), bytes(40))
        for name, data, why in (
                ("train-labels-idx1", good[:-1], "has 39 bytes, its head says 40"),
                ("train-labels-idx1", good + b"x", "has 41 bytes"),
                ("train-labels-idx1", b"\0\0\x09\x01" + good[4:], "not an idx file"),
                ("train-labels-idx1", b"\0\0", "not an idx file"),
                ("train-labels-idx1", idx((40,), bytes([10] * 40)), "a label is above 9"),
                ("train-labels-idx1", idx((39,), bytes(39)), "do not fit 39 labels"),
                ("train-images-idx3", idx((40, 14, 56), bytes(40 * 784)), "do not fit 40 labels")):
            with self.subTest(why=why):
                self.setUp()
                self.source(name, data)
                with self.assertRaisesRegex(prepare.BadInput, why):
                    self.write()

    def test_a_missing_source_names_the_package(self):
        with self.assertRaisesRegex(prepare.BadInput, "package dataset-fashion-mnist"):
            prepare.write(self.root, self.manifest, 1, 2, "/nowhere")


class Programs(unittest.TestCase):
    def setUp(self):
        self.logs = tempfile.mkdtemp(prefix="shoal-demo-")
        self.addCleanup(shutil.rmtree, self.logs)
        self.programs = places.Programs(self.logs)

    def shell(self, text):
        return self.programs.start("test", ["/bin/sh", "-c", text])

    def test_events_come_as_they_are_told(self):
        process = self.shell('echo \'{"event": "one"}\'; echo \'{"event": "two"}\'')
        self.assertEqual([event["event"] for event in self.programs.events(process)],
                         ["one", "two"])
        self.assertFalse(self.programs.running)

    def test_a_failure_is_told_with_its_last_words(self):
        process = self.shell("echo first >&2; echo no such luck >&2; exit 3")
        with self.assertRaisesRegex(places.Failed, "status 3: no such luck"):
            list(self.programs.events(process))

    def test_kill_takes_what_it_started_along(self):
        process = self.shell('sleep 600 & echo "{\\"process\\": $!}"; wait')
        child = next(self.programs.events(process))["process"]
        handle = os.pidfd_open(child)
        self.programs.end()
        self.assertFalse(self.programs.running)
        poll = places.select.poll()
        poll.register(handle, places.select.POLLIN)
        self.assertTrue(poll.poll(30_000))
        os.close(handle)


class Promises(unittest.TestCase):
    def test_a_broken_one_counts(self):
        promises = load_driver().Promises()
        for holds in (True, None, 0, 1, [3]):
            promises.check(holds, "a row of this test")
        self.assertEqual((promises.passed, promises.failed), (3, 2))


class Table(unittest.TestCase):
    def of(self, files, images):
        """A run that wrote so many files a second and read so many images."""
        row = {"files": files, "written_s": 1, "durable_s": 1, "images": images, "seconds": 1,
               "waited_s": 0, "bytes": 7_000_000, "accuracy": 0.9}
        return types.SimpleNamespace(written=row, verified=row, trained=[row], saved=[row],
                                     resumed=[row], tested=[row])

    def lines(self, is_compared):
        table = load_driver().table(self.of(700, 1000), self.of(1000, 1100), is_compared)
        return {line[:42].strip(): line[42:].split() for line in table}

    def test_what_is_reached_of_the_local_folder_is_told_with_its_bar(self):
        lines = self.lines(True)
        for name, cells in (("", ["shoal", "local", "of", "local"]),
                            ("files written a second",
                             ["700", "1,000", "0.70", "met:", ">=", "0.6"]),
                            ("files written and durable a second",
                             ["700", "1,000", "0.70", "missed:", ">=", "0.8"]),
                            ("images a second, median of the epochs",
                             ["1,000", "1,100", "0.91", "met:", ">=", "0.9"]),
                            ("checkpoint written, MB/s", ["7", "7", "1.00"]),
                            ("share of time the loop waited for data", ["0%", "0%"])):
            self.assertEqual(lines[name], cells)

    def test_a_part_of_the_images_is_not_compared(self):
        lines = self.lines(False)
        self.assertEqual(lines[""], ["shoal", "local"])
        self.assertTrue(all(len(cells) == 2 for cells in lines.values()), lines)


unittest.main()
