"""Prints crc32c_tables.h, the constant tables of crc32c.c.

crc32c_slice[k][b]   what byte b does to the register when k zero bytes follow it
crc32c_shift_N[k][b] what byte k of the register, being b, becomes when N zero bytes pass
"""

POLYNOMIAL = 0x82F63B78  # Castagnoli, bits reflected
LANES = {"long": 1360, "short": 168}  # Bytes; crc32c.c says why.


def byte_table():
    table = []
    for register in range(256):
        for _ in range(8):
            register = (register >> 1) ^ (POLYNOMIAL if register & 1 else 0)
        table.append(register)
    return table


def slice_tables(first):
    tables = [first]
    for _ in range(7):
        tables.append([(value >> 8) ^ first[value & 255] for value in tables[-1]])
    return tables


def shift_tables(first, size_bytes):
    """The shift is linear, so 32 single bits tell what any register becomes."""
    bits = []
    for bit in range(32):
        register = 1 << bit
        for _ in range(size_bytes):
            register = (register >> 8) ^ first[register & 255]
        bits.append(register)

    def shifted(value):
        result = 0
        for bit in range(32):
            if value >> bit & 1:
                result ^= bits[bit]
        return result

    return [[shifted(value << 8 * k) for value in range(256)] for k in range(4)]


def print_tables(name, tables):
    print(f"static const uint32_t {name}[{len(tables)}][256] = {{")
    for table in tables:
        print("    {")
        for start in range(0, 256, 8):
            print("        " + " ".join(f"0x{value:08x}," for value in table[start:start + 8]))
        print("    },")
    print("};")


def main():
    first = byte_table()
    print("/* Written by crc32c_tables.py. */")
    print("#pragma once")
    print("#include <stddef.h>")
    print("#include <stdint.h>")
    print_tables("crc32c_slice", slice_tables(first))
    print("#if defined(__SSE4_2__)")
    for name, size_bytes in LANES.items():
        print(f"#define CRC32C_LANE_{name.upper()}_BYTES ((size_t){size_bytes})")
        print_tables(f"crc32c_shift_{name}", shift_tables(first, size_bytes))
    print("#endif")


main()
