"""Looks at each frame that passes the networks of a namespace, for a mark that must not be there.

    nsenter --net=/run/netns/NAME chaos_wire.py MARK

Says "ready", a line for each frame that holds the mark, and when its standard input ends how many
frames and bytes it has seen and how many it was too slow for.
"""

import json
import select
import socket
import struct
import sys

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_STATISTICS = 6
PACKET_IGNORE_OUTGOING = 23
SO_RCVBUFFORCE = 33
BUFFER_BYTES = 256 << 20
BRIDGE = "bridge"  # has once more what came in at its ports
FRAME_BYTES = 1 << 17


def listen():
    """Frames as they come in at each port, each once."""
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    wire.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
    wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
    return wire


def main():
    mark = sys.argv[1].encode()
    wire = listen()
    frame = bytearray(FRAME_BYTES)
    frames = seen_bytes = 0
    print("ready", flush=True)
    while True:
        readable = select.select([wire, sys.stdin], [], [])[0]
        if wire in readable:
            size, address = wire.recvfrom_into(frame)
            if address[0] == BRIDGE:
                continue
            frames += 1
            seen_bytes += size
            at = frame.find(mark, 0, size)
            if at >= 0:
                ends = struct.unpack_from("!4B4BHH", frame, 26)
                print("mark", address[0], ".".join(map(str, ends[:4])), ends[8],
                      ".".join(map(str, ends[4:8])), ends[9], at, flush=True)
        elif not sys.stdin.buffer.read(1):
            break
    dropped = struct.unpack("II", wire.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]
    print(json.dumps({"frames": frames, "bytes": seen_bytes, "dropped": dropped}), flush=True)


main()
