"""What is commonly claimed of network links, and what is right."""

EXAMPLES = [
    dict(number=54,
         claimed="HDR200 InfiniBand gives 400 Gb/s a port.",
         right="HDR is 200 Gb/s (4 lanes of 50), 25 GB/s at most in each direction; 400 Gb/s is "
               "NDR (4 lanes of 100). 1 MiB takes 43 us on such a link, not 21.",
         run="latency --link 200Gb/s --io-size 1MiB --mtu 4200B",
         expect={"serialisation_low": (42.784e-6, 1e-3), "goodput": (24.509e9, 1e-3)},
         compute={"HDR, Gb/s": ("4 * 50", 200), "NDR, Gb/s": ("4 * 100", 400),
                  "HDR, GB/s": ("200 / 8", 25)},
         source="InfiniBand roadmap, https://www.infinibandta.org/infiniband-roadmap/"),
]
