"""Results of single tests, from whatever ran them, and what is made of them."""
import dataclasses
import json
import xml.etree.ElementTree as ET

PASSED, FAILED, ERROR, NOT_RUN = "passed", "failed", "error", "not run"
#: A probe says this of a control that the kernel has no place for (probes/conftest.py).
NOT_RUN_MARK = "not run: "


@dataclasses.dataclass
class Result:
    job: str
    part: str
    name: str
    outcome: str
    seconds: float = 0.0
    #: One line that says why it failed or did not run.
    message: str = ""
    #: All that is known of a failure.
    text: str = ""
    #: A command that runs this test again, or none.
    again: str = ""
    #: Found after the run: the test passes when it runs alone.
    flaky: bool = False

    @property
    def bad(self):
        return self.outcome in (FAILED, ERROR)


def first_line(text):
    """The line of a traceback that says what was wrong."""
    lines = [line for line in text.splitlines() if line.strip()]
    said = [line[1:].strip() for line in lines if line.startswith("E ")]
    return ((said or lines or [""])[0])[:300]


def skipped(name, reason, folder):
    """(outcome, message) of a skipped test: nothing may go unnoticed, so a skip is a
    failure. Only a probe may say that this kernel has nothing for it."""
    reason = reason.removeprefix("Skipped: ")
    if folder == "probes" and reason.startswith(NOT_RUN_MARK):
        return NOT_RUN, reason[len(NOT_RUN_MARK):]
    return FAILED, f"{name} was skipped: {reason}"


def of_events(lines, job, part, prefix="tests/"):
    """Results of the lines that runner/events.py wrote. A line that is cut off is the
    last one of a process that was killed."""
    tests = {}
    for line in lines:
        try:
            e = json.loads(line)
        except ValueError:
            continue
        name = prefix + e["test"]
        r = tests.get(name)
        if r is None:
            r = tests[name] = Result(job, part, name, "", again=f"sudo tests/run '{name}'")
        r.seconds += e["seconds"]
        if e["outcome"] == "failed":
            r.outcome = FAILED if e["when"] == "call" else ERROR
            r.text += e["text"]
            r.message = r.message or first_line(e["text"])
        elif e["outcome"] == "skipped":
            r.outcome, r.message = skipped(name, e["reason"], name.split("/")[1])
        elif e["when"] == "call" and not r.outcome:
            r.outcome = PASSED
    for r in tests.values():
        if not r.outcome:
            r.outcome, r.message = ERROR, "the test began and did not end"
    return list(tests.values())


def of_junit(path, job, part):
    """Results of a JUnit file, for pytest that ran where the runner can't follow."""
    out = []
    for case in ET.parse(path).getroot().iter("testcase"):
        name = f'{case.get("classname")}::{case.get("name")}'
        r = Result(job, part, name, PASSED, float(case.get("time") or 0))
        for c in case:
            message = (c.get("message") or "").split("\n")[0][:300]
            if c.tag == "skipped":
                folder = (case.get("classname") or "").split(".")[-2:-1]
                r.outcome, r.message = skipped(name, message, folder[0] if folder else "")
            elif c.tag in ("failure", "error"):
                r.outcome = FAILED if c.tag == "failure" else ERROR
                r.message, r.text = message, c.text or ""
        out.append(r)
    return out


def of_meson(path, job, part, build):
    out = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            t = json.loads(line)
            name = t["name"]
            r = Result(job, part, f"{job}: {name}", PASSED, t.get("duration") or 0,
                       again=f"meson test -C {build} '{name.split(' / ')[-1]}'")
            if t["result"] not in ("OK", "EXPECTEDFAIL"):
                r.outcome, r.message = FAILED, t["result"]
                r.text = "\n".join(filter(None, (t.get("stdout"), t.get("stderr"))))
            out.append(r)
    return out


def _xml(text):
    """Text without the controls that no XML document may have."""
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def to_junit(results, path):
    root = ET.Element("testsuites")
    suites = {}
    for r in results:
        s = suites.get(r.part)
        if s is None:
            s = suites[r.part] = ET.SubElement(root, "testsuite", name=r.part)
        case = ET.SubElement(s, "testcase", classname=r.job, name=_xml(r.name), time=f"{r.seconds:.3f}")
        if r.bad:
            tag = "failure" if r.outcome == FAILED else "error"
            e = ET.SubElement(case, tag, message=_xml(("flaky: " if r.flaky else "") + r.message))
            e.text = _xml(r.text)
        elif r.outcome == NOT_RUN:
            ET.SubElement(case, "skipped", message=_xml(r.message))
    for s in suites.values():
        s.set("tests", str(len(s)))
        s.set("failures", str(len(s.findall("testcase/failure"))))
        s.set("errors", str(len(s.findall("testcase/error"))))
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def count(results):
    """(passed, failed); what did not run is neither."""
    return (sum(r.outcome == PASSED for r in results), sum(r.bad for r in results))
