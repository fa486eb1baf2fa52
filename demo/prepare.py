#!/usr/bin/python3
"""Turns Fashion-MNIST into one file an image, and checks such a folder against its manifest.

Usage: prepare.py write ROOT MANIFEST [--part N] [--processes N]
       prepare.py verify ROOT MANIFEST [--processes N]

The idx files of Debian's dataset-fashion-mnist hold 60,000 images for training and 10,000 for the
test, 28x28 grey. Each becomes a PPM of 128x128 RGB (a pixel becomes 4x4, with a margin of 8), a
header and 48 KiB, at ROOT/{train,test}/LABEL-NAME/NUMBER.ppm. --part N takes one image in N.

MANIFEST has a line "SHA256  PATH" for each file, as sha256sum prints and checks them; the sums are
of what was to be written, never of what was read back. Both commands print one line of JSON.
"""

import argparse
import gzip
import hashlib
import json
import multiprocessing
import os
import struct
import sys
import time

SOURCE = "/usr/share/datasets/fashion-mnist"
NAMES = ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag",
         "ankle-boot")
SETS = (("train", "train"), ("test", "t10k"))

GREY_SIDE = 28
SIDE = 128
SCALE = 4
MARGIN = (SIDE - GREY_SIDE * SCALE) // 2
HEADER = b"P6\n%d %d\n255\n" % (SIDE, SIDE)
FILE_BYTES = len(HEADER) + SIDE * SIDE * 3

# One grey pixel, as wide as it becomes.
WIDE = [bytes([grey]) * (SCALE * 3) for grey in range(256)]
MARGIN_ROWS = bytes(MARGIN * SIDE * 3)
MARGIN_LEFT = bytes(MARGIN * 3)

# The writers inherit what is loaded here.
FORK = multiprocessing.get_context("fork")
loaded = {}


class BadInput(Exception):
    """One line that says what is wrong with what."""


def read_idx(path, dimensions):
    """The sizes and the bytes of an idx file of bytes."""
    try:
        with gzip.open(path) as file:
            data = file.read()
    except (OSError, EOFError) as error:
        raise BadInput(f"{path} cannot be read: {error}; it is in the package "
                       "dataset-fashion-mnist") from None
    head_bytes = 4 + 4 * dimensions
    if len(data) < head_bytes or data[:4] != bytes([0, 0, 8, dimensions]):
        raise BadInput(f"{path} is not an idx file of bytes in {dimensions} dimensions")
    sizes = struct.unpack(f">{dimensions}I", data[4:head_bytes])
    expected = 1
    for size in sizes:
        expected *= size
    if len(data) - head_bytes != expected:
        raise BadInput(f"{path} has {len(data) - head_bytes} bytes, its head says {expected}")
    return sizes, memoryview(data)[head_bytes:]


def read_set(source, name):
    """The images and labels of one set, as memory."""
    sizes, images = read_idx(os.path.join(source, name + "-images-idx3-ubyte.gz"), 3)
    (label_count,), labels = read_idx(os.path.join(source, name + "-labels-idx1-ubyte.gz"), 1)
    if sizes[1:] != (GREY_SIDE, GREY_SIDE) or sizes[0] != label_count:
        raise BadInput(f"{name}: {sizes} images do not fit {label_count} labels")
    if any(label >= len(NAMES) for label in labels):
        raise BadInput(f"{name}: a label is above {len(NAMES) - 1}")
    return images, labels


def image_file(grey):
    """The PPM of one image of 28x28 bytes."""
    parts = [HEADER, MARGIN_ROWS]
    for at in range(0, GREY_SIDE * GREY_SIDE, GREY_SIDE):
        wide = b"".join([WIDE[value] for value in grey[at:at + GREY_SIDE]])
        parts.append((MARGIN_LEFT + wide + MARGIN_LEFT) * SCALE)
    parts.append(MARGIN_ROWS)
    return b"".join(parts)


def class_folder(label):
    return f"{label}-{NAMES[label]}"


def write_slice(work):
    """Writes the images of these numbers; answers the manifest's lines."""
    root, folder, numbers = work
    images, labels = loaded[folder]
    size = GREY_SIDE * GREY_SIDE
    lines = []
    for number in numbers:
        data = image_file(images[number * size:(number + 1) * size])
        path = f"{folder}/{class_folder(labels[number])}/{number:05d}.ppm"
        with open(os.path.join(root, path), "xb", buffering=0) as file:
            written = file.write(data)
        if written != len(data):
            raise OSError(f"{path}: {written} of {len(data)} bytes written")
        lines.append(f"{hashlib.sha256(data).hexdigest()}  {path}\n")
    return lines


def sync(root):
    """Makes all under root durable; on a FUSE mount fsync of its root does that."""
    folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    os.sync()


def write(root, manifest, part, processes, source=SOURCE):
    work = []
    for folder, name in SETS:
        loaded[folder] = read_set(source, name)
        for label in range(len(NAMES)):
            os.makedirs(os.path.join(root, folder, class_folder(label)), exist_ok=True)
        numbers = range(len(loaded[folder][1]) // part)
        work += [(root, folder, numbers[first::processes]) for first in range(processes)]
    started_s = time.monotonic()
    with FORK.Pool(processes) as pool:
        lines = [line for lines in pool.map(write_slice, work, chunksize=1) for line in lines]
    written_s = time.monotonic() - started_s
    sync(root)
    with open(manifest, "w", encoding="ascii") as file:
        file.writelines(sorted(lines, key=lambda line: line[66:]))
    return {"files": len(lines), "bytes": len(lines) * FILE_BYTES, "written_s": written_s,
            "durable_s": time.monotonic() - started_s}


def read_manifest(path):
    sums = {}
    with open(path, encoding="ascii") as file:
        for line in file:
            digest, name = line.rstrip("\n").split("  ", 1)
            sums[name] = digest
    return sums


def verify_slice(work):
    """What is wrong with these files."""
    root, rows = work
    wrong = []
    for name, digest in rows:
        try:
            with open(os.path.join(root, name), "rb", buffering=0) as file:
                data = file.read()
        except OSError as error:
            wrong.append(f"{name}: {error.strerror}")
            continue
        if hashlib.sha256(data).hexdigest() != digest:
            wrong.append(f"{name}: {len(data)} bytes, not those that were written")
    return wrong


def verify(root, manifest, processes):
    sums = read_manifest(manifest)
    started_s = time.monotonic()
    found = {os.path.relpath(os.path.join(folder, name), root)
             for folder, _, names in os.walk(root) for name in names}
    wrong = [f"{name}: was never written" for name in sorted(found - sums.keys())]
    rows = sorted(sums.items())
    with FORK.Pool(processes) as pool:
        work = [(root, rows[first::processes]) for first in range(processes)]
        for more in pool.imap_unordered(verify_slice, work):
            wrong += more
    return {"files": len(sums), "wrong": len(wrong), "examples": wrong[:5],
            "seconds": time.monotonic() - started_s}


def main():
    parser = argparse.ArgumentParser(description="Fashion-MNIST as one file an image.")
    parser.add_argument("command", choices=("write", "verify"))
    parser.add_argument("root", metavar="ROOT")
    parser.add_argument("manifest", metavar="MANIFEST")
    parser.add_argument("--part", type=int, default=1, help="take one image in N")
    parser.add_argument("--processes", type=int, default=max(2, min(8, os.cpu_count())))
    words = parser.parse_args()
    if words.part < 1 or words.processes < 1:
        parser.error("--part and --processes take 1 or more")
    try:
        if words.command == "write":
            result = write(words.root, words.manifest, words.part, words.processes)
        else:
            result = verify(words.root, words.manifest, words.processes)
    except (BadInput, OSError) as error:
        print(f"prepare.py: {error}", file=sys.stderr)
        return 1
    print(json.dumps(result), flush=True)
    return 1 if result.get("wrong") else 0


if __name__ == "__main__":
    sys.exit(main())
