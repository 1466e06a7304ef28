"""Counts a test run's results: prints `PASSED FAILED` lines on stdout, says
what failed on stderr, and exits 1 if something did.

count.py meson testlog.json EXITSTATUS | count.py junit FILE.xml EXITSTATUS

A run that ended badly without a failed test (no file, a crash, out of time)
counts as one failure, and so does a skipped test: nothing may go unnoticed.
But a probe that this kernel has nothing for (probes/conftest.py, not_run) is
only named.
"""
import json
import sys
import xml.etree.ElementTree as ET


def meson(path):
    passed, failed = 0, []
    with open(path, encoding="utf-8") as f:
        for line in f:
            t = json.loads(line)
            if t["result"] in ("OK", "EXPECTEDFAIL"):
                passed += 1
            else:
                failed.append(f'{t["name"]}: {t["result"]}')
    return passed, failed


def junit(path):
    passed, failed = 0, []
    for case in ET.parse(path).getroot().iter("testcase"):
        bad = [c for c in case if c.tag in ("failure", "error", "skipped")]
        if bad and case.get("classname", "").split(".")[-2:-1] == ["probes"] and \
                bad[0].tag == "skipped" and (bad[0].get("message") or "").startswith("not run: "):
            print(f'NOT RUN {case.get("name")}: {bad[0].get("message")[9:]}', file=sys.stderr)
        elif bad:
            text = (bad[0].get("message") or "").split("\n")[0][:300]
            failed.append(
                f'{case.get("classname")}::{case.get("name")}: {bad[0].tag}: {text}')
        else:
            passed += 1
    return passed, failed


def main():
    kind, path, status = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        passed, failed = {"meson": meson, "junit": junit}[kind](path)
    except (OSError, ValueError, ET.ParseError) as e:
        passed, failed = 0, [f"no results: {e}"]
    if status != 0 and not failed:
        failed.append(f"the test runner ended with status {status}")
    if passed + len(failed) == 0:
        failed.append("no test ran")
    for f in failed:
        print(f"FAILED {f}", file=sys.stderr)
    print(passed, len(failed))
    return 1 if failed else 0


sys.exit(main())
