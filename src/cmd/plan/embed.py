"""Writes C with the bytes of files: the data files and the page that the program carries.

Usage: embed.py FILE... (standard output)

A file's name is its own, with "scenarios/" in front when it lies in a folder of that name.
"""

import os
import sys


def name_of(path):
    folder, name = os.path.split(path)
    return ("scenarios/" if os.path.basename(folder) == "scenarios" else "") + name


def main(paths):
    rows = []
    print('/* Made by embed.py. */\n#include "cmd/plan/plan_files.h"\n')
    for index, path in enumerate(paths):
        with open(path, "rb") as file:
            data = file.read()
        rows.append(f'    {{"{name_of(path)}", file_{index}, {len(data)}}},')
        data += b"\0"  # So that a text is a string.
        print(f"static const unsigned char file_{index}[] = {{")
        for start in range(0, len(data), 24):
            print(",".join(str(byte) for byte in data[start:start + 24]) + ",")
        print("};")
    print("const struct plan_file plan_files[] = {")
    print("\n".join(rows))
    print("};\nconst size_t plan_file_count = sizeof plan_files / sizeof plan_files[0];")


main(sys.argv[1:])
