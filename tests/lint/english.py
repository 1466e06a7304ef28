"""The English of comments (.c, .h, .def) and documents (.md) gets no worse.

Counts markers: words after which a sentence is often read twice. english.txt
has the count of each folder; a larger one is a breach, and the sentences that
are new since the table was written are shown. A much smaller one is a breach,
too: --write puts today's counts into the table, if their sum is not larger.
"""
import collections
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = pathlib.Path(__file__).with_suffix(".txt")
#: Folders below the top ones that have a row of their own.
APART = {"admind": ("check", "ctl", "http", "vault"), "sandboxd": ("egress", "local", "pool", "runner", "spawn", "store"),
         "docs": ("decisions",)}
#: A program writes these.
WRITTEN = ("docs/FULL-RUN.md",)

MARKER = re.compile(
    r"\b(?:what|who|whoever|whatever|behind|anew|stands?|nobody|meanwhile|the latter"
    r"|is no|(?:is|are|has) none|of (?:it|them|which|whom))\b"
    r"|(?:^|(?<=[.:;(?!] ))(?:What|Who|Whose|Whom|Which|How|Where|Of|Behind)\b")
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def comments(text):
    """The comments of C, each as one line."""
    for m in TOKEN.finditer(text):
        if m[0].startswith("/"):
            yield " ".join(re.sub(r"\*/$|^\s*\*+(?!/)|^/[/*]+", "", m[0], flags=re.M).split())


def paragraphs(text):
    """The prose of Markdown without code, each paragraph, item and cell as one line."""
    text = re.sub(r"<!-- begin: (.*?) -->\n.*?<!-- end: \1 -->", "", text, flags=re.S)
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1|(?<=\n\n)(?: {4}[^\n]*\n)+", "\n", text, flags=re.S | re.M)
    text = re.sub(r"`[^`]*`|\]\([^)]*\)|\[", "", text)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)]) )|\||^#+ ", text, flags=re.M):
        yield " ".join(block.strip().removeprefix("- ").replace("*", "").split())


def marked(path, text):
    """The marked sentences of a file, each as often as it has markers."""
    out = collections.Counter()
    for block in (paragraphs if path.endswith(".md") else comments)(text):
        for sentence in re.split(r"(?<=[.?!]) (?=[A-Z(])", block):
            out[sentence] += len(MARKER.findall(sentence))
    return +out


def folder(path):
    """The row of the table that counts a file."""
    parts = path.split("/")
    if len(parts) > 2 and parts[1] in APART.get(parts[0], ()):
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else "."


def git(*words):
    return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout


def sentences():
    """{folder: Counter of marked sentences}."""
    out = collections.defaultdict(collections.Counter)
    for path in set(git("ls-files", "-z", "-co", "--exclude-standard", "*.c", "*.h", "*.def", "*.md").split("\0")):
        if path and path not in WRITTEN and (ROOT / path).is_file():
            out[folder(path)] += marked(path, (ROOT / path).read_text(encoding="utf-8"))
    return out


def new(name):
    """The marked sentences that a folder did not have when the table was written."""
    commit = git("log", "-1", "--format=%H", "--", str(TABLE)).strip()
    if not commit:
        return ["(there is no commit of the table to compare with)"]
    then, now = collections.Counter(), collections.Counter()
    for path in git("diff", "--name-only", "--no-renames", "-z", commit, "--", "*.c", "*.h", "*.def", "*.md").split("\0"):
        if path and folder(path) == name and path not in WRITTEN:
            then += marked(path, git("show", f"{commit}:{path}"))
            if (ROOT / path).is_file():
                now += marked(path, (ROOT / path).read_text(encoding="utf-8"))
    return sorted(now - then)


def read_table(text):
    return {name: int(n) for n, name in (line.split() for line in text.splitlines())}


def judge(name, count, known):
    """What is wrong with one folder's count, or None."""
    if count > known:
        return f"{name}: {count} markers in comments and documents, at most {known} (tests/lint/english.txt)"
    if known - count > max(10, known // 10):
        return f"{name}: {count} markers, and tests/lint/english.txt says {known}: tests/lint/english.py --write"
    return None


def self_test():
    c = '/* Who may: nobody.\n * Returns the\n * rest of it. */ char *s = "what /* who */"; // Is sent.\n'
    if marked("x.c", c) != {"Who may: nobody.": 2, "Returns the rest of it.": 1}:
        sys.exit(f"comments are not read: {marked('x.c', c)}")
    md = "# A\n\nA `what` is [read](who.md). What\nis left: no.\n\n    who\n\n- of whom\n\n```\nwho\n```\n| who | a |\n"
    if marked("x.md", md) != {"What is left: no.": 1, "of whom": 1, "who": 1}:
        sys.exit(f"documents are not read: {marked('x.md', md)}")
    if [judge("x", n, 100) is None for n in (101, 100, 90, 89)] != [False, True, True, False]:
        sys.exit("a bound does not bind")
    names = {"README.md": ".", "admind/db/db.h": "admind", "admind/ctl/base/a.h": "admind/ctl", "docs/A.md": "docs"}
    if {p: folder(p) for p in names} != names:
        sys.exit("a file is counted elsewhere")


def main():
    self_test()
    found = sentences()
    counts = {name: sum(found[name].values()) for name in sorted(found)}
    known = read_table(TABLE.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--write"]:
        if sum(counts.values()) > sum(known.values()):
            sys.exit(f"{sum(counts.values())} markers, at most {sum(known.values())}")
        TABLE.write_text("".join(f"{n} {name}\n" for name, n in counts.items()), encoding="utf-8")
        return 0
    bad = 0
    for name in sorted(counts | known):
        wrong = judge(name, counts.get(name, 0), known.get(name, 0))
        if wrong is None:
            continue
        bad += 1
        print(wrong)
        if counts.get(name, 0) > known.get(name, 0):
            for sentence in new(name):
                print(f"  {sentence}")
    return 1 if bad else 0


sys.exit(main())
