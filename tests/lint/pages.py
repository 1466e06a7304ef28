"""Documents are pages: their prose wraps at 80 columns, a DESIGN.md has at most
120 lines (one screenful), README.md at most 100 (two).

Code, tables, headings, HTML and sections that a program writes may have longer
lines, and so may a line that is one word, such as a link. A document in LONG
may, too, for its reason. No entry of CHANGES.md is there twice: git merges the
entries of two branches by union, and an entry that one of them wrapped remains.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
COLUMNS = 80
LINES = {"README.md": 100}
DESIGN_LINES = 120
LONG = {
    "docs/FULL-RUN.md": "tests/run --record writes it",
    "docs/TOOLS.md": "mcpbox_guide gives it to models: its bytes are bounded, and its lines (tests/probes/test_guide.py)",
}

OTHER = re.compile(r"\||#|<|\s*\[[^\]]+\]: ")   # table, heading, HTML, link definition
FENCE = re.compile(r"\s*(`{3,}|~{3,})")


def prose(text):
    """The lines of prose, as (number, line)."""
    fence, written, code, blank = None, False, False, True
    for n, line in enumerate(text.splitlines(), 1):
        mark = FENCE.match(line)
        if fence is not None:
            if mark and mark[1].startswith(fence):
                fence = None
            continue
        if mark:
            fence = mark[1]
        written = (written or line.startswith("<!-- begin: ")) and not line.startswith("<!-- end: ")
        code = line.startswith("    ") and (code or blank)
        blank = not line.strip()
        if not (mark or written or code or blank or OTHER.match(line)):
            yield n, line


def wide(text):
    """Numbers of lines of prose that are over 80 columns and can be broken."""
    return [n for n, line in prose(text)
            if len(line) > COLUMNS and len(re.sub(r"^\s*([-*+]|\d+[.)])\s", "", line).split()) > 1]


def most(path):
    """Lines that a document may have; None: any number."""
    return DESIGN_LINES if path.rpartition("/")[2] == "DESIGN.md" else LINES.get(path)


def twice(text):
    """Items of a list whose words are those of an earlier one, by their beginning."""
    items = [" ".join(t.split()) for t in re.findall(r"^- (.*\n(?:  .*\n)*)", text, re.M)]
    return [t[:40] for n, t in enumerate(items) if t in items[:n]]


def breaches(path, text):
    found = wide(text)
    if path == "CHANGES.md":
        for entry in twice(text):
            yield f"{path}:1: there twice: {entry}"
    if path in LONG:
        if not found:
            yield f"{path}:1: has no long line: its row in tests/lint/pages.py may go"
    else:
        for n in found:
            yield f"{path}:{n}: over {COLUMNS} columns"
    bound = most(path)
    if bound is not None and text.count("\n") > bound:
        yield f"{path}:{bound}: over {bound} lines: cut it (code and decisions have the rest)"


def self_test():
    long = "word " * 20 + "\n"
    may = ["# " + long, "| " + long, "```\n" + long + "```\n", "x:\n\n    " + long, "- " + "w" * 90 + "\n",
           "<!-- begin: x -->\n" + long + "<!-- end: x -->\n"]
    if any(list(breaches("x.md", t)) for t in may):
        sys.exit("a line that may be long is a breach")
    for t in (long, "- " + long, "x\n    " + long, "```\nx\n```\n" + long, may[-1] + long):
        if len(list(breaches("x.md", t))) != 1:
            sys.exit("a long line of prose is none")
    for path, n in (("README.md", 101), ("a/b/DESIGN.md", 121)):
        if len(list(breaches(path, "x\n" * n))) != 1 or list(breaches(path, "x\n" * (n - 1))):
            sys.exit(f"{path} may have any number of lines")
    if twice("- a b c\n- d\n- a\n  b c\n") != ["a b c"] or twice("- a\n- b\n"):
        sys.exit("an entry that is there twice is not found")
    if not list(breaches("docs/TOOLS.md", "x\n")):
        sys.exit("a row too many is not found")


def main():
    self_test()
    files = subprocess.check_output(["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard", "*.md"], text=True).split("\0")
    bad = [b for f in sorted(set(files)) if f and (ROOT / f).is_file() for b in breaches(f, (ROOT / f).read_text(encoding="utf-8"))]
    print(*bad, sep="\n", end="\n" if bad else "")
    return 1 if bad else 0


sys.exit(main())
