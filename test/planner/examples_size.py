"""Worked examples about sizes of storage: what is commonly claimed, and what is right."""

EXAMPLES = [
    dict(number=30,
         claimed="A file system for one job on 100 nodes reads or writes 500 GB/s.",
         right="That is 5 GB/s a node: plausible where a node has two drives that write 2.5 GB/s "
               "or more for long. The drives bind, not a NIC of 200 Gb/s.",
         run="size --nodes 100 --storage-nodes 100 --drives-per-node 2 --drive-write 2.5GB/s",
         expect={"write_bandwidth": (500e9, 1e-9), "write_each": (5e9, 1e-9),
                 "write_limit": "the drives"},
         source="counting"),
    dict(number=38,
         claimed="8, 32 and 128 nodes write 32, 120 and 480 GB/s, or 400 on another system.",
         right="That is 4.0, 3.75, 3.75 and 3.13 GB/s a node. One drive of 3.5 GB/s a node and no "
               "copies make 28, 112 and 448 GB/s; two copies halve it. It does not agree with "
               "8 GB/s a drive, which is claimed as well.",
         run="size --nodes 128 --storage-nodes 128",
         expect={"write_bandwidth": (448e9, 1e-9)},
         also=[("size --nodes 8 --storage-nodes 8", {"write_bandwidth": (28e9, 1e-9)}),
               ("size", {"write_bandwidth": (112e9, 1e-9)}),
               ("size --protection copies", {"write_bandwidth": (56e9, 1e-9)})],
         compute={"8": ("32 / 8", 4), "32": ("120 / 32", 3.75), "128": ("480 / 128", 3.75),
                  "the other": ("400 / 128", 3.125), "one drive each, 8": ("8 * 3.5", 28)},
         source="counting; data sheets of PCIe 4 drives for data centres"),
    dict(number=39,
         claimed="8, 32 and 128 nodes need 10,000, 40,000 and 160,000 metadata operations a second "
                 "and 1, 2 and 4 metadata targets.",
         right="1,250 a node at each size, so the rule is linear. With targets that do 100,000/s "
               "and are loaded to 60 %, 1, 1 and 3 are needed; what takes over at a failure is a "
               "second server, not a second target.",
         run="size --nodes 128 --storage-nodes 128",
         expect={"operations": (160e3, 1e-9), "metadata_targets": (3, 1e-9)},
         also=[("size --nodes 8", {"operations": (10e3, 1e-9), "metadata_targets": (1, 0)}),
               ("size --nodes 32", {"operations": (40e3, 1e-9), "metadata_targets": (1, 0)})],
         compute={"8": ("10e3 / 8", 1250), "32": ("40e3 / 32", 1250), "128": ("160e3 / 128", 1250)},
         source="counting"),
    dict(number=40,
         claimed="8 nodes with one drive of 8 GB/s each write 64 GB/s: 140 GB in 2.2 s. The drives "
                 "of 4 TB hold 32 TB.",
         right="The arithmetic holds (2.19 s), the inputs do not: a drive of 4 TB writes about "
               "3.5 GB/s for long, so 28 GB/s, and the state is 980 GB, so 35 s.",
         run="size --nodes 8 --storage-nodes 8 --params 70B",
         expect={"raw": (32e12, 1e-9), "write_bandwidth": (28e9, 1e-9),
                 "checkpoint_time": (35, 1e-9)},
         compute={"as claimed": ("140 / (8 * 8)", 2.1875)},
         source="data sheets of PCIe 4 drives for data centres"),
    dict(number=41,
         claimed="Measured on 32 nodes: 28, 38 and 44 GB/s, on three systems.",
         right="0.88, 1.19 and 1.38 GB/s a node: 9.1, 3.2 and 2.7 times less than the 256, 120 "
               "and 120 GB/s that were promised for the same systems. Plan with an efficiency "
               "that was measured.",
         run="size --drive-write 8GB/s",
         expect={"write_bandwidth": (256e9, 1e-9)},
         compute={"first, a node": ("28 / 32", 0.875), "second, a node": ("38 / 32", 1.1875),
                  "third, a node": ("44 / 32", 1.375), "first": ("256 / 28", 9.143),
                  "second": ("120 / 38", 3.158), "third": ("120 / 44", 2.727)},
         source="counting"),
    dict(number=42,
         claimed="140 GB at 1.1, 28, 38 and 44 GB/s take 127, 5, 3.7 and 3.2 s.",
         right="It holds for the weights. The state that training goes on from, 980 GB, takes "
               "seven times as long: 891, 35, 25.8 and 22.3 s.",
         run="checkpoint --state weights-bf16 --write-bandwidth 1.1GB/s",
         expect={"drain": (127.2727, 1e-6)},
         compute={"28": ("140 / 28", 5), "38": ("140 / 38", 3.684), "44": ("140 / 44", 3.182),
                  "all of the state": ("980 / 1.1", 890.9)},
         source="counting"),
    dict(number=46,
         claimed="4 servers with 8 drives of 7.68 TB are 245 TB raw, 183 TB usable with BeeGFS at "
                 "3+1 parity.",
         right="245.76 and 184.32 TB. But BeeGFS has no parity over the network: its mirrors "
               "leave 122.88 TB; what parity there is, is local RAID beneath a target, and does "
               "not cover the loss of a server.",
         run="size --storage-nodes 4 --drives-per-node 8 --drive-size 7.68TB --protection erasure "
             "--data-shards 3 --parity-shards 1 --reserve 0%",
         expect={"raw": (245.76e12, 1e-9), "usable": (184.32e12, 1e-9)},
         also=[("size --storage-nodes 4 --drives-per-node 8 --drive-size 7.68TB "
                "--protection copies --reserve 0%", {"usable": (122.88e12, 1e-9)})],
         compute={"mirrored": ("245.76 / 2", 122.88)},
         source="BeeGFS documentation, Mirroring"),
    dict(number=47,
         claimed="128 TB raw are 96 TB usable with Lustre at 3+1 parity.",
         right="96 TB is what 3+1 leaves, but released Lustre only stripes and mirrors files: "
               "64 TB. Erasure coding is in development, its parity is brought up to date by "
               "command.",
         run="size --protection copies --copies 2 --reserve 0%",
         expect={"raw": (128e12, 1e-9), "usable": (64e12, 1e-9)},
         compute={"3+1": ("128 * 3 / 4", 96)},
         source="Lustre source tree, Documentation/ec.txt"),
    dict(number=48,
         claimed="140 GB at 120 GB/s take 1.2 s.",
         right="1.17 s, for the weights. The whole state takes 8.2 s.",
         run="checkpoint --params 70B --write-bandwidth 120GB/s",
         expect={"drain": (8.16667, 1e-6)},
         also=[("checkpoint --state weights-bf16 --write-bandwidth 120GB/s",
                {"drain": (1.16667, 1e-5)})],
         compute={"weights": ("140 / 120", 1.16667)},
         source="counting"),
    dict(number=53,
         claimed="A checkpoint of 2.2 s each 500 steps, 30 to 45 minutes, costs under 0.1 %.",
         right="0.121 % at 30 minutes, 0.081 % at 45; under 0.1 % from 36.4 minutes on.",
         run="checkpoint --measured-size 140GB --write-bandwidth 64GB/s --interval 30min",
         expect={"stall": (2.1875, 1e-9), "idle": (0.0012138, 1e-4)},
         also=[("checkpoint --measured-size 140GB --write-bandwidth 64GB/s --interval 45min",
                {"idle": (0.00080953, 1e-4)})],
         compute={"45 minutes": ("2.1875 / (2700 + 2.1875)", 0.00080953),
                  "0.1 % in minutes": ("2.1875 * 999 / 60", 36.42)},
         source="idle share = stall / (interval + stall)"),
    dict(number=56,
         claimed="32 nodes with 4-way tensor parallelism need more than 18 GB/s.",
         right="18.67 GB/s is what 32 GPUs need whose 8 data-parallel replicas each write the "
               "same 140 GB within 60 s. One copy is enough, as PyTorch's distributed checkpoints "
               "write it: 2.33 GB/s for the weights, 16.3 for the state.",
         run="checkpoint --state weights-bf16 --nodes 4 --replicas 8 --deduplicated no "
             "--target 60s",
         expect={"bandwidth_needed": (18.66667e9, 1e-6)},
         also=[("checkpoint --state weights-bf16 --nodes 4 --replicas 8 --target 60s",
                {"bandwidth_needed": (2.33333e9, 1e-5)})],
         compute={"one copy": ("140 / 60", 2.3333), "one copy of the state": ("980 / 60", 16.333)},
         source="PyTorch Distributed Checkpoint deduplicates replicated tensors"),
]
