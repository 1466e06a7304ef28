#!/usr/bin/python3
"""Writes Python modules as C arrays: embed.py OUTPUT MODULE.py...

The order of the arguments is the order in which they are loaded.
"""

import ast
import os
import sys


def main(output, paths):
    lines = ['#include <stddef.h>', '', '#include "harness.h"', '']
    rows = []
    for i, path in enumerate(paths):
        with open(path, "rb") as f:
            text = f.read()
        ast.parse(text, path)       # a mistake is found here, not at start
        if b"\0" in text:
            sys.exit(f"{path}: NUL in the text")
        data = text + b"\0"
        lines.append(f"static const unsigned char text{i}[] = {{")
        for at in range(0, len(data), 16):
            row = ", ".join(str(b) for b in data[at:at + 16])
            lines.append(f"\t{row},")
        lines += ["};", ""]
        name = os.path.splitext(os.path.basename(path))[0]
        rows.append(f'\t{{ "{name}", text{i} }},')
    lines.append("const struct harness_module harness_modules[] = {")
    lines += rows + ["\t{ NULL, NULL },", "};", ""]
    with open(output, "w", encoding="ascii") as f:
        f.write("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
