"""docs/FULL-RUN.md: the last time that each part ran, which the program itself writes,
and what follows from it: which long parts a change makes run again, how long a part
takes, and which files clang-tidy has found clean."""
import dataclasses
import re
import subprocess
import time

from runner.context import SRC
from runner.parts import BY_NAME, FULL, PARTS, of_tier

DOCUMENT = SRC / "docs/FULL-RUN.md"
#: Commits after which a long part runs again though nothing touched its paths: the
#: table of paths may have a hole.
EVERY = 20

HEAD = """# The last full run

`sudo tests/run full --record` writes this page; other rows stay when a part alone is
recorded. `tests/run --touched`, which CI runs, reads it: a long part runs again when
a file that it depends on has changed since the commit in its row, or when there are
{every} commits since, or when it failed.

Machine of the last one: {machine}.

| Job | Part | Commit | Day | Passed | Failed | Seconds | CPU seconds | 100 fork+exec, ms |
|-----|------|--------|-----|-------:|-------:|--------:|------------:|------------------:|
"""
ROW = re.compile(r"^\| ([\w /-]+?) \| ([\w-]+) \| ([0-9a-f]{40}) \| (\d{4}-\d\d-\d\d) \| (\d+) \| (\d+) \| (\d+) \| (\d+) \|"
                 r" (\d+) \|$", re.M)


@dataclasses.dataclass
class Row:
    job: str
    part: str
    commit: str
    day: str
    passed: int
    failed: int
    seconds: int
    cpu: int
    #: Of the machine that it ran on, as busy as it was (calibrate.py).
    milliseconds: int

    def text(self):
        return "| " + " | ".join(map(str, vars(self).values())) + " |\n"


def parse(text):
    """job -> Row"""
    rows = [Row(*m.groups()[:4], *map(int, m.groups()[4:])) for m in ROW.finditer(text)]
    return {r.job: r for r in rows}


def read():
    try:
        return parse(DOCUMENT.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}


def write(rows, machine):
    order = {p.name: n for n, p in enumerate(PARTS)}
    body = "".join(r.text() for r in sorted(rows.values(), key=lambda r: (order.get(r.part, -1), r.job)))
    DOCUMENT.write_text(HEAD.format(every=EVERY, machine=machine) + body, encoding="utf-8")


def git(*words):
    """Its output, or None where it fails."""
    r = subprocess.run(["git", *words], cwd=SRC, capture_output=True, text=True, check=False)
    return r.stdout if r.returncode == 0 else None


def clean_head():
    """The commit that the work tree is, or None if it differs from it."""
    if git("status", "--porcelain") != "":
        return None
    return git("rev-parse", "HEAD").strip()


def since(commit):
    """(number of commits, files that differ in the work tree), or None if the history
    here does not have the commit."""
    if git("merge-base", "--is-ancestor", commit, "HEAD") is None:
        return None
    number = int(git("rev-list", "--count", f"{commit}..HEAD"))
    files = git("diff", "--name-only", "-z", commit).split("\0")
    files += git("ls-files", "-z", "--others", "--exclude-standard").split("\0")
    return number, sorted({f for f in files if f})


def owed(rows, look=since):
    """part -> why it has to run, of the long parts. look: as since()."""
    why, known = {}, {}
    for name in of_tier(FULL):
        mine = [r for r in rows.values() if r.part == name]
        if not mine:
            why[name] = "no run is recorded"
            continue
        for r in mine:
            if r.commit not in known:
                known[r.commit] = look(r.commit)
            if r.failed or not r.passed:
                why[name] = f"{r.job} failed when it ran last"
            elif known[r.commit] is None:
                why[name] = f"{r.commit[:7]}, where it ran last, is not in this history"
            elif known[r.commit][0] > EVERY:
                why[name] = f"{known[r.commit][0]} commits since it ran"
            elif touching := BY_NAME[name].touched_by(known[r.commit][1]):
                more = f" and {len(touching) - 1} more" if len(touching) > 1 else ""
                why[name] = f"{touching[0]} changed{more}"
            if name in why:
                break
    return why


def changed_since_tidy(look=since):
    """(files, commit) that changed since clang-tidy found every file clean, or
    (None, why every file has to be read)."""
    row = read().get("tidy")
    if row is None or row.failed or not row.passed:
        return None, "no clean run of it is recorded"
    found = look(row.commit)
    if found is None:
        return None, f"{row.commit[:7]}, where it ran last, is not in this history"
    rules = BY_NAME["tidy"].touched_by(found[1])
    if rules:
        return None, f"{rules[0]} changed"
    return found[1], row.commit[:7]


def updated(rows, jobs, commit, milliseconds):
    """Rows with those of the jobs that ran. jobs: (Job, passed, failed, seconds, cpu)."""
    rows = dict(rows)
    day = time.strftime("%Y-%m-%d")
    for job, passed, failed, seconds, cpu in jobs:
        rows[job.name] = Row(job.name, job.part, commit, day, passed, failed, round(seconds), round(cpu),
                             round(milliseconds))
    return rows
