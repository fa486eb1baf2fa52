"""Shows that ./dev counts, stops and refuses as it says. It runs in a copy of the folder with
stand-ins for meson, ninja and the packages' programs, so nothing is built or installed."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# Sets a folder up, or "runs" the tests whose results $RESULTS lists for each build folder.
MESON = """#!/bin/sh
case $1 in
setup)
    while [ $# -gt 2 ]; do shift; done
    echo "setup $1" >>"$CALLS"
    mkdir -p "$1/meson-logs" "$1/test/sim" "$1/test/torture"
    for program in sim/sim torture/torture; do
        printf '#!/bin/sh\\necho "$0 $*" >>"$CALLS"\\necho "2 passed, 0 failed"\\n' \
            >"$1/test/$program"
        chmod +x "$1/test/$program"
    done
    ;;
test)
    [ "$5" = --logbase ] || exit 9
    log=$3/meson-logs/$6.json
    status=0
    for result in $(sed -n "s/^${3##*/} //p" "$RESULTS"); do
        echo "{\\"name\\": \\"one\\", \\"result\\": \\"$result\\", \\"returncode\\": 0}" >>"$log"
        case $result in FAIL | TIMEOUT | ERROR) status=1 ;; esac
    done
    exit $status
    ;;
esac
"""
NINJA = '#!/bin/sh\necho "ninja $2" >>"$CALLS"\n[ "${2##*/}" != "${NINJA_FAILS:-}" ]\n'

# Programs that count by their last line.
NODES = '#!/bin/sh\necho "nodes $*" >>"$CALLS"\necho "9 passed, 0 failed"\n'
DEMO = """#!/bin/sh
echo "demo $*" >>"$CALLS"
sleep "${DEMO_WAITS:-0}"
echo "${DEMO:-2 passed, 0 failed}"
"""
DRIVERS = {"quickstart": 3, "posix": 4, "kill": 1, "power": 9, "fsck": 5, "refusals": 6,
           "programs": 7, "rings": 8, "mount": 15, "nodes": 16, "soak": 13,
           "soak_finds": 14, "namespaces": 17, "many": 18, "chaos": 19,
           "counts": 20, "attack": 21, "versions": 22, "lost": 23, "doctor": 24,
           "guard": 25, "fsx": 26, "storm": 27, "limits": 28, "damage": 29, "channel": 33,
           "flight": 30, "fsck_away": 31,
           "rebuild": 32, "starts": 34}
PLANNER = {"run": 10, "docs": 11, "page": 12}

# Runs from `up` on; $RUNS says where it is mounted.
SHOAL = """#!/bin/sh
echo "shoal $*" >>"$CALLS"
case $1 in
up)
    [ ! "${UP_FAILS:-}" ] || exit 1
    echo "$4" >"$RUNS"
    ;;
status) [ -e "$RUNS" ] && echo "mounted    $(cat "$RUNS")" ;;
esac
"""

# As on a mount whose daemon is dead.
MKDIR = """#!/bin/sh
case $2 in
"$DEAD") echo "mkdir: cannot stat '$2': Transport endpoint is not connected" >&2; exit 1 ;;
esac
exec /bin/mkdir "$@"
"""

ALL_GOOD = "release OK OK\nasan OK\ntsan OK\n"
with open(os.path.join(ROOT, "dev"), encoding="utf-8") as _dev:
    _DEV = _dev.read()
# Stories and joins, both also with a bug, seeds, seeds of the build with bugs, one that is asked
# why, seeds under a sanitizer, and a run for each bug that ./dev names; two each.
SIMULATOR_COUNT = 2 * (8 + len(re.search(r"step_sim\(\).*?for bug in (.*?); do", _DEV,
                                         re.DOTALL)[1].replace("\\\n", " ").split()))
# Seeds, the small scope, what ships, and a run for each bug that ./dev names; two each.
TORTURE_COUNT = 2 * (3 + sum(len(names.split()) for names in
                             re.findall(r"(?:torture|release)_bugs='([^']*)'", _DEV)))
# The release build's two are run by three steps, the demo has two, that of several nodes nine, the
# drivers theirs; power is run twice, with the log's flush and without, and posix, on both kinds of
# mounts, with many metadata targets, and over io_uring, as storm, mount and flight are.
ALL_COUNT = 3 * 2 + 2 + 2 + 9 + sum(DRIVERS.values()) + DRIVERS["power"] + 3 * DRIVERS["posix"] + \
    DRIVERS["storm"] + DRIVERS["mount"] + DRIVERS["flight"] + SIMULATOR_COUNT + \
    TORTURE_COUNT + sum(PLANNER.values())
# Enough of them for what is not about one of the others.
FEW = ("release", "asan", "tsan", "demo")
FEW_COUNT = 2 + 2 + 2 + 9 + DRIVERS["quickstart"]


class Dev(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="shoal dev ")
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copy(os.path.join(ROOT, "dev"), self.root)
        os.mkdir(self.path("bin"))
        self.program("meson", MESON)
        self.program("ninja", NINJA)
        self.results(ALL_GOOD)
        os.mkdir(self.path("demo"))
        self.write("demo/demo", DEMO)
        os.chmod(self.path("demo/demo"), 0o755)
        self.write("demo/nodes", NODES)
        os.chmod(self.path("demo/nodes"), 0o755)
        for folder, counts in (("test/e2e", DRIVERS), ("test/planner", PLANNER)):
            os.makedirs(self.path(folder))
            for name, count in counts.items():
                self.write(f"{folder}/{name}.py", f'print("{count} passed, 0 failed")\n')
        os.mkdir(self.path("test/torture"))
        self.write("test/torture/order.py", 'print("0 moved")\n')

    def path(self, name):
        return os.path.join(self.root, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def program(self, name, text):
        self.write("bin/" + name, text)
        os.chmod(self.path("bin/" + name), 0o755)

    def results(self, text):
        self.write("results", text)

    def calls(self):
        with open(self.path("calls"), encoding="utf-8") as file:
            return file.read()

    def dev(self, *words, **variables):
        environment = {"PATH": self.path("bin") + ":/usr/bin:/bin", "DEV_PACKAGES": "skip",
                       "CALLS": self.path("calls"), "RESULTS": self.path("results")}
        environment.update(variables)
        result = subprocess.run([self.path("dev"), *words], env=environment, cwd="/", text=True,
                                stdin=subprocess.DEVNULL, capture_output=True, check=False)
        return result.returncode, result.stdout, result.stderr

    def last_line(self, **variables):
        status, output, _ = self.dev("test", *FEW, **variables)
        return status, output.rstrip("\n").split("\n")[-1]

    def test_all_good(self):
        status, output, _ = self.dev("test")
        self.assertEqual(status, 0)
        self.assertTrue(output.endswith(f"\n{ALL_COUNT} passed, 0 failed\n"), output)

    def test_steps_can_be_chosen(self):
        status, output, _ = self.dev("test", "planner", "asan")
        self.assertEqual(status, 0)
        self.assertEqual(sorted(line.split()[0] for line in output.rstrip("\n").split("\n")[:-1]),
                         ["asan", "planner"])
        self.assertIn(f"\n{1 + sum(PLANNER.values())} passed, 0 failed\n", output)

    def test_full_plays_mounts_over_both_channels(self):
        status, output, _ = self.dev("test", "--full", "planner")
        self.assertEqual(status, 0)
        first, rest = output.split("over io_uring:\n")
        self.assertIn(f"{sum(PLANNER.values())} passed, 0 failed\n", first)
        second, last = rest.split("in all:\n")
        self.assertEqual({line.split()[0] for line in second.rstrip("\n").split("\n")[:-1]},
                         {"e2e", "posix", "kill", "programs"})
        passed = int(second.rstrip("\n").split("\n")[-1].split()[0])
        self.assertEqual(last, f"{sum(PLANNER.values()) + passed} passed, 0 failed\n")

    def test_full_counts_what_fails_over_either_channel(self):
        for step, program in (("planner", "planner/docs"), ("posix", "e2e/posix")):
            with self.subTest(step=step):
                name = f"test/{program}.py"
                with open(self.path(name), encoding="utf-8") as file:
                    text = file.read()
                failing = 'print("0 passed, 1 failed, 2 skipped")\nraise SystemExit(1)\n'
                self.write(name, failing)
                status, output, _ = self.dev("test", "--full", "planner")
                self.write(name, text)
                times = 4 if step == "posix" else 1
                self.assertEqual(status, 1)
                self.assertRegex(output, rf"passed, {times} failed, {2 * times} skipped\n$")

    def test_fuzz_says_what_is_missing(self):
        self.program("clang", "#!/bin/sh\nexit 1\n")
        status, output, error = self.dev("fuzz", "60")
        self.assertEqual((status, output), (1, ""))
        self.assertEqual(error, "dev: no libFuzzer here, run: sudo apt-get install clang"
                                " libclang-rt-dev\n")

    def test_a_step_that_is_none_is_refused(self):
        status, output, error = self.dev("test", "asan", "assan")
        self.assertEqual((status, output), (2, ""))
        self.assertIn("no step 'assan'", error)
        self.assertFalse(os.path.exists(self.path("build")))

    def test_each_kind_of_failure_counts(self):
        for result in ("FAIL", "TIMEOUT", "ERROR", "UNEXPECTEDPASS", "INTERRUPT"):
            with self.subTest(result=result):
                self.results(ALL_GOOD.replace("asan OK", "asan OK " + result))
                self.assertEqual(self.last_line(), (1, f"{FEW_COUNT} passed, 1 failed"))

    def test_skipped_ones_are_told(self):
        self.results(ALL_GOOD.replace("tsan OK", "tsan OK SKIP"))
        self.assertEqual(self.last_line(), (0, f"{FEW_COUNT} passed, 0 failed, 1 skipped"))

    def test_a_build_that_fails_is_one_failure_of_its_step_and_the_rest_still_runs(self):
        self.assertEqual(self.last_line(NINJA_FAILS="asan"),
                         (1, f"{FEW_COUNT - 1} passed, 1 failed"))

    def test_a_program_counts_by_its_last_line(self):
        for said, want in (("words\n1 passed, 1 failed", 1), ("1 passed, 1 failed\nwords", 1),
                           ("words", 1), ("9 passed, 0 failed", 0)):
            with self.subTest(said=said):
                _, line = self.last_line(DEMO=said)
                self.assertIn(f" {want} failed", line)

    def test_a_program_that_hangs_is_a_failure_and_the_rest_still_runs(self):
        self.assertEqual(self.last_line(DEMO_WAITS="1000", DEV_PROGRAM_LIMIT_S="1"),
                         (1, f"{FEW_COUNT - 2} passed, 1 failed"))

    def driver(self, program, **environment):
        return subprocess.run(["/usr/bin/python3", "-c", program], capture_output=True, text=True,
                              timeout=60, check=False, env={
                                  **os.environ, **environment,
                                  "PYTHONPATH": os.path.join(ROOT, "test", "e2e")})

    def test_a_driver_that_hangs_says_so(self):
        result = self.driver("import time, cluster; time.sleep(1000)", SHOAL_TEST_LIMIT_S="1")
        self.assertEqual(result.returncode, 1)
        self.assertIn("has not ended in 1 s", result.stderr)

    def test_a_driver_that_is_late_says_where_and_ends_what_it_has_started(self):
        result = self.driver("import subprocess, threading, cluster; "
                             "child = subprocess.Popen(['sleep', '1000'], start_new_session=True); "
                             "print(child.pid, flush=True); "
                             "threading.Thread(target=cluster.end_late, args=[7]).start(); "
                             "child.wait()")
        self.assertEqual(result.returncode, 1)
        for words in ("has not ended in 7 s", "most recent call first",
                      f"{result.stdout.strip()} sleep 1000"):
            self.assertIn(words, result.stderr)
        with self.assertRaises((ProcessLookupError, FileNotFoundError)):
            while True:
                with open(f"/proc/{int(result.stdout)}/stat", encoding="ascii") as file:
                    if file.read().rpartition(")")[2].split()[0] == "Z":
                        raise ProcessLookupError

    def test_a_program_may_skip(self):
        self.assertEqual(self.last_line(DEMO="0 passed, 0 failed, 2 skipped"),
                         (0, f"{FEW_COUNT - 2} passed, 0 failed, 2 skipped"))

    def test_demo_is_told_where_things_are(self):
        self.assertEqual(self.dev("demo", "--quick")[0], 0)
        programs = self.path("build")
        self.assertIn(f"demo --quick {programs}/bin/shoal {programs}/demo\n", self.calls())
        self.assertEqual(self.dev("demo", "--nodes", "3")[0], 0)
        self.assertIn(f"nodes --nodes 3 {programs}/bin/shoal {programs}/demo-nodes\n",
                      self.calls())

    def prepare_up(self):
        """Everything is built; answers where data, mount and the note of what runs are."""
        self.program("id", "#!/bin/sh\necho 0\n")
        self.dev("build")
        os.mkdir(self.path("build/release/bin"))
        self.write("build/release/bin/shoal", SHOAL)
        os.chmod(self.path("build/release/bin/shoal"), 0o755)
        return self.path("some data"), self.path("some mount"), self.path("runs")

    def test_up_starts_what_does_not_run_and_shows_what_does(self):
        data, mount, runs = self.prepare_up()
        status, output, _ = self.dev("up", data, mount, RUNS=runs)
        self.assertEqual(status, 0)
        self.assertIn(f"shoal up {data} --mount {mount}\n", self.calls())
        self.assertEqual(output.count("shoal stat"), 2)
        self.assertIn(f'export PATH="{self.path("build/bin")}:$PATH"\n', output)
        self.assertTrue(os.path.isdir(mount))
        for words in ((data, mount), (data,), (data, mount + "/.")):
            status, output, _ = self.dev("up", *words, RUNS=runs)
            self.assertEqual((status, output), (0, f"mounted    {mount}\n"))
        self.assertEqual(self.calls().count("shoal up"), 1)

    def test_up_mounts_what_runs_unmounted_and_refuses_another_place(self):
        data, mount, runs = self.prepare_up()
        self.write("runs", "-\n")
        self.assertEqual(self.dev("up", data, mount, RUNS=runs)[0], 0)
        self.assertEqual(self.calls().count(f"shoal up {data} --mount {mount}\n"), 1)
        other = self.path("other mount")
        status, output, error = self.dev("up", data, other, RUNS=runs)
        self.assertEqual((status, output, error.count("\n")), (1, "", 1))
        self.assertIn(f"is mounted at {mount}, not at {other}: `shoal umount {mount}`", error)
        self.assertFalse(os.path.exists(other))

    def test_up_leaves_a_dead_mount_to_shoal(self):
        data, mount, runs = self.prepare_up()
        self.program("mkdir", MKDIR)
        status, _, error = self.dev("up", data, mount, RUNS=runs, DEAD=mount)
        self.assertEqual((status, error), (0, ""))
        self.assertIn(f"shoal up {data} --mount {mount}\n", self.calls())

    def test_up_that_is_refused_leaves_no_folders(self):
        data, mount, runs = self.prepare_up()
        self.assertEqual(self.dev("up", data, mount, RUNS=runs, UP_FAILS="yes")[0], 1)
        self.assertFalse(os.path.exists(data) or os.path.exists(mount))
        os.mkdir(mount)
        self.assertEqual(self.dev("up", data, mount, RUNS=runs, UP_FAILS="yes")[0], 1)
        self.assertTrue(os.path.exists(mount))

    def test_up_says_one_line_a_step(self):
        data, mount, runs = self.prepare_up()
        self.program("ninja", "#!/bin/sh\necho much of no interest\n")
        status, output, error = self.dev("up", data, mount, RUNS=runs)
        self.assertEqual((status, error), (0, ""))
        self.assertEqual([line.split()[0] for line in output.split("\n\n")[0].splitlines()],
                         ["build", "start", "mount"])
        with open(self.path("build/up.log"), encoding="utf-8") as file:
            self.assertIn("much of no interest", file.read())

    def test_up_names_the_log_of_a_step_that_fails(self):
        data, mount, runs = self.prepare_up()
        self.program("ninja", "#!/bin/sh\necho the compiler said no\nexit 1\n")
        status, output, error = self.dev("up", data, mount, RUNS=runs)
        self.assertEqual((status, output.count("\n")), (1, 1))
        self.assertIn("the compiler said no\n", error)
        self.assertIn(f"all that was said is in {self.path('build/up.log')}\n", error)
        self.assertNotIn("shoal up", self.calls())

    def test_up_alone_builds_without_tests_and_installs_nothing_for_them(self):
        self.program("dpkg-query", "#!/bin/sh\nexit 1\n")
        self.program("id", "#!/bin/sh\necho 0\n")
        self.program("apt-get", '#!/bin/sh\necho "apt-get $*" >>"$CALLS"\necho unpacking\n')
        self.write("os-release", "ID=debian\n")
        self.write("shoal", SHOAL)
        self.program("ninja", '#!/bin/sh\necho "ninja $2" >>"$CALLS"\nmkdir -p "$2/bin"\n'
                              f'cp "{self.path("shoal")}" "$2/bin/shoal"\n'
                              'chmod +x "$2/bin/shoal"\n')
        data, mount, runs = self.path("data"), self.path("mount"), self.path("runs")
        status, output, error = self.dev("up", data, mount, RUNS=runs, DEV_PACKAGES="",
                                         DEV_OS_RELEASE=self.path("os-release"))
        self.assertEqual((status, error.count("\n")), (0, 1), error)
        self.assertNotIn("unpacking", output + error)
        self.assertIn(f"ninja {self.path('build/up')}\n", self.calls())
        self.assertNotIn("build/release", self.calls())
        installed = re.search(r"recommends install (.*)", self.calls()).group(1).split()
        self.assertIn("liblmdb-dev", installed)
        for name in ("libcmocka-dev", "clang", "lld", "wasi-libc", "libjs-chart.js"):
            self.assertNotIn(name, installed)

    def test_up_takes_no_options(self):
        for words in (["-x"], ["--frob"], [self.path("data"), "--mount"], [""]):
            status, output, error = self.dev("up", *words)
            self.assertEqual((status, output, error.count("\n")), (2, "", 1))
            self.assertIn(f"not '{words[-1]}'", error)
        self.assertFalse(os.path.exists(self.path("build")))

    def test_up_needs_root(self):
        self.program("id", "#!/bin/sh\necho 1000\n")
        status, _, error = self.dev("up", self.path("data"))
        self.assertEqual((status, error.count("\n")), (1, 1))
        self.assertIn(f"run: sudo ./dev up {self.path('data')} /mnt/shoal", error)
        self.assertFalse(os.path.exists(self.path("data")))

    def test_a_step_without_tests_fails(self):
        self.results(ALL_GOOD.replace("tsan OK\n", ""))
        self.assertEqual(self.last_line(), (1, f"{FEW_COUNT - 1} passed, 1 failed"))

    def test_old_results_are_not_counted_again(self):
        self.last_line()
        self.assertEqual(self.last_line(), (0, f"{FEW_COUNT} passed, 0 failed"))

    def test_a_failing_step_shows_its_log(self):
        self.program("ninja", "#!/bin/sh\necho the compiler said no\nexit 1\n")
        _, output, _ = self.dev("test", *FEW)
        self.assertIn("the compiler said no", output)

    def test_builds_are_set_up_once_and_anew_when_options_change(self):
        self.dev("check")
        self.dev("check")
        self.assertEqual(self.calls().count("setup"), 1)
        self.write("build/debug/dev-options", "other options\n")
        self.dev("check")
        self.assertEqual(self.calls().count("setup"), 2)

    def test_build_links_programs(self):
        self.dev("build")
        os.makedirs(self.path("build/release/bin"))
        self.write("build/release/bin/shoal", "#!/bin/sh\necho ran\n")
        os.chmod(self.path("build/release/bin/shoal"), 0o755)
        self.assertEqual(self.dev("build")[0], 0)
        self.assertEqual(sorted(os.listdir(self.path("build/bin"))), ["shoal", "shoald"])
        output = subprocess.check_output([self.path("build/bin/shoal")], text=True)
        self.assertEqual(output, "ran\n")

    def test_bad_words_are_refused(self):
        status, _, error = self.dev("biuld")
        self.assertEqual((status, error), (2, "dev: no verb 'biuld'; ./dev help lists them\n"))
        status, _, error = self.dev("build", "fast")
        self.assertEqual((status, error),
                         (2, "dev: build takes nothing more; ./dev help lists the verbs\n"))
        for words in (["kill", "-x"], ["power", "--without-flush"], ["sim", "many"], ["kill"],
                      ["soak", "long"], ["fsx", "short"], ["fuzz", "cluster_map"],
                      ["bare", "--frob"]):
            status, output, error = self.dev(*words)
            self.assertEqual((status, output, error.count("\n")), (2, "", 1), words)
        self.assertFalse(os.path.exists(self.path("build")))

    def test_torture_plays_what_ships(self):
        for words, build, want in (((), "release", "50"), (("7", "3"), "release", "7 3"),
                                   (("7", "--bug", "x"), "bugs", "7 --bug x")):
            with self.subTest(words=words):
                self.assertEqual(self.dev("torture", "--release", *words)[0], 0)
                program = self.path(f"build/{build}/test/torture/torture")
                self.assertTrue(self.calls().endswith(f"{program} {want} --once\n"))

    def test_torture_of_what_ships_stops_where_stores_were_moved(self):
        self.write("test/torture/order.py", "raise SystemExit(1)\n")
        self.assertEqual(self.dev("torture", "--release")[0], 1)
        self.assertNotIn("test/torture/torture", self.calls())

    def test_each_verb_has_help(self):
        for verb in ("up", "build", "bench", "sim", "kill", "soak", "fsx", "unit", "demo"):
            for word in ("--help", "-h"):
                status, output, error = self.dev(verb, word)
                self.assertEqual((status, error), (0, ""))
                self.assertTrue(output.startswith(f"./dev {verb} "), output)
                self.assertEqual(output.count("./dev"), 1)
        status, _, error = self.dev("frob", "--help")
        self.assertEqual((status, error), (2, "dev: no verb 'frob'; ./dev help lists them\n"))
        self.assertFalse(os.path.exists(self.path("build")))

    def test_help_names_each_verb(self):
        status, output, _ = self.dev()
        self.assertEqual(status, 0)
        with open(self.path("dev"), encoding="utf-8") as file:
            verbs = [line[5:-5] for line in file if line.startswith("verb_") and "()" in line]
        self.assertGreater(len(verbs), 5)
        for verb in verbs:
            self.assertRegex(output, rf"(?m)^  {verb} ")

    def packages(self, os_id, user_id):
        """What `./dev build` says where no package is installed."""
        self.program("dpkg-query", "#!/bin/sh\nexit 1\n")
        self.program("id", f"#!/bin/sh\necho {user_id}\n")
        self.program("apt-get", '#!/bin/sh\necho "apt-get $*" >>"$CALLS"\n')
        self.write("os-release", f"NAME=x\nID={os_id}\n")
        return self.dev("build", DEV_PACKAGES="", DEV_OS_RELEASE=self.path("os-release"))

    def test_root_installs_only_the_sets_asked_for(self):
        status, _, _ = self.packages("debian", 0)
        self.assertEqual(status, 0)
        update, install = self.calls().split("\n")[:2]
        self.assertIn("update", update)
        self.assertIn("--no-install-recommends install gcc", install)
        self.assertNotIn("fio", install)

    def installed_by(self, *words):
        """The packages that a verb installs where there is none. It ends before it does anything
        else, as that fails."""
        self.program("dpkg-query", "#!/bin/sh\nexit 1\n")
        self.program("id", "#!/bin/sh\necho 0\n")
        self.program("apt-get", '#!/bin/sh\necho "apt-get $*" >>"$CALLS"\n'
                     'case $* in *" install "*) exit 1 ;; esac\n')
        self.write("os-release", "ID=debian\n")
        self.write("calls", "")
        self.dev(*words, DEV_PACKAGES="", DEV_OS_RELEASE=self.path("os-release"))
        install = self.calls().strip().split("\n")[-1]
        names = install.partition("--no-install-recommends install ")[2].split()
        self.assertEqual(len(names), len(set(names)), install)
        return set(names)

    def test_each_verb_installs_what_it_needs_and_no_more(self):
        build = self.installed_by("build")
        self.assertTrue({"gcc", "meson", "liburing-dev", "libcmocka-dev", "clang"} <= build, build)
        sanitizers = {"libclang-rt-dev", "llvm"}
        page = {"chromium", "chromium-driver", "python3-selenium"}
        programs = {"e2fsprogs", "fio", "git", "rsync", "sqlite3"}
        more = {("check",): set(), ("unit",): set(), ("sim", "1"): set(), ("torture", "1"): set(),
                ("kill", "1"): set(), ("fsx", "1"): set(), ("power", "1"): set(),
                ("soak", "1"): {"e2fsprogs"}, ("cluster", "3"): {"iproute2"},
                ("chaos", "1"): {"iproute2", "nftables"}, ("programs",): programs,
                ("asan",): sanitizers, ("tsan",): sanitizers, ("fuzz", "1"): sanitizers,
                ("lint",): {"clang-tidy"}}
        for words, wanted in more.items():
            with self.subTest(words=words):
                self.assertEqual(self.installed_by(*words) - build, wanted)
        self.assertEqual(self.installed_by("format"), {"clang-format-19"})
        tidy = self.installed_by("tidy")
        self.assertTrue({"python3", "gcc", "clang-format-19"} <= tidy, tidy)
        self.assertFalse(tidy & ({"meson", "clang", "lld"} | page | programs), tidy)
        every = self.installed_by("test")
        for wanted in (build, page, programs, sanitizers, tidy, {"iproute2", "nftables", "spin"}):
            self.assertTrue(wanted <= every, wanted - every)

    def test_nothing_is_installed_where_all_is_there(self):
        self.program("dpkg-query", "#!/bin/sh\nprintf installed\n")
        self.program("id", "#!/bin/sh\necho 1000\n")
        self.program("apt-get", '#!/bin/sh\necho "apt-get $*" >>"$CALLS"\n')
        self.program("clang-format-19", "#!/bin/sh\n")
        self.write("os-release", "ID=debian\n")
        self.write("calls", "")
        for verb in ("build", "format"):
            status, _, error = self.dev(verb, DEV_PACKAGES="",
                                        DEV_OS_RELEASE=self.path("os-release"))
            self.assertEqual((status, error), (0, ""))
        self.assertNotIn("apt-get", self.calls())

    def test_others_are_told_the_command(self):
        status, _, error = self.packages("debian", 1000)
        self.assertEqual(status, 1)
        self.assertEqual(error.count("\n"), 1)
        self.assertIn("run: sudo apt-get install --no-install-recommends gcc", error)

    def test_other_systems_are_told_the_packages(self):
        status, _, error = self.packages("fedora", 0)
        self.assertEqual(status, 1)
        self.assertEqual(error.count("\n"), 1)
        self.assertIn("not Debian: install what matches gcc", error)
        self.assertFalse(os.path.exists(self.path("calls")))


unittest.main()
