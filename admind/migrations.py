"""Writes migrations.c: sql/migrations/NNNN_name.sql as bytes, with their
SHA-256, so that the program and the schema it knows are one file.

usage: migrations.py OUTPUT FILE..."""
import hashlib
import re
import sys
from pathlib import Path

out = ['#include "migrate.h"', ""]
rows = []
for want, path in enumerate(sorted(map(Path, sys.argv[2:]), key=lambda p: p.name), 1):
    m = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", path.name)
    if not m or int(m[1]) != want:
        sys.exit(f"{path.name}: expected number {want:04d} and a lower-case name")
    text = path.read_bytes()
    if b"\0" in text:
        sys.exit(f"{path.name}: NUL byte")
    digest = ", ".join(str(b) for b in hashlib.sha256(text).digest())
    body = ",".join(str(b) for b in text)
    out.append(f"static const char sql_{want}[] = {{ {body},0 }};")
    rows.append(f'\t{{ {want}, "{m[2]}", {{ {{ {digest} }} }}, sql_{want} }},')
out += ["", "const struct migration migrations[] = {", *rows, "};",
        f"const int migrations_count = {len(rows)};", ""]
Path(sys.argv[1]).write_text("\n".join(out))
