"""Worked examples about checkpoints: what is commonly claimed, and what is right."""

EXAMPLES = [
    dict(number=5,
         claimed="A model of 100 billion parameters, each node saving a shard of 50 GB, makes "
                 "16,384 GPUs write about 100 TB.",
         right="16,384 shards of 50 GB are 819.2 TB; 102.4 TB are 2,048 nodes of 8 GPUs with one "
               "shard each. Neither is the state of such a model, which is 200 GB of bf16 "
               "weights, 1.4 TB with all that training needs to go on. The 912 and 5,290 GB that "
               "a benchmark writes for 70 and 405 billion parameters are GiB: 979 GB and 5.68 TB.",
         run="checkpoint --params 100B --nodes 2048",
         expect={"size": (1.4e12, 1e-9), "gpus": (16384, 1e-9)},
         also=[("checkpoint --params 100B --state weights-bf16", {"size": (200e9, 1e-9)}),
               ("checkpoint --benchmark mlperf-70b", {"size": (912 * 2 ** 30, 1e-12)}),
               ("checkpoint --benchmark mlperf-405b", {"size": (5290 * 2 ** 30, 1e-12)})],
         compute={"a shard a GPU": ("16384 * 50e9", 819.2e12),
                  "a shard a node": ("2048 * 50e9", 102.4e12),
                  "weights": ("100e9 * 2", 200e9),
                  "70B measured": ("912 * 1024 ** 3", 979.25e9),
                  "405B measured": ("5290 * 1024 ** 3", 5.680e12)},
         source="14 bytes a parameter: ZeRO; MLPerf Storage divides by 1024 ** 3"),
    dict(number=6,
         claimed="100 TB in 60 s need 1.6 TB/s.",
         right="1.667 TB/s; 1.6 TB/s move 96 TB. The 819.2 TB of one shard a GPU would need "
               "13.65 TB/s.",
         run="checkpoint --measured-size 100TB --target 60s",
         expect={"bandwidth_needed": (1.66667e12, 1e-5)},
         also=[("checkpoint --measured-size 819.2TB --target 60s",
                {"bandwidth_needed": (13.6533e12, 1e-5)})],
         compute={"moved at the wrong rate": ("1.6e12 * 60", 96e12),
                  "a shard a GPU": ("819.2e12 / 60", 13.653e12)},
         source="size / time"),
    dict(number=7,
         claimed="At 200 GB/s those 100 TB stop the GPUs for 8 minutes an hour.",
         right="For 500 s, 8.3 minutes, a checkpoint. That is 8 minutes an hour only with one "
               "checkpoint an hour; with two hours between, it is 6.5 % of the time, 3.9 minutes "
               "an hour.",
         run="checkpoint --measured-size 100TB --write-bandwidth 200GB/s --interval 2h",
         expect={"stall": (500, 1e-9), "idle": (500 / 7700, 1e-9)},
         compute={"minutes an hour": ("500 / 7700 * 60", 3.896)},
         source="size / bandwidth; T / (I + T)"),
    dict(number=32,
         claimed="A model of 70 billion parameters is a checkpoint of 140 GB, so 60 s need "
                 "2.3 GB/s.",
         right="140 GB are the bf16 weights alone, from which training cannot go on. With the fp32 "
               "master copy and Adam's two moments it is 14 bytes a parameter: 980 GB, and "
               "16.3 GB/s for 60 s.",
         run="checkpoint --params 70B --target 60s",
         expect={"size": (980e9, 1e-9), "bandwidth_needed": (16.3333e9, 1e-5)},
         also=[("checkpoint --params 70B --state weights-bf16 --target 60s",
                {"size": (140e9, 1e-9), "bandwidth_needed": (2.33333e9, 1e-5)})],
         compute={"weights only": ("70e9 * 2 / 60", 2.3333e9),
                  "a shard of 32": ("70e9 * 2 / 32", 4.375e9)},
         source="ZeRO: 2 + 4 + 4 + 4 bytes a parameter"),
    dict(number=33,
         claimed="32 ranks, 32 nodes and 32 GPUs are the same thing.",
         right="32 nodes of 8 GPUs are 256 ranks, each with a shard of 3.8 GB of the full state of "
               "70 billion parameters; 32 ranks are 4 such nodes.",
         run="checkpoint --params 70B --nodes 32 --gpus-per-node 8",
         expect={"gpus": (256, 1e-9), "shard_size": (3.828125e9, 1e-9)},
         source="counting"),
    dict(number=35,
         claimed="A checkpoint of 140 s every 30 to 45 minutes idles the GPUs for 23 % of the "
                 "time, one of 7 s for 1.2 %, one of 3.5 s for 0.6 %.",
         right="T / (I + T): 7.2 % at 30 minutes and 4.9 % at 45 for 140 s, 0.39 to 0.26 % for 7 "
               "s, 0.19 to 0.13 % for 3.5 s. 23 % would be one after every 7.8 minutes of "
               "training.",
         run="checkpoint --state weights-bf16 --write-bandwidth 1GB/s --interval 30min",
         expect={"stall": (140, 1e-9), "idle": (140 / 1940, 1e-9)},
         also=[("checkpoint --state weights-bf16 --write-bandwidth 1GB/s --interval 45min",
                {"idle": (140 / 2840, 1e-9)}),
               ("checkpoint --state weights-bf16 --write-bandwidth 20GB/s --interval 30min",
                {"stall": (7, 1e-9), "idle": (7 / 1807, 1e-9)}),
               ("checkpoint --state weights-bf16 --write-bandwidth 40GB/s --interval 30min",
                {"stall": (3.5, 1e-9), "idle": (3.5 / 1803.5, 1e-9)})],
         compute={"at 45 min": ("140 / (2700 + 140)", 0.0493), "7 s": ("7 / 1807", 0.003874),
                  "3.5 s": ("3.5 / 1803.5", 0.0019407),
                  "minutes between, for 23 %": ("(140 / 0.23 - 140) / 60", 7.812)},
         source="T / (I + T)"),
    dict(number=55,
         claimed="The bandwidth needed is parameters × 2 × shards / time, plus tokens a second × "
                 "bytes × loader workers.",
         right="Shards divide a model, they do not multiply it: 74.7 GB/s in place of 2.33 for "
               "the weights of 70 billion parameters in 32 shards and 60 s. Likewise workers share "
               "the reading: each token is read once.",
         run="checkpoint --params 70B --state weights-bf16 --shards 32 --target 60s",
         expect={"bandwidth_needed": (2.33333e9, 1e-5), "shard_size": (4.375e9, 1e-9)},
         compute={"multiplied": ("70e9 * 2 * 32 / 60", 74.667e9)},
         source="counting"),
    dict(number=57,
         claimed="A bf16 model of a trillion parameters is about 2 TB a checkpoint, so 100,000 "
                 "GPUs that save every 30 minutes write about 2 TB.",
         right="2 TB are weights only, 1.1 GB/s on the mean; what training resumes from is 14 TB, "
               "7.8 GB/s on the mean over 30 minutes, and far more in the burst.",
         run="checkpoint --params 1T --nodes 12500 --interval 30min --target 30min",
         expect={"size": (14e12, 1e-9), "bandwidth_needed": (7.7778e9, 1e-4)},
         also=[("checkpoint --params 1T --state weights-bf16 --target 30min",
                {"size": (2e12, 1e-9), "bandwidth_needed": (1.1111e9, 1e-4)})],
         compute={"weights": ("1e12 * 2 / 1800", 1.1111e9)},
         source="14 bytes a parameter: ZeRO"),
]
