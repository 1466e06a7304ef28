"""Documents that restate code must be in step with it.

docs/PROTOCOL.md's tables are what `ipc-text -m` prints; every daemon has a
man page that names its process, and pages refer to pages that are there; links
between documents lead somewhere; metrics, layers, rows of doctor, events, alerts
and hidden names in docs/OPERATIONS.md and docs/ADMINISTRATION.md are those of the
code. (The REST routes are compared with docs/openapi.yaml by the unit tests.)
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def block(text, name):
    """What stands between <!-- begin: NAME --> and <!-- end: NAME -->."""
    m = re.search(rf"<!-- begin: {re.escape(name)} -->\n(.*?)<!-- end: {re.escape(name)} -->",
                  text, re.S)
    return m.group(1).strip() if m else None


def ipc_text():
    with tempfile.TemporaryDirectory() as d:
        subprocess.run(["cc", "-D_GNU_SOURCE", "-I", ROOT / "common/ipc", "-I", ROOT / "common/base", "-o", f"{d}/ipc-text",
                        ROOT / "common/ipc/ipc_text.c", ROOT / "common/ipc/ipc_table.c"], check=True)
        return subprocess.check_output([f"{d}/ipc-text", "-m"], text=True).strip()


def anchors(text):
    """The names by which GitHub's kind of Markdown links to headings."""
    heads = re.findall(r"^#+ +(.*?) *$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h)).strip()
            .lower().replace(" ", "-") for h in heads}


def links(path, text):
    """Links in a document that lead nowhere."""
    text = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            yield f"{path.relative_to(ROOT)}: {target} is not there"
        elif anchor and file.suffix == ".md" and anchor not in anchors(
                file.read_text(encoding="utf-8")):
            yield f"{path.relative_to(ROOT)}: {target}: no such heading"


def cross_references():
    """Pages of ours that refer to one of ours that does not exist."""
    pages = {p.name.removesuffix(".in"): p.read_text(encoding="utf-8")
             for p in (ROOT / "docs/man").glob("mcpbox*") if re.search(r"\.\d(\.in)?$", p.name)}
    for page, text in pages.items():
        for name, number in re.findall(r"^\.(?:It )?Xr (mcpbox\S*) (\d)", text, re.M):
            if f"{name}.{number}" not in pages:
                yield f"docs/man/{page}: there is no page {name}({number})"


def section(text, head):
    m = re.search(rf"^## {re.escape(head)}\n(.*?)(?=^## |\Z)", text, re.S | re.M)
    assert m, head
    return m[1]


def first_cells(text):
    return [re.match(r"\| *(.*?) *\|", line)[1] for line in text.splitlines()
            if line.startswith("| ") and not line.startswith("|---")]


def operations():
    """What the two guides list, and what the code has."""
    guide = read("docs/OPERATIONS.md")
    metrics = section(guide, "Metrics and alerts")
    doctor = section(guide, "doctor")
    rules = read("contrib/prometheus/mcpbox.rules.yml")
    code = "\n".join(p.read_text(encoding="utf-8") for d in ("admind", "common", "gatewayd", "sandboxd")
                     for p in (ROOT / d).rglob("*.c"))

    have = set(re.findall(r'"(mcpbox_[a-z_]+)"', read("admind/watch/metrics.c")))
    have -= {"mcpbox_setting"}
    told = set(re.findall(r"`(mcpbox_[a-z_]+)`", metrics))
    for name in have ^ told:
        yield f"{name}: a metric of the code alone, or of docs/OPERATIONS.md alone"
    for name in set(re.findall(r"mcpbox_[a-z_]+", rules)) - have:
        yield f"contrib/prometheus/mcpbox.rules.yml: {name} is no metric"
    modes = set(re.findall(r'^F\(\w+, "(\w+)"', read("common/base/failure.def"), re.M))
    for name in set(itertools.chain(*(m.split("|") for m in re.findall(
            r'failure_mode=~?"([^"]*)"', rules)))) - modes:
        yield f"contrib/prometheus/mcpbox.rules.yml: {name} is no failure mode"
    for name in set(re.findall(r"alert: (\w+)", rules)) ^ set(re.findall(r"^\| `(Mcpbox\w+)`", metrics, re.M)):
        yield f"{name}: an alert that docs/OPERATIONS.md or the rules do not have"
    cells = " ".join(first_cells(section(guide, "When a call fails")))
    for name in set(re.findall(r"`(\w+)`", cells)) - modes:
        yield f"docs/OPERATIONS.md: {name} is no failure mode"

    events = metrics[metrics.index("| event |"):]
    for name in set(re.findall(r"`(\w+)`", " ".join(first_cells(events)))):
        if f'"{name}"' not in code:
            yield f"docs/OPERATIONS.md: no process logs the event {name}"

    cells = " ".join(first_cells(doctor))
    told = set(re.findall(r"[a-z_]+(?:-[a-z_]+)*", cells))
    for name in re.findall(r'^    \{"([a-z_-]+)"', read("common/log/layer.c"), re.M):
        family = re.split("[-_]", name)[0]
        if name not in told and f"{family}-NAME" not in cells and f"{family}_NAME" not in cells:
            yield f"docs/OPERATIONS.md: doctor's layer {name} is missing"
    rows = "".join(read(p) for p in ("admind/ctl/doctor/doctor_units.c", "admind/ctl/doctor/doctor_machine.c",
                                     "admind/ctl/doctor/doctor_data.c"))
    found = set(re.findall(r'(?:doctor_row|disk_of|look_at_listener)\(\s*d, "(\w+)"', rows))
    found |= set(re.findall(r'name = "(\w+)"', rows))
    assert len(found) > 15, found
    for name in found - told:
        yield f"docs/OPERATIONS.md: doctor's row {name} is missing"

    people = read("docs/ADMINISTRATION.md")
    names = set(re.findall(r'^K\(\w+, "(\w+)"\)', read("common/scan/kept_names.def"), re.M))
    records = section(people, "Records and activity")
    told = set(re.findall(r"`([a-z]+)`", "".join(re.findall(
        r"^\| (?:holds|ends with|is) \|.*", records, re.M))))
    for name in names ^ told:
        yield f"{name}: hidden by common/scan/kept_names.def alone, or by docs/ADMINISTRATION.md alone"
    for kind, level in re.findall(r'^A\(\w+, (\w+), (\w+),', read("admind/watch/activity.def"), re.M):
        if f"| `{kind}` | {level.lower()} |" not in records:
            yield f"docs/ADMINISTRATION.md: activity {kind} is missing"


def paths(page, text):
    """Files of the project that a page names and that are not there."""
    for name in set(re.findall(r"`((?:\w[\w-]*/)+[\w-]+\.\w+)`", text)):
        top = name.split("/")[0]
        if (ROOT / top).is_dir() and not (ROOT / name).exists() and "NNNN" not in name:
            yield f"{page}: there is no {name}"


def both_kinds(page, text):
    """What holds for the package alone is told apart from quickstart."""
    if re.search(r"systemctl|journalctl|/etc/mcpbox|/var/lib/mcpbox\b(?!-)", text) and "quickstart" not in text:
        yield f"{page}: says what holds for the package, and not what does for a quickstart"


def main():
    # A comparison that can't fail is worth nothing.
    assert block("x<!-- begin: a -->\nhello\n<!-- end: a -->", "a") == "hello"
    assert block("nothing", "a") is None
    assert anchors("# A `b`: c, d\n```\n# no\n```\n## x_y\n") == {"a-b-c-d", "x_y"}
    here = ROOT / "README.md"
    assert len(list(links(here, "[a](nowhere.md) [b](README.md#nothing) [c](#mcpbox) `[d](x)`"))) == 2
    assert list(paths("x", "`tests/nowhere/test_x.py` `nowhere/x.c` `tests/lint/docs.py`")) == [
        "x: there is no tests/nowhere/test_x.py"]
    assert list(both_kinds("x", "systemctl")) and not list(both_kinds("x", "systemctl; quickstart: sv"))
    bad = []
    for name in ("HACKING.md", "README.md", "STYLE.md"):
        bad += paths(name, read(name))
    for path in (ROOT / "README.md", ROOT / "SECURITY.md", *ROOT.glob("docs/*.md"), *(ROOT / "docs/man" / n for n in (
            "mcpbox.7", "mcpboxctl.1", "mcpbox.conf.5.in"))):
        bad += both_kinds(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/decisions/*.md"),
                 *ROOT.glob("*/DESIGN.md"), *ROOT.glob("*/*/DESIGN.md")):
        bad += links(path, path.read_text(encoding="utf-8"))
    bad += cross_references()
    bad += operations()
    if block(read("docs/PROTOCOL.md"), "ipc-text -m") != ipc_text():
        bad.append("docs/PROTOCOL.md is not what ipc-text -m prints: ninja -C build/release docs-protocol")
    processes = set(re.findall(r'^K\("([^"]+)"', read("common/conf/conf_keys.def"), re.M)) - {"*"}
    page = read("common/conf/conf_text.c")
    bad += [f"mcpbox.conf(5) has no {p}.conf (common/conf/conf_text.c)" for p in sorted(processes)
            if f'"{p}"' not in page]
    for p in sorted(processes):
        # A program for people, in section 1; the others are daemons.
        name = {"mcpboxctl": "mcpboxctl.1", "egress": "mcpbox-sandboxd-egress.8"}.get(p, f"mcpbox-{p}.8")
        page = ROOT / "docs/man" / name
        if not page.is_file():
            bad.append(f"docs/man/{name} is missing")
        elif f".Nm {name.rsplit('.', 1)[0]}" not in page.read_text(encoding="utf-8"):
            bad.append(f"docs/man/{name} does not name its process")
    print("\n".join(bad))
    return 1 if bad else 0


sys.exit(main())
