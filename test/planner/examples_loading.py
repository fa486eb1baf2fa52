"""Worked examples of data loading: what is commonly claimed, and what is right."""

EXAMPLES = [
    dict(
        number=34,
        claimed="Training at 1.5 million tokens a second reads 3 GB/s; with masks and positions, "
                "4 to 8 times as many bytes a token, 6 to 12 GB/s.",
        right="A token of 2 bytes makes 3 MB/s, and 12 to 24 MB/s with the further fields: a "
              "thousandth and a 500th. Token streams are no load for storage; images are.",
        run="loading --workload tokens --tokens 1.5M/s --bytes-per-token 2B --fields 8",
        expect={"bandwidth_needed": (24e6, 1e-12), "stalled": (0, 0)},
        compute={
            "ids alone": ("1.5e6 * 2", 3e6),
            "4 fields": ("1.5e6 * 2 * 4", 12e6),
            "claimed over right": ("6e9 / (1.5e6 * 2 * 4)", 500),
            "bytes a token at 3 GB/s": ("3e9 / 1.5e6", 2000),
        },
        source="the size of a uint16",
    ),
    dict(
        number=43,
        claimed="A cluster that trains 1.5 million tokens a second falls to 890,000 when a slow "
                "file server makes it wait for data 31 % of the time.",
        right="69 % of 1.5 million are 1.035 million. 890,000 would follow from a base of 1.29 "
              "million, or from a stalled share of 41 %.",
        run="loading --workload tokens --tokens 1.5M/s --measured-stall 31%",
        expect={"tokens_trained": (1.035e6, 1e-12), "stalled": (0.31, 1e-12)},
        compute={
            "implied base": ("890e3 / (1 - 0.31)", 1.29e6),
            "implied stall": ("1 - 890e3 / 1.5e6", 0.40667),
        },
        source="counting",
    ),
    dict(
        number=44,
        claimed="With 21 % of the time lost to checkpoints and 31 % of training stalled for data, "
                "GPUs are 72 % useful.",
        right="Data is loaded between checkpoints only, so the shares that remain multiply: "
              "0.79 x 0.69 = 54.5 %. Even adding both losses leaves 48 %, not 72 %.",
        run="loading --interval 79s --checkpoint-stall 21s --measured-stall 31%",
        expect={
            "checkpoint_idle": (0.21, 1e-12),
            "useful": (0.5451, 1e-12),
            "useful_additive": (0.48, 1e-12),
        },
        compute={
            "multiplied": ("(1 - 0.21) * (1 - 0.31)", 0.5451),
            "added": ("1 - 0.21 - 0.31", 0.48),
        },
        source="counting",
    ),
]
