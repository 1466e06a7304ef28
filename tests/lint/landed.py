"""A row of sql/landed.txt never changes (docs/decisions/0091).

A row has the checksum that databases have recorded, and the digest of the code
that made them. The build compares code with this digest, so whoever changed both
would give new databases another schema than the old ones. Each row that a commit
of this branch had is compared with the row of today.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = "sql/landed.txt"
ROW = re.compile(r"^(\d+) ([0-9a-f]{64} [0-9a-f]{64})$", re.M)


def rows(text):
    return dict(ROW.findall(text))


def removed(patch):
    """The rows that a patch, or several, take away, as {(number, digests)}."""
    return set(ROW.findall("\n".join(line[1:] for line in patch.splitlines() if re.match(r"-\d", line))))


def breaches(now, history):
    """now: the table's text; history: the patches that made it, and those since."""
    have = rows(now)
    for number, digests in sorted(removed(history), key=lambda r: (int(r[0]), r[1])):
        if have.get(number) != digests:
            yield f"{TABLE}: the row of migration {number} was {number} {digests}: a row never changes"


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout


def self_test():
    a, b = "a" * 64, "b" * 64
    patch = f"--- a/{TABLE}\n+++ b/{TABLE}\n-2 {a} {a}\n+2 {a} {b}\n 1 {a} {a}\n"
    if len(list(breaches(f"1 {a} {a}\n2 {a} {b}\n", patch))) != 1 or len(list(breaches("", patch))) != 1:
        sys.exit("a row that changed is not found")
    if list(breaches(f"# text\n1 {a} {a}\n2 {a} {a}\n", patch)) or list(breaches("", patch.replace("\n-2", "\n 2"))):
        sys.exit("a row that is still there is a breach")


def main():
    self_test()
    history = git("log", "--first-parent", "-m", "-p", "--format=", "--", TABLE) + git("diff", "HEAD", "--", TABLE)
    bad = list(breaches((ROOT / TABLE).read_text(encoding="ascii"), history))
    print(*bad, sep="\n", end="\n" if bad else "")
    return 1 if bad else 0


sys.exit(main())
