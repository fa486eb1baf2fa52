"""Worked examples of metadata: what is commonly claimed, and what is right."""

EXAMPLES = [
    dict(
        number=28,
        claimed="16 metadata targets at 200,000 operations a second give 3.2 million, and dozens "
                "of metadata servers reach 20 million.",
        right="3.2 million is right if the load is even; but at that rate 20 million operations a "
              "second take 100 targets, more than dozens, with none of them ever idle. A target "
              "has been shown to do hundreds of thousands of stats a second, not of creates.",
        run="metadata --file-rate 20M/s --operations-per-file 1 --target-rate 200000/s "
            "--utilisation 100% --metadata-targets 16",
        expect={"sustained": (3.2e6, 1e-12), "targets_needed": (100, 0)},
        compute={"sustained": ("16 * 200e3", 3.2e6)},
        source="counting; mdtest of one metadata server: create 15,000 to 29,000 and stat 400,000 "
               "to 544,000 a second",
    ),
    dict(
        number=29,
        claimed="100,000 stats at 1 ms add 100 s to an epoch.",
        right="Only if one client sends them strictly one after another. With 16 in flight the "
              "same stats take 6.25 s, and a listing that brings the attributes along asks 100 "
              "times instead of 100,100.",
        run="metadata --file-rate 0/s --threads 1 --round-trip 990us --entries 100000 "
            "--outstanding 16 --listing-nodes 1 --listings 1",
        expect={
            "serial_stat": (100, 1e-12),
            "parallel_stat": (6.25, 1e-12),
            "stat_requests": (100100, 0),
            "plus_requests": (100, 0),
        },
        compute={"serial": ("100e3 * 1e-3", 100)},
        source="counting; Little's law",
    ),
]
