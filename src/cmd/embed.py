"""Writes C with the bytes of files: the data files and the page that the program carries.

Usage: embed.py NAME=FILE... (standard output)
"""

import sys


def main(arguments):
    names = []
    print('/* Made by embed.py. */\n#include "cmd/plan_files.h"\n')
    for index, argument in enumerate(arguments):
        name, path = argument.split("=", 1)
        with open(path, "rb") as file:
            data = file.read()
        names.append((name, index, len(data)))
        print(f"static const unsigned char file_{index}[] = {{")
        data += b"\0"  # So that a text is a string.
        for start in range(0, len(data), 24):
            print(",".join(str(byte) for byte in data[start:start + 24]) + ",")
        print("};")
    print("const struct plan_file plan_files[] = {")
    for name, index, size in names:
        print(f'    {{"{name}", file_{index}, {size}}},')
    print("};\nconst size_t plan_file_count = sizeof plan_files / sizeof plan_files[0];")


main(sys.argv[1:])
