"""Compares the pages with the code that they speak of: links, JSON fields of verbs, keys of
shoal.conf, statistics, errors, limits. The lists are read from the source text; test_verbs.py asks
the program for its verbs and options."""

import os
import re
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
REFERENCE = "docs/reference"
LEFT_OUT = {".git", "build", "subprojects"}
STRING = r'"((?:[^"\\]|\\.)*)"'


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def files_below(folder, ending):
    for at, folders, names in os.walk(os.path.join(ROOT, folder)):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        yield from (os.path.relpath(os.path.join(at, name), ROOT)
                    for name in sorted(names) if name.endswith(ending))


def sources_of(folder):
    return {path: text_of(path) for path in files_below(folder, ".c")}


def rows_of(page):
    """First cell -> the others, of all tables whose rows begin with `WORD`."""
    rows = {}
    for line in text_of(page).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        match = re.fullmatch(r"\|? ?`([\w-]+)`", cells[0])
        if line.startswith("|") and match:
            rows[match.group(1)] = cells[1:]
    return rows


def prose_of(page):
    """Lines outside of blocks of code."""
    inside = False
    for line in text_of(page).splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside and not line.startswith("    "):
            yield line


def anchors_of(page):
    """The names that a heading has as the target of a link."""
    titles = (re.match(r"#+ (.*)", line) for line in prose_of(page))
    return {re.sub(r"[^\w\- ]", "", title.group(1).lower()).replace(" ", "-")
            for title in titles if title}


def number_of(name, text):
    """The value that C text gives a constant, of few operators; None when it doesn't."""
    match = re.search(rf"\bdefault_\d+\(&options->{name}, ([^)]*)\)", text) or \
        re.search(rf"(?:#define {name} |\b{name} = |\.{name} = )([^,;}}\n]*)", text)
    if not match:
        return None
    value = re.sub(r"/\*.*?\*/", "", match.group(1))
    value = re.sub(r"UINT64_C\((\d+)\)", r"\1", value).replace("INT32_MAX", "(2**31-1)")
    names = {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30}
    for word in set(re.findall(r"[A-Z][A-Z_]+", value)) - set(names):
        names[word] = number_of(word, text)
    return eval(value, {"__builtins__": {}}, names)  # pylint: disable=eval-used


class Links(unittest.TestCase):
    def test_every_relative_link_leads_somewhere(self):
        count = 0
        for page in files_below(".", ".md"):
            for line in prose_of(page):
                for target in re.findall(r"\[[^]]*\]\(([^)\s]+)\)", line):
                    if re.match(r"[a-z]+:", target):
                        continue
                    count += 1
                    path, _, anchor = target.partition("#")
                    there = os.path.normpath(os.path.join(os.path.dirname(page), path))
                    there = there if path else page
                    self.assertTrue(os.path.exists(os.path.join(ROOT, there)), f"{page}: {target}")
                    if anchor:
                        self.assertIn(anchor, anchors_of(there), f"{page}: {target}")
        self.assertGreater(count, 20)

    def test_the_first_page_leads_to_every_page_for_users(self):
        readme = text_of("README.md")
        for folder in ("docs/concepts", "docs/operating", REFERENCE):
            for page in files_below(folder, ".md"):
                with self.subTest(page=page):
                    self.assertTrue(f"({page})" in readme)


class Fields(unittest.TestCase):
    def test_each_field_of_their_json_is_told(self):
        pages = text_of(f"{REFERENCE}/verbs.md") + text_of(f"{REFERENCE}/fsck.md")
        fields = set()
        for text in sources_of("src/cmd").values():
            for call in re.findall(r"json_pack\((.*?)\);", text, flags=re.S):
                words = re.findall(STRING, call)
                fields |= {word for word in words if re.fullmatch(r"[a-z][a-z0-9_]*", word)}
        fields -= {"up", "manager"}  # values
        self.assertGreater(len(fields), 20)
        for field in sorted(fields):
            with self.subTest(field=field):
                self.assertTrue(re.search(rf"`{field}`|[{{\[ ]{field}[,:}}]", pages))


class Lines(unittest.TestCase):
    def test_each_line_of_the_page_is_printed(self):
        """What errors.md quotes, but for its capitals, which stand for something, is printed."""
        sources = "".join([*sources_of("src").values(), text_of("src/base/err.def")])
        joined = re.sub(r'"\s*"', "", re.sub(r'"\s*PRI\w+\s*"', "u", sources))
        printed = "\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined))
        printed = re.sub(r"(?<=\w)%s", "s", printed)
        page = text_of(f"{REFERENCE}/errors.md").split("## What programs get")[0]
        missing = []
        count = 0
        for cell in re.findall(r"^\| (`.*?) \| ", page, flags=re.M):
            for quote in re.findall(r"`([^`]+)`", cell):
                holes = r"\.\.\.|: |\b[A-Z]+\b|/dev/fuse|\S*shoal[./]\S+|\d+|/"
                for part in re.split(holes, quote):
                    words = part.strip(" :;,()")
                    count += len(words) > 8
                    # The last is the C library's.
                    if len(words) > 8 and words not in printed and words != "Assertion":
                        missing.append(words)
        self.assertEqual(missing, [])
        self.assertGreater(count, 50)


class Configuration(unittest.TestCase):
    def setUp(self):
        self.text = text_of("src/node/config.c")
        self.rows = rows_of(f"{REFERENCE}/configuration.md")
        row = r"(?:SIZE|LIMIT)_ROW\(\s*(\w+), ([^,]+), ([^,]+), ([^,]+),\s+\""
        self.sizes = re.findall(row, self.text)

    def test_each_key_has_a_row_and_no_other(self):
        keys = [size[0] for size in self.sizes]
        keys += re.findall(r'strcmp\(name, "(\w+)"\)', self.text)
        self.assertGreater(len(keys), 10)
        self.assertEqual(sorted(keys), sorted(self.rows))

    def test_limits_and_defaults_are_those_of_the_code(self):
        def words_of(size):
            size = size.replace("CONFIG_DATA_BYTES_MAX", "64 TIB").replace("1024 * GIB", "1 TIB")
            size = re.sub("^4 \\* GIB", "4096 * MIB", size).replace(" * ", " ")
            size = re.sub(r"^([KMG]IB)", r"1 \1", size)
            return re.sub(r"([KMGT])IB", r"\1iB", size)

        for key, least, most, value in self.sizes:
            with self.subTest(key=key):
                self.assertEqual(words_of(least), self.rows[key][0])
                self.assertEqual(words_of(most), self.rows[key][1])
                if value != "0":
                    self.assertEqual(words_of(value), self.rows[key][2])


class Metrics(unittest.TestCase):
    def test_each_statistic_has_a_row_and_no_other(self):
        stats = text_of("src/cmd/control_stats.c")
        operations = re.findall(r"^OP\((\w+),", text_of("src/front/fuse/ops.def"), flags=re.M)
        messages = re.findall(r"\bM\(([a-z_]+), [A-Z_]+, \d+", text_of("src/wire/messages.def"))
        macro = r"\b[A-Z]+_COUNTER\(\"?([a-z_]+)\b(?!\) counter_add|, value\))"
        counters = re.findall(macro, stats)
        counters += re.findall(r"counter_add\(answer, (?:target|\"mount\"), \"(\w+)\"", stats)
        self.assertGreater(min(len(operations), len(messages), len(counters)), 30)
        self.assertEqual(sorted(set(operations + messages + counters)),
                         sorted(rows_of(f"{REFERENCE}/metrics.md")))

    def test_each_column_is_explained(self):
        calls = re.findall(r"json_pack\((.*?)\);", text_of("src/cmd/control_stats.c"), flags=re.S)
        fields = {word for call in calls for word in re.findall(STRING, call)
                  if re.fullmatch(r"[a-z][a-z0-9_]*", word)}
        self.assertGreater(len(fields), 8)
        for field in sorted(fields):
            with self.subTest(field=field):
                self.assertTrue(f"`{field}`" in text_of(f"{REFERENCE}/metrics.md"))


class Wire(unittest.TestCase):
    def test_each_message_has_a_row_with_what_it_is_and_no_other(self):
        wanted = {name: [number, *map(str.lower, words)] for name, number, *words in re.findall(
            r"\bM\((\w+), \w+, (\d+), (\w+), (\w+), (\w+), \w+\)",
            text_of("src/wire/messages.def"))}
        self.assertGreater(len(wanted), 50)
        page = text_of("docs/internals/wire.md").split("## Messages")[1]
        rows = {name: [number, *words] for name, number, *words in re.findall(
            r"^\| (\w+) \| (\d+) \| [^|]+ \| (\w+) \| (\w+) \| (\w+) \|$", page, flags=re.M)}
        self.assertEqual(wanted, rows)


class Errors(unittest.TestCase):
    def test_each_has_a_row_with_its_errno_and_text_and_no_other(self):
        wanted = {name: [f"`{errno}`", text] for name, errno, text in
                  re.findall(r"^ERR\((\w+), \d+, (\w+), \w+,\s+" + STRING + r"\)",
                             text_of("src/base/err.def"), flags=re.M)}
        self.assertEqual(len(wanted), text_of("src/base/err.def").count("\nERR("))
        self.assertEqual(wanted, {name: cells[:2] for name, cells in
                                  rows_of(f"{REFERENCE}/errors.md").items()})

    def test_each_call_that_is_refused_is_told(self):
        page = text_of(f"{REFERENCE}/errors.md") + text_of(f"{REFERENCE}/metrics.md")
        for name in re.findall(r"^OP\((\w+),.*fuse_op_unknown", text_of("src/front/fuse/ops.def"),
                               flags=re.M):
            with self.subTest(name=name):
                self.assertRegex(page, rf"`{name}` \| [^|]* \| answered with an error")


class Limits(unittest.TestCase):
    def test_each_constant_is_where_the_page_says_and_has_that_value(self):
        checked = 0
        for line in text_of(f"{REFERENCE}/limits.md").splitlines():
            match = re.match(r"\| [^|]+ \| ([^|]+) \| [^|]*?`(\w+)` in `([\w/.]+)`(, less 1)?",
                             line)
            if not match:
                continue
            value, name, path, less = match.groups()
            with self.subTest(name=name):
                self.assertIn(name, text_of(path))
                if value.isdigit() and "2 to the" not in line:
                    self.assertEqual(int(value), number_of(name, text_of(path)) - bool(less))
                    checked += 1
        self.assertGreater(checked, 15)


CALL = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\w+)')
TEST = re.compile(r"\w+/\S+\.\w+ \S+")


class LimitTests(unittest.TestCase):
    """test/house/limits.def, whose head says what its rows mean."""

    THROUGH = ("restart: ", "smaller: ")

    def setUp(self):
        self.page = {line.split(" | ")[0][2:]: line.split(" | ")
                     for line in text_of(f"{REFERENCE}/limits.md").splitlines()
                     if line.startswith("| ") and not line.startswith("| what |")}
        text = re.sub(r'"\n +"', "", text_of("test/house/limits.def"))
        self.calls = [(name, [word.strip('"') for word in CALL.findall(words)]) for name, words in
                      re.findall(r"^([A-Z_]+)\((.*?)\)$", text, flags=re.M | re.S)]

    def of(self, *names):
        """But what is said of a restart and of a smaller setting."""
        return [[word for word in words if not word.startswith(self.THROUGH)]
                for name, words in self.calls if name in names]

    def through(self, kind):
        """What a row says -> its tests, or why it has none."""
        rows = {}
        for name, words in self.calls:
            if name in ("ROW", "SEEN_IN", "NOT_BROUGHT_ABOUT"):
                rows[words[0]] = [word.removeprefix(kind) for word in words
                                  if word.startswith(kind)]
        return rows

    def test_each_row_has_its_test_or_says_why_it_has_none(self):
        told = [words[0] for words in self.of("ROW", "SEEN_IN", "NOT_BROUGHT_ABOUT")]
        self.assertGreater(len(told), 70)
        self.assertEqual(sorted(told), sorted(self.page))
        for words in self.of("ROW"):
            self.assertGreater(len(words), 1, words)
        for words in self.of("SEEN_IN"):
            self.assertGreater(len(words), 2, words)
        for words in self.of("NOT_BROUGHT_ABOUT"):
            self.assertEqual(len(words), 2, words)

    def test_each_row_is_seen_through_a_restart_and_with_less_or_says_why_not(self):
        settings = {what for _, what in self.of("SETTING")}
        # What such a test does in between, of those that go through a mount.
        does = {"restart: ": r"cluster\.(kill|stop|start)\b",
                "smaller: ": r"set_to\(|start_with\(|with_threads\(|prlimit|"
                             r"for key, value in least"}
        limits = text_of("test/e2e/limits.py")
        tests = 0
        for kind in self.THROUGH:
            for row, words in self.through(kind).items():
                with self.subTest(kind=kind, row=row):
                    named = [word for word in words if TEST.fullmatch(word)]
                    self.assertTrue(words)
                    if not named:
                        self.assertEqual(len(words), 1)
                        self.assertIn(" ", words[0])
                    else:
                        self.assertEqual(named, words)
                    if kind == "smaller: " and row in settings:
                        self.assertNotIn("a constant", words)
                    for test in named:
                        if test.startswith("e2e/limits.py "):
                            body = limits.split(f"\ndef {test.split()[1]}(")[1].split("\n\n\n")[0]
                            self.assertRegex(body, does[kind])
                    tests += len(named)
        self.assertGreater(tests, 50)

    def test_each_test_is_there(self):
        # Of C in a list of tests, too, with or without "test_".
        found = {".c": r"^static void {}\((?:.|\n)*(?:\b|_){short}\b[,)]",
                 ".def": r"^[A-Z_]+\(\w+,.*\b{}\)",
                 ".py": r"^def {}\(|^@?[a-z_]+\(\"{}\"|\(\"{}\", |^{} = \["}
        checked = 0
        for words in self.of("ROW", "SEEN_IN", "NOT_BROUGHT_ABOUT"):
            tests = [word for word in words[1:] if TEST.fullmatch(word)]
            self.assertEqual(len(tests), len(words) - (1 if words in self.of("ROW") else 2), words)
            for kind in self.THROUGH:
                tests += [word for word in self.through(kind)[words[0]] if TEST.fullmatch(word)]
            for test in tests:
                path, name = test.split(" ")
                with self.subTest(test=test):
                    shape = found[os.path.splitext(path)[1]].replace("{}", re.escape(name))
                    shape = shape.replace("{short}", name.removeprefix("test_"))
                    text = text_of(f"test/{path}")
                    self.assertTrue(re.search(shape, text, flags=re.M))
                    folder = os.path.dirname(path)
                    if path.startswith(("unit/test_", "lmdb/")):
                        unit = os.path.basename(path)[len("test_"):-len(".c")]
                        self.assertRegex(text_of(f"test/{folder}/meson.build"), rf"\b{unit}\b")
                    elif path.startswith("e2e/") and path.endswith(".py"):
                        self.assertIn(f"test/{path}", text_of("dev"))
                    checked += 1
        self.assertGreater(checked, 90)

    def test_each_setting_is_in_a_row_or_says_why_it_is_no_limit(self):
        keys = re.findall(r"(?:SIZE|LIMIT)_ROW\(\s*(\w+),", text_of("src/node/config.c"))
        keys = {key for key in keys if key != "field"} | {"mdts", "osts"}
        told = dict(self.of("SETTING"))
        self.assertEqual(sorted(told), sorted(keys))
        for key, what in told.items():
            with self.subTest(key=key):
                # Else it says why, in more words than one.
                self.assertTrue(what in self.page or what.count(" ") > 3)

    def test_each_constant_is_in_a_row_or_says_why_it_is_no_limit(self):
        constants = set()
        for path in files_below("src", ".h"):
            text = re.sub(r"/\*.*?\*/", "", text_of(path), flags=re.S)
            constants |= set(re.findall(r"\b([A-Z][A-Z0-9_]*_MAX) = ", text))
            constants |= set(re.findall(r"#define ([A-Z][A-Z0-9_]*_MAX) ", text))
        self.assertGreater(len(constants), 60)
        rows = {name for name in constants
                if any(f"`{name}`" in " ".join(cells) for cells in self.page.values())}
        told = [words[0] for words in self.of("NO_LIMIT")]
        self.assertEqual(sorted(told), sorted(constants - rows))
        for words in self.of("NO_LIMIT"):
            self.assertEqual(len(words), 2, words)


if __name__ == "__main__":
    unittest.main()
