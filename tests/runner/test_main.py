"""A whole run, of a table of jobs that the test makes."""
import io

import pytest

from runner import jobs, main, record, results
from runner.context import Paths
from runner.graph import Job


def step(name, good=True):
    return lambda ctx: ctx.step(60, name, ["true" if good else "false"])


def run(monkeypatch, tmp_path, table, words=(), parts=("lint",), rows=None):
    """(exit status, what was shown, the run)"""
    args = main.arguments(list(words))
    monkeypatch.setattr(jobs, "jobs", lambda: table)
    monkeypatch.setattr(record, "read", lambda: rows or {})
    monkeypatch.setattr(main.install, "missing", lambda names: [])
    monkeypatch.setattr(main.calibrate, "measure", lambda: main.calibrate.REFERENCE_MS)
    r = main.Run(args, Paths(tmp_path / "build", tmp_path / "cache"), list(parts), [], {})
    r.screen.out = io.StringIO()
    return r.run(), r.screen.out.getvalue(), r


def test_a_good_run(monkeypatch, tmp_path):
    status, said, _ = run(monkeypatch, tmp_path, [Job("a", "lint", step("one")), Job("b", "lint", step("two"))])
    assert status == 0 and said.endswith("\n2 passed, 0 failed\n")
    assert (tmp_path / "build/results/summary.txt").read_text().endswith("\n2 passed, 0 failed\n")


def test_a_failure_is_named_and_fails_the_run(monkeypatch, tmp_path):
    status, said, _ = run(monkeypatch, tmp_path, [Job("a", "lint", step("one", False)), Job("b", "lint", step("two"))])
    assert status == 1 and said.endswith("\n1 passed, 1 failed\n")
    assert "FAILED (lint): one: status 1" in said


def test_a_failed_build_fails_what_needs_it(monkeypatch, tmp_path):
    def build(ctx):
        ctx.must(60, "build release", ["sh", "-c", "echo no such header; exit 1"])
    _, said, _ = run(monkeypatch, tmp_path, [Job("b", "builds", build), Job("a", "lint", step("one"), needs=("b",))])
    assert said.endswith("\n0 passed, 2 failed\n")
    assert "| no such header" in said and "a: not run, since b failed" in said


def test_a_job_that_says_nothing_has_failed(monkeypatch, tmp_path):
    _, said, _ = run(monkeypatch, tmp_path, [Job("a", "lint", lambda ctx: None)])
    assert said.endswith("\n0 passed, 1 failed\n") and "no test ran" in said


def test_a_job_that_hangs_is_ended_and_what_it_said_before_counts(monkeypatch, tmp_path):
    def hang(ctx):
        ctx.passed("before")
        ctx.run(1000, ["sleep", "1000"])
    status, said, _ = run(monkeypatch, tmp_path, [Job("a", "lint", hang, limit=1)])
    assert status == 1 and "it hangs" in said and said.endswith("\n1 passed, 1 failed\n")


def test_results_are_files_too(monkeypatch, tmp_path):
    run(monkeypatch, tmp_path, [Job("a", "lint", step("one", False))], ["--times"])
    out = tmp_path / "build/results"
    (bad,) = results.of_junit(out / "junit.xml", "a", "lint")
    assert bad.outcome == results.FAILED
    assert "lint" in (out / "times.txt").read_text() and (out / "logs/a.log").exists()


@pytest.mark.parametrize("minutes, runs", [(60, True), (1, False)])
def test_a_long_part_without_time_is_left_out_and_said_to_be(monkeypatch, tmp_path, minutes, runs):
    table = [Job("a", "lint", step("one")), Job("vm", "vm", step("two"), stage=jobs.LONG)]
    row = record.Row("vm", "vm", "a" * 40, "2026-11-24", 1, 0, 600, 600, main.calibrate.REFERENCE_MS)
    status, said, _ = run(monkeypatch, tmp_path, table, ["--within", str(minutes)], ("lint", "vm"), {"vm": row})
    assert status == 0
    assert said.endswith("\n2 passed, 0 failed\n" if runs else "\n1 passed, 0 failed\n")
    assert ("NOT RUN: vm" in said) != runs


def flaky(ctx):
    """Stands for pytest: a test that passes the second time."""
    mark = ctx.paths.build / "been.here"
    good = mark.exists()
    mark.touch()
    ctx.say(results.Result(ctx.job.name, ctx.job.part, "tests/x.py::y", results.PASSED if good else results.FAILED,
                           again="sudo tests/run 'tests/x.py::y'"))


def test_a_flaky_test_is_called_flaky_and_fails_the_run(monkeypatch, tmp_path):
    status, said, _ = run(monkeypatch, tmp_path, [Job("a", "lint", flaky)])
    assert status == 1 and said.endswith("\n0 passed, 1 failed\n")
    assert "flaky: it passes when it runs alone" in said


def test_a_test_that_fails_alone_too_is_not_called_flaky(monkeypatch, tmp_path):
    def bad(ctx):
        ctx.say(results.Result(ctx.job.name, ctx.job.part, "tests/x.py::y", results.FAILED,
                               again="sudo tests/run 'tests/x.py::y'"))
    _, said, _ = run(monkeypatch, tmp_path, [Job("a", "lint", bad)])
    assert said.endswith("\n0 passed, 1 failed\n") and "flaky" not in said


def test_more_failures_than_flaky_tests_are_not_run_again(monkeypatch, tmp_path):
    def bad(ctx):
        for n in range(main.ALONE_MAX + 1):
            ctx.say(results.Result(ctx.job.name, ctx.job.part, f"tests/x.py::y{n}", results.FAILED,
                                   again=f"sudo tests/run 'tests/x.py::y{n}'"))
    _, said, _ = run(monkeypatch, tmp_path, [Job("a", "lint", bad)])
    assert "none is run again alone" in said and "alone  tests/x.py" not in said
