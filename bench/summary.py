"""The beginning of docs/benchmarks.md: what a person who chooses a file system wants to know, one
line each, and a picture. Both are made of rows (figures.py); what was not measured is left out."""

from html import escape

MEMORY = "in memory, as it comes: "
THROUGH = "libfuse's passthrough_ll"
BARE = "bare FUSE"
BEST = "best of the others"

# A line: its words, with {} for each of the rows that follow, in the order of their names. A row is
# told with its unit, and with what it is beside its limit where its third word is given.
LINES = (
    ("From nothing to a mounted file system: {}; behind `kill -9` under load: {}.",
     ("start to mounted, empty", None, None), ("start to mounted after kill -9", None, None)),
    ("One program, everything on one machine, stores in memory, idle CPUs that halt as virtual "
     "machines come: it creates {}, and opens and closes {}.",
     (MEMORY + "create, 1 directory, 1 thread", THROUGH, "pass-through"),
     (MEMORY + "open + close, 1 directory, 1 thread", THROUGH, "pass-through")),
    ("It looks at {} whose names the kernel has forgotten, and removes {}.",
     (MEMORY + "stat, cold, 1 directory, 1 thread", THROUGH, "pass-through"),
     (MEMORY + "unlink, 1 directory, 1 thread", THROUGH, "pass-through")),
    ("Samples of 50 KiB: one program reads {} cold, eight read {}; eight write {}.",
     (MEMORY + "50 KiB files read cold, 1 thread", THROUGH, "pass-through"),
     (MEMORY + "50 KiB files read cold, 8 threads", THROUGH, "pass-through"),
     (MEMORY + "50 KiB files written, 8 threads", THROUGH, "pass-through")),
    ("4 KiB at random with O_DIRECT: {} read one at a time, {} 32 deep.",
     (MEMORY + "4 KiB O_DIRECT reads, 1 deep", THROUGH, "pass-through"),
     (MEMORY + "4 KiB O_DIRECT reads, 32 deep", THROUGH, "pass-through")),
    ("Eight programs in 100 directories: {} created, {} opened.",
     (MEMORY + "create, 100 directories, 8 threads", THROUGH, "pass-through"),
     (MEMORY + "open + close, 100 directories, 8 threads", THROUGH, "pass-through")),
    ("Streams of 1 MiB on the disk below: {} written, {} read by four.",
     ("mount write, 4 streams", None, None), ("mount read, 4 streams", None, None)),
    ("Servers in processes of their own, by TCP: {} created by one program, {} by eight in 100 "
     "directories.",
     ("peers' set-up: create, 1 threads, 1 directories", BEST, "the best of MooseFS, GlusterFS and "
      "CephFS"),
     ("peers' set-up: create, 8 threads, 100 directories", BEST, "the best of them")),
    ("There, samples of 50 KiB read cold by eight: {}; written: {}.",
     ("peers' set-up: 50 KiB files read cold, 8 threads", BEST, "the best of them"),
     ("peers' set-up: 50 KiB files written, 8 threads", BEST, "the best of them")),
    ("A durable save (write, fsync, rename) of a small file takes {}; a million files are listed "
     "with their attributes at {}.",
     ("mount write, fsync, rename of 4 KiB", None, None),
     ("mount ls -l of 1000000 files, cold", None, None)),
)

BARS = (("create", "create, 1 directory"), ("stat, cold", "stat, cold, 1 directory"),
        ("open + close", "open + close, 1 directory"), ("unlink", "unlink, 1 directory"),
        ("50 KiB files read", "50 KiB files read cold"),
        ("50 KiB files written", "50 KiB files written"))
THREADS = (("1 thread", "#4878a8"), ("8 threads", "#a8c4e0"))
TIMES = "of libfuse's pass-through, which is 1"
LEFT, WIDTH, BAR, GAP, TOP = 170, 460, 16, 12, 52


def number(value):
    """To three digits, with commas."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def find(rows, name, limit_is):
    return next((row for row in rows if row["name"] == name and
                 (limit_is is None or row["limit_is"].startswith(limit_is))), None)


def told(row, beside):
    unit = {"ops/s": " files a second", "entries/s": " entries a second"}.get(
        row["unit"], " " + row["unit"])
    if "O_DIRECT" in row["name"]:
        unit = " a second"
    text = f"**{number(row['value'])}**{unit}"
    return f"{text} ({row['ratio']:.2f} times {beside})" if beside else text


def lines(rows):
    """A list item for each line whose rows are all there."""
    made = []
    for words, *wanted in LINES:
        found = [(find(rows, name, limit_is), beside) for name, limit_is, beside in wanted]
        if all(row for row, _ in found):
            made.append("- " + words.format(*(told(row, beside) for row, beside in found)))
    return made


def bar(y, row, colour, most):
    long = row["ratio"] / most * WIDTH
    return [f'<rect x="{LEFT}" y="{y}" width="{long:.1f}" height="{BAR}" fill="{colour}"/>',
            f'<text x="{LEFT + long + 6:.1f}" y="{y + BAR - 4}">{row["ratio"]:.2f}: '
            f'{number(row["value"])}/s</text>']


def chart(rows):
    """An SVG picture of how many times a pass-through's rate programs get; None: no rows for it."""
    groups = []
    for label, name in BARS:
        found = [(find(rows, f"{MEMORY}{name}, {threads}", THROUGH), colour)
                 for threads, colour in THREADS]
        groups.append((label, [(row, colour) for row, colour in found if row]))
    groups = [group for group in groups if group[1]]
    if not groups:
        return None
    most = max(1.0, *(row["ratio"] for _, bars in groups for row, _ in bars))
    drawn, y = [], TOP
    for label, bars in groups:
        drawn.append(f'<text x="{LEFT - 8}" y="{y + BAR * len(bars) / 2 + 4:.0f}" '
                     f'text-anchor="end">{escape(label)}</text>')
        for row, colour in bars:
            drawn += bar(y, row, colour, most)
            y += BAR
        y += GAP
    one = LEFT + WIDTH / most
    size = f'width="{LEFT + WIDTH + 130}" height="{y + 8}"'
    head = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
            'font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="{LEFT}" y="18" font-size="14">Operations a second through the mount, times '
            f'{escape(TIMES)}</text>']
    for number_of, (threads, colour) in enumerate(THREADS):
        x = LEFT + 100 * number_of
        head += [f'<rect x="{x}" y="28" width="12" height="12" fill="{colour}"/>',
                 f'<text x="{x + 18}" y="39">{threads}</text>']
    tail = [f'<line x1="{one:.1f}" y1="{TOP - 6}" x2="{one:.1f}" y2="{y}" stroke="#333" '
            'stroke-dasharray="4 3"/>', "</svg>", ""]
    return "\n".join(head + drawn + tail)
