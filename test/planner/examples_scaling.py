"""Worked examples of scaling: what is commonly claimed, and what is right."""

EXAMPLES = [
    dict(
        number=8,
        claimed="By a variant of Amdahl's law, 128 clients with HDR200 adapters of 100 Gb/s get "
                "2,659 Gb/s together, 20.8 Gb/s each, an 80 % loss.",
        right="(1-f) N B / (1 + (N-1) C) with these values is 2,658.5 Gb/s, 20.77 each, 79.2 % "
              "less than linear. But HDR is 200 Gb/s, and this is not Amdahl's law: its f only "
              "scales. By Amdahl's with the same f of 0.1 % they would get 88.7 % of linear.",
        run="scaling --clients 128 --link 100Gb/s --serial 0.1% --contention 3% "
            "--metadata-targets 1",
        expect={
            "quoted": (2658.46e9 / 8, 1e-5),
            "quoted_client": (20.769e9 / 8, 1e-4),
            "quoted_loss": (0.7923, 1e-4),
            "amdahl": (128 / 1.127 * 12.5e9, 1e-9),
        },
        compute={"S(128), Gb/s": ("0.999 * 128 * 100 / (1 + 127 * 0.03)", 2658.46)},
        source="Amdahl 1967; NVIDIA's names of InfiniBand speeds: HDR 200 Gb/s",
    ),
    dict(
        number=9,
        claimed="Four metadata servers lower the serial share from 1 % to 0.25 % and so raise the "
                "ceiling of throughput 4 times.",
        right="By the formula that goes with it the ceiling (1-f) B / C rises by 0.76 %, from "
              "3,300 to 3,325 Gb/s for 100 Gb/s a client. Four times is right by Amdahl's law, "
              "whose ceiling is B / f.",
        run="scaling --serial 1% --metadata-targets 4 --link 100Gb/s --contention 3%",
        expect={
            "serial_spread": (0.0025, 1e-12),
            "quoted_limit": (3325e9 / 8, 1e-12),
            "quoted_gain": (3325 / 3300, 1e-12),
            "amdahl_gain": (4, 1e-12),
            "amdahl_limit": (100 / 0.0025 * 1e9 / 8, 1e-12),
        },
        compute={"ceiling of one, Gb/s": ("(1 - 0.01) * 100 / 0.03", 3300)},
        source="Amdahl 1967",
    ),
    dict(
        number=10,
        claimed="By T / (1 + Q/Qmax)^2 a server with 64 of 512 requests still gives 98.5 % of its "
                "bandwidth.",
        right="The formula gives 79 %; 98.5 % belongs to another one, 1 / (1 + (Q/Qmax)^2). "
              "Neither has a known source. A closed queue is bounded by min(Tmax, Q/R0): a target "
              "with enough requests loses nothing.",
        run="scaling --queue-depth 64 --server-threads 512",
        expect={"quoted_share": (0.790123, 1e-6), "bound_share": (1, 0)},
        compute={"the other formula": ("1 / (1 + (64 / 512) ** 2)", 0.98462)},
        source="Denning, Buzen 1978",
    ),
    dict(
        number=11,
        claimed="With 512 of 512 requests a server falls to 25 % of its bandwidth.",
        right="T / (1 + Q/Qmax)^2 does give 25 % there, but the formula that made 98.5 % of "
              "64 requests gives 50 %. A deep queue makes requests wait (0.43 s each here), it "
              "does not take bandwidth away.",
        run="scaling --queue-depth 512 --server-threads 512 --rpc-size 4MiB "
            "--target-bandwidth 5GB/s",
        expect={
            "quoted_share": (0.25, 1e-12),
            "bound_share": (1, 0),
            "bound_time": (512 * 4 * 2**20 / 5e9, 1e-12),
        },
        compute={"the other formula": ("1 / (1 + (512 / 512) ** 2)", 0.5)},
        source="Denning, Buzen 1978",
    ),
    dict(
        number=12,
        claimed="128 clients that stripe over 128 servers make 16,384 concurrent RPC streams, more "
                "than the 512 to 1,024 RPCs a server takes.",
        right="16,384 is right for all servers together. At each there are 128 streams, with 8 "
              "RPCs in flight each 1,024 requests, twice the 512 threads of a server.",
        run="scaling --clients 128 --targets 128 --stripe-count 0 --rpcs-in-flight 8 "
            "--server-threads 512",
        expect={
            "streams": (16384, 0),
            "streams_per_target": (128, 0),
            "depth": (1024, 0),
            "queued": (512, 0),
        },
        source="counting; oss_max_threads of Lustre",
    ),
    dict(
        number=13,
        claimed="The best max_rpcs_in_flight is 16 / log2(N + 1): 4 for 15 clients, 3 for 31, 2 "
                "for 63 and more.",
        right="It gives 4, 3.2, 2.67 and 2.29 for 15, 31, 63 and 127, so that holds only when "
              "rounded down, and it has no known source. Lustre's default is 8 and the limit 256; "
              "servers bound their own load. Fewer than 8 gain nothing; more are needed where one "
              "client can't fill its link.",
        run="scaling --clients 63",
        expect={"osc_quoted": (2.6667, 1e-4), "osc_advised": (8, 0)},
        compute={
            "15 clients": ("16 / log2(15 + 1)", 4),
            "31 clients": ("16 / log2(31 + 1)", 3.2),
            "127 clients": ("16 / log2(127 + 1)", 2.2857),
        },
        source="lustre/include/obd.h: OBD_MAX_RIF_DEFAULT 8, OSC_MAX_RIF_MAX 256",
    ),
]
