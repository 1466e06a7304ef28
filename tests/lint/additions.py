"""HACKING.md's lists of files are what its examples touch.

Each section "### A KIND" of "Add something" has a line "Example: `name`, ..." and a list
of files, "- `path`, ...: what for". Files that name the example, in their text or
their path, are those of the list, and no others: so whoever adds the next of the kind
finds every place, and a place that is new or gone shows here.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = "HACKING.md"
#: Where a name may stand without belonging to it: history, reasons, the page itself, and the panel, which shows
#: whatever there is by types that are made of docs/openapi.yaml.
APART = re.compile(r"CHANGES\.md|HACKING\.md|docs/FULL-RUN\.md|docs/decisions/.*|(?:admind|tests)/panel/.*")


def sections(text):
    """(line, title, body) of each section of "Add something"."""
    whole = re.search(r"^## Add something\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    begun = text.count("\n", 0, whole.start(1)) + 1
    for m in re.finditer(r"^### (.*?)\n(.*?)(?=^### |\Z)", whole[1], re.S | re.M):
        yield begun + whole[1].count("\n", 0, m.start()), m[1], m[2]


def example(body):
    """Names of the example, and the listed files; a folder ends in /."""
    line = re.search(r"^Example: (.*?)\.$", body, re.S | re.M)
    names = re.findall(r"`([^`]+)`", line[1]) if line else []
    listed = [p for item in re.findall(r"^- ((?:`[^`]+`,?\s+)*`[^`]+`):\s", body, re.M)
              for p in re.findall(r"`([^`]+)`", item)]
    return names, listed


def touched(names, files):
    """Those of {path: text} that name one of them."""
    at = re.compile("|".join(map(re.escape, names)), re.I)
    return {p for p, text in files.items() if at.search(p) or at.search(text)}


def compare(body, files):
    """Breaches of one section."""
    names, listed = example(body)
    if not names or not listed:
        yield "has no line \"Example: `name`.\", or no list of files"
        return
    have = touched(names, files)
    for p in listed:
        if not any(f.startswith(p) if p.endswith("/") else f == p for f in have):
            yield f"{p} does not name {' or '.join(names)}"
        if listed.count(p) > 1:
            yield f"{p} is listed twice"
    for f in sorted(have):
        if not any(f.startswith(p) if p.endswith("/") else f == p for p in listed):
            yield f"{f} names {' or '.join(names)} and is not listed"


def self_test():
    page = "## Add something\n\n### A thing\n\nExample: `fits`,\n`fit-s`.\n\n- `a.c`,\n  `b/`: it\n- `c.md`: told\n"
    (line, title, body), = sections(page)
    if (line, title) != (3, "A thing") or example(body) != (["fits", "fit-s"], ["a.c", "b/", "c.md"]):
        sys.exit("a section is not understood")
    good = {"a.c": "FITS()", "b/x": "", "b/fit-s": "", "c.md": "fits", "d.c": "fit"}
    if list(compare(body, good)):
        sys.exit("a good list is objected to")
    for planted in ({**good, "d.c": "fits"}, {**good, "c.md": ""}, {**good, "d_fits.c": ""}):
        if not list(compare(body, planted)):
            sys.exit(f"no effect on {planted}")
    if not list(compare("Example: `fits`.\n", good)):
        sys.exit("a list that is missing is not missed")


def main():
    self_test()
    files = {}
    for f in subprocess.check_output(["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"], text=True).split("\0"):
        if f and (ROOT / f).is_file() and not APART.fullmatch(f):
            files[f] = (ROOT / f).read_text(encoding="utf-8", errors="replace")
    found = list(sections((ROOT / PAGE).read_text(encoding="utf-8")))
    bad = [f"{PAGE}:{line}: {title}: {b}" for line, title, body in found for b in compare(body, files)]
    if len(found) < 15:
        bad.append(f"{PAGE}:1: fewer kinds than there are")
    print(*bad, sep="\n", end="\n" if bad else "")
    return 1 if bad else 0


sys.exit(main())
