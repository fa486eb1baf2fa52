#!/usr/bin/python3
"""Shows that a program of this folder still runs: it gets an empty folder, and must say something.

Usage: runs.py PROGRAM [WORD...], which come behind the folder
"""

import json
import subprocess
import sys
import tempfile


def main():
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        result = subprocess.run([sys.argv[1], folder, *sys.argv[2:]], stdin=subprocess.DEVNULL,
                                capture_output=True, text=True, timeout=100, check=False)
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    if result.returncode != 0 or not rows:
        print(f"exit status {result.returncode}, {len(rows)} rows; {result.stderr.strip()}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
