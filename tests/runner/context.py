"""Where a run's files are, and what a job's function may do: run a command, run a
folder of tests, say a result. A job's function runs in a process of its own
(execute.py); results go through a file, so that none is lost when it is ended."""
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time

from harness.patience import SLACK
from runner import results

SRC = pathlib.Path(__file__).resolve().parents[2]
PYTHON = "/usr/bin/python3"
#: Lines of a failed command's output that are shown.
SHOWN = 60


class Stop(Exception):
    """What the rest of the job builds on is not there; it has been said."""


@dataclasses.dataclass
class Paths:
    """build: the parent of all builds. cache: roots and packages, fetched once a machine.
    out: results of this run; the next run removes them."""
    build: pathlib.Path
    cache: pathlib.Path

    @property
    def out(self):
        return self.build / "results"

    @property
    def release(self):
        return self.build / "release"

    def log(self, job):
        return self.out / "logs" / (job.replace(" ", "-").replace("/", "-") + ".log")

    def results(self, job):
        return self.log(job).with_suffix(".jsonl")

    def events(self, job):
        return self.log(job).with_suffix(".events")

    def counts(self):
        return self.out / "started"

    @property
    def compiled(self):
        """Tests as pytest compiles them: once a run, not once a worker."""
        return self.out / "compiled"


class Context:
    """What a job's function gets."""

    def __init__(self, paths, job, seed, scale, only=(), record=False):
        self.paths, self.job, self.seed, self.only, self.record = paths, job, seed, only, record
        #: Limits that only end a hang are times this (calibrate.py).
        self.scale = scale
        self.bad = False

    # --- results

    def say(self, result):
        self.bad = self.bad or result.bad
        with open(self.paths.results(self.job.name), "a", encoding="utf-8") as f:
            f.write(json.dumps(vars(result)) + "\n")

    def _result(self, name, outcome, **more):
        self.say(results.Result(self.job.name, self.job.part, name, outcome, **more))

    def passed(self, name, seconds=0.0):
        self._result(name, results.PASSED, seconds=seconds)

    def failed(self, name, message="", text="", seconds=0.0):
        self._result(name, results.FAILED, message=message, text=text, seconds=seconds)

    # --- commands

    def environment(self, **more):
        """No user's settings but MCPBOX_*, which tests/run documents."""
        env = {k: v for k, v in os.environ.items() if k.startswith("MCPBOX_") or k in ("HOME", "TERM", "CI")}
        env.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL="C.UTF-8", PYTHONDONTWRITEBYTECODE="1",
                   MCPBOX_BUILD=str(self.paths.release), MCPBOX_CACHE=str(self.paths.cache),
                   MCPBOX_TEST_CACHE=str(self.paths.cache), MCPBOX_SEED=str(self.seed),
                   MCPBOX_PATIENCE=f"{self.scale:.2f}", MCPBOX_TEST_STARTED=str(self.paths.counts()))
        env.update(more)
        return env

    def run(self, limit, argv, cwd=SRC, env=None, stdin=subprocess.DEVNULL, stdout=None, stderr=None):
        """The exit status; None if the command was out of time. Its output goes to the
        job's log, or to a file that is given."""
        p = subprocess.Popen([str(a) for a in argv], cwd=cwd, env=env or self.environment(), stdin=stdin,
                             stdout=stdout, stderr=stderr)
        try:
            return p.wait(limit * self.scale)
        except subprocess.TimeoutExpired:
            p.send_signal(signal.SIGTERM)
            try:
                p.wait(20 * self.scale)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
            return None

    def _logged(self, limit, argv, **kw):
        """(status, its output), which is in the job's log as well."""
        log = self.paths.log(self.job.name)
        at = log.stat().st_size if log.exists() else 0
        status = self.run(limit, argv, **kw)
        with open(log, encoding="utf-8", errors="replace") as f:
            f.seek(at)
            return status, f.read()

    def step(self, limit, name, argv, **kw):
        """A test that is one command."""
        began = time.monotonic()
        status, said = self._logged(limit, argv, **kw)
        took = time.monotonic() - began
        if status == 0:
            self.passed(name, took)
            return True
        self.failed(name, "out of time" if status is None else f"status {status}",
                    "\n".join(said.splitlines()[-SHOWN:]), took)
        return False

    def must(self, limit, name, argv, **kw):
        """A preparation: a result only if it fails, and then nothing follows."""
        status, said = self._logged(limit, argv, **kw)
        if status != 0:
            self.failed(name, "out of time" if status is None else f"status {status}",
                        "\n".join(said.splitlines()[-SHOWN:]))
            raise Stop(name)

    # --- tests of others

    def pytest(self, paths, limit, *options, workers=1, environ=None):
        """Runs pytest; runner/events.py tells the results (see collect())."""
        if self.only:
            paths, options = self.only, [o for o in options if not o.startswith("--ignore")]
        spread = ["-n", str(workers), "--dist", "loadfile"] if workers > 1 else []
        env = self.environment(MCPBOX_TEST_EVENTS=str(self.paths.events(self.job.name)),
                               PYTHONPATH=str(SRC / "tests"), PYTHONPYCACHEPREFIX=str(self.paths.compiled),
                               **(environ or {}))
        del env["PYTHONDONTWRITEBYTECODE"]	# runner/events.py sets it for what tests start
        status = self.run(limit, [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "runner.events",
                                  "--tb=short", "--no-header", *paths, *options, *spread], env=env)
        found = self.collect()
        # 5: no test was selected, which is no fault of a part that has others.
        if status not in (0, 1, 5) or (status == 1 and not any(r.bad for r in found)):
            self.failed(f"pytest of {' '.join(map(str, paths))}",
                        "out of time" if status is None else f"status {status}")
        return status

    def collect(self):
        """Says what the events of this job tell that was not said yet."""
        events = self.paths.events(self.job.name)
        if not events.exists():
            return []
        with open(events, encoding="utf-8") as f:
            found = results.of_events(f, self.job.name, self.job.part)
        events.unlink()
        for r in found:
            self.say(r)
        return found

    def junit(self, path, status, log=None):
        """Says the results in a JUnit file that a command with this status left."""
        self._all(lambda: results.of_junit(path, self.job.name, self.job.part), status, log)

    def _all(self, read, status, log):
        """Says what read() returns. A program that failed without a failed test, or left
        no results, is a failure itself."""
        try:
            found = read()
        except (OSError, ValueError, KeyError, results.ET.ParseError) as e:
            found = []
            self.failed(f"{self.job.name}: results", f"there are none: {e}", tail(log))
        for r in found:
            self.say(r)
        if status != 0 and not any(r.bad for r in found):
            self.failed(f"{self.job.name}: the test program",
                        "out of time" if status is None else f"status {status}", tail(log))

    def meson(self, build, limit):
        log = build / "meson-logs/testlog.json"
        log.unlink(missing_ok=True)
        # Its 30 seconds end a hang, as the harness' limits do: harness/patience.py.
        # A test that computes all the time has a tenth of a processor beside twenty others.
        status = self.run(limit, ["meson", "test", "-C", build, "--no-rebuild", "--num-processes", "2",
                                  "--timeout-multiplier", f"{3 * SLACK * self.scale:.1f}", "--print-errorlogs"])
        self.meson_log(log, build, status)

    def meson_log(self, log, build, status):
        """Says the results that `meson test` left when it ended with this status."""
        self._all(lambda: results.of_meson(log, self.job.name, self.job.part, build), status,
                  self.paths.log(self.job.name))

    def goals(self, path, status):
        """Says the goals of tests/bench/run --json, each as a test."""
        def found():
            with open(path, encoding="utf-8") as f:
                return [results.Result(self.job.name, self.job.part, f"bench: {g['text']}",
                                       results.PASSED if g["met"] else results.FAILED,
                                       message=f"{g['value']}, bound {g['bound']}") for g in json.load(f)["goals"]]
        self._all(found, status, self.paths.log(self.job.name))


def tail(path, lines=150):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return "\n".join(f.read().splitlines()[-lines:])
    except (OSError, TypeError):
        return ""


def read_results(path):
    """What a job said, also one that was killed."""
    out = []
    try:
        with open(path, encoding="utf-8") as f:
            for line in f:
                try:
                    out.append(results.Result(**json.loads(line)))
                except ValueError:
                    pass	# cut off by a kill
    except FileNotFoundError:
        pass
    return out
