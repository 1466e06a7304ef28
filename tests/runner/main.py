"""Runs the tests: see tests/run."""
import argparse
import collections
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from runner import calibrate, install, jobs as table, lock, record, results, screen
from runner.context import SRC, Context, Paths, Stop, read_results
from runner.execute import Running
from runner.graph import PLACES_A_PROCESSOR, WAITING, Graph, expected
from runner.parts import ALWAYS, BY_NAME, FULL, of_tier

#: Failed tests that are run again alone, to tell flaky ones. More failures than that are
#: a fault of what they share, and each may take the longest wait there is.
ALONE_MAX = 10
ALONE_SECONDS = 300
TICK = 0.2
#: Seconds that a build from nothing takes on any machine, at least.
BUILT_S = 10


def arguments(argv):
    p = argparse.ArgumentParser(prog="tests/run", usage=argparse.SUPPRESS, add_help=False)
    p.add_argument("what", nargs="*")
    p.add_argument("--times", action="store_true")
    p.add_argument("--touched", action="store_true")
    p.add_argument("--within", type=int, metavar="MINUTES")
    p.add_argument("--record", action="store_true")
    p.add_argument("--seed", type=int)
    p.add_argument("--list", action="store_true")
    p.add_argument("--help", "-h", action="store_true")
    return p.parse_args(argv)


def select(what):
    """(parts, paths): of the words of the command line. Raises ValueError."""
    parts, paths = [], []
    for w in what or [None]:
        if w is None:
            parts += of_tier(ALWAYS)
        elif w == "full":
            parts += of_tier(ALWAYS, FULL)
        elif w in BY_NAME:
            parts.append(w)
        elif (part := table.part_of_path(w)) is not None:
            if not (SRC / w.split("::")[0]).exists():
                raise ValueError(f"there is no {w.split('::')[0]}")
            # A file may have tests of both kinds.
            parts += [part, "large"] if table.has_mark(part, "large") else [part]
            paths.append(w)
        else:
            raise ValueError(f"no part {w}; there are: full {' '.join(BY_NAME)}; or the path of a test")
    return list(dict.fromkeys(parts)), paths


def paths_of():
    """What tests start as other users must be within their reach; a work tree below a
    private directory is not."""
    cache = pathlib.Path(os.environ.get("MCPBOX_TEST_CACHE", "/var/cache/mcpbox-tests"))
    reach = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "test", "-x",
                            SRC / "tests/run"], check=False).returncode == 0
    build = os.environ.get("MCPBOX_TEST_BUILD", SRC / "build" if reach else cache / "build")
    return Paths(pathlib.Path(build).absolute(), cache)


class Run:
    def __init__(self, args, paths, parts, only, why):
        self.args, self.paths, self.parts, self.only = args, paths, parts, only
        #: part -> why it does not run
        self.left_out = why
        self.screen = screen.Screen()
        self.seed = args.seed if args.seed is not None else time.time_ns() // 1000 % 1_000_000_000
        self.began = time.monotonic()
        self.milliseconds = calibrate.measure()
        self.scale = calibrate.patience(self.milliseconds)
        self.rows = record.read()
        self.running, self.done, self.found = {}, [], []
        self.interrupted = False

    def machine(self):
        with open("/proc/meminfo", encoding="ascii") as f:
            gib = round(int(f.readline().split()[1]) / 2**20)
        return (f"Debian {table.this_suite()}, Linux {os.uname().release.split('-')[0]}, {os.cpu_count()} processors, "
                f"{gib} GiB; 100 fork+exec in {self.milliseconds:.0f} ms")

    def prepare(self):
        out = self.paths.out
        shutil.rmtree(out, ignore_errors=True)
        (out / "logs").mkdir(parents=True)
        out.chmod(0o755)
        self.paths.cache.mkdir(parents=True, exist_ok=True)
        names = install.wanted(self.parts)
        if "npm" in names and shutil.which("npm"):
            names.remove("npm")	# one that Debian did not bring is as good
        names = install.missing(names)
        if names:
            self.screen.line(f"installing {len(names)} packages: {' '.join(names)}")
            began = time.monotonic()
            try:
                install.install(names, out / "logs/apt.log")
            except subprocess.CalledProcessError:
                self.found.append(results.Result(
                    "packages", "installs", "apt-get install", results.FAILED,
                    message="apt could not install what tests need",
                    text=(out / "logs/apt.log").read_text(errors="replace")[-3000:]))
                return False
            self.screen.line(f"installed in {screen.duration(time.monotonic() - began)}")
        return True

    def jobs(self):
        chosen = table.chosen(table.jobs(), self.parts)
        for j in chosen:	# seconds of this machine
            row = self.rows.get(j.name)
            if row:
                j.seconds, j.tests = row.seconds * self.milliseconds / row.milliseconds, row.passed + row.failed
            else:
                j.seconds *= self.milliseconds / calibrate.REFERENCE_MS
        if self.only:	# single tests: one job of a part is enough for them
            seen = set()
            chosen = [j for j in chosen if j.part in ("builds", "installs") or not (j.part in seen or seen.add(j.part))]
        return chosen

    def context(self, job):
        only = [p for p in self.only if table.part_of_path(p) == job.part]
        return Context(self.paths, job, self.seed, self.scale, only, self.args.record)

    # --- one job

    def begin(self, name):
        job = self.graph.jobs[name]
        ctx = self.context(job)

        def work():
            try:
                job.do(ctx)
            except Stop:
                pass
            return not ctx.bad
        self.graph.begin(name)
        self.running[name] = Running(work, self.paths.log(name))

    def end(self, name):
        r = self.running.pop(name)
        job = self.graph.jobs[name]
        ctx = self.context(job)
        ctx.collect()	# of a job that was killed
        if r.out_of_time:
            ctx.failed(name, f"out of time ({job.limit * self.scale:.0f} s): it hangs")
        found = read_results(self.paths.results(name))
        if r.status != 0 and not any(x.bad for x in found) and not self.interrupted:
            ctx.failed(name, f"the job ended with status {r.status}",
                       "\n".join(self.paths.log(name).read_text(errors="replace").splitlines()[-60:]))
            found = read_results(self.paths.results(name))
        if not found and job.part not in ("builds", "installs") and not self.interrupted:
            ctx.failed(name, "no test ran")
            found = read_results(self.paths.results(name))
        self.found += found
        self.done.append((job, r.seconds, r.cpu))
        # Tests that failed don't keep what comes after from running; a build does.
        good = not any(x.bad for x in found) or job.part not in ("builds", "installs")
        for gone in self.graph.end(name, good):
            j = self.graph.jobs[gone]
            self.found.append(results.Result(gone, j.part, gone, results.ERROR, message=f"not run, since {name} failed"))
        passed, failed = results.count(found)
        said = "" if job.part in ("builds", "installs") and not failed else f"{passed} passed, {failed} failed, "
        self.screen.stamp(f"{'FAILED' if failed else 'ok':6} {name:24} {said}{r.seconds:.0f} s, {r.cpu:.0f} CPU s")
        for x in found:
            if x.bad:
                self.screen.line(f"    {x.name}: {x.message}")

    # --- all of them

    def no_time(self, name):
        """A long part that would not end within the time is left out, and said to be."""
        job = self.graph.jobs[name]
        if self.args.within is None or job.stage != table.LONG:
            return False
        alone = sum(j.seconds for j in self.graph.jobs.values()
                    if j.alone and self.graph.state[j.name] == WAITING)
        elapsed = time.monotonic() - self.began
        return elapsed + job.seconds + alone > self.args.within * 60

    def tests_so_far(self):
        n = len(self.found)
        for name in self.running:
            try:
                with open(self.paths.events(name), "rb") as f:
                    n += f.read().count(b'"when": "call"')
            except FileNotFoundError:
                pass
        return n

    def tell(self):
        elapsed = {n: r.seconds for n, r in self.running.items()}
        left = expected(self.graph, elapsed)
        total = sum(j.tests for j in self.graph.jobs.values())
        self.screen.progress(
            f"{self.tests_so_far()}{f' of about {total}' if total else ''} tests, about {screen.duration(left)} left; running: "
            + ", ".join(sorted(self.running)))

    def everything(self):
        places = PLACES_A_PROCESSOR * os.cpu_count()
        self.graph = Graph(self.jobs(), places)
        self.screen.line(screen.plan(self.parts, self.left_out, self.graph, self.machine(), self.seed))
        self.screen.line(f"results and logs: {self.paths.out}")
        while not self.graph.over():
            while not self.interrupted and (name := self.graph.choose()) is not None:
                if self.no_time(name):
                    part = self.graph.jobs[name].part
                    for n in [name, *self.graph.leave_out(name)]:
                        self.left_out.setdefault(self.graph.jobs[n].part, f"no time within {self.args.within} min")
                    self.screen.stamp(f"left out {part}: there is no time for it")
                    continue
                self.begin(name)
                self.screen.stamp(f"start  {name}")
            time.sleep(TICK)
            for name in [n for n, r in self.running.items() if r.poll()]:
                self.end(name)
            for name, r in self.running.items():
                limit = self.graph.jobs[name].limit * self.scale
                if r.seconds > limit and not r.out_of_time:
                    r.stop(out_of_time=True)
            if self.interrupted and not self.running:
                break
            self.tell()

    def interrupt(self, *_):
        if not self.interrupted:
            self.interrupted = True
            self.screen.line("ending: every job cleans up after itself")
        for r in self.running.values():
            r.stop()

    def too_late(self):
        return self.args.within is not None and time.monotonic() - self.began > self.args.within * 60

    def alone(self):
        """Runs failed tests of pytest again, each alone: who passes then is flaky."""
        again = [r for r in self.found if r.bad and "::" in r.name and r.again.startswith("sudo")]
        if len(again) > ALONE_MAX:
            self.screen.line(f"{len(again)} tests failed: more than {ALONE_MAX} are not flaky, so none is run again alone")
            return
        for r in again:
            if self.interrupted or self.too_late():
                break
            self.screen.stamp(f"alone  {r.name}")
            job = next(j for j in self.graph.jobs.values() if j.name == r.job)
            ctx = Context(self.paths, job, self.seed, self.scale, [r.name])
            log = self.paths.out / "logs/alone.log"
            self.paths.results(job.name).unlink(missing_ok=True)

            def work(ctx=ctx, job=job):
                job.do(ctx)
                return not ctx.bad
            self.running["alone"] = p = Running(work, log)
            while not p.poll():
                if p.seconds > ALONE_SECONDS * self.scale and not p.out_of_time:
                    p.stop(out_of_time=True)
                time.sleep(TICK)
            del self.running["alone"]
            found = read_results(self.paths.results(job.name))
            r.flaky = bool(found) and all(x.outcome == results.PASSED for x in found)

    def started(self):
        try:
            return collections.Counter(self.paths.counts().read_text(encoding="ascii").splitlines())
        except FileNotFoundError:
            return collections.Counter()

    def keep(self):
        """Writes docs/FULL-RUN.md, if the work tree is a commit."""
        commit = record.clean_head()
        if commit is None:
            self.screen.line("not recorded: the work tree differs from its commit")
            return
        of_job = collections.defaultdict(list)
        for r in self.found:
            of_job[r.job].append(r)
        # A build that found nothing to do says nothing of how long it takes.
        ran = [(j, *results.count(of_job[j.name]), s, cpu) for j, s, cpu in self.done
               if j.part != "installs" and not (j.part == "builds" and s < BUILT_S)]
        record.write(record.updated(self.rows, ran, commit, self.milliseconds), self.machine())
        self.screen.line("docs/FULL-RUN.md is written; commit it")

    def run(self):
        if self.prepare():
            self.everything()
            self.alone()
        wall = time.monotonic() - self.began
        results.to_junit(self.found, self.paths.out / "junit.xml")
        table_of_times = screen.times(self.done, self.found, wall, self.started())
        (self.paths.out / "times.txt").write_text("\n".join(table_of_times) + "\n", encoding="utf-8")
        if self.args.record and not self.interrupted:
            self.keep()
        if self.args.times:
            self.screen.line("\n".join(table_of_times))
        if self.interrupted:
            self.found.append(results.Result("tests/run", "runner", "interrupted", results.FAILED,
                                             message="not everything ran"))
        end = [*screen.failures(self.found, self.seed, self.paths.log),
               f"{screen.duration(wall)} in all; junit.xml, summary.txt, times.txt and logs are in {self.paths.out}",
               *screen.end(self.found, self.left_out, self.last_full())]
        (self.paths.out / "summary.txt").write_text("\n".join(end) + "\n", encoding="utf-8")
        self.screen.line("\n".join(end))
        return 1 if results.count(self.found)[1] else 0

    def last_full(self):
        long = [r for r in self.rows.values() if r.part in of_tier(FULL)]
        if not long:
            return "No full run is recorded."
        failed = sum(r.failed for r in long)
        days = sorted({r.day for r in long})
        return f"Last recorded: {' to '.join(dict.fromkeys((days[0], days[-1])))}, {failed} failed (docs/FULL-RUN.md)."


def main(argv):
    args = arguments(argv)
    if args.list or args.help:
        print(screen.listing())
        return 0
    if os.geteuid() != 0:
        print("tests/run: must be run as root", file=sys.stderr)
        return 1
    try:
        parts, only = select(args.what)
    except ValueError as e:
        print(f"tests/run: {e}", file=sys.stderr)
        return 2
    why = {}
    if not args.what:
        owed = record.owed(record.read())
        for p in of_tier(FULL):
            if args.touched and p in owed:
                parts.append(p)
                print(f"{p} runs too: {owed[p]}")
            else:
                why[p] = owed.get(p, "unchanged since it ran") if args.touched else "tests/run full"
    os.chdir(SRC)
    paths = paths_of()
    try:
        held = lock.take(paths.build)
    except lock.Busy as e:
        print(f"tests/run: {e}", file=sys.stderr)
        return 2
    run = Run(args, paths, parts, only, why)
    signal.signal(signal.SIGINT, run.interrupt)
    signal.signal(signal.SIGTERM, run.interrupt)
    with held:
        return run.run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
