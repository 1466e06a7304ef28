"""Counts what tests start, for `tests/run --times`."""
import os


def started(kind):
    path = os.environ.get("MCPBOX_TEST_STARTED")
    if path:
        with open(path, "a", encoding="ascii") as f:
            f.write(kind + "\n")   # one write(2): no other process's line is in it
