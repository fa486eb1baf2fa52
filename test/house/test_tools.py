"""Shows that tools/layering and tools/tidy refuse what they must: each row builds one small bad
tree in a temporary folder and names the line that has to be printed about it."""

import os
import subprocess
import sys
import tempfile
import unittest

TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")

GOOD = {
    "src/base/README.md": "# base\n",
    "src/base/noun.h": "/* A noun. */\n#pragma once\n#include <stdint.h>\n\n"
                       "uint32_t noun_size(uint32_t count);\n",
    "src/base/noun.c": '#include "base/noun.h"\n\n/* printf("TO" "DO") is only words here. */\n'
                       "uint32_t noun_size(uint32_t count) {\n    return count;\n}\n",
}
with open(os.path.join(TOOLS, "..", ".clang-format"), encoding="utf-8") as style:
    GOOD[".clang-format"] = style.read()


def c_file(include):
    return f"#include {include}\n"


def function(line_count):
    return "void noun_work(void) {\n" + "    ;\n" * (line_count - 2) + "}\n"


# path, content, what must be printed
LAYERING = [
    ("src/base/bad.c", c_file('"env/clock.h"'), 'bad.c:1: upward include of "env/clock.h"'),
    ("src/env/bad.h", c_file('"layout/map.h"'), 'bad.h:1: sideways include of "layout/map.h"'),
    ("src/meta/bad.c", c_file('"store/chunk.h"'), 'bad.c:1: sideways include of "store/chunk.h"'),
    ("src/front/bad.c", c_file('"client/file.h"'), "front may include base, env only"),
    ("src/front/bad.c", c_file('"cmd/verb.h"'), "upward include"),
    ("src/host/bad.c", c_file('"layout/map.h"'), "host may include base, env only"),
    ("src/store/bad.c", c_file('"host/process.h"'), "host is for cmd, node, not store"),
    ("src/node/bad.c", c_file('"front/fuse/fuse.h"'), 'sideways include of "front/fuse/fuse.h"'),
    ("src/check/bad.c", c_file('"store/chunk.h"'), "check may include store/*_format.h only"),
    ("src/cmd/bad.c", c_file('"cmd/bench/rows.h"'), "only cmd/ may include cmd/bench/bench.h"),
    ("src/cmd/plan/bad.c", c_file('"cmd/bench/bench.h"'), "only cmd/ may include cmd/bench/"),
    ("src/cmd/plan/bad.c", c_file('"cmd/find.h"'), "a room may include cmd/verb.h only of cmd"),
    ("src/planner/bad.c", c_file('"kv/kv.h"'), "planner may include base, layout only"),
    ("src/planner/bad.c", c_file("<shoal/shoal.h>"), "<shoal/shoal.h> is for"),
    ("src/base/bad.c", c_file('"noun.h"'), 'not written from src/ as "folder/file.h"'),
    ("src/base/bad.c", c_file('"base/../env/clock.h"'), "climbs out of its folder"),
    ("src/base/bad.c", "#  include HEADER\n", "through a macro"),
    ("src/common/bad.c", "int x;\n", "folder common has no level"),
    ("src/base/bad.c", c_file("<errno.h>"), "header <errno.h> outside env/ and host/"),
    ("src/meta/bad.c", c_file("<unistd.h>"), "system header <unistd.h> outside"),
    ("src/store/bad.c", c_file("<sys/socket.h>"), "system header <sys/socket.h> outside"),
    ("src/client/bad.c", c_file("<pthread.h>"), "system header <pthread.h> outside"),
    ("src/kv/kv_mem.c", c_file("<lmdb.h>"), "system header <lmdb.h> outside"),
    ("src/front/fuse/node.c", c_file("<fcntl.h>"), "system header <fcntl.h> outside"),
    ("src/store/bad.c", c_file("<openssl/sha.h>"), "system header <openssl/sha.h> outside"),
    ("src/keys/bad.c", c_file("<sys/random.h>"), "system header <sys/random.h> outside"),
    ("src/keys/bad.c", c_file('"env/clock.h"'), "keys may include base only"),
    ("src/cmd/bad.c", c_file("<sys/mman.h>"), "system header <sys/mman.h> outside"),
    ("include/shoal/shoal.h", c_file("<time.h>"), "the public interface includes <std*.h> only"),
]

LAYERING_ALLOWED = [
    ("src/env/good.c", c_file("<sys/epoll.h>")),
    ("src/host/good.c", c_file("<sys/socket.h>")),
    ("src/cmd/good.c", c_file('"host/process.h"')),
    ("src/cmd/good.c", c_file('"cmd/bench/bench.h"')),
    ("src/cmd/bench/good.c", c_file('"cmd/verb.h"')),
    ("src/check/good.c", c_file('"store/store_format.h"')),
    ("src/kv/kv_lmdb.c", c_file("<lmdb.h>")),
    ("src/keys/tls.c", c_file("<openssl/ssl.h>")),
    ("src/front/fuse/channel_dev.c", c_file("<sys/uio.h>")),
    ("src/front/fuse/reply.c", c_file("<errno.h>")),
    ("src/front/fuse/reply.c", c_file('"front/fuse/channel.h"')),
    ("src/front/good.c", c_file("<shoal/shoal.h>")),
    ("src/rpc/good.c", c_file('"wire/frame.h"')),
]

TIDY = [
    ("src/base/bad.c", "int a;\n" * 1001, "bad.c:1: 1001 lines, 1000 allowed"),
    ("src/base/bad.h", "#pragma once\n" + "int a;\n" * 150, "bad.h:1: 151 lines, 150 allowed"),
    ("src/base/bad.h", "int a;\n", "bad.h:1: no #pragma once"),
    ("src/base/bad.h", "#pragma once\nint f(uint64_t x);\n", "bad.h:1: does not compile alone"),
    ("src/base/bad.c", "int a; /* " + "a" * 100 + " */\n", "bad.c:1: 113 columns, 100 allowed"),
    ("src/base/bad.c", "int f(void) {\n\treturn 0;\n}\n", "bad.c:2: tab"),
    ("src/base/bad.c", "int a; \n", "bad.c:1: trailing space"),
    ("README.md", "one \n", "README.md:1: trailing space"),
    ("src/base/bad.c", "int a;", "bad.c:1: no line break at the end"),
    ("src/base/bad.c", "int a;\n\n", "bad.c:2: empty line at the end"),
    ("src/base/bad.c", "/* TO" "DO: more */\n", "bad.c:1: unfinished work: TO" "DO"),
    ("README.md", "FIX" "ME\n", "README.md:1: unfinished work: FIX" "ME"),
    ("src/base/bad.c", function(71), "bad.c:1: function of 71 lines, 70 allowed"),
    ("src/base/bad.c", "int f(int a, int b, int c, int d, int e, int g) {\n    return 0;\n}\n",
     "bad.c:1: 6 parameters, 5 allowed"),
    ("src/base/bad.c", "void f(char *a, char *b) {\n    strcpy(a, b);\n}\n",
     "bad.c:2: banned function strcpy"),
    ("src/env/bad.c", "void f(void) {\n    usleep(1);\n}\n", "bad.c:2: banned function usleep"),
    ("test/unit/bad.c", "int f(void) {\n    return rand();\n}\n", "banned function rand"),
    ("src/meta/bad.c", 'void f(void) {\n    printf("x");\n}\n',
     "bad.c:2: banned function printf, use env/"),
    ("src/cmd/bad.c", 'void *f(void) {\n    return fopen("x", "w");\n}\n',
     "bad.c:2: banned function fopen, use env/"),
    ("src/meta/bad.c", "long f(void) {\n    return time(0);\n}\n", "banned function time"),
    ("src/base/bad.c", "int  a;\n", "bad.c:1: not as clang-format lays it out"),
    ("src/meta/good.c", "int a;\n", "src/meta:0: no README.md"),
    ("src/base/README.md", "line\n" * 61, "README.md:1: 61 lines, 60 allowed"),
    ("include/shoal/bad.h", "#pragma once\n// Not C90, but C99.\nint f(void) __asm(1);\n",
     "does not compile alone"),
]

TIDY_ALLOWED = [
    ("src/base/good.c", function(70)),
    ("src/base/good.c", "int f(int a, void (*done)(int x, int y, int z), int c, int d, int e) {\n"
                        "    return 0;\n}\n"),
    ("src/base/good.c", "static const int table[] = {\n" + "    100, /* One. */\n" * 90 + "};\n"),
    ("src/base/good.c", "int f(struct clock *c) {\n    return c->time(c);\n}\n"),
    ("test/unit/good.c", '#include <stdio.h>\n\nvoid f(void) {\n    printf("x");\n}\n'),
]


class Tools(unittest.TestCase):
    def run_tool(self, tool, path=None, content=None):
        with tempfile.TemporaryDirectory() as root:
            files = dict(GOOD)
            if path:
                files[path] = content
            for name, text in files.items():
                place = os.path.join(root, name)
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "w", encoding="utf-8") as file:
                    file.write(text)
            result = subprocess.run([sys.executable, os.path.join(TOOLS, tool), root], text=True,
                                    capture_output=True, check=False)
            return result.returncode, result.stdout + result.stderr

    def refused(self, tool, rows):
        for path, content, message in rows:
            with self.subTest(path=path, message=message):
                status, output = self.run_tool(tool, path, content)
                self.assertIn(message, output)
                self.assertEqual(status, 1, output)

    def allowed(self, tool, rows):
        for path, content in rows:
            with self.subTest(path=path, content=content[:60]):
                status, output = self.run_tool(tool, path, content)
                self.assertEqual(status, 0, output)

    def test_a_good_tree_passes(self):
        for tool in ("layering", "tidy"):
            status, output = self.run_tool(tool)
            self.assertEqual(status, 0, output)
            self.assertIn("0 failures", output)

    def test_layering_refuses(self):
        self.refused("layering", LAYERING)

    def test_layering_allows(self):
        self.allowed("layering", LAYERING_ALLOWED)

    def test_tidy_refuses(self):
        self.refused("tidy", TIDY)

    def test_tidy_allows(self):
        self.allowed("tidy", TIDY_ALLOWED)

    def test_an_empty_tree_is_refused(self):
        with tempfile.TemporaryDirectory() as root:
            for tool in ("layering", "tidy"):
                result = subprocess.run([sys.executable, os.path.join(TOOLS, tool), root],
                                        capture_output=True, check=False)
                self.assertEqual(result.returncode, 1)


unittest.main()
