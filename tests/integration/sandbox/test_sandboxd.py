"""sandboxd, spawn and pool-init as real processes; vault, admind and a hostile
gatewayd are played here, and runners that misbehave by fake_runner.c."""
import base64
import json
import os
import signal
import time

import pytest

from harness.ipc import HEADER, Closed
from harness.patience import patience, until
from harness.played.sandbox import (DONE, FAILED, INSPECT, KILLED, LOST, OWN, REFUSED, TEST, TOOL, Sandbox,
                                    intent_of)

SECRET = "CANARY-secret-7f3a/9+e"
#: System calls of fake_runner.c while its tool "slow" lasts, and after its answer.
NANOSLEEP, PAUSE = "230", "34"


@pytest.fixture(scope="module")
def sandbox():
    # Without waiting runners, so that every process of the pool is a call's:
    # test_sandboxd_pool.py has those.
    with Sandbox(slots=4, queue=4, pool_min=0, pool_max=0, queue_wait="60s") as s:
        s.await_pool()
        s.await_ready()
        s.tool_ms = 60000
        yield s


@pytest.fixture
def admind(sandbox):
    a = sandbox.admind()
    yield a
    a.peer.sock.close()


@pytest.fixture
def gateway(sandbox):
    with sandbox.gateway() as g:
        yield g


def failures(sandbox):
    """Names by number, from the text of the table in the source."""
    import re
    src = os.path.join(os.path.dirname(__file__), "..", "..", "..", "common", "base", "failure.def")
    with open(src, encoding="ascii") as f:
        return re.findall(r'^F\(\w+, "(\w+)"', f.read(), re.M)


def run(gateway, execution, arguments=b"{}"):
    return gateway.call("RUN", execution=execution, arguments=arguments)


def asleep(sandbox, admind, gateway, timeout=600000):
    """A call that runs and does not end by itself: its id and its request."""
    before = set(sandbox.pool())    # one of an earlier call may still be about to end
    x = admind.held("sleep", timeout=timeout)
    request = gateway.start("RUN", execution=x, arguments=b"{}")
    # The runner, or that in its place if it had waited; and the child that it makes.
    until(lambda: len(set(sandbox.pool()) - before) >= 2, say=sandbox.pool)
    return x, request


def body_meta(m):
    blob = m["body_meta"]
    return json.loads(blob[:m["body_len"]]), json.loads(blob[m["body_len"]:])


def mode(sandbox, m):
    return failures(sandbox)[m["failure"]]


# --- The ordinary way. ---

def test_a_call_runs_once_and_is_recorded(sandbox, admind, gateway):
    arguments = b'{"a": "\xc3\xa9"}'
    x = admind.held("echo", arguments=arguments)
    m = run(gateway, x, arguments)
    assert m["_"] == "CALL_RESULT" and m["outcome"] == DONE and m["failure"] == 0
    body, meta = body_meta(m)
    assert body == {"content": [{"type": "text", "text": arguments.decode()}], "isError": False}
    assert meta["mcpbox/execution"]["execution_id"].replace("-", "") == x.hex()
    assert "mcpbox/failure" not in meta
    r = admind.record(x)
    assert (r["outcome"], r["failure"], r["delivered"]) == (DONE, 0, 1)
    assert r["epoch"] == admind.epoch and r["intent"] == intent_of(x)
    assert 0 < r["started_us"] <= r["ended_us"]
    assert json.loads(r["stdout_result"][r["stdout_len"]:]) == body


def test_second_run_is_refused(sandbox, admind, gateway):
    x = admind.held("echo")
    assert run(gateway, x)["outcome"] == DONE
    again = run(gateway, x)
    assert again["_"] == "REFUSED"
    assert admind.record(x)["outcome"] == DONE
    assert run(gateway, x)["_"] == "REFUSED"    # also after the record


def test_unknown_id_is_refused(sandbox, admind, gateway):
    m = run(gateway, os.urandom(16))
    assert m["_"] == "REFUSED" and mode(sandbox, m) == "sandbox_unavailable"


def test_wrong_digest_burns_the_context(sandbox, admind, gateway):
    x = admind.held("echo", arguments=b'{"a":1}')
    assert run(gateway, x, b'{"a":2}')["_"] == "REFUSED"
    assert run(gateway, x, b'{"a":1}')["_"] == "REFUSED"
    r = admind.record(x)
    assert (r["outcome"], r["started_us"], r["delivered"]) == (REFUSED, 0, 0)


def test_other_listener_is_refused(sandbox, admind, gateway):
    with sandbox.gateway("tunnel") as tunnel:
        x = admind.held("echo", listener="local")
        assert run(tunnel, x)["_"] == "REFUSED"
        assert run(gateway, x)["_"] == "REFUSED"
        assert admind.record(x)["outcome"] == REFUSED
        y = admind.held("echo", listener="tunnel")
        assert run(tunnel, y)["outcome"] == DONE
        z = admind.held("echo", listener="admind")
        assert run(tunnel, z)["_"] == "REFUSED"


def test_admind_runs_inspections(sandbox, admind):
    x = admind.held("extra", listener="admind", kind=INSPECT)
    m = admind.wait(admind.peer.start("RUN", execution=x, arguments=b"{}"))
    assert m["outcome"] == DONE
    assert body_meta(m)[0]["_meta"] == {"a": 1}     # passed as it is, for admind-check


def test_expiry_ends_in_a_record(sandbox, admind, gateway):
    x = admind.held("echo", hold=300)
    r = admind.record(x)
    assert r["outcome"] == REFUSED and r["started_us"] == 0
    assert run(gateway, x)["_"] == "REFUSED"


# --- What HELD refuses. ---

def test_replayed_context_is_refused(sandbox, admind, gateway):
    sandbox.await_key()
    x = os.urandom(16)
    sealed = sandbox.vault.seal(x, "local", TOOL, admind.plain("echo"))
    assert admind.hold("", execution=x, sealed=sealed)[1]["_"] == "OK"
    assert run(gateway, x)["outcome"] == DONE
    admind.record(x)
    time.sleep(0.1)     # forgotten: only the counter still tells
    assert admind.hold("", execution=x, sealed=sealed)[1]["_"] == "REFUSED"


@pytest.mark.parametrize("change", ["execution", "listener", "bit", "key", "short"])
def test_altered_context_is_refused(sandbox, admind, change):
    sandbox.await_key()
    x, listener = os.urandom(16), "local"
    sealed = bytearray(sandbox.vault.seal(x, "local", TOOL, admind.plain("echo")))
    if change == "execution":
        x = os.urandom(16)
    elif change == "listener":
        listener = "tunnel"
    elif change == "bit":
        sealed[40] ^= 1
    elif change == "short":
        sealed = sealed[:20]
    else:
        key, sandbox.vault.key = sandbox.vault.key, os.urandom(32)
        sealed = sandbox.vault.seal(x, "local", TOOL, admind.plain("echo"))
        sandbox.vault.key = key
    assert admind.hold("", execution=x, listener=listener,
                       sealed=bytes(sealed))[1]["_"] == "REFUSED"


@pytest.mark.parametrize("kind", [INSPECT, TEST])
def test_secrets_without_approval_are_refused(sandbox, admind, kind):
    assert admind.hold("secret", kind=kind, listener="admind",
                       secrets=[("TOKEN", SECRET)])[1]["_"] == "REFUSED"


def test_fresh_key_after_the_vault_restarts(sandbox, admind, gateway):
    old = sandbox.vault.key
    sandbox.vault.drop()
    until(sandbox.vault.have_key.is_set)
    assert sandbox.vault.key != old
    assert run(gateway, admind.held("echo"))["outcome"] == DONE


# --- How runs end. ---

@pytest.mark.parametrize("code, outcome, failure", [
    ("crash", FAILED, "exception"), ("exit", FAILED, "exception"),
    ("big", FAILED, "limit"), ("junk", KILLED, "killed"), ("hole", KILLED, "killed"),
    ("raw", KILLED, "killed"), ("close", KILLED, "killed")])
def test_bad_ends(sandbox, admind, gateway, code, outcome, failure):
    x = admind.held(code, timeout=8000)
    m = run(gateway, x)
    assert m["_"] == "CALL_RESULT"
    assert (m["outcome"], mode(sandbox, m)) == (outcome, failure)
    body, meta = body_meta(m)
    assert body["isError"] is True and body["content"][0]["text"]
    assert meta["mcpbox/failure"]["failure_mode"] == failure and meta["mcpbox/failure"]["fix"]
    r = admind.record(x)
    assert (r["outcome"], r["failure"]) == (m["outcome"], m["failure"])


def test_timeout_kills_the_tree(sandbox, admind, gateway):
    before = set(sandbox.pool())
    x = admind.held("sleep", timeout=400)
    start = time.monotonic()
    m = run(gateway, x)
    took = time.monotonic() - start
    assert mode(sandbox, m) == "timeout" and m["outcome"] == FAILED
    body, meta = body_meta(m)
    assert took >= 0.4 <= meta["mcpbox/execution"]["duration_ms"] / 1000
    assert "the limit timeout_ms is 400 ms" in body["content"][0]["text"]
    assert admind.record(x)["outcome"] == FAILED
    until(lambda: not set(sandbox.pool()) - before, say=sandbox.pool)


def test_late_frames_reach_nobody(sandbox, admind, gateway):
    x = admind.held("late")
    body, _ = body_meta(run(gateway, x))
    assert body["content"][0]["text"] == "first"
    with pytest.raises(TimeoutError):
        gateway.receive(0.3)


def test_only_known_members_pass(sandbox, admind, gateway):
    body, _ = body_meta(run(gateway, admind.held("extra")))
    assert body == {"content": [], "isError": False}


def test_output_is_capped(sandbox, admind, gateway):
    x = admind.held("print")
    _, meta = body_meta(run(gateway, x))
    shown = meta["mcpbox/execution"]["stdout"]
    assert 8192 < len(shown) < 8192 + 512 and "8192 of 65536 bytes" in shown
    assert admind.record(x)["stdout_len"] == 65536


def test_flood_is_held_back_and_ends_in_time(sandbox, admind, gateway):
    # Others are served while one goes on that has no end of its own.
    x = admind.held("flood", timeout=600000)
    request = gateway.start("RUN", execution=x, arguments=b"{}")
    for _ in range(50):
        m = gateway.receive()[1]
        assert m["_"] == "CALL_EVENT" and m["execution"] == x and m["kind"] == 2
    with sandbox.gateway() as other:
        assert run(other, admind.held("echo"))["outcome"] == DONE
    gateway.send("CANCEL", execution=x, failure=0)
    assert gateway.answer(request)["outcome"] == KILLED
    x = admind.held("flood", timeout=1000)
    gateway.start("RUN", execution=x, arguments=b"{}")
    events = 0
    while (m := gateway.receive()[1])["_"] == "CALL_EVENT":
        assert m["execution"] == x and m["kind"] == 2
        events += 1
    assert mode(sandbox, m) == "timeout"
    # By the time that it ran: what it may say in a second, twice.
    assert events <= 400 * body_meta(m)[1]["mcpbox/execution"]["duration_ms"] / 1000


def test_secrets_do_not_leave(sandbox, admind, gateway):
    secrets = [("A", SECRET), ("B", "short")]
    x = admind.held("secret", secrets=secrets)
    gateway.start("RUN", execution=x, arguments=b"{}")
    seen = b""
    while True:
        m = gateway.receive()[1]
        if m["_"] == "CALL_RESULT":
            break
        seen += m["json"]
    r = admind.record(x)
    seen += m["body_meta"] + r["stdout_result"]
    assert SECRET.encode() not in seen
    assert base64.b64encode(SECRET.encode())[:24] not in seen
    assert seen.count(b"[secret]short") == 5      # log, body, _meta, record twice


# --- CANCEL. ---

def test_cancel_by_the_one_who_ran_it(sandbox, admind, gateway):
    x, request = asleep(sandbox, admind, gateway)
    gateway.send("CANCEL", execution=x, failure=0)
    m = gateway.answer(request)
    assert (m["outcome"], mode(sandbox, m)) == (KILLED, "killed")
    assert admind.record(x)["outcome"] == KILLED


def test_cancel_of_anothers_call_is_ignored(sandbox, admind, gateway):
    x, held = admind.held("slow"), admind.held("echo")
    request = gateway.start("RUN", execution=x, arguments=b"{}")
    with sandbox.gateway() as other, sandbox.gateway("tunnel") as tunnel:
        for p in (other, tunnel):
            p.send("CANCEL", execution=x, failure=0)
        tunnel.send("CANCEL", execution=held, failure=0)
        assert gateway.answer(request)["outcome"] == DONE
    assert run(gateway, held)["outcome"] == DONE


def test_what_is_held_for_a_client_that_left_is_let_go(sandbox, admind, gateway):
    x = admind.held("echo")
    gateway.send("CANCEL", execution=x, failure=0)
    r = admind.record(x)
    assert (r["outcome"], r["started_us"]) == (KILLED, 0)
    assert run(gateway, x)["_"] == "REFUSED"


def test_admind_cancels_anything(sandbox, admind, gateway):
    revoked = failures(sandbox).index("revoked")
    x, request = asleep(sandbox, admind, gateway)
    held = admind.held("echo")
    admind.peer.send("CANCEL", execution=x, failure=revoked)
    admind.peer.send("CANCEL", execution=held, failure=revoked)
    m = gateway.answer(request)
    assert m["_"] == "REFUSED" and mode(sandbox, m) == "revoked"
    assert admind.record(x)["outcome"] == KILLED
    assert admind.record(held)["outcome"] == KILLED
    # Its RUN was on its way: the client hears why, also once the record is acknowledged.
    m = run(gateway, held)
    assert m["_"] == "REFUSED" and mode(sandbox, m) == "revoked"


# --- Peers that break rules. ---

@pytest.mark.parametrize("packet", [
    b"", b"x", b"garbage" * 20, HEADER.pack(40, 0, 0, 1), HEADER.pack(150, 0, 0, 0),
    HEADER.pack(30, 0, 4, 1), HEADER.pack(30, 2, 0, 1), HEADER.pack(999, 0, 0, 1),
    HEADER.pack(4, 0, 0, 1)])
def test_garbage_closes_the_peer(sandbox, admind, packet):
    g = sandbox.gateway()
    if packet:
        g.raw(packet)
        assert g.closed(patience(3))
    g.sock.close()
    assert run(sandbox.gateway(), admind.held("echo"))["outcome"] == DONE


def test_gateway_may_not_hold(sandbox, admind):
    g = sandbox.gateway()
    sealed = sandbox.vault.seal(b"x" * 16, "local", TOOL, admind.plain("echo"))
    g.start("HELD", execution=b"x" * 16, listener=1, context=sealed)
    assert g.closed(patience(3))


def test_strangers_are_turned_away(sandbox, admind):
    for who, name in (("gwtunnel", "gateway-local"), ("gwlocal", "gateway-tunnel"),
                      ("gwlocal", "admind"), ("gwlocal", "ctl"), ("admind", "ctl")):
        with pytest.raises((Closed, OSError)):
            sandbox.peer(who, name, wait=False)


def stopped(sandbox, g, x):
    """Runs "slow" and stops its runner before it answers: the runner. None: that came too late."""
    until(lambda: len(sandbox.pool()) == OWN)
    before = set(sandbox.pool())
    g.start("RUN", execution=x, arguments=b"{}")
    runner, = until(lambda: set(sandbox.pool()) - before)

    def call():
        with open(f"/proc/{runner}/syscall", encoding="ascii") as f:
            return f.read().split()[0]

    def state():
        with open(f"/proc/{runner}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0]

    try:
        until(lambda: call() in (NANOSLEEP, PAUSE))
        os.kill(runner, signal.SIGSTOP)
        until(lambda: state() in "TZX")
        return runner if state() == "T" and call() == NANOSLEEP else None
    except OSError:     # it has answered and is gone
        return None


def test_gateway_gone_means_not_delivered(sandbox, admind):
    for _ in range(50):
        g, x = sandbox.gateway(), admind.held("slow")
        runner = stopped(sandbox, g, x)
        g.sock.close()
        if runner is not None:
            os.kill(runner, signal.SIGCONT)
        r = admind.record(x)
        if runner is not None:
            break
    else:
        pytest.fail("it answered before it was stopped, each time")
    assert (r["outcome"], r["delivered"]) == (DONE, 0)


# --- Limits, records, the pool. ---

def test_queue_is_bounded(sandbox, admind, gateway):
    xs = [admind.held("slow") for _ in range(12)]
    requests = [gateway.start("RUN", execution=x, arguments=b"{}") for x in xs]
    done = busy = 0
    for _ in requests:
        m = gateway.receive()[1]
        done += m["_"] == "CALL_RESULT"
        busy += m["_"] == "REFUSED" and mode(sandbox, m) == "busy" and m["retry_after_ms"] > 0
    assert (done, busy) == (8, 4)       # 4 slots, 4 places in the queue
    outcomes = [admind.record(x)["outcome"] for x in xs]
    assert outcomes.count(DONE) == 8 and outcomes.count(REFUSED) == 4


def test_records_are_resent_until_acknowledged(sandbox, gateway):
    a = sandbox.admind()
    a.acknowledge = False
    x, held = a.held("echo"), a.held("echo")
    assert run(gateway, x)["outcome"] == DONE
    a.record(x)
    a.peer.sock.close()
    b = sandbox.admind()
    assert (x, 3) in b.named and (held, 1) in b.named
    assert b.record(x)["outcome"] == DONE
    assert run(gateway, held)["outcome"] == DONE
    b.record(held)
    b.peer.sock.close()
    # The acknowledgement is on its way: soon nothing is named any more.
    def none_named():
        c = sandbox.admind()
        c.peer.sock.close()
        return not c.named
    until(none_named)


def pool_pids(sandbox, name):
    return [pid for pid, argv in sandbox.pool().items() if argv[0].endswith(name)]


def test_a_runner_that_is_killed_met_no_limit(sandbox, admind, gateway):
    """From outside: the tool has met none, and `killed` says so."""
    old = set(sandbox.pool())
    x, request = asleep(sandbox, admind, gateway)
    zygote = min(pool_pids(sandbox, "mcpbox-runner"))
    victims = [pid for pid in set(sandbox.pool()) - old if pid != zygote]
    for pid in victims:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass    # its parent's end was its own
    m = gateway.answer(request)
    assert m["_"] == "CALL_RESULT" and m["outcome"] == KILLED, m
    body, meta = body_meta(m)
    assert meta["mcpbox/failure"]["failure_mode"] == "killed" and "from outside" in body["content"][0]["text"]
    assert admind.record(x)["outcome"] == KILLED


@pytest.mark.parametrize("victim", ["mcpbox-pool-init", "mcpbox-runner", "sandboxd-spawn"])
def test_pool_comes_back(sandbox, admind, gateway, victim):
    assert run(gateway, admind.held("echo"))["outcome"] == DONE
    old = set(sandbox.pool())
    x, request = asleep(sandbox, admind, gateway)
    if victim == "sandboxd-spawn":
        sandbox.kill(victim)
        sandbox.start(victim)
    else:
        os.kill(min(pool_pids(sandbox, victim)), signal.SIGKILL)
    m = gateway.answer(request)
    assert m["_"] == "REFUSED" and mode(sandbox, m) == "sandbox_unavailable"
    assert admind.record(x)["outcome"] == LOST
    # A call that comes while it restarts waits for it.
    assert run(gateway, admind.held("echo"))["outcome"] == DONE
    assert not old & set(sandbox.pool())


def test_sandboxd_dies_and_takes_the_pool_along(sandbox, gateway):
    a = sandbox.admind()
    epoch = a.epoch
    asleep(sandbox, a, gateway)
    old = set(sandbox.pool())
    sandbox.vault.have_key.clear()
    sandbox.kill("sandboxd")
    until(lambda: not old & set(sandbox.pool()), say=sandbox.pool)
    sandbox.start("sandboxd")
    b = sandbox.admind()
    assert b.epoch != epoch and not b.named     # admind's sweep closes x as lost
    with sandbox.gateway() as g:
        assert run(g, b.held("echo"))["outcome"] == DONE
    b.peer.sock.close()


def test_signals_while_it_ends_change_nothing():
    """However many come, and when: each process's end is an orderly one."""
    for _ in range(3):
        with Sandbox(slots=2) as s:
            s.await_ready()
            with s.gateway() as g:      # they have started when a call has been
                assert run(g, s.admind().held("echo"))["outcome"] == DONE
            for name, child in s.children.items():
                while child.poll() is None:
                    child.send_signal(signal.SIGINT)
                assert child.returncode == 0, (name, child.returncode, s.log(name))


def test_doctor(sandbox, admind):
    with sandbox.peer_root("ctl") as ctl:
        rows = json.loads(ctl.call("DOCTOR")["json"])
    by = {(r["process"], r["layer"]): r for r in rows}
    assert by["sandboxd", "no_new_privs"]["state"] == "enforced"
    assert ("sandboxd", "seccomp") in by
    assert by["sandboxd-spawn", "seccomp_deny_list"]["state"] == "enforced"
    assert by["sandboxd-spawn", "cgroup"]["state"] == "degraded"
    assert by["sandboxd-spawn", "cgroup"]["detail"] and by["sandboxd-spawn", "cgroup"]["fix"]
    assert by["pool", "pool_no_user_namespaces"]["state"] == "enforced"
    assert by["pool", "fake"]["state"] == "enforced"


def test_spawn_keeps_two_capabilities_only(sandbox, admind):
    with open(f"/proc/{sandbox.children['sandboxd-spawn'].pid}/status", encoding="ascii") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    assert int(status["CapPrm"], 16) == int(status["CapEff"], 16) == 1 << 6 | 1 << 7
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    assert status["Uid"].split() == [str(sandbox.uid("pool"))] * 4


def test_pool_is_in_namespaces_of_its_own(sandbox, admind, gateway):
    run(gateway, admind.held("echo"))
    init = min(pool_pids(sandbox, "mcpbox-pool-init"))
    for ns in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
        assert os.readlink(f"/proc/{init}/ns/{ns}") != os.readlink(f"/proc/self/ns/{ns}")
    with open(f"/proc/{init}/uid_map", encoding="ascii") as f:
        assert [line.split() for line in f] == [
            ["0", str(sandbox.uid("pool")), "1"],
            ["1", str(sandbox.base + 1024), "4096"]]
    with open(f"/proc/{init}/status", encoding="ascii") as f:
        status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
    assert status["Groups"].strip() == ""
    assert int(status["CapEff"], 16) == 1 << 5      # CAP_KILL, in the pool
    # Broker, spawn, signals, starter, peek, the runners' end of peek's door for the next zygote,
    # the zygote, and at most one runner's pidfd.
    assert set(os.listdir(f"/proc/{init}/fd")) <= set(map(str, range(11)))
    zygote = min(pool_pids(sandbox, "mcpbox-runner"))
    assert set(os.listdir(f"/proc/{zygote}/fd")) <= {"0", "1", "2", "3"}


def test_fork_failure_and_lazy_zygote():
    with Sandbox(slots=2, zygote="nofork") as s:
        a, g = s.admind(), s.gateway()
        x = a.held("echo")
        m = run(g, x)
        assert m["_"] == "REFUSED" and mode(s, m) == "sandbox_unavailable"
        assert a.record(x)["outcome"] == REFUSED


def test_kill_before_forked():
    """CANCEL while the zygote has not yet answered FORK."""
    with Sandbox(slots=2, zygote="lazy", pool_max=0, pool_min=0) as s:
        a, g = s.admind(), s.gateway()
        assert run(g, a.held("echo"))["outcome"] == DONE
        x = a.held("sleep")
        request = g.start("RUN", execution=x, arguments=b"{}")
        time.sleep(0.05)
        g.send("CANCEL", execution=x, failure=0)
        assert g.answer(request)["outcome"] == KILLED
        assert a.record(x)["outcome"] == KILLED
        assert run(g, a.held("echo"))["outcome"] == DONE
        # pool-init, its starter, peek, the zygote
        until(lambda: len(s.pool()) == 4, say=s.pool)


def test_crashing_zygote_is_busy_not_wrong():
    """A pool that dies at each FORK: the call was never given to it."""
    with Sandbox(slots=2, zygote="die", queue_wait="1s") as s:
        a, g = s.admind(), s.gateway()
        x = a.held("echo")
        m = run(g, x)
        assert m["_"] == "REFUSED"
        assert a.record(x)["outcome"] == REFUSED
        s.zygote("")
        until(lambda: (m := run(g, a.held("echo")))["_"] == "CALL_RESULT" and m["outcome"] == DONE)
