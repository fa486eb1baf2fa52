"""The data files that are shipped, as formulas read them: data('section.key') in base units."""

import configparser
import functools
import glob
import os
import re

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "share", "shoal")
UNITS = {
    "": 1, "%": 0.01, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
    "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
    "KiB": 2 ** 10, "MiB": 2 ** 20, "GiB": 2 ** 30, "TiB": 2 ** 40, "PiB": 2 ** 50,
    "Mb": 125e3, "Gb": 125e6, "Tb": 125e9,
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600, "d": 86400,
    "week": 604800, "month": 2628000, "y": 31536000, "year": 31536000, "m": 1, "km": 1e3,
}


@functools.cache
def rows():
    reader = configparser.ConfigParser(delimiters=("=",), inline_comment_prefixes=(";",),
                                       interpolation=None)
    reader.optionxform = str
    reader.read(sorted(glob.glob(os.path.join(FOLDER, "*.ini"))), encoding="utf-8")
    return {f"{section}.{key}": text for section in reader for key, text in reader[section].items()}


def data(path):
    """ValueError when there is no such row, or it is no quantity."""
    match = re.fullmatch(r"\$?([0-9.]+(?:[eE][-+]?[0-9]+)?) *([^/]*)((?:[/-][A-Za-z]+)*)",
                         rows().get(path, ""))
    if not match or match[2].strip() not in UNITS:
        raise ValueError(f"no quantity {path}")
    value = float(match[1]) * UNITS[match[2].strip()]
    for unit in re.findall(r"[A-Za-z]+", match[3]):
        value /= UNITS[unit]
    return value
