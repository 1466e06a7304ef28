"""Every test that docs/THREATS.md names must exist."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def missing(text):
    """Names in text that no file has. A bare `test_x` is of the last file."""
    out, current = [], None
    for name in re.findall(r"`([^`\n]+)`", text):
        if "::" in name:
            current, name = name.split("::")
        elif not name.startswith("test_"):
            if name.startswith(("unit/", "probes/", "integration/", "defects/")) and \
                    not (ROOT / "tests" / name).exists():
                out.append(name)
            continue
        path = ROOT / "tests" / (current or "")
        if not path.is_file() or not re.search(
                rf"\bdef {re.escape(name)}\(", path.read_text()):
            out.append(f"{current}::{name}")
    return out


def main():
    if not missing("`kill/test_processes.py::test_planted_absence`"):
        sys.exit("the check can't fail")
    bad = missing((ROOT / "docs/THREATS.md").read_text())
    for name in bad:
        print(f"docs/THREATS.md: no test {name}")
    return 1 if bad else 0


sys.exit(main())
