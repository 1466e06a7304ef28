"""What pytest tells the runner while it runs: one JSON line a phase of a test, in the
file that MCPBOX_TEST_EVENTS names. A run that is cut off has told all it knew.

Loaded by `pytest -p runner.events`; with several workers the first process alone
hears of every test.
"""
import json
import os

import pytest

#: Characters of a failure's text that are kept: some 600 lines.
TEXT_MAX = 60_000


class Events:
    def __init__(self, path):
        self.out = open(path, "a", encoding="utf-8", buffering=1)

    def tell(self, **what):
        self.out.write(json.dumps(what) + "\n")

    def pytest_runtest_logreport(self, report):
        text = reason = ""
        if report.failed:
            text = "\n".join([report.longreprtext, *(
                f"--- {name}\n{body}" for name, body in report.sections)])
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
        self.tell(test=report.nodeid, when=report.when, outcome=report.outcome,
                  seconds=report.duration, text=text[-TEXT_MAX:], reason=reason)

    def pytest_collectreport(self, report):
        if report.failed:
            self.tell(test=report.nodeid, when="collect", outcome="failed", seconds=0,
                      text=report.longreprtext[-TEXT_MAX:], reason="")


def programs_of_tests():
    """Programs that tests start keep nothing of what they compile."""
    if os.environ.pop("PYTHONPYCACHEPREFIX", None) is not None:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    # pytest itself was told at its start. Workers are started by the process that has
    # none of the tests, and shall be told too.
    if not getattr(config.option, "numprocesses", None):
        programs_of_tests()
    path = os.environ.get("MCPBOX_TEST_EVENTS")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Events(path), "mcpbox-events")
