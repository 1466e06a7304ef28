"""docs/FULL-RUN.md, and what a change makes run again."""
import pytest

from runner import record
from runner.graph import Job
from runner.parts import FULL, of_tier

HERE, OLD, GONE = "a" * 40, "b" * 40, "c" * 40


def row(part, commit=HERE, failed=0, passed=3, job=None):
    return record.Row(job or part, part, commit, "2026-11-24", passed, failed, 10, 20, 300)


def rows(**changed):
    return {p: changed.get(p.replace("-", "_"), row(p)) for p in of_tier(FULL)}


def look(commit, number=1, files=()):
    return {HERE: (number, list(files)), OLD: (record.EVERY + 1, []), GONE: None}[commit]


def test_what_is_written_is_read_again(monkeypatch, tmp_path):
    monkeypatch.setattr(record, "DOCUMENT", tmp_path / "page.md")
    assert record.read() == {}
    there = {"unit release": row("unit", job="unit release"), **rows()}
    record.write(there, "Debian bookworm, 2 processors; 100 fork+exec in 123 ms")
    assert record.read() == there
    text = (tmp_path / "page.md").read_text()
    assert text.index("unit release") < text.index("| vm |"), "in the order of the parts"


def test_nothing_is_owed_where_nothing_changed():
    assert record.owed(rows(), look) == {}


def test_without_a_record_everything_is_owed():
    assert set(record.owed({}, look)) == set(of_tier(FULL))


@pytest.mark.parametrize("bad, why", [
    (row("vm", failed=1), "failed when it ran last"), (row("vm", passed=0), "failed when it ran last"),
    (row("vm", commit=GONE), "not in this history"), (row("vm", commit=OLD), "21 commits since")])
def test_a_run_that_says_nothing_about_this_commit_is_owed_again(bad, why):
    owed = record.owed(rows(vm=bad), look)
    assert list(owed) == ["vm"] and why in owed["vm"]


def test_what_a_change_touches_is_owed():
    owed = record.owed(rows(), lambda c: look(c, files=["README.md", "contrib/systemd/mcpbox.target", "tests/vm/run"]))
    assert owed == {"systemd": "contrib/systemd/mcpbox.target changed", "package": "contrib/systemd/mcpbox.target changed",
                    "vm": "contrib/systemd/mcpbox.target changed and 1 more"}


def test_one_job_of_a_part_that_failed_is_enough():
    there = rows() | {"vm trixie": row("vm", failed=2, job="vm trixie")}
    assert record.owed(there, look) == {"vm": "vm trixie failed when it ran last"}


def test_rows_of_what_did_not_run_stay():
    there = rows(vm=row("vm", commit=OLD))
    new = record.updated(there, [(Job("tidy", "tidy"), 1, 0, 60.4, 100.2)], GONE, 299.6)
    assert new["vm"].commit == OLD
    assert (new["tidy"].commit, new["tidy"].seconds, new["tidy"].cpu, new["tidy"].milliseconds) == (GONE, 60, 100, 300)


@pytest.mark.parametrize("there, files, expected", [
    ({}, [], None), (rows(tidy=row("tidy", failed=1)), [], None), (rows(tidy=row("tidy", commit=GONE)), [], None),
    (rows(), [".clang-tidy"], None), (rows(), ["common/base/buf.c"], ["common/base/buf.c"])])
def test_clang_tidy_trusts_only_a_clean_run_by_the_same_rules(monkeypatch, there, files, expected):
    monkeypatch.setattr(record, "read", lambda: there)
    assert record.changed_since_tidy(lambda c: look(c, files=files))[0] == expected


def test_history_is_asked_for_real():
    """This commit is its own ancestor, and no commit is named 40 zeros."""
    head = record.git("rev-parse", "HEAD").strip()
    number, _ = record.since(head)
    assert number == 0
    assert record.since("0" * 40) is None
