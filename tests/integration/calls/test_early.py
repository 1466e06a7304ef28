"""A runner may have a call's code before its intent row is committed, and not
a line of that code runs unless it is.

The canary is a file that the tool writes into its own /tmp when its module is
read; from outside, as root, that is seen through /proc/PID/root. PostgreSQL is
made to take its time over the row, and then to refuse it."""
import contextlib
import os
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.instance import Instance, processes
from harness.patience import eventually, until

CODE = """\
open("/tmp/canary", "w").close()
import time
def main(seconds: float = 0.0) -> str:
    time.sleep(seconds)
    return "ran"
"""
SLOW = 0.15     # seconds: less than EARLY_MS
GUARD = f"""
CREATE FUNCTION mcpbox.refuse_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.tool = 'early__one' THEN PERFORM pg_sleep({SLOW}); %s END IF;
    RETURN NEW; END $$;
CREATE TRIGGER a_refuse BEFORE INSERT ON mcpbox.executions
    FOR EACH ROW EXECUTE FUNCTION mcpbox.refuse_one()"""


@pytest.fixture(scope="module", name="suite")
def _suite():
    s = Instance(sets=("sandboxd:pool_min=2",))
    try:
        with Client(s.address) as c:
            flow.publish(s, c, "early", "one", CODE)
            assert c.call("early__one").result["content"][0]["text"] == "ran"
        yield s
    finally:
        s.close()


@contextlib.contextmanager
def guard(s, how):
    s.psql(GUARD % how)
    try:
        yield
    finally:
        s.psql("DROP TRIGGER a_refuse ON mcpbox.executions; DROP FUNCTION mcpbox.refuse_one()")


def runners(s):
    """Pids of the suite's runners: what is called mcpbox-tool."""
    found = set()
    for pid, (_, state, uid, _) in processes().items():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="ascii") as f:
            if state != "Z" and s.base <= uid < s.base + 65536 and f.read() == "mcpbox-tool\n":
                found.add(pid)
    return found


def canary(pid):
    return os.path.exists(f"/proc/{pid}/root/tmp/canary")


def told(s):
    """Calls that found a runner waiting: those got ready count at once."""
    rows = s.ctl_json("doctor")
    rows = rows if isinstance(rows, list) else next(
        v for v in rows.values() if isinstance(v, list))
    text = next(r["detail"] for r in rows if r["layer"] == "runners")
    return int(text.split(" calls found one waiting")[0].rsplit(" ", 1)[1])


def settled(s, least=2):
    return until(lambda: there if len(there := runners(s)) >= least and not any(map(canary, there)) else None,
                 10, 0.05, say=lambda: "no runners wait")


def calling(s, arguments, looks):
    """Calls the tool and looks meanwhile; its answer."""
    from concurrent import futures  # pylint: disable=import-outside-toplevel
    with Client(s.address) as c, futures.ThreadPoolExecutor(1) as beside:
        answer = beside.submit(c.call, "early__one", arguments)
        while not answer.done():
            looks()
            time.sleep(0.01)
        return answer.result()


def rows(s):
    return s.psql("SELECT count(*) FROM mcpbox.executions WHERE tool = 'early__one'")[0][0]


def test_the_canary_is_seen_from_outside(suite):
    settled(suite)
    seen = set()
    r = calling(suite, {"seconds": 3},
                lambda: seen.update(p for p in runners(suite) if canary(p)))
    assert r.result["content"][0]["text"] == "ran"
    assert len(seen) == 1


def test_nothing_runs_before_the_row_is_there(suite):
    """The row comes late: the runner has the code and waits."""
    before, seen = settled(suite), []
    with guard(suite, ""):
        def look():
            if any(map(canary, runners(suite))):
                seen.append(time.monotonic())
        begun = time.monotonic()
        r = calling(suite, {"seconds": 3}, look)
    assert r.result["content"][0]["text"] == "ran"
    assert seen and seen[0] - begun >= SLOW * 0.9
    assert before


@pytest.mark.parametrize("how", ["RETURN NULL;", "RAISE EXCEPTION 'no';"])
def test_what_gets_no_row_runs_nothing(suite, how):
    """Its runner got the code, is killed, and is nobody else's."""
    count = rows(suite)
    with guard(suite, how):
        # On a slow machine the row is refused before the vault has sealed: again.
        for _ in range(10):
            before, n, seen = settled(suite), told(suite), []
            r = calling(suite, {}, lambda found=seen: found.extend(filter(canary, runners(suite))))
            assert r.error or r.result.get("isError")
            assert not seen
            if told(suite) > n:
                break
        assert told(suite) > n, "no runner was got ready: the test shows nothing"
    # No row was made, and no record brought one back.
    time.sleep(0.5)
    assert rows(suite) == count
    assert eventually(lambda: not before <= runners(suite), 5, 0.05), "the runner that had the code still lives"
    # And the next call is an ordinary one.
    with Client(suite.address) as c:
        assert c.call("early__one").result["content"][0]["text"] == "ran"
