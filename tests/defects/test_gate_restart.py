"""The approval gate at each step of request, approval and service, with SIGKILL
of admind, the vault and PostgreSQL in the middle of the step: it happened whole
or not at all, and nothing runs that was not approved. See harness/clients/gate.py for
how a run is seen."""
import os
import signal
import subprocess
import threading
import time

import pytest

from harness import seed
from harness.clients.gate import Gate, failure
from harness.clients.mcp import Client
from harness.patience import patience, until

SERVER = "restarts"
VICTIMS = ("admind", "admind-vault", "postgresql")
#: Until all is up again and a call is answered, on a busy machine.
BACK_S = 40


@pytest.fixture(scope="module")
def gate(instance):
    with Client(instance.address) as c:
        c.manage("mcpbox_create_server", name=SERVER)
    return Gate(instance)


class Step:
    """`job` in a thread, and SIGKILL of the victim while it is on its way."""

    def __init__(self, gate, victim, job, delay):
        self.gate, self.result, self.error = gate, None, None
        pid = gate.instance.service_pid(victim)
        thread = threading.Thread(target=self.run, args=(job,))
        thread.start()
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
        thread.join(patience(60))
        assert not thread.is_alive()
        self.back(victim, pid)

    def run(self, job):
        try:
            self.result = job()
        except (AssertionError, OSError, RuntimeError, subprocess.TimeoutExpired, ValueError) as e:
            self.error = e  # its answer was cut off: what it did is looked at

    def back(self, victim, pid):
        """Until the killed one is another and the whole way is open."""
        def serves():
            with Client(self.gate.instance.address, timeout=patience(10)) as c:
                return self.gate.instance.service_pid(victim) not in (None, pid) \
                    and self.gate.instance.ctl("policies", check=False).returncode == 0 \
                    and failure(c.call(self.gate.control[0])) is None
        until(serves, BACK_S, 0.1, say=lambda: "not back",
              during=(AssertionError, OSError, RuntimeError, subprocess.TimeoutExpired, ValueError))
        self.gate.meant[self.gate.control[1]] += 1


@pytest.fixture(scope="module", autouse=True)
def control(gate):
    """A canary that is approved: it runs again after each restart, as it was.
    Tries whose answer is lost may have run, so it is not in the balance."""
    with Client(gate.instance.address) as c:
        _, exposed, mark = gate.approved(c, SERVER)
    gate.control = (exposed, mark)
    yield
    assert gate.records(mark) > 0


def client_job(gate, name, **arguments):
    def job():
        with Client(gate.instance.address, timeout=patience(40)) as c:
            return c.manage(name, **arguments)
    return job


def request_of(gate, tool):
    """(id, state) of the newest request, or None."""
    rows = gate.instance.psql("SELECT id, state FROM mcpbox.approval_requests "
                              f"WHERE tool_id = '{tool}' ORDER BY requested_at DESC LIMIT 1")
    return rows[0] if rows else None


@pytest.mark.parametrize("victim", VICTIMS)
def test_killed_at_every_step(gate, victim):
    rng = seed.rng(f"test_killed_at_every_step {victim}")
    instance = gate.instance

    def soon():
        return rng.uniform(0, 0.04)

    with Client(instance.address) as c:
        tool, name, mark = gate.draft(c, SERVER)
    exposed = f"{SERVER}__{name}"

    # request: there is one and it waits, or there is none and the draft is a draft
    Step(gate, victim, client_job(gate, "mcpbox_request_publish", tool_id=tool), soon())
    with Client(instance.address) as c:
        gate.silent(c, exposed, mark)
        asked = request_of(gate, tool)
        assert (asked and asked[1], gate.state(tool)[0]) in ((None, "draft"), ("pending", "pending_review"))
        if asked is None:
            c.manage("mcpbox_request_publish", tool_id=tool)
            asked = request_of(gate, tool)
        item = instance.ctl_json("approvals", "show", asked[0])

    # while it waits: the request and its hash are the same afterwards
    Step(gate, victim, lambda: None, 0)
    assert instance.ctl_json("approvals", "show", asked[0])["hash"] == item["hash"]
    with Client(instance.address) as c:
        gate.silent(c, exposed, mark)

    # approve: whole with its seal, or pending. What was answered holds.
    step = Step(gate, victim, lambda: gate.yes(item), soon())
    state = request_of(gate, tool)[1]
    seals = instance.psql(f"SELECT count(*) FROM mcpbox.approval_seals WHERE request_id = '{item['id']}'")[0][0]
    assert (state, seals, gate.state(tool)) in (("pending", "0", ("pending_review", "")),
                                                ("approved", "1", ("approved", "1")))
    assert step.result != 0 or state == "approved"
    with Client(instance.address) as c:
        if state == "pending":
            gate.silent(c, exposed, mark)
            assert gate.yes(item) == 0
        assert gate.yes(item) == 1
        gate.runs(c, exposed, mark)

        # an edit that waits behind it
        second, code = gate.code()
        c.manage("mcpbox_update_tool", tool_id=tool, python_code=code)
        waits = gate.ask(c, tool)

    # serve: what was approved, or an error; never what waits
    def call():
        with Client(instance.address, timeout=patience(40)) as c:
            return c.call(exposed)

    step = Step(gate, victim, call, soon())
    assert gate.records(second) == 0
    if step.result is not None:
        assert second.encode() not in step.result.raw
        assert failure(step.result) is not None or mark.encode() in step.result.raw
    ran = gate.records(mark)
    assert ran in (2, 3) and (ran == 3 or step.result is None or failure(step.result))
    gate.meant[mark] = ran
    with Client(instance.address) as c:
        gate.runs(c, exposed, mark)

    # taking it back: as answered; the one that waits doesn't come forth
    step = Step(gate, victim, lambda: instance.ctl("call", "tool_revoke", tool, "reason=x", check=False).returncode,
                soon())
    with Client(instance.address) as c:
        if gate.state(tool)[1] and instance.psql(
                f"SELECT 1 FROM mcpbox.tool_versions WHERE tool_id = '{tool}' AND state = 'approved'"):
            assert step.result != 0
            gate.runs(c, exposed, mark)
            instance.ctl("call", "tool_revoke", tool, "reason=x")
        gate.silent(c, exposed, mark, second)
        assert gate.yes(waits, item["hash"]) == 1
        gate.silent(c, exposed, mark, second)
        assert gate.yes(waits) == 0
        gate.runs(c, exposed, second)


def test_all_at_once(gate):
    """Everything is killed while two approvals are on their way."""
    instance = gate.instance
    with Client(instance.address) as c:
        made = [gate.draft(c, SERVER) for _ in range(2)]
        items = [gate.ask(c, tool) for tool, _, _ in made]
    others = [instance.service_pid(v) for v in VICTIMS[1:]]

    def job():
        for item in items:
            gate.yes(item)

    killer = threading.Timer(0.02, lambda: [os.kill(p, signal.SIGKILL) for p in others])
    killer.start()
    Step(gate, "admind", job, 0.02)
    killer.join()
    with Client(instance.address) as c:
        for (tool, name, mark), item in zip(made, items):
            if request_of(gate, tool)[1] == "pending":
                gate.silent(c, f"{SERVER}__{name}", mark)
                assert gate.yes(item) == 0
            gate.runs(c, f"{SERVER}__{name}", mark)


def test_nothing_else_ran(gate):
    del gate.meant[gate.control[1]]
    gate.balance()
