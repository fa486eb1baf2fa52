"""Worked examples about cost: what is commonly claimed, and what is right."""

HOUR = 3600
GPUS = "cost --nodes 4 --gpus-per-node 8 --gpu-price $1.924/h"
BARE = GPUS + " --archive 0B --raw-per-usable 0 --extra-nodes 2 --extra-price $1/h"

EXAMPLES = [
    dict(number=36,
         claimed="15 to 30 % of 32 GPUs at $1.924 an hour, lost to storage, are $9 to $18 an "
                 "hour.",
         right="It holds: $9.24 to $18.47 an hour. Whether the share is 15 or 30 % depends on "
               "size, bandwidth and interval of the checkpoints, and can be computed.",
         run=GPUS + " --idle-before 15%",
         expect={"gpus": (32, 1e-12), "lost_before": (9.2352 / HOUR, 1e-9)},
         compute={"at 30 %": ("0.30 * 32 * 1.924", 18.4704)},
         source="counting; the price was quoted in public on 2026-05-18"),
    dict(number=37,
         claimed="32 GPUs cost $61.57 an hour, of which $14.16 are lost when 23 % of the time is.",
         right="The arithmetic holds: $61.568 and $14.161. The 23 % do not: that checkpoint costs "
               "5 to 7 % of the time (example 35).",
         run=GPUS + " --idle-before 23%",
         expect={"gpu_cost": (61.568 / HOUR, 1e-9), "lost_before": (14.16064 / HOUR, 1e-9)},
         source="counting"),
    dict(number=49,
         claimed="Break-even is storage's price an hour divided by the gain an hour: $2 / $4.93 "
                 "= 0.41 hours, so after 24 minutes it has paid for itself.",
         right="Dollars an hour over dollars an hour is a share, no time. Winning 3.25 % of the "
               "GPU time pays for $2 an hour; at 8 % it nets $2.93 an hour from the first one. "
               "Only what is paid once, such as drives, has a time to pay back.",
         run=BARE + " --idle-before 8% --idle-after 0%",
         expect={"break_even": (2 / 61.568, 1e-9), "net": (2.92544 / HOUR, 1e-9),
                 "overhead": (2 / HOUR, 1e-9), "payback": (0, 0)},
         compute={"the quotient": ("2 / (0.08 * 61.568)", 0.40605)},
         source="units: $/h divided by $/h"),
    dict(number=50,
         claimed="From 72 to 99 % utilisation is 27 points, but call it 8 %: $4.93 an hour.",
         right="0.08 of $61.57 is $4.93, but nothing says why 8. If the 27 points were right, they "
               "would be worth $16.62 an hour.",
         run=BARE + " --idle-before 28% --idle-after 1%",
         expect={"gain": (0.27, 1e-9), "recovered": (16.62336 / HOUR, 1e-9)},
         compute={"at 8 %": ("0.08 * 61.568", 4.92544)},
         source="counting"),
    dict(number=51,
         claimed="A metadata server at $0.50 to $2 an hour is $600 to $1,440 a month.",
         right="$360 to $1,440 in a month of 720 hours ($365 to $1,460 in one of 730); rented for "
               "80 % of the time only, $288 to $1,152.",
         run="cost --extra-nodes 1 --extra-price $0.50/h --hours-per-month 720h",
         expect={"extra_month": (360, 1e-9)},
         also=[("cost --extra-nodes 1 --extra-price $2/h --hours-per-month 720h",
                {"extra_month": (1440, 1e-9)}),
               ("cost --extra-nodes 1 --extra-price $2/h --hours-per-month 720h --rented 80%",
                {"extra_month": (1152, 1e-9)})],
         compute={"at $2": ("2 * 720", 1440), "80 % of the least": ("0.8 * 0.50 * 720", 288),
                  "80 % of the most": ("0.8 * 2 * 720", 1152),
                  "what would cost $600": ("600 / 720", 0.8333)},
         source="counting"),
    dict(number=52,
         claimed="Managed Lustre at 200 MB/s per TB costs $4,800 to $9,600 a month more, for no "
                 "more throughput.",
         right="Without a capacity the claim says nothing. At $0.30 and $0.17 per GB and month the "
               "amounts are 16 TB and 56 TB, and 16 TB bring 2.9 GB/s. The present type has 125, "
               "250, 500 and 1,000 MB/s per TiB; 200 was a step of the one before.",
         run="cost --storage managed --managed-level other --other-level 200MB/s/TiB "
             "--other-price $0.30/GB/month --capacity 16TB --write-needed 0B/s "
             "--managed-step 0B",
         expect={"managed_month": (4800, 1e-9), "managed_bandwidth": (2.9104e9, 1e-4)},
         compute={"TB for $9,600": ("9600 / 0.17 / 1000", 56.47)},
         source="Amazon FSx for Lustre, Managing provisioned throughput capacity"),
]
