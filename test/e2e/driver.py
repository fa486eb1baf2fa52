"""What drivers of tests with clusters of their own have in common: which tests are run, one after
the other, and the line that counts."""

import subprocess
import sys
import time

import cluster as clusters
from cluster import Failed


class Skipped(Exception):
    """What this machine is missing for one test."""


def drive(document, tests, play, words=1, lacks=clusters.missing, name=lambda test: test.__name__):
    """The exit status of a driver. document: its docstring, with a line that says how it is used,
    in which `words` arguments come before the names of tests. play(test) runs one. lacks() says
    what this machine is missing for them, "" or None: nothing. name(test) is what is printed; its
    first word may be given to choose it."""
    if len(sys.argv) <= words:
        print(next(line for line in document.split("\n") if line.startswith("Usage:")),
              file=sys.stderr)
        return 2
    missing = lacks()
    if missing:
        print(f"skipped, for want of {missing}\n0 passed, 0 failed, {len(tests)} skipped")
        return 0
    chosen = sys.argv[words + 1:]
    ran = failed = skipped = 0
    for test in tests:
        if chosen and name(test).split()[0] not in chosen:
            continue
        ran += 1
        start = time.monotonic()
        try:
            play(test)
            print(f"{name(test)}: ok, {time.monotonic() - start:.0f} s", flush=True)
        except Skipped as error:
            skipped += 1
            print(f"{name(test)}: skipped, for want of {error}", flush=True)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            failed += 1
            print(f"{name(test)}: FAILED: {error}", flush=True)
    end = f", {skipped} skipped" if skipped else ""
    print(f"{ran - failed - skipped} passed, {failed} failed{end}")
    return 1 if failed else 0
