"""The units of systemd: what they call exists, and takes the words that they give it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
UNITS = os.path.join(ROOT, "share", "systemd")
NAMES = ("shoal@.service", "shoal-mount@.service")
# What stands for %f and the variables; FROM is no cluster, so the last word of a refusal is its.
VALUES = {"%f": "/nowhere/at/all", "${FROM}": "127.0.0.1:9", "${OPTIONS}": "ro,patience=1"}


def unit(name, programs):
    with open(os.path.join(UNITS, name + ".in"), encoding="ascii") as file:
        return file.read().replace("@bindir@", programs)


def commands(text):
    return re.findall(r"^Exec(?:Start|Stop)=(.*)$", text, re.MULTILINE)


class Units(unittest.TestCase):
    def test_systemd_reads_them(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        with tempfile.TemporaryDirectory() as top:
            for program in ("shoal", "shoald"):
                os.symlink("/bin/true", os.path.join(top, program))
            for name in NAMES:
                path = os.path.join(top, name.replace("@", "@nowhere"))
                with open(path, "w", encoding="ascii") as file:
                    file.write(unit(name, top))
                result = subprocess.run(["systemd-analyze", "verify", "--man=no", path], text=True,
                                        capture_output=True, check=False)
                lines = [line for line in result.stderr.splitlines() if top in line or name in line]
                self.assertEqual((result.returncode, lines), (0, []), result.stderr)

    def test_programs_take_their_words(self):
        """Refused for want of what they name (1), and not for how it is said (2)."""
        programs = os.path.join(ROOT, "build", "bin")
        if not os.path.exists(os.path.join(programs, "shoal")):
            self.skipTest("the programs are not built")
        for name in NAMES:
            found = commands(unit(name, programs))
            self.assertGreaterEqual(len(found), 1, name)
            for command in found:
                words = command.split()
                for number, word in enumerate(words):
                    words[number] = VALUES.get(word, word)
                result = subprocess.run(words, text=True, capture_output=True, timeout=60,
                                        check=False)
                self.assertEqual(result.returncode, 1, f"{words}: {result.stderr}")
                words.append("--nonsense")
                result = subprocess.run(words, text=True, capture_output=True, timeout=60,
                                        check=False)
                self.assertEqual(result.returncode, 2, f"{words}: {result.stderr}")


if __name__ == "__main__":
    sys.exit(unittest.main())
