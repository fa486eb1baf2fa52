"""Worked examples about checkpoints: what is commonly claimed, and what is right."""

EXAMPLES = [
    dict(number=32,
         claimed="A model of 70 billion parameters is a checkpoint of 140 GB, so 60 s need "
                 "2.3 GB/s.",
         right="140 GB are the bf16 weights alone, from which training cannot go on. With the fp32 "
               "master copy and Adam's two moments it is 14 bytes a parameter: 980 GB, and "
               "16.3 GB/s for 60 s.",
         run="checkpoint --params 70B --target 60s",
         expect={"size": (980e9, 1e-9), "bandwidth_needed": (16.333e9, 1e-3)},
         compute={"weights only": ("70e9 * 2 / 60", 2.3333e9)},
         source="ZeRO, section 3: 2 + 4 + 4 + 4 bytes a parameter"),
]
