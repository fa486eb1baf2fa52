"""What is commonly claimed of parallel file systems against object stores, and what is right."""

COUNTING = ("counting: 32 nodes x 15,625 I/Os a second x 4,096 bytes; SI and binary prefixes "
            "(IEC 80000-13)")
S3_PATTERNS = ("https://docs.aws.amazon.com/AmazonS3/latest/userguide/"
               "optimizing-performance-design-patterns.html")
SAME = "compare --nodes 32 --node-iops 15625/s --io-size 4KiB --object-rate 10MiB/s"

EXAMPLES = [
    dict(number=1,
         claimed="32 nodes with 15,625 I/Os of 4 KiB a second each move 10 TB in 5.243 s.",
         right="5.243 s is the time for 10 GiB. At 2.048 GB/s, 10 TB take 4,883 s and 10 TiB "
               "5,369 s (89 min): the label was wrong by a factor of 1,024.",
         run=SAME + " --dataset 10TiB",
         expect={"duration": (5368.70912, 1e-9), "throughput": (2.048e9, 1e-9)},
         also=[(SAME + " --dataset 10GiB", {"duration": (5.24288, 1e-9)}),
               (SAME + " --dataset 10TB", {"duration": (4882.8125, 1e-9)})],
         compute={"the time that was given": ("10 * 2**30 / (32 * 15625 * 4096)", 5.24288),
                  "10 TB": ("10e12 / (32 * 15625 * 4096)", 4882.8125),
                  "the factor": ("10 * 2**40 / (10 * 2**30)", 1024)},
         source=COUNTING),
    dict(number=2,
         claimed="The same 10 TB take 1,024 s on an object store.",
         right="1,024 s is 10 GiB over one connection of 10 MiB/s; 10 TiB would take 12.1 days. "
               "An object store's rate is not 10 MiB/s but that of its connections, of 85 to "
               "90 MB/s each: 32 of them take 3,676 s for 10 TB.",
         run="compare --dataset 10TB --object-rate 85MB/s --connections 32",
         expect={"object_duration": (10e12 / (32 * 85e6), 1e-9)},
         also=[(SAME + " --dataset 10GiB", {"single_duration": (1024, 1e-9)}),
               (SAME + " --dataset 10TiB", {"single_duration": (1048576, 1e-9)})],
         compute={"the time that was given": ("10 * 2**30 / (10 * 2**20)", 1024),
                  "10 TiB over that connection": ("10 * 2**40 / (10 * 2**20)", 1048576),
                  "in days": ("1048576 / 86400", 12.136)},
         source=S3_PATTERNS),
    dict(number=3,
         claimed="32 nodes at 15,625 I/Os of 4 KiB a second give 1.91 GB/s, 0.060 GB/s a node.",
         right="2.048 GB/s and 0.064 GB/s. 1.907 and 0.0596 are the same rates in GiB/s.",
         run=SAME,
         expect={"throughput": (2.048e9, 1e-9), "node_rate": (64e6, 1e-9),
                 "iops": (500000, 1e-9), "rate_iops": (15625, 1e-9)},
         compute={"in GiB/s": ("32 * 15625 * 4096 / 2**30", 1.9073),
                  "in GiB/s, one node": ("15625 * 4096 / 2**30", 0.0596)},
         source=COUNTING),
    dict(number=4,
         claimed="The file system is 195.3 times as fast as an object store, and typically 5 to 10 "
                 "times.",
         right="195.3 compares 32 nodes with one connection of 10 MiB/s. Against 32 such "
               "connections it is 6.1 times; against 32 of 85 MB/s the object store is faster "
               "(0.75), because 4 KiB at a time is little.",
         run=SAME + " --connections 32",
         expect={"single_speedup": (195.3125, 1e-9), "speedup": (6.103515625, 1e-9)},
         compute={"the factor that was given": ("1024000 / 5243", 195.31),
                  "32 connections of 85 MB/s": ("2.048e9 / (32 * 85e6)", 0.75294)},
         source=S3_PATTERNS),
    dict(number=31,
         claimed="Checkpoints cause spikes of 10 to 20 Tb/s.",
         right="That is 1.25 to 2.5 TB/s, as a byte has eight bits: 357 to 714 drives that write "
               "3.5 GB/s each at once. A checkpoint of 1.4 TB would be over in about a second.",
         run="checkpoint --measured-size 1.4TB --write-bandwidth 10Tb/s",
         expect={"drain": (1.4 / 1.25, 1e-9)},
         also=[("checkpoint --measured-size 1.4TB --write-bandwidth 20Tb/s",
                {"drain": (1.4 / 2.5, 1e-9)}),
               ("size --storage-nodes 357 --nodes 357 --drive-write 3.5GB/s",
                {"write_bandwidth": (1.25e12, 1e-3)})],
         compute={"10 Tb/s in TB/s": ("10 / 8", 1.25), "20 Tb/s in TB/s": ("20 / 8", 2.5),
                  "drives at least": ("1.25e12 / 3.5e9", 357.1),
                  "drives at most": ("2.5e12 / 3.5e9", 714.3)},
         source="a byte is eight bits (IEC 80000-13)"),
]
