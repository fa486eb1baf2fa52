"""The rings of a daemon in shared memory, looked at from outside: read-only, while it stands still.

The layout is that of src/kv/log_format.h. states_of(ring) names what is rare in it, so that a kill
can be aimed at it:

    near the end    the next record does not fit before the ring's end
    just wrapped    the newest record is the first of its lap
    filler          behind the newest record is a filler, of an earlier lap or just written, and
                    no record of this lap behind it
    empty           nothing that the disk log lacks: a start walks nothing
    behind the walk records reach further than the header says: a seal is under way
    nearly full     more than seven tenths in use
    torn            a start, or what the newest record was, is half written
"""

import glob
import mmap
import os
import struct

PAGE = 4096
MAGIC = b"SHOALRNG"
RECORD = 0x43455253
FILLER = 0x4c494653
ALIGN = 8
RECORD_HEADER = struct.Struct("<IIQQQQII")
HEADER = struct.Struct("<8sII16s16s16sQQ")
START = struct.Struct("<QQQQII")
NEWEST = struct.Struct("<QQII")
RECORD_BYTES_MAX = 512 << 10
LITTLE = 4096
STATES = ("near the end", "just wrapped", "filler", "empty", "behind the walk", "nearly full",
          "torn")


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def crc32c(data, seed=0):
    crc = seed ^ 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


class Ring:
    """One region, mapped."""

    def __init__(self, path):
        self.path = path
        self.name = path.rsplit("-", 1)[1]
        with open(path, "rb") as file:
            self.map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        magic, _, _, _, _, _, self.size, _ = HEADER.unpack_from(self.map, 0)
        self.usable = magic == MAGIC and self.size > 0 and PAGE + self.size <= len(self.map)

    def close(self):
        self.map.close()

    def parts(self, layout, at, seed):
        """The whole ones of a pair whose check word comes behind what it covers, and whether one is
        half written; one of zeros never was."""
        whole = []
        torn = False
        for i in range(2):
            data = self.map[at + i * layout.size:at + (i + 1) * layout.size]
            covered = layout.size - 4 * (2 if layout is NEWEST else 1)
            check = struct.unpack_from("<I", data, covered)[0]
            if crc32c(data[:covered], seed) == check:
                whole.append(layout.unpack(data))
            else:
                torn = torn or any(data)
        return whole, torn

    def marks(self):
        """The newer start, the newest sealed record's position and end, as far as they are whole,
        and whether one is half written."""
        starts, start_torn = self.parts(START, HEADER.size, 0)
        newest, newest_torn = self.parts(NEWEST, HEADER.size + 2 * START.size, RECORD)
        return max(starts, default=None), max(newest, default=None), start_torn or newest_torn

    def word(self, offset):
        place = offset % self.size
        return struct.unpack_from("<I", self.map, PAGE + place)[0]

    def record_end(self, offset, position):
        """Where the record at this running offset ends, if it is the one of this position."""
        place = offset % self.size
        if place + RECORD_HEADER.size > self.size:
            return None
        magic, length, found, *_ = RECORD_HEADER.unpack_from(self.map, PAGE + place)
        if magic != RECORD or found != position or place + length > self.size:
            return None
        return offset + (length + ALIGN - 1) // ALIGN * ALIGN

    def over_filler(self, offset):
        """The offset behind the filler that is there, or None."""
        if self.word(offset) != FILLER:
            return None
        return offset + self.size - offset % self.size

    def walk(self, offset, position):
        """Position and end of the last record in a row from `position` on, by positions alone."""
        while True:
            end = self.record_end(offset, position)
            skipped = self.over_filler(offset)
            if end is None and skipped is not None:
                end = self.record_end(skipped, position)
            if end is None:
                return position - 1, offset
            offset = end
            position += 1


def states_of(ring):
    """What is rare in it just now, a set of STATES."""
    start, newest, torn = ring.marks()
    if start is None:
        return {"torn"}
    _, offset, position, _, _, _ = start
    known, head = position - 1, offset
    if newest and newest[0] >= position:
        known, head = newest[:2]
    last, end = ring.walk(head, known + 1)
    place = end % ring.size
    filled = ring.over_filler(end)
    longest = min(ring.size // 4, RECORD_BYTES_MAX)
    shown = {
        "near the end": place + longest > ring.size,
        "just wrapped": 0 < place < LITTLE,
        "filler": filled is not None,
        "empty": end == offset,
        "behind the walk": last > known,
        "nearly full": (end - offset) * 10 > ring.size * 7,
        "torn": torn,
    }
    return {name for name in STATES if shown[name]}


class Rings:
    """Those of a cluster that runs."""

    def __init__(self, identity):
        self.rings = []
        for path in sorted(glob.glob(f"/dev/shm/shoal-{identity}-*")):
            if os.path.getsize(path) > PAGE:
                self.rings.append(Ring(path))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for ring in self.rings:
            ring.close()

    def named(self, names):
        return [ring for ring in self.rings if ring.usable and ring.name in names]
