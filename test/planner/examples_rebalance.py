"""What is commonly claimed of moving data between targets and into a file system."""

COUNTING = "counting: what network, reading and writing let through"
MIGRATE = "https://doc.lustre.org/lustre_manual.xhtml (lfs migrate)"
TWENTY = ("rebalance --moved 10TB --servers 20 --targets 20 --link 200Gb/s --target-read 8GB/s "
          "--target-write 8GB/s")

EXAMPLES = [
    dict(number=26,
         claimed="20 storage servers on links of 200 Gb/s exchange 400 Gb/s among them.",
         right="4,000 Gb/s in each direction, 2,000 if half of them send to the other half. "
               "400 Gb/s are both directions of a single link.",
         run=TWENTY + " --senders 10 --receivers 10",
         expect={"network": (250e9, 1e-9)},
         also=[(TWENTY + " --senders 20 --receivers 20", {"network": (500e9, 1e-9)})],
         compute={"all send and receive, Gb/s": ("20 * 200", 4000),
                  "one link, both directions, Gb/s": ("2 * 200", 400)},
         source=COUNTING),
    dict(number=27,
         claimed="10 TB are rebalanced between 20 servers in 200 s.",
         right="20 to 40 s if only the network counted, but 10 senders that read 8 GB/s each take "
               "125 s. And lfs migrate copies through a client: one of 200 Gb/s takes 400 s.",
         run=TWENTY + " --senders 10 --receivers 10",
         expect={"duration": (125, 1e-9), "binding": "reading from the targets"},
         also=[(TWENTY + " --senders 10 --receivers 10 --via clients --copiers 1",
                {"duration": (400, 1e-9),
                 "binding": "the network of the clients or servers"})],
         compute={"at 400 Gb/s": ("10e12 / 50e9", 200),
                  "network, half to half": ("10e12 / 250e9", 40),
                  "network, all to all": ("10e12 / 500e9", 20),
                  "through one client": ("10e12 / 25e9", 400)},
         source=MIGRATE),
    dict(number=45,
         claimed="Fetching 500 GB at 500 MB/s takes 16 minutes, 50 times 13 hours; elsewhere the "
                 "same fetch takes 30 to 120 s.",
         right="1,000 s are 16.7 min, 50 of them 13.9 h. 30 to 120 s need 4.2 to 16.7 GB/s: 50 to "
               "197 connections of 85 MB/s.",
         run="rebalance --dataset 500GB --object-rate 500MB/s --connections 1 --runs 50 "
             "--staging-target 30s",
         expect={"staging": (1000, 1e-9), "staging_runs": (50000, 1e-9),
                 "ingress_needed": (16.667e9, 1e-3)},
         compute={"hours": ("50000 / 3600", 13.889), "GB/s for 120 s": ("500 / 120", 4.1667),
                  "connections for 30 s": ("500e9 / 30 / 85e6", 196.08)},
         source=COUNTING),
]
