"""Writes stdlib.c: the names of Python's standard library.

They are asked of an interpreter of the very version that runners embed; another
one has other modules, and the build fails.

usage: stdlib.py OUTPUT VERSION-OF-PYTHON3-EMBED"""
import sys
from pathlib import Path

here = f"{sys.version_info[0]}.{sys.version_info[1]}"
if sys.argv[2].split(".")[:2] != here.split("."):
    sys.exit(f"python3 is {here}, and python3-embed {sys.argv[2]}: install the same version of both")
names = sorted(n for n in sys.stdlib_module_names if not n.startswith("_"))
Path(sys.argv[1]).write_text(
    '#include "stdlib_names.h"\n\n'
    f"const char *const stdlib_names[] = {{{','.join(f'{chr(34)}{n}{chr(34)}' for n in names)}}};\n"
    f"const size_t stdlib_count = {len(names)};\n")
