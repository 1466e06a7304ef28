"""What becomes of tests that fail, are skipped, hang, or never end."""
import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest

from runner import results, screen
from runner.context import SRC, Context, Paths
from runner.graph import Job
from runner.results import ERROR, FAILED, NOT_RUN, PASSED, Result

PLANTED = """
import os, pytest
@pytest.fixture
def broken():
    raise RuntimeError("no fixture")
@pytest.fixture
def leaves_badly():
    yield
    raise RuntimeError("no end")
def test_good(): pass
def test_bad():
    print("printed before")
    assert 1 == 2, "not the same"
def test_error(broken): pass
def test_teardown(leaves_badly): pass
def test_skipped(): pytest.skip("no time")
def test_not_run(): pytest.skip("not run: this kernel has none")
@pytest.mark.xfail
def test_expected(): assert False
def test_dies():
    if os.environ.get("DIE"): os._exit(9)
"""


def planted(tmp_path, folder, workers=0, **env):
    d = tmp_path / folder
    d.mkdir(parents=True)
    (d / "test_planted.py").write_text(PLANTED)
    events = tmp_path / "events"
    r = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "runner.events",
                        *(["-n", str(workers)] if workers else []), f"--rootdir={tmp_path}", d],
                       cwd=tmp_path, capture_output=True, text=True, check=False,
                       env={**os.environ, "PYTHONPATH": str(SRC / "tests"), "MCPBOX_TEST_EVENTS": str(events), **env})
    with open(events, encoding="utf-8") as f:
        found = results.of_events(f, "job", "part")
    return r, {x.name.split("::")[1]: x for x in found}


@pytest.mark.parametrize("workers", [0, 2])
def test_every_outcome_of_pytest(tmp_path, workers):
    _, got = planted(tmp_path, "integration", workers)
    assert {n: r.outcome for n, r in got.items()} == {
        "test_good": PASSED, "test_bad": FAILED, "test_error": ERROR, "test_teardown": ERROR,
        "test_skipped": FAILED, "test_not_run": FAILED, "test_expected": FAILED, "test_dies": PASSED}
    bad = got["test_bad"]
    assert bad.message == "AssertionError: not the same"
    assert "printed before" in bad.text and "assert 1 == 2" in bad.text
    assert bad.again == "sudo tests/run 'tests/integration/test_planted.py::test_bad'"


COMPILED = """
import os, subprocess, sys
import helper
def test_compiled():
    assert sys.pycache_prefix.endswith("/compiled") and not sys.dont_write_bytecode
    assert helper.__cached__.startswith(sys.pycache_prefix) and os.path.exists(helper.__cached__)
    told = "import sys; print(sys.pycache_prefix, sys.dont_write_bytecode)"
    assert subprocess.run([sys.executable, "-c", told], capture_output=True, text=True).stdout == "None True\\n"
"""


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_share_what_they_compile_and_programs_of_tests_keep_nothing(tmp_path, workers):
    d = tmp_path / "integration"
    d.mkdir()
    (d / "test_compiled.py").write_text(COMPILED)
    (d / "helper.py").write_text("")
    ctx = Context(Paths(tmp_path / "build", tmp_path / "cache"), Job("job", "integration"), 1, 1.0)
    ctx.paths.log("job").parent.mkdir(parents=True)
    assert ctx.pytest([d], 60, workers=workers) == 0
    kept = {p.name.split(".")[0] for p in ctx.paths.compiled.rglob("*.pyc")}
    assert {"test_compiled", "helper"} <= kept and not list(d.rglob("*.pyc"))


def test_only_a_probe_may_say_that_the_kernel_has_nothing_for_it(tmp_path):
    _, got = planted(tmp_path, "probes")
    assert (got["test_not_run"].outcome, got["test_not_run"].message) == (NOT_RUN, "this kernel has none")
    assert got["test_skipped"].outcome == FAILED


def test_who_ends_in_a_test_has_told_all_before(tmp_path):
    r, got = planted(tmp_path, "integration", DIE="1")
    assert r.returncode == 9
    assert got["test_good"].outcome == PASSED
    assert got["test_dies"].outcome == ERROR and got["test_dies"].message == "the test began and did not end"


def test_a_line_that_was_cut_off_loses_no_other():
    whole = '{"test": "a/b.py::c", "when": "call", "outcome": "passed", "seconds": 1.5, "text": "", "reason": ""}\n'
    (one,) = results.of_events([whole, whole[:20]], "job", "part")
    assert (one.name, one.outcome, one.seconds) == ("tests/a/b.py::c", PASSED, 1.5)


def some():
    return [Result("j", "p", "good", PASSED, 1.0), Result("j", "p", "none", NOT_RUN, message="no kernel"),
            Result("j", "q", "bad", FAILED, 2.0, "wrong \x00", "text \x1b[31m", "sudo tests/run 'bad'"),
            Result("j", "q", "worse", ERROR, flaky=True, message="now and then")]


def test_junit_that_we_write_is_junit_that_we_read(tmp_path):
    results.to_junit(some(), tmp_path / "x.xml")
    found = results.of_junit(tmp_path / "x.xml", "j", "p")
    assert [r.outcome for r in found] == [PASSED, FAILED, FAILED, ERROR]
    suites = {s.get("name"): s for s in ET.parse(tmp_path / "x.xml").getroot()}
    assert (suites["q"].get("tests"), suites["q"].get("failures"), suites["q"].get("errors")) == ("2", "1", "1")


def test_the_end_counts_and_names_everything():
    lines = screen.end(some(), {"vm": "tests/run full"}, "Last recorded: never.")
    assert lines[-1] == "1 passed, 2 failed"
    text = "\n".join(lines)
    for part in ("NOT RUN (of this kernel): 1 of none: no kernel", "NOT RUN: vm: ", "1 of the failed tests pass",
                 "`sudo tests/run full` runs everything. Last recorded: never.",
                 "failed: bad: wrong", "failed: worse (flaky): now and then"):
        assert part in text, part


def test_the_last_lines_name_what_failed_and_stay_few():
    many = [Result("j", "p", f"t{n}", FAILED, message="x" * 999) for n in range(screen.NAMED_LAST + 2)]
    lines = [line for line in screen.end(many, {}, "") if line.startswith("failed: ")]
    assert len(lines) == screen.NAMED_LAST + 1 and lines[-1] == "failed: 2 more, see summary.txt"
    assert max(map(len, lines)) == screen.NAMED_CHARACTERS


def test_what_the_kernel_lacks_is_a_line_a_function():
    found = [Result("j", "p", f"t.py::f[{n}]", NOT_RUN, message=f"no {n % 2}") for n in range(3)]
    assert screen.lacking(found) == ["NOT RUN (of this kernel): 3 of t.py::f: no 0; no 1"]


def test_a_failure_is_shown_with_its_command_seed_and_log():
    text = "\n".join(screen.failures(some(), 42, lambda job: f"/logs/{job}.log"))
    assert "FAILED (q): bad: wrong" in text and "again: sudo tests/run 'bad' --seed 42" in text
    assert "log:   /logs/j.log" in text and "flaky: it passes when it runs alone" in text


def test_times_add_up():
    from runner.graph import Job
    lines = screen.times([(Job("j", "p"), 3.0, 2.0), (Job("k", "q"), 5.0, 9.0)], some(), 6.0, {"instance": 7})
    text = "\n".join(lines)
    assert "7 instance" in text and lines[-1].endswith("none") or "bad" in text
    (every,) = [line.split() for line in lines if line.startswith("all ")]
    assert every[:5] == ["all", "2", "1", "6", "11"]
