"""Writes migrations.c: the schema and its migrations as bytes, with their checksums, so
that the program and the schema it knows are one file. Number 1 is sql/schema, its
files in the order of the command line; from 2 on they are
sql/migrations/NNNN_name.sql.

LANDED is sql/landed.txt (docs/decisions/0091-comments-of-landed-sql.md). A migration
that has a row there must have the code of the row, and its checksum is the row's. The
checksum of another migration is the SHA-256 of its bytes.

usage: migrations.py OUTPUT LANDED FILE...
       migrations.py --row FILE...      prints the row of this migration, for LANDED"""
import hashlib
import re
import sys
from pathlib import Path

#: The tokens of PostgreSQL's scan.l, as far as it matters where a literal or a comment
#: begins and ends. A line ends at \r, too. A literal may go on in another line. In a
#: name, $ begins no dollar quotes.
LITERAL = rb"(?:[^']|'')*'(?!')"
ESCAPED = rb"(?:[^'\\]|\\.|'')*'(?!')"
NEXT_LINE = rb"[ \t\f]*[\n\r][ \t\n\r\f]*'"
LETTER = rb"[A-Za-z_\x80-\xff]"
TOKEN = re.compile(
    rb"(?P<gap>[ \t\n\r\f]+|--[^\n\r]*)"
    rb"|(?P<comment>/\*)"
    rb"|(?P<literal>[eE]'" + ESCAPED + rb"(?:" + NEXT_LINE + ESCAPED + rb")*"
    rb"|'" + LITERAL + rb"(?:" + NEXT_LINE + LITERAL + rb")*)"
    rb"|(?P<name>\"(?:[^\"]|\"\")*\"(?!\")|(?![eE]')" + LETTER + rb"[\w$\x80-\xff]*)"
    rb"|(?P<body>(?P<tag>\$(?:" + LETTER + rb"[\w\x80-\xff]*)?\$).*?(?P=tag))"
    rb"|(?P<open>[eE]?'|\"|\$(?:" + LETTER + rb"[\w\x80-\xff]*)?\$)"
    rb"|(?P<mark>.)", re.S)


def comment_end(text, at):
    """Returns the end of the comment /* that begins at `at`: comments nest."""
    depth = 0
    for m in re.compile(rb"/\*|\*/").finditer(text, at):
        depth += 1 if m[0] == b"/*" else -1
        if depth == 0:
            return m.end()
    sys.exit(f"line {line_of(text, at)}: this comment does not end")


def line_of(text, at):
    return text.count(b"\n", 0, at) + 1


def code(text):
    """Returns SQL without comments, and with one space for each run of white space.
    Literals and dollar-quoted bodies keep all their bytes: PostgreSQL stores the body
    of a function with its comments."""
    out, at, gap, before = [], 0, False, None
    while at < len(text):
        m = TOKEN.match(text, at)
        kind, start = m.lastgroup, at
        at = comment_end(text, at) if kind == "comment" else m.end()
        if kind in ("gap", "comment"):
            gap = True
            continue
        if kind == "open":
            sys.exit(f"line {line_of(text, start)}: this literal or name does not end")
        if before == "literal" and m[0].startswith(b"'"):
            # Whether \ escapes in the second part depends on the first part.
            sys.exit(f"line {line_of(text, start)}: a comment is between parts of a literal")
        if gap and out:
            out.append(b" ")
        out.append(m[0])
        gap, before = False, kind
    return b"".join(out)


def landed(text):
    """Returns {number: (checksum, SHA-256 of the code)} from the text of LANDED."""
    rows = {}
    for line in text.splitlines():
        if line.startswith("#") or not line:
            continue
        m = re.fullmatch(r"(\d+) ([0-9a-f]{64}) ([0-9a-f]{64})", line)
        if not m or int(m[1]) != len(rows) + 1:
            sys.exit(f"sql/landed.txt: expected the row of migration {len(rows) + 1}: {line}")
        rows[len(rows) + 1] = (bytes.fromhex(m[2]), bytes.fromhex(m[3]))
    return rows


def code_digest(where, text):
    try:
        return hashlib.sha256(code(text)).digest()
    except SystemExit as e:
        sys.exit(f"{where}: {e}")


def checksum(where, text, row):
    """Returns the checksum of a migration. row: what landed() has of it, or None."""
    if row is None:
        return hashlib.sha256(text).digest()
    if code_digest(where, text) != row[1]:
        sys.exit(f"{where}: code of a landed migration changed; write a new one"
                 " (comments inside of $$ count as code)")
    return row[0]


def number(path):
    """Returns (number, name) of a file of sql/migrations, or None."""
    m = re.fullmatch(r"(\d{4})_([a-z0-9_]+)\.sql", path.name)
    return (int(m[1]), m[2]) if m else None


def read(files):
    """Returns [(where, name, text)] of all migrations."""
    schema = [p for p in files if p.parent.name == "schema"]
    there = {p.name for p in schema[0].parent.glob("*.sql")}
    if there != {p.name for p in schema}:
        sys.exit(f"sql/schema: meson.build lacks {sorted(there ^ {p.name for p in schema})}")
    found = [("sql/schema (a file, or the order of the files)", "schema",
              b"".join(p.read_bytes() for p in schema))]
    for path in sorted((p for p in files if p not in schema), key=lambda p: p.name):
        want = len(found) + 1
        n = number(path)
        if n is None or n[0] != want:
            sys.exit(f"{path.name}: expected number {want:04d} and a lower-case name")
        found.append((f"sql/migrations/{path.name}", n[1], path.read_bytes()))
    return found


def write(migrations, rows):
    """Returns the text of migrations.c."""
    out = ['#include "migrate.h"', ""]
    table = []
    for n, (where, name, text) in enumerate(migrations, 1):
        if b"\0" in text:
            sys.exit(f"{where}: NUL byte")
        digest = ", ".join(str(b) for b in checksum(where, text, rows.get(n)))
        body = ",".join(str(b) for b in text)
        out.append(f"static const char sql_{n}[] = {{ {body},0 }};")
        table.append(f'\t{{ {n}, "{name}", {{ {{ {digest} }} }}, sql_{n} }},')
    if len(rows) > len(migrations):
        sys.exit(f"sql/landed.txt: there is no migration {len(migrations) + 1}")
    return "\n".join([*out, "", "const struct migration migrations[] = {", *table, "};",
                      f"const int migrations_count = {len(table)};", ""])


def main(output, *paths):
    if output == "--row":
        files = [Path(p) for p in paths]
        text = b"".join(p.read_bytes() for p in files)
        n = 1 if files[0].parent.name == "schema" else number(files[0])[0]
        print(n, hashlib.sha256(text).hexdigest(), code_digest(files[0], text).hex())
        return
    rows = landed(Path(paths[0]).read_text(encoding="ascii"))
    Path(output).write_text(write(read([Path(p) for p in paths[1:]]), rows), encoding="ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
