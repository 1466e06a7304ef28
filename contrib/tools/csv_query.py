"""csv_query: one SELECT over CSV text.

The table is in memory and ends with the call. The statement comes from a
model: SQLite asks _allow for each step, and _allow permits reading alone.
"""

import csv
import io
import re
import sqlite3
from typing import Annotated, Literal

import mcpbox

ROWS_MAX = 1000
COLUMNS_MAX = 200           # SQLite has at most 2000
READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ,
                     sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
#: 007 and 1_000 are texts: a number has one spelling here.
INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
REAL = re.compile(r"-?(0|[1-9][0-9]{0,17})\.[0-9]+")


def _value(cell):
    if INTEGER.fullmatch(cell):
        return int(cell)
    if REAL.fullmatch(cell):
        return float(cell)
    return cell or None


def _load(db, text, delimiter):
    """Fills the table csv; returns the names of its columns."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names = [name.strip() for name in next(reader, [])]
    if not 1 <= len(names) <= COLUMNS_MAX or not all(names) or (
            len({name.lower() for name in names}) < len(names)):
        raise mcpbox.ToolError("the first line of the CSV must name 1 to "
                               f"{COLUMNS_MAX} columns, each differently")
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    db.execute(f"CREATE TABLE csv ({quoted})")
    insert = f"INSERT INTO csv VALUES ({', '.join('?' * len(names))})"
    for row in reader:
        if row and len(row) != len(names):
            raise mcpbox.ToolError(
                f"line {reader.line_num} of the CSV has {len(row)} fields, "
                f"the first line has {len(names)}: quote what contains "
                "the delimiter, or give another delimiter")
        if row:
            db.execute(insert, [_value(cell) for cell in row])
    return names


def _allow(action, *_):
    return sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY


def main(text: str, query: str,
         delimiter: Literal[",", ";", "\t", "|"] = ",",
         max_rows: Annotated[int, "1 to 1000 rows are returned"] = 100):
    """Answers one SQL SELECT (SQLite) over CSV text, whose table is `csv`.

    Numbers are numbers, empty fields are NULL, everything else is text.

    Args:
        text: the CSV; its first line names the columns
        query: for example SELECT city, sum(sales) FROM csv GROUP BY city
        delimiter: between two fields
    """
    if not 1 <= max_rows <= ROWS_MAX:
        raise mcpbox.ToolError(f"max_rows must be from 1 to {ROWS_MAX}")
    db = sqlite3.connect(":memory:")
    try:
        names = _load(db, text, delimiter)
    except csv.Error as e:
        raise mcpbox.ToolError(f"this is no CSV: {e}") from None
    db.set_authorizer(_allow)
    try:
        found = db.execute(query)
        rows = found.fetchmany(max_rows + 1)
    except (sqlite3.Error, sqlite3.Warning) as e:
        raise mcpbox.ToolError(f"{e}; give one SELECT over csv, which has "
                               "the columns " + ", ".join(names)) from None
    return {"columns": [column[0] for column in found.description or ()],
            "rows": rows[:max_rows], "truncated": len(rows) > max_rows}
