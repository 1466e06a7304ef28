"""The tables: every part has jobs, every path a part, every pattern a file."""
import fnmatch
import subprocess

import pytest

from runner import jobs, main
from runner.context import SRC
from runner.graph import Graph
from runner.parts import ALWAYS, BY_NAME, FULL, NAMED, PARTS, of_tier

ALL = jobs.jobs()
FILES = jobs.tracked()


def test_every_part_has_jobs_and_every_job_a_part():
    assert {j.part for j in ALL} - {"builds", "installs"} == set(BY_NAME)
    assert len(BY_NAME) == len(PARTS)
    Graph(ALL, 4)


def test_guesses_are_of_jobs_that_there_are():
    assert set(jobs.GUESSED) <= {j.name for j in ALL}


def test_every_folder_of_tests_is_run_by_a_part():
    folders = {f.split("/")[1] for f in FILES if f.startswith("tests/") and "/test_" in f and f.endswith(".py")}
    # unit is meson's, vm the guests'.
    assert {f for f in folders - {"unit", "vm"} if jobs.part_of_path(f"tests/{f}") is None} == set()


@pytest.mark.parametrize("part", of_tier(FULL))
def test_every_pattern_of_a_long_part_matches_a_file(part):
    for pattern in BY_NAME[part].paths:
        assert any(fnmatch.fnmatchcase(f, pattern) for f in FILES), pattern


def test_only_long_parts_have_patterns():
    assert [p.name for p in PARTS if (p.tier == FULL) != bool(p.paths)] == []


@pytest.mark.parametrize("path, parts", [
    ("gatewayd/calls/call.c", {"wire-long", "debian13", "large"}),
    ("sandboxd/spawn/main.c", {"debian13", "vm", "systemd", "package"}),
    ("sql/schema/base.sql", {"debian13", "vm", "large"}),
    ("tests/database/test_scale.py", {"large"}),
    ("contrib/systemd/mcpbox.target", {"vm", "systemd", "package"}),
    ("contrib/debian/rules", {"vm", "reproducible", "package"}),
    ("contrib/packages", {"vm", "systemd", "debian13", "package"}),
    ("tests/vm/guest", {"vm"}),
    ("admind/vault/passkeys/clientdata.c", {"debian13", "large", "browser"}),
    ("admind/http/changes/passkeys.c", {"debian13", "large", "browser", "panel"}),
    ("admind/panel/src/app.tsx", {"large", "panel"}),
    ("tests/panel/pages.py", {"panel"}),
    ("tests/harness/clients/chromium.py", {"browser", "panel"}),
    (".clang-tidy", {"tidy"}),
    ("docs/TOOLS.md", set()),
    ("tests/integration/calls/test_rates.py", set()),
])
def test_paths_to_parts(path, parts):
    assert {p.name for p in PARTS if p.touched_by([path])} == parts


def test_no_file_of_the_product_is_without_a_long_part():
    product = [f for f in FILES if f.split("/")[0] in ("gatewayd", "admind", "sandboxd", "common", "sql")
               and not f.endswith(".md")]
    loose = [f for f in product if not any(p.touched_by([f]) for p in PARTS)]
    # Read by programs of the release build alone, which tests/run always tests.
    assert [f for f in loose if not f.endswith((".py", ".json", ".in", ".txt"))] == []


def test_no_package_kind_is_unknown_and_none_is_left_over():
    with open(SRC / "contrib/packages", encoding="utf-8") as f:
        kinds = {line.split()[0] for line in f if line.strip() and not line.startswith("#")}
    used = {k for p in PARTS for k in p.packages} | {"build", "tests"}
    assert used <= kinds
    assert {k for k in kinds - used if not k.startswith(("guest", "package-"))} == set()


def test_select():
    assert main.select([])[0] == of_tier(ALWAYS)
    assert main.select(["full"])[0] == of_tier(ALWAYS, FULL)
    assert not set(main.select(["full"])[0]) & set(of_tier(NAMED))
    one = "tests/runner/test_parts.py::test_select"
    assert main.select(["unit", one]) == (["unit", "runner"], [one])
    scale = "tests/database/test_scale.py"
    assert main.select([scale]) == (["database", "large"], [scale])
    for wrong in ("nothing", "tests/database/test_not_there.py", "docs/TOOLS.md"):
        with pytest.raises(ValueError):
            main.select([wrong])


def test_parts_bring_what_they_need():
    names = {j.name for j in jobs.chosen(ALL, ["vm"])}
    assert {"vm bookworm", "vm trixie", "build package", "guest bookworm", "guest trixie"} <= names
    assert "build sanitised" not in names and "integration" not in names


def test_list_says_every_part():
    out = subprocess.run([SRC / "tests/run", "--list"], capture_output=True, text=True, check=True).stdout
    for p in PARTS:
        assert f"  {p.name:13}{p.says}\n" in out


def test_unknown_words_are_refused_with_those_that_there_are():
    r = subprocess.run([SRC / "tests/run", "everything"], capture_output=True, text=True, check=False)
    assert r.returncode == 2 and "no part everything; there are: full lint" in r.stderr
