"""Shows that the figures of ./dev bench are the medians that they are said to be, that the page's
table is made from them alone, and that the compared systems take turns."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import types
import unittest
import xml.etree.ElementTree

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BENCH = os.path.join(ROOT, "bench")
sys.path.insert(0, BENCH)
sys.dont_write_bytecode = True

import afar
import data
import figures
import machine
import memory
import nodes
import run
import summary

PAGE = "\n".join(["# Figures", "", figures.SUMMARY[0], "old", figures.SUMMARY[1], "",
                  "Above, | with a bar.", "", figures.HEAD[0], "|---|", "| old | 1 |", "", "Below.",
                  ""])
ROWS = [figures.row_of("fast", "ops/s", [(20519.6, 13000.0)], "bare", ">= 1"),
        figures.row_of("slow", "ops/s", [(9.0, 13.0)], "bare", ">= 0.7"),
        figures.row_of("short", "us CPU", [(2.449, None)], "", "<= 5"),
        figures.row_of("free", "%", [(0.5, None)], "of one core", "")]
ROWS[0].update(date="2026-11-28", commit="0a1b2c3d")
LINES = ["| fast | 20,520 ops/s | 13,000 | bare | 1.58 | >= 1 | yes | 2026-11-28 0a1b2c3d |",
         "| slow | 9.00 ops/s | 13.0 | bare | 0.69 | >= 0.7 | **no** | - |",
         "| short | 2.45 us CPU | - | - | - | <= 5 | yes | - |",
         "| free | 0.50 % | - | of one core | - | - | - | - |"]


def in_memory(name, ratio):
    return figures.row_of(summary.MEMORY + name, "ops/s", [(1234.0 * ratio, 1234.0)],
                          summary.THROUGH, ">= 1")


MEASURED = [in_memory("create, 1 directory, 1 thread", 2.0),
            in_memory("open + close, 1 directory, 1 thread", 0.5),
            in_memory("create, 1 directory, 8 threads", 4.0)]


class Rows(unittest.TestCase):
    def test_a_row_has_medians_and_keeps_all_runs(self):
        pairs = [(10.0, 20.0), (30.0, 10.0), (20.0, 5.0)]
        row = figures.row_of("name", "us", pairs, "limit", "<= 3")
        self.assertEqual((row["value"], row["limit"], row["ratio"]), (20.0, 10.0, 3.0))
        self.assertEqual(row["runs"], [[10.0, 20.0], [30.0, 10.0], [20.0, 5.0]])
        self.assertTrue(figures.is_met(row))

    def test_a_limit_that_one_run_lacks_is_refused(self):
        with self.assertRaises(ValueError):
            figures.row_of("name", "us", [(1.0, 2.0), (1.0, None)], "limit", "")

    def test_a_budget_is_of_the_ratio_and_without_limit_of_the_value(self):
        for value, limit, budget, met in ((6.0, 3.0, "<= 2", True), (6.0, 2.9, "<= 2", False),
                                          (2.0, 3.0, ">= 0.67", False), (6.0, None, "<= 2", False),
                                          (6.0, None, "", None)):
            row = figures.row_of("name", "us", [(value, limit)], "", budget)
            self.assertIs(figures.is_met(row), met, row)


    def test_from_five_runs_on_a_ratio_has_quartiles(self):
        for count, quartiles in ((4, None), (5, [2.0, 4.0])):
            pairs = [(float(number), 1.0) for number in range(1, count + 1)]
            row = figures.row_of("name", "us", pairs, "limit", "")
            self.assertEqual(row["quartiles"], quartiles)
        self.assertEqual(figures.ratio_text(row), "3.00 (2.00 to 4.00)")
        self.assertEqual(figures.ratio_text(ROWS[0]), "1.58")

    def test_rows_are_replaced_where_they_stand_and_others_stay(self):
        again = figures.row_of("slow", "ops/s", [(13.0, 13.0)], "bare", ">= 0.7")
        new = figures.row_of("slow", "ops/s", [(13.0, 26.0)], "another", ">= 1")
        self.assertEqual(figures.merged(ROWS, [new, again]), [ROWS[0], again, *ROWS[2:], new])
        by_dev, by_uring = ({**again, "channel": channel} for channel in ("/dev/fuse", "io_uring"))
        self.assertEqual(figures.merged(ROWS, [by_uring, by_dev]),
                         [ROWS[0], by_uring, *ROWS[2:], by_dev])
        self.assertEqual(figures.merged([by_dev, by_uring], [by_uring]), [by_dev, by_uring])

    def test_rows_of_a_name_are_replaced_whatever_their_budgets_and_limits(self):
        def of(limit_is, budget, channel="io_uring", name="slow"):
            row = figures.row_of(name, "ops/s", [(13.0, 26.0)], limit_is, budget)
            return {**row, "channel": channel} if channel else row

        bare, through = of("bare", ">= 0.5"), of("another", ">= 1")
        kept = [of("bare", ">= 1", name="slow, CPU"), of("tmpfs", ">= 1", channel="/dev/fuse")]
        for before, now in (
                ([of("bare", ">= 0.7"), of("bare", ">= 0.6")], [bare]),
                ([of("tmpfs", ">= 0.8"), of("another, 19 files", ">= 1")], [bare, through]),
                ([of("tmpfs", ">= 0.8"), of("bare", ">= 1"), of("it", "")], [through, bare]),
                ([of("tmpfs", ">= 0.8", None), of("bare", "", None)], [bare])):
            with self.subTest(before=before):
                self.assertEqual(figures.merged(before + kept, now), now + kept)
                self.assertEqual(figures.merged(now + kept, now), now + kept)
        by_none = [of("bare", ">= 0.7", None), of("tmpfs", ">= 0.7", None)]
        self.assertEqual(figures.merged(by_none, [of("bare", "", None)]), [of("bare", "", None)])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows")
            self.assertEqual(figures.load(path), [])
            figures.save(path, ROWS)
            self.assertEqual(figures.load(path), ROWS)


CHANGES = """
import os, signal, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import machine
machine.POLL_PATH, machine.URING_PATH, machine.IDLE_PATH = (
    os.path.join(sys.argv[2], name) for name in ("setting", "uring", "idle"))
for one in machine.ENDING:
    signal.signal(one, signal.SIG_DFL)  # whoever has started the tests
with machine.kept_to_the_end():
    for path in filter(os.path.exists, (machine.POLL_PATH, machine.URING_PATH)):
        machine.setting_write(path, "9")
    with machine.idle_polls(200000):
        print("changed", flush=True)
        if sys.argv[3] == "fails":
            raise KeyError
        for _ in range(1200 if sys.argv[3] == "waits" else 0):
            time.sleep(0.05)  # one that begins just behind a signal is not cut by it: the next is
"""


class Machine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        path = os.path.join(folder.name, "setting")
        for name, value in (("POLL_PATH", path), ("IDLE_PATH", folder.name), ("LOOK_S", 1.0)):
            self.addCleanup(setattr, machine, name, getattr(machine, name))
            setattr(machine, name, value)
        self.addCleanup(setattr, machine, "ticks", machine.ticks)
        self.addCleanup(setattr, machine.time, "sleep", machine.time.sleep)

    def test_the_setting_is_put_back_also_when_what_needs_it_fails(self):
        machine.poll_write(7)
        with self.assertRaises(KeyError):
            with machine.idle_polls(200000):
                self.assertEqual(machine.poll_read(), 200000)
                raise KeyError
        self.assertEqual(machine.poll_read(), 7)

    def test_a_machine_without_the_setting_is_told(self):
        self.assertIsNone(machine.poll_read())
        with self.assertRaisesRegex(run.Failed, "is not here"):
            with machine.idle_polls(0):
                self.fail("it went on")

    def test_a_setting_that_moves_nothing_is_none(self):
        machine.poll_write(7)
        for driver, governor, wanted in (("haltpoll", "haltpoll", 7), ("none", "menu", None),
                                         ("intel_idle", "menu", None), ("none", "haltpoll", None)):
            for name, value in (("current_driver", driver), ("current_governor_ro", governor)):
                machine.setting_write(os.path.join(self.folder, name), value)
            self.assertEqual(machine.poll_read(), wanted)

    def end_one(self, how, number=None):
        """A program that changes both settings, as mounts do, and ends so; its exit status."""
        with subprocess.Popen([sys.executable, "-c", CHANGES, BENCH, self.folder, how],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True) as process:
            self.assertEqual(process.stdout.readline(), "changed\n")
            if number:
                process.send_signal(number)
            return process.wait(timeout=60)

    def test_settings_are_put_back_at_each_end(self):
        ends = [("goes", None, 0), ("fails", None, 1)]
        ends += [("waits", one, 128 + one) for one in
                 (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        for how, number, status in ends:
            with self.subTest(how=how, number=number):
                for name, value in (("setting", "7"), ("uring", "N")):
                    machine.setting_write(os.path.join(self.folder, name), value)
                self.assertEqual(self.end_one(how, number), status)
                self.assertEqual([machine.setting_read(os.path.join(self.folder, name))
                                  for name in ("setting", "uring")], ["7", "N"])
        os.unlink(os.path.join(self.folder, "uring"))
        machine.setting_write(os.path.join(self.folder, "setting"), "7")
        with self.subTest("a machine without one of them"):
            self.assertEqual(self.end_one("goes"), 0)

    def look(self, parent):
        """One process that has run for as long as was looked, and whose it is."""
        looks = [{os.getpid(): (5, "python3", 1), 70000: (0, "other", parent)},
                 {os.getpid(): (5, "python3", 1), 70000: (10 ** 6, "other", parent)}]
        machine.ticks = lambda: looks.pop(0)
        machine.time.sleep = lambda seconds: None
        machine.check_quiet()

    def test_what_it_has_started_may_run_and_nothing_else(self):
        self.look(os.getpid())
        with self.assertRaisesRegex(run.Failed, r"process 70000 \(other\) takes"):
            self.look(1)


class Page(unittest.TestCase):
    def test_a_row_tells_the_channel_once(self):
        row = figures.row_of("mount read", "MB/s", [(1.0, None)], "", "")
        for name, channel, told in (("mount read", None, "mount read"),
                                    ("mount read", "/dev/fuse", "mount read, over /dev/fuse"),
                                    ("read, over io_uring: x", "io_uring",
                                     "read, over io_uring: x")):
            row.update(name=name, channel=channel)
            self.assertEqual(figures.cells_of(row)[0], told)
            self.assertTrue(figures.line_of(row).startswith(told))

    def test_only_the_table_and_the_summary_are_made_anew(self):
        wanted = PAGE.replace("|---|\n| old | 1 |", "\n".join(figures.HEAD[1:] + LINES))
        wanted = wanted.replace("\nold\n", "\n\n\n")
        self.assertEqual(figures.page_of(PAGE, ROWS, None), wanted)
        self.assertEqual(figures.page_of(wanted, ROWS, None), wanted)

    def test_a_page_without_table_or_summary_is_refused(self):
        for lacks in (figures.HEAD[0], *figures.SUMMARY):
            with self.subTest(lacks=lacks), self.assertRaises(ValueError):
                figures.page_of(PAGE.replace(lacks, "else"), ROWS, None)

    def test_the_page_of_the_project_is_made_of_its_rows(self):
        docs = os.path.join(ROOT, "docs")
        with open(os.path.join(docs, "benchmarks.md"), encoding="utf-8") as file:
            page = file.read()
        with open(os.path.join(docs, "benchmarks.json"), encoding="utf-8") as file:
            rows = json.load(file)
        chart = summary.chart(rows)
        self.assertEqual(page, figures.page_of(page, rows, chart and "benchmarks.svg"))
        if chart:
            with open(os.path.join(docs, "benchmarks.svg"), encoding="utf-8") as file:
                self.assertEqual(file.read(), chart)

    def test_a_line_has_its_rows_or_is_left_out(self):
        self.assertEqual(summary.lines(ROWS), [])
        line, = summary.lines(MEASURED)
        self.assertIn("it creates **2,468** files a second (2.00 times pass-through)", line)
        self.assertIn("opens and closes **617** files a second (0.50 times pass-through)", line)

    def test_the_picture_has_a_bar_a_row_and_none_without_rows(self):
        self.assertIsNone(summary.chart(ROWS))
        picture = xml.etree.ElementTree.fromstring(summary.chart(MEASURED))
        bars = [float(one.get("width")) for one in picture.iter("{http://www.w3.org/2000/svg}rect")
                if one.get("height") == str(summary.BAR)]
        self.assertEqual(bars, [summary.WIDTH / 2, summary.WIDTH, summary.WIDTH / 8])

    def program(self, rows_text):
        with tempfile.TemporaryDirectory() as folder:
            rows, page = os.path.join(folder, "rows"), os.path.join(folder, "page.md")
            with open(page, "w", encoding="utf-8") as file:
                file.write(PAGE)
            if rows_text is None:
                figures.save(rows, ROWS)
            else:
                with open(rows, "w", encoding="utf-8") as file:
                    file.write(rows_text)
            result = subprocess.run([sys.executable, os.path.join(BENCH, "figures.py"), rows, page],
                                    capture_output=True, text=True, timeout=60, check=False)
            with open(page, encoding="utf-8") as file:
                return result.returncode, file.read()

    def test_the_program_writes_the_page_from_what_was_saved(self):
        self.assertEqual(self.program(None), (0, figures.page_of(PAGE, ROWS, None)))

    def test_the_program_leaves_the_page_alone_when_the_rows_are_none(self):
        for text in (json.dumps(ROWS)[:-9], '[{"name": "fast"}]', "[3]", "{}x"):
            self.assertEqual(self.program(text), (1, PAGE), text)


class Commits(unittest.TestCase):
    def test_processors_that_halt_are_woken_over_the_device(self):
        self.addCleanup(setattr, machine, "poll_read", machine.poll_read)
        for poll_ns, channel, budget in ((None, "/dev/fuse", "<= 2"), (0, "/dev/fuse", "<= 2"),
                                         (200000, "/dev/fuse", "<= 1.5"),
                                         (None, "io_uring", "<= 1.5"), (0, "io_uring", "<= 1.5")):
            machine.poll_read = lambda poll_ns=poll_ns: poll_ns
            self.assertEqual(data.commits_budget(channel), budget, (poll_ns, channel))


class Memory(unittest.TestCase):
    def setUp(self):
        self.bench = types.SimpleNamespace(asked=None, channel=None, rows=[], runs=1, smoke=False)
        self.bench.row = lambda name, *_: self.bench.rows.append((name, self.bench.channel))

    def put(self, where, **values):
        for name, value in values.items():
            self.addCleanup(setattr, where, name, getattr(where, name))
            setattr(where, name, value)

    def of_groups(self, refuse_at):
        """Rows told of two groups of one measure, the machine not quiet at the look of that number
        (at 0 the pass-through does not mount); all places are stopped."""
        log, looks = [], []

        def check_quiet():
            looks.append(None)
            if len(looks) == refuse_at:
                raise run.Failed("not quiet")

        def fit(_):
            if refuse_at == 0:
                raise run.Failed("does not mount")

        bench, ours = self.bench, types.SimpleNamespace(name="shoal", stop=lambda: None)
        bench.take_turn = lambda place, once: place and once(place)
        bench.take_turns = lambda *given, **more: run.Bench.take_turns(bench, *given, **more)
        bench.tell_turns = lambda *given, **more: run.Bench.tell_turns(bench, *given, **more)
        self.put(machine, check_quiet=check_quiet)
        self.put(memory.Memory, __init__=lambda places, *_: setattr(places, "files", 1), fit=fit,
                 of=lambda *_: [ours, None, None], stop=lambda _: log.append("stopped"))
        self.put(memory, MEASURES={"names": lambda *_: {"create": {
            "rate": 1.0, "cpu": 1.0, "units": ("ops/s", "us")}}})
        with self.assertRaises(run.Failed):
            memory.compare(bench, "here", "dev", 1, (("names", 1), ("names", 2)), lambda _: ">= 1")
        self.assertEqual(log, ["stopped"])
        return [name for name, _ in bench.rows]

    def test_a_refusal_loses_no_group_that_was_measured(self):
        self.assertEqual(self.of_groups(1), [])
        self.assertEqual(self.of_groups(2),
                         ["here: create, 1 thread", "here: create, 1 thread, CPU"])

    def test_places_are_stopped_when_one_does_not_mount(self):
        self.assertEqual(self.of_groups(0), [])

    def test_bare_fuse_has_names_and_samples_beside(self):
        places = types.SimpleNamespace(ours="ours", through=None, bare="bare")
        row = {"rate": 2.0, "cpu": 1.0, "units": ("files/s", "us")}
        for kind, bare, limits in (
                ("names", "bare", [(memory.PASSTHROUGH, ">= 1"), (memory.PASSTHROUGH, ""),
                                   (memory.BARE, ">= 0.67")]),
                ("samples", "bare", [(memory.PASSTHROUGH, ">= 1"), (memory.PASSTHROUGH, ""),
                                     (memory.BARE, "")]),
                ("blocks", None, [(memory.PASSTHROUGH, ">= 1"), (memory.PASSTHROUGH, "")])):
            self.assertEqual(memory.Memory.of(places, kind), ["ours", None, bare])
            run_of = [{"read": row}, {"read": row}, bare and {"read": row}]
            told = memory.rows_of("here", 8, [run_of], lambda _: ">= 1", memory.BARES.get(kind))
            self.assertEqual([(limit_is, budget) for *_, limit_is, budget in told], limits)

    def test_what_a_setting_costs_is_told_of_its_channel(self):
        def compare(bench, where, channel, *_):
            bench.channel = {"dev": "/dev/fuse", "uring": "io_uring"}[channel]
            return {"create": [1.0]}

        self.put(machine, poll_read=lambda: 0, idle_polls=lambda _: contextlib.nullcontext(),
                 uring_offered=lambda: contextlib.nullcontext(True))
        self.put(memory, compare=compare)
        memory.memory(self.bench)
        self.assertEqual(self.bench.rows, [
            ("in memory: create, 1 thread, CPU as it comes", "/dev/fuse"),
            ("in memory, over io_uring: create, 1 thread, CPU as it comes", "io_uring")])


class Place:
    """Writes down what is done with it."""

    def __init__(self, name, log):
        self.name = name
        self.log = log

    def start(self):
        self.log.append("start " + self.name)

    def rest(self):
        self.log.append("rest " + self.name)


class Turns(unittest.TestCase):
    def setUp(self):
        drop_caches = run.mounts.drop_caches
        self.addCleanup(setattr, run.mounts, "drop_caches", drop_caches)
        self.log = []
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        run.mounts.drop_caches = lambda what: self.log.append(f"drop {what}")
        self.bench = types.SimpleNamespace(
            runs=2, take_turn=lambda place, once: run.Bench.take_turn(None, place, once))

    def test_places_are_measured_alone_and_in_turn(self):
        def once(place):
            self.log.append("once " + place.name)
            return place.name

        places = (Place("a", self.log), None, Place("b", self.log))
        self.assertEqual(run.Bench.take_turns(self.bench, places, once), [["a", None, "b"]] * 2)
        turn = "drop 3,start {0},once {0},rest {0}"
        self.assertEqual(",".join(self.log),
                         ",".join(turn.format(name) for name in ("a", "b", "b", "a")))

    def test_who_begins_changes_from_one_run_to_the_next(self):
        places = (Place("a", self.log), Place("b", self.log))
        runs = afar.both(types.SimpleNamespace(runs=3), places,
                         lambda place: self.log.append(place.name) or place.name)
        self.assertEqual((runs, "".join(self.log)), ([["a", "b"]] * 3, "abbaab"))
        self.log.clear()
        bench = types.SimpleNamespace(take_turn=lambda place, _: self.log.append(place.name))
        run.Bench.take_turns(bench, places, None, range(3, 5))
        self.assertEqual("".join(self.log), "baab")

    def near(self, ratios, refuses=False, **settings):
        """How often the place is measured whose runs have these ratios at first, and 1 later."""
        told, took = [], []

        def check_quiet():
            if refuses:
                raise run.Failed("not quiet")

        def once(_):
            took.append(None)
            return (ratios + [1.0] * 15)[len(took) - 1]

        def rows(runs):
            yield "name", "us", [(run[0], 1.0) for run in runs], "one", settings.get("bar", ">= 1")
            yield "name", "us", [(9.0, None) for _ in runs], "none", ">= 9"

        self.addCleanup(setattr, machine, "check_quiet", machine.check_quiet)
        machine.check_quiet = check_quiet
        bench = types.SimpleNamespace(
            runs=len(ratios), smoke=settings.get("smoke", False), take_turn=lambda _, once: once(_),
            row=lambda name, unit, pairs, limit_is, _: told.append((limit_is, len(pairs))))
        bench.take_turns = lambda *given: run.Bench.take_turns(bench, *given)
        with contextlib.suppress(run.Failed):
            run.Bench.tell_turns(bench, [Place("a", self.log)], once, rows)
        self.assertEqual(told, [("one", len(took)), ("none", len(took))])
        return len(took)

    def test_a_ratio_near_its_bar_is_run_fifteen_times(self):
        for ratios, bar, count in (([1.2, 0.8, 0.5], ">= 1", 3), ([1.2, 0.91, 0.5], ">= 1", 15),
                                   ([1.2, 1.09, 1.0], "<= 1", 15), ([1.2, 1.0, 0.5], ">= 0.9", 3),
                                   ([1.0] * 16, ">= 1", 16), ([1.0] * 5, "", 5)):
            with self.subTest(ratios=ratios, bar=bar):
                self.assertEqual(self.near(ratios, bar=bar), count)
        self.assertEqual(self.near([1.0] * 3, smoke=True), 1)

    def test_what_was_measured_is_told_where_more_is_refused(self):
        self.assertEqual(self.near([1.0] * 5, refuses=True), 5)

    def test_a_place_rests_when_its_turn_fails(self):
        def once(place):
            raise run.Failed(place.name)

        with self.assertRaises(run.Failed):
            run.Bench.take_turns(self.bench, (Place("a", self.log),), once)
        self.assertEqual(self.log, ["drop 3", "start a", "rest a"])

    def test_mounts_of_their_own_are_asked_for_the_channel(self):
        asked = []
        bench = types.SimpleNamespace(asked=None, channel=None, shoal="shoal",
                                      folder=lambda name: os.path.join(
                                          tempfile.mkdtemp(dir=self.folder.name), name))

        def command(words):
            asked.extend(words if words[1] == "mount" else [])

        for of in (afar, nodes):
            for name, value in (("command", command), ("channel_logged", lambda _: None)):
                self.addCleanup(setattr, of, name, getattr(of, name))
                setattr(of, name, value)
        for wanted, channel in ((None, ""), ("dev", ",channel=dev"), ("uring", ",channel=uring")):
            bench.asked = wanted
            afar.Afar(bench).mount()
            place = nodes.Nodes(bench)
            place.addresses.append("127.0.0.1:1")
            place.start(0)
            options = [word for word in asked if word.startswith("log=")]
            self.assertEqual([word.partition("mount.log")[2] for word in options], [channel] * 2)
            asked.clear()

    def test_bare_fuse_goes_over_the_channel_of_ours(self):
        """By what it says when it can't be started."""
        bench = types.SimpleNamespace(asked=None, channel=None, program=lambda _: "/bin/false",
                                      folder=lambda _: self.folder.name)
        for asked, channel, wanted, word in ((None, None, None, "any"),
                                             (None, "io_uring", None, "uring"),
                                             (None, "/dev/fuse", None, "dev"),
                                             ("dev", "io_uring", None, "dev"),
                                             ("uring", None, "dev", "dev")):
            bare = run.Bench.bare(bench, wanted)
            bench.asked, bench.channel = asked, channel
            with self.assertRaisesRegex(run.Failed, f"channel={word}$"):
                bare.start()
            bare.stop()


if __name__ == "__main__":
    unittest.main()
