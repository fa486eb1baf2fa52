"""What is commonly claimed of writes to a shared file, and what is right."""

UNSOURCED = "widely quoted, no source known; the arithmetic is counted anew"
ROMIO = "https://doi.org/10.1109/FMPC.1999.750599"
LUSTRE = "https://doc.lustre.org/lustre_manual.xhtml"
JOB = ("stripe --processes 1024 --write-size 4KiB --rpc-time 35us --ldlm-time 2us "
       "--grant-time 5us --write-time 10us --aggregators 16 --link 100Gb/s")
LARGE = "stripe --stripe-size 4MiB --length 16MiB --offset 1MiB"

EXAMPLES = [
    dict(number=14,
         claimed="1,024 processes that lock one file in turn wait P x (rpc + lock manager + grant) "
                 "= 43 ms, the same as acquire + (P - 1) x grant + release.",
         right="43.0 ms is right for the serial chain, but the two forms are not equal: when only "
               "the grant is handed on, it is 5.2 ms.",
         run=JOB,
         expect={"chain": (43.008e-3, 1e-9), "lock": (42e-6, 1e-9)},
         compute={"handing on the grant alone": ("35e-6 + 2e-6 + 1023 * 5e-6", 5.152e-3)},
         source=UNSOURCED),
    dict(number=15,
         claimed="A write of 4 KiB that takes 10 us becomes 4,300 times slower behind that chain.",
         right="4,302 times, for the last of 1,024 processes and as an upper bound: writes that "
               "don't overlap need not wait for each other's locks.",
         run=JOB,
         expect={"chain_slowdown": (4301.8, 1e-9)},
         compute={},
         source=UNSOURCED),
    dict(number=16,
         claimed="All 1,024 locks together take 1,024 x 43 ms = 44 s.",
         right="43 ms is already the sum over all 1,024; multiplied again it counts twice.",
         run=JOB,
         expect={"chain": (43.008e-3, 1e-9)},
         compute={"counted twice": ("1024 * 1024 * 42e-6", 44.040192)},
         source=UNSOURCED),
    dict(number=17,
         claimed="With 16 aggregators the locks of collective I/O take 16 x 43 ms = 688 ms.",
         right="16 locks of 42 us are 0.672 ms; 43 ms is the chain of all 1,024.",
         run=JOB,
         expect={"collective_lock": (0.672e-3, 1e-9)},
         compute={"as claimed": ("16 * 1024 * 42e-6", 0.688128)},
         source=UNSOURCED),
    dict(number=18,
         claimed="256 KiB take 2.1 ms on a link of 100 Gb/s.",
         right="0.021 ms: 262,144 bytes at 12.5 GB/s. 2.1 ms would be 26 MB.",
         run=JOB,
         expect={"exchange_link": (20.97152e-6, 1e-9)},
         compute={"what 2.1 ms hold": ("2.1e-3 * 12.5e9", 26.25e6)},
         source="counting: bytes over bytes a second"),
    dict(number=19,
         claimed="The exchange takes 64 x 256 KiB / (100 Gb/s x 16) x log2(16) = 33.6 ms.",
         right="That expression is 0.336 ms. And 64 x 4 KiB already are the 256 KiB of an "
               "aggregator, so its exchange takes 0.005 ms spread over all links, 0.021 ms through "
               "its own.",
         run=JOB,
         expect={"exchange_rounds": (5.24288e-6, 1e-9), "exchange_link": (20.97152e-6, 1e-9)},
         compute={"the expression": ("64 * 262144 / (12.5e9 * 16) * 4", 0.33554432e-3),
                  "a hundred times that": ("100 * 64 * 262144 / (12.5e9 * 16) * 4", 33.554432e-3)},
         source=UNSOURCED),
    dict(number=20,
         claimed="The average message from a process to an aggregator is P/A x 4 KiB = 256 KiB.",
         right="256 KiB is what one aggregator gathers; a message is the 4 KiB of one process.",
         run=JOB,
         expect={"aggregated": (262144, 1e-9)},
         compute={"one message": ("262144 / (1024 / 16)", 4096)},
         source=ROMIO),
    dict(number=21,
         claimed="Collective I/O takes 688 + 33.6 = 722 ms against 44 s: 61 times faster.",
         right="0.68 to 0.69 ms against 43 ms: 62 to 63.5 times. The factor is nearly the same "
               "only because both sides were wrong alike.",
         run=JOB,
         expect={"gain": (62.0625, 1e-3), "gain_most": (63.504, 1e-3),
                 "collective_least": (0.67724288e-3, 1e-9),
                 "collective_most": (0.69297152e-3, 1e-9)},
         compute={"as claimed": ("44 / 0.7216", 60.98)},
         source=UNSOURCED),
    dict(number=22,
         claimed="64 processes of 4 KiB each give an aggregator a write of 16 MiB.",
         right="They give it 256 KiB; 16 aggregators together have 4 MiB. A write of 16 MiB that "
               "is off by 1 MiB touches 5 stripes of 4 MiB, 2 of them in part.",
         run=LARGE,
         expect={"pieces": (5, 0), "partial": (2, 0), "objects": (4, 0)},
         compute={"one aggregator": ("64 * 4096 / 2**10", 256),
                  "all of them, MiB": ("16 * 64 * 4096 / 2**20", 4)},
         source=LUSTRE),
    dict(number=23,
         claimed="Misaligned by a part of a stripe, throughput falls by a factor of 64.",
         right="If a partial piece costs twice a whole one, the slowdown is 1 + partial/pieces, at "
               "most 2, here 1.4; and Lustre's targets take byte ranges without reading first, so "
               "that by default it is 1.",
         run=LARGE + " --read-modify-write yes",
         expect={"slowdown": (1.4, 1e-9), "loss": (1 - 1 / 1.4, 1e-9)},
         compute={"as claimed": ("4 * 4 * 2**20 / (256 * 2**10)", 64)},
         source=LUSTRE),
    dict(number=24,
         claimed="256 KiB over 8 targets are best cut into stripes of 32 KiB.",
         right="Lustre's stripe sizes are multiples of 64 KiB: 4 stripes of 64 KiB are the least "
               "that fits, and under 256 KiB nothing does.",
         run="stripe --length 256KiB --offset 0B --targets 32",
         expect={"best_size": (65536, 0), "best_count": (4, 0),
                 "lustre_command": "lfs setstripe -c 4 -S 64K PATH",
                 "shoal_command": "shoal stripe set PATH --count 4 --size 64K"},
         compute={"as claimed, KiB": ("256 / 8", 32), "multiples of 64 KiB in it": ("32 // 64", 0)},
         source=LUSTRE),
    dict(number=25,
         claimed="7 TB over 128 targets in stripes of 64 MB are 109,375 stripe objects.",
         right="109,375 is the number of stripes. There is one object for each target, 128 in all, "
               "with 854.5 stripes each.",
         run="stripe --length 7TB --offset 0B --stripe-size 64MB --stripe-count 128 --targets 128",
         expect={"pieces": (109375, 0), "objects": (128, 0), "pieces_each": (854.4921875, 1e-9)},
         compute={"stripes of 64 MiB": ("7e12 / (64 * 2**20)", 104308.128)},
         source=LUSTRE),
    dict(number=58,
         claimed="The cost of locks is P x (rpc + lock manager x conflicts).",
         right="That is a second formula beside the serial chain: 37.9 ms for 1,024 processes with "
               "one conflict each, 2.13 s with the worst of 1,023. The planner shows both, "
               "by name.",
         run=JOB + " --conflicts 1023",
         expect={"conflict": (2.130944, 1e-9), "chain": (43.008e-3, 1e-9)},
         compute={"one conflict each": ("1024 * (35e-6 + 2e-6)", 37.888e-3)},
         source=UNSOURCED),
]
