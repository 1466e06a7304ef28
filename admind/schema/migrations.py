"""Writes migrations.c: the schema and its migrations as bytes, with their SHA-256, so
that the program and the schema it knows are one file. Number 1 is sql/schema, its
files in the order of the command line; from 2 on they are
sql/migrations/NNNN_name.sql.

usage: migrations.py OUTPUT FILE..."""
import hashlib
import re
import sys
from pathlib import Path

files = [Path(a) for a in sys.argv[2:]]
schema = [p for p in files if p.parent.name == "schema"]
there = {p.name for p in schema[0].parent.glob("*.sql")}
if there != {p.name for p in schema}:
    sys.exit(f"sql/schema: meson.build lacks {sorted(there ^ {p.name for p in schema})}")
migrations = [("schema", b"".join(p.read_bytes() for p in schema))]
for path in sorted((p for p in files if p not in schema), key=lambda p: p.name):
    want = len(migrations) + 1
    m = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", path.name)
    if not m or int(m[1]) != want:
        sys.exit(f"{path.name}: expected number {want:04d} and a lower-case name")
    migrations.append((m[2], path.read_bytes()))
out = ['#include "migrate.h"', ""]
rows = []
for n, (name, text) in enumerate(migrations, 1):
    if b"\0" in text:
        sys.exit(f"{name}: NUL byte")
    digest = ", ".join(str(b) for b in hashlib.sha256(text).digest())
    body = ",".join(str(b) for b in text)
    out.append(f"static const char sql_{n}[] = {{ {body},0 }};")
    rows.append(f'\t{{ {n}, "{name}", {{ {{ {digest} }} }}, sql_{n} }},')
out += ["", "const struct migration migrations[] = {", *rows, "};",
        f"const int migrations_count = {len(rows)};", ""]
Path(sys.argv[1]).write_text("\n".join(out))
