"""Writes guide.c: a text file as bytes, so that the program carries it.

usage: guide.py OUTPUT FILE"""
import sys
from pathlib import Path

text = Path(sys.argv[2]).read_bytes()
text.decode()  # it goes into JSON: UTF-8, or the build fails here
if b"\0" in text or not 0 < len(text) < 64 * 1024:
    sys.exit("the guide must be 1 byte to 64 KiB of text")
Path(sys.argv[1]).write_text(
    '#include "guide.h"\n\n'
    f"const char guide_text[] = {{ {','.join(str(b) for b in text)},0 }};\n"
    "const size_t guide_len = sizeof(guide_text) - 1;\n")
