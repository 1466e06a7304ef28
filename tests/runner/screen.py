"""What a person sees of a run: the plan, the progress, and the end."""
import collections
import sys
import time

from runner import results
from runner.graph import expected
from runner.parts import ALWAYS, BY_NAME, FULL, PARTS

#: Seconds between two lines of progress where there is no terminal.
EVERY_S = 60
#: Failed tests whose whole text is shown; the others' is in the logs.
SHOWN = 20
SLOWEST = 40
#: Failed tests that the last lines name again, and characters of each: a page that
#: shows only the end of the output shows these.
NAMED_LAST = 40
NAMED_CHARACTERS = 220


def duration(seconds):
    seconds = round(seconds)
    return f"{seconds} s" if seconds < 100 else f"{round(seconds / 60)} min"


def listing():
    """tests/run --list"""
    out = []
    for tier, head in ((ALWAYS, "tests/run runs:"), (FULL, "tests/run full runs these too:"),
                       ("named", "only when named:")):
        out.append(head)
        out += [f"  {p.name:13}{p.says}" for p in PARTS if p.tier == tier]
    return "\n".join(out)


class Screen:
    def __init__(self, out=sys.stdout):
        self.out = out
        self.tty = out.isatty()
        self.last = time.monotonic()

    def line(self, text=""):
        if self.tty:
            self.out.write("\r\033[K")
        self.out.write(text + "\n")
        self.out.flush()

    def stamp(self, text):
        self.line(f"{time.strftime('%H:%M:%S')} {text}")

    def progress(self, text):
        """One line that the next one replaces, or now and then one more."""
        now = time.monotonic()
        if self.tty:
            if now - self.last >= 1:
                self.out.write("\r\033[K" + text[:120])
                self.out.flush()
                self.last = now
        elif now - self.last >= EVERY_S:
            self.stamp(text)
            self.last = now


def plan(parts, left_out, graph, machine, seed):
    """What is going to happen. left_out: part -> why."""
    by_part = collections.Counter()
    tests = collections.Counter()
    for j in graph.jobs.values():
        by_part[j.part] += j.seconds
        tests[j.part] += j.tests
    out = [f"{len(graph.jobs)} jobs of {len(parts)} parts, about {duration(expected(graph))} on this machine ({machine})"]
    for p in parts:
        n = f"{tests[p]} tests, " if tests[p] else ""
        out.append(f"  {p:13}{BY_NAME[p].says}: {n}about {duration(by_part[p])}")
    for p, why in left_out.items():
        out.append(f"  not run: {p}: {BY_NAME[p].says} ({why})")
    out.append(f"seed {seed}")
    return "\n".join(out)


def failures(found, seed, logs):
    """The end of the output of each failed test, and how to run it again."""
    out = []
    bad = [r for r in found if r.bad]
    for n, r in enumerate(bad):
        out.append(f"FAILED ({r.part}): {r.name}: {r.message}")
        if r.flaky:
            out.append("    flaky: it passes when it runs alone; that is a fault too")
        if n < SHOWN:
            out += ["    | " + line for line in r.text.splitlines()[-60:]]
            if r.again:
                out.append(f"    again: {r.again}" + (
                    f" --seed {seed}" if r.again.startswith("sudo tests/run") else ""))
            out.append(f"    log:   {logs(r.job)}")
    return out


def times(done, found, wall, started):
    """The table of --times. done: (Job, seconds, cpu) of each job."""
    parts = {}
    for job, seconds, cpu in done:
        p = parts.setdefault(job.part, [0, 0.0, 0.0, 0])
        p[0] += 1
        p[1] += seconds
        p[2] += cpu
    for r in found:
        parts.setdefault(r.part, [0, 0.0, 0.0, 0])[3] += r.outcome == results.PASSED
    out = ["", f"{'part':14}{'jobs':>6}{'tests':>8}{'seconds':>10}{'CPU s':>9}"]
    for name, (n, seconds, cpu, passed) in parts.items():
        out.append(f"{name:14}{n:6}{passed:8}{seconds:10.0f}{cpu:9.0f}")
    total = sum(cpu for _, _, cpu in done)
    out.append(f"{'all':14}{len(done):6}{sum(p[3] for p in parts.values()):8}{wall:10.0f}{total:9.0f}"
               "   (parts run side by side: their seconds add up to more)")
    out.append(f"builds: {sum(j.part == 'builds' for j, _, _ in done)}; started: " + (
        ", ".join(f"{n} {kind}" for kind, n in sorted(started.items())) or "nothing"))
    out.append(f"the slowest {SLOWEST} tests:")
    for r in sorted(found, key=lambda r: -r.seconds)[:SLOWEST]:
        out.append(f"{r.seconds:9.1f} s  {r.name}")
    return out


def lacking(not_run):
    """A line for each test function that did not run here, with the reasons; junit.xml has
    each by its name."""
    by_function = collections.defaultdict(list)
    for r in not_run:
        by_function[r.name.split("[")[0]].append(r.message)
    return [f"NOT RUN (of this kernel): {len(why)} of {name}: {'; '.join(dict.fromkeys(why))}"[:NAMED_CHARACTERS]
            for name, why in by_function.items()]


def end(found, left_out, last_full):
    """The last lines."""
    passed, failed = results.count(found)
    out = lacking([r for r in found if r.outcome == results.NOT_RUN])
    for name, why in left_out.items():
        out.append(f"NOT RUN: {name}: {BY_NAME[name].says} ({why})")
    if any(BY_NAME[n].tier == FULL for n in left_out):
        out.append(f"`sudo tests/run full` runs everything. {last_full}")
    bad = [r for r in found if r.bad]
    out += [f"failed: {r.name}{' (flaky)' if r.flaky else ''}: {r.message}"[:NAMED_CHARACTERS] for r in bad[:NAMED_LAST]]
    if len(bad) > NAMED_LAST:
        out.append(f"failed: {len(bad) - NAMED_LAST} more, see summary.txt")
    flaky = sum(r.flaky for r in found)
    if flaky:
        out.append(f"{flaky} of the failed tests pass when they run alone (flaky)")
    return [*out, f"{passed} passed, {failed} failed"]
