"""Parts of ./dev bench about names: each operation, a directory with very many, checkpoints."""

import os

from mounts import Failed, Folder, forget, stopping, up

PASSTHROUGH = "libfuse's passthrough_ll"
BARE = "bare FUSE"
SHAPES = ((1, 1), (8, 1), (1, 100), (8, 100))  # threads, directories
META = ("create", "stat", "open", "rename", "unlink", "mkdir", "rmdir")
CONFIGURED_EXTRA_BYTES = 200 << 20


def metadata(bench):
    """Through the mount: names and attributes."""
    places = (bench.cluster(), bench.bare(), bench.through())
    try:
        for threads, dirs in SHAPES[:1] if bench.smoke else SHAPES:
            bench.tell_turns(places, lambda place, threads=threads, dirs=dirs:
                             metadata_once(bench, place, threads, dirs),
                             lambda runs, threads=threads, dirs=dirs:
                             metadata_rows(threads, dirs, runs))
    finally:
        stopping(places)


def metadata_rows(threads, dirs, runs):
    for phase in META:
        name = f"mount {phase}, {threads} threads, {dirs} directories"
        yield name, "ops/s", [(a[phase], b[phase]) for a, b, _ in runs], BARE, ">= 0.67"
        if runs[0][2]:
            yield name, "ops/s", [(a[phase], c[phase]) for a, _, c in runs], PASSTHROUGH, ">= 1"


def metadata_once(bench, place, threads, dirs):
    """Rate of each phase, everything forgotten by the kernel before it."""
    rates = {}
    files = 2000 if bench.smoke else 15000
    for phase in META:
        forget(place, 2)
        rows = bench.run(place, "meta", "--threads", str(threads), "--dirs", str(dirs), "--files",
                         str(files), "--phases", phase)
        rates[phase] = rows[phase]["ops_per_s"]
    return rates


def listing(bench):
    """ls -l of a directory with very many files, cold; memory and start afterwards."""
    files = 30000 if bench.smoke else 1000000
    listing_few(bench, files // 50, ">= 0.67")
    cluster, bare, through = bench.cluster(), bench.bare(), bench.through()
    try:
        with up(cluster):
            rate = listing_make(bench, cluster, files, 8)["ops_per_s"]
            memory_bytes, may_bytes = cluster.memory_bytes(), configured_bytes(cluster)
        listed = listing_make_through(bench, through, files)
        runs = bench.take_turns((cluster, bare, through),
                                lambda place: listing_once(bench, place, files))
    finally:
        stopping((cluster, bare, through))
    bench.row(f"mount create of {files} files, 8 threads", "ops/s", [(rate, None)],
              "one directory, one run", "")
    bench.row(f"memory after {files} files", "MiB",
              [(memory_bytes / (1 << 20), may_bytes / (1 << 20))],
              "configured + 200 MiB, one run", "<= 1")
    bench.row(f"start to mounted on {files} files", "s",
              [(a["started_s"], None) for a, _, _ in runs], "", "<= 5")
    name = f"mount ls -l of {files} files"
    bench.row(f"{name}, cold", "entries/s",
              [(a["ops_per_s"], b["ops_per_s"]) for a, b, _ in runs], BARE, ">= 0.5")
    if through:
        fewer = f", {listed} files as it has no more descriptors" if listed < files else ""
        bench.row(f"{name}, cold", "entries/s",
                  [(a["ops_per_s"], c["ops_per_s"]) for a, _, c in runs], PASSTHROUGH + fewer,
                  ">= 1")
    bench.row(f"{name}, CPU", "us/entry",
              [(a["server_cpu_s"] * 1e6 / a["ops"], None) for a, _, _ in runs],
              "user and system of the daemon", "<= 2.5")
    if through and listed not in (files, files // 50):
        listing_few(bench, listed, "")


def listing_few(bench, files, budget):
    """As many as the pass-through can list, in all. budget: beside our channel alone."""
    cluster, bare, through = bench.cluster(), bench.bare(), bench.through()
    name = f"mount ls -l of {files} files, cold"
    try:
        with up(cluster):
            listing_make(bench, cluster, files, 8)
        listing_make_through(bench, through, files)
        runs = bench.take_turns((cluster, bare, through),
                                lambda place: listing_once(bench, place, files))
        pieces = bench.take_turns((cluster, bare),
                                  lambda place: listing_once(bench, place, files, "4K"))
    finally:
        stopping((cluster, bare, through))
    bench.row(name, "entries/s", [(a["ops_per_s"], b["ops_per_s"]) for a, b, _ in runs], BARE,
              budget)
    bench.row(f"{name}, 4 KiB at a time as kernels before 6.16 ask", "entries/s",
              [(a["ops_per_s"], b["ops_per_s"]) for a, b in pieces], BARE, budget)
    if through:
        bench.row(name, "entries/s", [(a["ops_per_s"], c["ops_per_s"]) for a, _, c in runs],
                  PASSTHROUGH, ">= 1")


def listing_make(bench, place, files, threads):
    return bench.run(place, "meta", "--files", str(files), "--threads", str(threads), "--phases",
                     "create")["create"]


def listing_make_through(bench, through, files):
    """Below the pass-through, for speed. How many: it can't list more than it can know."""
    if not through:
        return 0
    with up(through):
        files = min(files, through.inodes_max)
    listing_make(bench, Folder("source", through.source), files, 1)
    return files


def listing_once(bench, place, files, piece="32K"):
    """Just started, so that only the disk has it. Our channel alone has nothing but memory."""
    if place.name == BARE:
        listing_make(bench, place, files, 1)
    forget(place, 2)
    row = bench.run(place, "meta", "--phases", "list", "--listing", piece)["list"]
    row["started_s"] = getattr(place, "started_s", None)
    return row


def configured_bytes(cluster):
    """What shoal.conf lets the daemon use, its FUSE buffers, and what the budget allows beside."""
    sizes = {}
    osts = 1
    with open(os.path.join(cluster.data, "shoal.conf"), encoding="utf-8") as file:
        for line in file:
            name, _, value = line.partition("=")
            name, value = name.strip(), value.split(";")[0].strip()
            if name.endswith("_bytes"):
                sizes[name] = int(value)
            elif name == "osts":
                osts = int(value)
    of_each = ("ost_ring_bytes", "ost_ring_data_bytes", "ost_changes_bytes", "cache_bytes")
    return (sizes["mdt_ring_bytes"] + sizes["mdt_changes_bytes"]
            + osts * sum(sizes[name] for name in of_each) + CONFIGURED_EXTRA_BYTES)


def checkpoints(bench):
    """Creates and unlinks while checkpoints pass: so little memory for changes that each has more
    than ten of them."""
    files = 40000 if bench.smoke else 350000
    cluster = bench.cluster(mdt_changes_bytes=16 << 20)
    try:
        runs = bench.take_turns((cluster,), lambda place: checkpoints_once(bench, place, files))
    finally:
        cluster.stop()
    for phase in ("create", "unlink"):
        rows = [run[0][phase] for run in runs]
        passed = f"{min(row['passed'] for row in rows)} checkpoints or more"
        bench.row(f"mount {phase} during checkpoints, p99", "us",
                  [(row["p99_us"], row["p50_us"]) for row in rows], f"p50; {passed}", "<= 5")
        bench.row(f"mount {phase} during checkpoints", "ops/s",
                  [(row["ops_per_s"], None) for row in rows], passed, "")


def checkpoints_once(bench, cluster, files):
    rows = {}
    before = counter(cluster, "mdt0", "checkpoints")
    for phase in ("create", "unlink"):
        rows.update(bench.run(cluster, "meta", "--threads", "2", "--dirs", "100", "--files",
                              str(files), "--phases", phase))
        after = counter(cluster, "mdt0", "checkpoints")
        rows[phase]["passed"] = after - before
        before = after
    return rows


def counter(cluster, target, name):
    for row in cluster.stats()["counters"]:
        if row["target"] == target and row["name"] == name:
            return row["value"]
    raise Failed(f"stats has no {name} of {target}")
