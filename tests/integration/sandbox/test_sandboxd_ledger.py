"""sandboxd's ledger at its sockets: what a life that was killed had answered, the next one tells first of all."""
import os

import pytest

from harness.patience import patience, until
from harness.played.sandbox import DONE, REFUSED, Sandbox
from integration.sandbox.test_sandboxd import failures, mode, run


@pytest.fixture
def sandbox():
    with Sandbox(slots=4, queue=4, pool_min=0, pool_max=0, queue_wait="60s") as s:
        s.await_pool()
        s.await_ready()
        s.tool_ms = 60000
        yield s


def again(sandbox):
    sandbox.vault.have_key.clear()
    sandbox.kill("sandboxd")
    sandbox.start("sandboxd")
    return sandbox.peer("admind", "admind")


def answered(sandbox):
    """A call that was answered, and whose record nobody acknowledged."""
    a = sandbox.admind()
    a.acknowledge = False
    x = a.held("echo")
    with sandbox.gateway() as g:
        assert run(g, x)["outcome"] == DONE
    return a, x


def test_records_come_before_the_epoch(sandbox):
    a, x = answered(sandbox)
    first = a.record(x)
    for _ in range(2):  # not acknowledged, the next life has it again
        p = again(sandbox)
        request, m = p.receive()
        assert m == first and m["epoch"] == a.epoch
        p.sock.close()
    p = again(sandbox)
    request, m = p.receive()
    assert m == first
    p.send("OK", request=request)
    m = p.receive()[1]
    assert m["_"] == "EPOCH_BEGIN" and m["epoch"] != a.epoch
    assert p.receive()[1] == {"_": "EPOCH_END", "count": 0}
    p.sock.close()
    p = again(sandbox)     # and no later one
    assert p.receive()[1]["_"] == "EPOCH_BEGIN"


def test_it_serves_afterwards(sandbox):
    a, x = answered(sandbox)
    a.record(x)
    sandbox.vault.have_key.clear()
    sandbox.kill("sandboxd")
    sandbox.start("sandboxd")
    b = sandbox.admind()
    assert list(b.records) == [x] and not b.named
    with sandbox.gateway() as g:
        assert run(g, b.held("echo"))["outcome"] == DONE


def test_a_refusal_is_kept_before_it_is_said(sandbox):
    a = sandbox.admind()
    a.acknowledge = False
    x = a.held("echo", arguments=b'{"a":1}')
    with sandbox.gateway() as g:
        assert run(g, x, b'{"a":2}')["_"] == "REFUSED"
    m = again(sandbox).receive()[1]
    assert (m["_"], m["execution"], m["outcome"], mode(sandbox, m)) == ("RECORD", x, REFUSED, "forbidden")


def test_what_never_was_answered_is_not_told(sandbox):
    a = sandbox.admind()
    with sandbox.gateway() as g:
        x = a.held("sleep", timeout=600000)
        g.start("RUN", execution=x, arguments=b"{}")
        until(lambda: b"sleep" in b"".join(open(f"/proc/{p}/cmdline", "rb").read() for p in sandbox.pool())
              or len(sandbox.pool()) > 4)
        assert again(sandbox).receive()[1]["_"] == "EPOCH_BEGIN"    # admind's sweep says: lost


def test_a_record_that_admind_will_not_have(sandbox):
    """It is given up after some attempts, or this sandbox would never serve anybody."""
    a, x = answered(sandbox)
    a.record(x)
    p = again(sandbox)
    names, refusals = failures(sandbox), 0
    while (got := p.receive())[1]["_"] == "RECORD":
        # For now is no reason to give up.
        failure = "storage_unavailable" if refusals < 6 else "internal"
        refusals += 1
        p.send("REFUSED", request=got[0], failure=names.index(failure), message="no", retry_after_ms=0, data="")
    assert got[1]["_"] == "EPOCH_BEGIN" and refusals == 6 + 4
    assert "record_given_up" in sandbox.log("sandboxd")


@pytest.mark.parametrize("spoil", ["another build", "cut", "bytes of the record", "noise"])
def test_what_cannot_be_read_is_no_obstacle(sandbox, spoil):
    a, x = answered(sandbox)
    a.record(x)
    sandbox.kill("sandboxd")
    path = sandbox.path("run", "sandboxd", "ledger")
    with open(path, "r+b") as f:
        data = bytearray(f.read())
        at = data.rindex(x)  # of its later entry
        if spoil == "another build":
            data[20] ^= 1
        elif spoil == "cut":
            del data[at + 40:]
        elif spoil == "bytes of the record":
            data[at - 16:at - 12] = b"\xff\xff\xff\xff"    # lengths
            data[at + 32] = 77  # outcome
        else:
            data[4096:] = os.urandom(len(data) - 4096)
        f.seek(0)
        f.truncate()
        f.write(data)
    sandbox.start("sandboxd")
    b = sandbox.admind()
    assert not b.records and b.epoch != a.epoch
    assert ("ledger_unreadable" in sandbox.log("sandboxd")) == (spoil == "another build")
    with sandbox.gateway() as g:
        assert run(g, b.held("echo"))["outcome"] == DONE


def test_a_file_of_others_is_refused(sandbox):
    """Where others can write, anybody could say how calls ended."""
    sandbox.kill("sandboxd")
    path = sandbox.path("run", "sandboxd", "ledger")
    os.chmod(path, 0o620)
    sandbox.start("sandboxd")
    assert sandbox.children["sandboxd"].wait(patience(60)) != 0
    assert "remove it" in sandbox.log("sandboxd") and path in sandbox.log("sandboxd")
    os.remove(path)
    sandbox.start("sandboxd")
    assert sandbox.admind().epoch
