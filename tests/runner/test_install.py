"""What each part brings onto a machine: its own packages and no other part's."""
import pytest

from runner import install, jobs
from runner.parts import BY_NAME, PARTS

#: Packages that bring hundreds of others: which parts may.
HEAVY = {"clang-19": {"lint", "tidy", "unit", "fuzz", "fuzz-long"},
         "qemu-system-x86": {"vm"},
         "mmdebstrap": {"package", "reproducible", "debian13", "systemd", "vm"},
         "npm": {"lint", "wire", "schema", "egress", "local", "clients", "conformance", "wire-long", "hosts", "bench", "issuers",
                 "remote", "panel", "package", "reproducible", "vm"},
         "chromium": {"browser", "panel", "bench"}}
BROWSERS = ("chromium", "firefox")


@pytest.mark.parametrize("part", sorted(BY_NAME))
def test_a_part_brings_nothing_heavy_that_it_does_not_need(part):
    names = install.wanted([part])
    assert {h for h in HEAVY if h in names} == {h for h, parts in HEAVY.items() if part in parts}
    assert part in HEAVY["chromium"] or not [n for n in names if n.startswith(BROWSERS)]
    # of one family, all or none: clang-tidy-19, libclang-rt-19-dev, llvm-19
    assert ("clang-19" in names) == any("clang" in n or "llvm" in n for n in names)


def test_who_runs_daemons_gets_what_they_run_with_and_nobody_else():
    serves = {p.name for p in PARTS if "serve" in install.kinds_of([p.name])}
    assert serves == {"wire", "wire-long", "schema", "database", "integration", "defects", "egress", "probes", "clients",
                      "conformance", "kill", "quickstart", "package", "large", "hosts", "bench", "soak",
                      "issuers", "remote", "browser", "panel"}
    for p in PARTS:
        assert ("postgresql" in install.wanted([p.name])) == (p.name in serves)


def test_who_compiles_gets_a_compiler():
    everything = jobs.jobs()
    for p in PARTS:
        builds = any(j.part == "builds" for j in jobs.chosen(everything, [p.name]))
        kinds = install.kinds_of([p.name])
        assert ("build" in kinds) == ("tests" in kinds) == builds, p.name
    assert "gcc" not in install.wanted(["runner"])
