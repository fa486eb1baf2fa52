"""Compares the verbs with their tables: what help prints is what is read, has a row in the
reference, is completed by shells, and makes a page for man. The program is asked; it starts
nothing for that.

Usage: test_verbs.py SHOAL"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
SHOAL = sys.argv.pop(1) if len(sys.argv) > 1 else "build/bin/shoal"
COLUMNS = 80
OPTION = re.compile(r"^  (-o [a-z_]+|-o|--[a-z][a-z-]*)(?:[ =](\S.*?))?(?:  .*)?$", flags=re.M)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def call(*words):
    """What the program, or with a path as the first word that one, prints."""
    result = subprocess.run(words, capture_output=True, text=True, check=False,
                            stdin=subprocess.DEVNULL)
    if result.returncode or result.stderr:
        raise AssertionError(f"{words} answers {result.returncode}: {result.stderr}")
    return result.stdout


def verbs():
    return re.findall(r"^  ([a-z]+)  ", call(SHOAL, "help"), flags=re.M)


def help_of(verb):
    return call(SHOAL + "d", "--help") if verb == "shoald" else call(SHOAL, verb, "--help")


def options_of(verb):
    """The rows of its help: name -> what it calls the value, or ''."""
    return dict(OPTION.findall(help_of(verb).split("\nModels;")[0]))


def long_options_of(verb):
    return {name for name in options_of(verb) if name.startswith("--")}


def synopsis_of(verb):
    return re.sub(r"\s+", " ", help_of(verb).split("\n\n")[0])


def options_in(text):
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def sections():
    """Verb -> its part of the reference."""
    parts = re.split(r"^## shoal (\w+)\n", text_of("docs/reference/verbs.md"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Help(unittest.TestCase):
    def texts(self):
        yield "shoal", call(SHOAL, "help")
        yield "shoald", help_of("shoald")
        for verb in verbs():
            yield verb, help_of(verb)
        models = re.findall(r"^  ([a-z]+)  ", help_of("plan").split("\nModels;")[1], flags=re.M)
        self.assertGreater(len(models), 10)
        for model in models:
            yield "plan " + model, call(SHOAL, "plan", model, "--help")

    def test_no_line_is_longer_than_a_terminal(self):
        count = 0
        for name, text in self.texts():
            for line in text.splitlines():
                count += 1
                with self.subTest(name=name):
                    self.assertLessEqual(len(line), COLUMNS, line)
                    self.assertEqual(line.rstrip(), line)
        self.assertGreater(count, 400)

    def test_alone_it_lists_the_verbs(self):
        self.assertEqual(call(SHOAL), call(SHOAL, "help"))
        self.assertGreater(len(verbs()), 15)
        self.assertEqual(call(SHOAL, "plan"), call(SHOAL, "plan", "--help"))

    def test_the_synopsis_names_options_that_are_there(self):
        for verb in [*verbs(), "shoald"]:
            with self.subTest(verb=verb):
                named = options_in(synopsis_of(verb)) - {"--version"}
                self.assertLessEqual(named, long_options_of(verb))
                if verb not in ("plan", "shoald"):
                    self.assertEqual(named, long_options_of(verb))

    def test_words_are_compared_with_options_in_the_tables_only(self):
        """So an option that is read and has no row is none."""
        count = 0
        for folder, _, names in os.walk(os.path.join(ROOT, "src/cmd")):
            for name in names:
                path = os.path.relpath(os.path.join(folder, name), ROOT)
                # What a daemon is sent is not typed by anybody.
                if not name.endswith(".c") or name.startswith("control"):
                    continue
                count += 1
                for line in text_of(path).splitlines():
                    if re.search(r'str(n?case)?n?cmp\([^;]*"-{1,2}[a-z]', line):
                        allowed = ("--help", '"-h"', '"--version"', '"-o"', '"-o "', '"-1"')
                        self.assertTrue(any(word in line for word in allowed), f"{path}: {line}")
                kinds = re.findall(r'strcmp\((?:argv\[1\]|words\.shell), "([a-z]+)"\)',
                                   text_of(path))
                for kind in kinds:
                    if path != "src/cmd/shoal.c":
                        self.assertIn(f'{{"{kind}", "', text_of(path), f"{path}: {kind}")
        self.assertGreater(count, 30)

    def test_idle_words_of_o_are_told(self):
        known = re.search(r"known\[\] = \{(.*?)\}", text_of("src/cmd/cmd_mount.c"),
                          flags=re.S).group(1)
        words = re.findall(r'"(\w+)"', known)
        self.assertGreater(len(words), 8)
        told = re.findall(r"\w+", help_of("mount").split("change nothing")[1])
        self.assertEqual(sorted(words), sorted(set(words) & set(told)))


class Reference(unittest.TestCase):
    def setUp(self):
        self.sections = sections()

    def test_each_verb_has_a_section_and_no_other(self):
        self.assertEqual(sorted(verbs()), sorted(self.sections))

    def test_each_option_has_a_row_and_no_other(self):
        for verb in verbs():
            cells = re.findall(r"^\| (`-.*?) \| ", self.sections[verb], flags=re.M)
            rows = [name for cell in cells for name in re.findall(r"`(--[a-z][a-z-]*)", cell)]
            with self.subTest(verb=verb):
                self.assertEqual(sorted(long_options_of(verb)), sorted(rows))

    def test_each_word_of_o_has_a_row(self):
        told = {word for cell in re.findall(r"^\| (`-.*?) \| ", self.sections["mount"], flags=re.M)
                for word in re.findall(r"(?:`-o |`)([a-z_]+)", cell)}
        words = {name.split()[1] for name in options_of("mount") if name.startswith("-o ")}
        self.assertGreater(len(words), 8)
        self.assertLessEqual(words, told)

    def test_each_synopsis_names_the_options(self):
        for verb in verbs():
            synopsis = "".join(re.findall(r"^    .*$", self.sections[verb], flags=re.M))
            with self.subTest(verb=verb):
                self.assertEqual(long_options_of(verb), options_in(synopsis))


# Asks the script as readline does: the words so far, the last one to be completed.
BASH = """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_shoal 2>&1
printf '%s\\n' "${COMPREPLY[@]}"
"""


@unittest.skipUnless(shutil.which("bash"), "no bash here")
class Bash(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="shoal words ")
        self.addCleanup(shutil.rmtree, self.folder)
        self.script = os.path.join(self.folder, "shoal")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write(call(SHOAL, "completion", "bash"))
        os.mkdir(os.path.join(self.folder, "folder"))
        with open(os.path.join(self.folder, "file"), "w", encoding="utf-8"):
            pass

    def ask(self, *words):
        """What it offers, in the folder."""
        result = subprocess.run(["bash", "-c", BASH, "bash", self.script, *words], text=True,
                                capture_output=True, check=False, cwd=self.folder)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return sorted(result.stdout.split())

    def test_verbs(self):
        self.assertEqual(self.ask("shoal", ""),
                         sorted([*verbs(), "help", "--help", "--version"]))
        self.assertEqual(self.ask("shoal", "um"), ["umount"])
        self.assertEqual(self.ask("shoal", "help", "um"), ["umount"])
        self.assertEqual(self.ask("shoal", "manual", "shoa"), ["shoald"])

    def test_options_are_those_of_the_help(self):
        for verb in verbs():
            with self.subTest(verb=verb):
                wanted = {name for name in options_of(verb) if " " not in name}
                self.assertEqual(set(self.ask("shoal", verb, "-")) - {"--help"}, wanted)
        wanted = long_options_of("shoald")
        self.assertEqual(set(self.ask("shoald", "-")) - {"--help"}, wanted)
        self.assertEqual(set(self.ask("/usr/bin/shoald", "folder", "-")) - {"--help"}, wanted)

    def test_options_of_a_kind(self):
        self.assertEqual(self.ask("shoal", "key", "mount", "a", "b", "--"),
                         ["--help", "--ro", "--squash"])
        self.assertEqual(self.ask("shoal", "key", "revoke", "1", "--"),
                         ["--help", "--join", "--key"])
        self.assertIn("--gpus-per-node", self.ask("shoal", "plan", "checkpoint", "--"))
        self.assertNotIn("--gpus-per-node", self.ask("shoal", "plan", "compare", "--"))

    def test_first_words(self):
        self.assertEqual(self.ask("shoal", "stripe", ""), ["get", "set"])
        self.assertEqual(self.ask("shoal", "bench", "check"), ["checkpoint"])
        self.assertEqual(self.ask("shoal", "plan", "ch"), ["checkpoint", "choose"])
        self.assertEqual(self.ask("shoal", "completion", ""), ["bash", "zsh"])

    def test_files_and_folders(self):
        self.assertEqual(self.ask("shoal", "stat", "f"), ["file", "folder"])
        self.assertEqual(self.ask("shoal", "stat", "--json", "fi"), ["file"])
        self.assertEqual(self.ask("shoal", "up", "f"), ["folder"])
        self.assertEqual(self.ask("shoal", "up", "folder", "--mount", "f"), ["folder"])
        self.assertEqual(self.ask("shoal", "up", "folder", "--key", "f"), ["file", "folder"])
        self.assertEqual(self.ask("shoal", "stripe", "set", "fi"), ["file"])
        for words in (["version", ""], ["up", "folder", "--mdts", ""], ["plan", "size", ""]):
            with self.subTest(words=words):
                self.assertEqual(self.ask("shoal", *words), [])

    def test_values(self):
        self.assertEqual(self.ask("shoal", "key", "mount", "--squash", ""), ["root"])
        self.assertEqual(self.ask("shoal", "plan", "checkpoint", "--mode", ""), ["async", "sync"])
        self.assertEqual(self.ask("shoal", "mount", "a", "b", "-o", "no"),
                         ["nodev", "noexec", "nosuid"])
        self.assertEqual(self.ask("shoal", "mount", "a", "b", "-o", "ro,li"),
                         ["ro,link_encryption="])
        # readline takes "=" as a word of its own.
        self.assertEqual(self.ask("shoal", "mount", "-o", "ro,link_encryption", "="),
                         ["always", "off", "on"])
        self.assertEqual(self.ask("shoal", "mount", "-o", "link_encryption", "=", "al"), ["always"])
        self.assertEqual(self.ask("shoal", "mount", "-o", "key", "=", "fi"), ["file"])


class Zsh(unittest.TestCase):
    def setUp(self):
        self.script = call(SHOAL, "completion", "zsh")

    def test_it_has_each_verb_and_option(self):
        self.assertTrue(self.script.startswith("#compdef shoal shoald\n"))
        for verb in [*verbs(), "shoald"]:
            part = self.script.split(f"\n    {verb})\n", 1)[1].split(";;", 1)[0]
            named = set(re.findall(r"^ +'\*?(--?[a-z-]+)\[", part, flags=re.M))
            with self.subTest(verb=verb):
                self.assertEqual(named, {name for name in options_of(verb) if " " not in name})

    @unittest.skipUnless(shutil.which("zsh"), "no zsh here")
    def test_zsh_reads_it(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "_shoal"), "w", encoding="utf-8") as file:
                file.write(self.script)
            ask = "fpath=($1 $fpath); autoload -Uz compinit; compinit -D -u; print $_comps[shoal]"
            result = subprocess.run(["zsh", "-f", "-c", ask, "zsh", folder], text=True,
                                    capture_output=True, check=False)
            self.assertEqual((result.stdout, result.stderr), ("_shoal\n", ""))
            result = subprocess.run(["zsh", "-f", "-n", os.path.join(folder, "_shoal")], text=True,
                                    capture_output=True, check=False)
            self.assertEqual((result.returncode, result.stderr), (0, ""))


def page_reader():
    """A command that complains about what is wrong in a page, and prints it; None: not here."""
    if shutil.which("man"):
        return ["man", "--warnings", "-E", "UTF-8", "-l", "-"]
    if shutil.which("groff"):
        return ["groff", "-man", "-Tutf8", "-ww"]
    if shutil.which("mandoc"):
        return ["mandoc", "-T", "utf8", "-W", "warning"]
    return None


class Manual(unittest.TestCase):
    def test_meson_installs_a_page_for_each_verb(self):
        listed = re.search(r"verb_names = \[(.*?)\]", text_of("share/words/meson.build"),
                           flags=re.S).group(1)
        self.assertEqual(re.findall(r"'(\w+)'", listed), verbs())

    def test_options_stand_in_the_page(self):
        for verb in [*verbs(), "shoald"]:
            page = call(SHOAL, "manual", verb).replace("\\-", "-")
            with self.subTest(verb=verb):
                named = set(re.findall(r"^\\fB(-.*?)\\fR", page, flags=re.M))
                self.assertEqual(named, set(options_of(verb)))
        page = call(SHOAL, "manual")
        for verb in verbs():
            self.assertIn(f"\\fB{verb}\\fR", page)

    @unittest.skipUnless(page_reader(), "no man, groff or mandoc here")
    def test_readers_have_nothing_against_a_page(self):
        for words in ([], *([verb] for verb in verbs()), ["shoald"]):
            page = call(SHOAL, "manual", *words)
            result = subprocess.run(page_reader(), input=page, text=True, capture_output=True,
                                    check=False, env={**os.environ, "MANWIDTH": "80"})
            with self.subTest(words=words):
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn("SYNOPSIS", result.stdout)


if __name__ == "__main__":
    unittest.main()
