"""A taken-over gatewayd: its sockets driven directly, as its user. It may say
anything; it must learn only what passes through it and run nothing twice."""
import errno
import json
import os
import struct
import time

import pytest

from harness.clients import flow
from harness.clients.api_token import Token
from harness.clients.mcp import Client
from harness.ipc import HEADER, Closed, Peer, Table, socket_as
from harness.patience import eventually, patience
from harness.played.admind import FAILURES

CANARY = "CANARY_code_5b1d9f0c"


@pytest.fixture(scope="module")
def table():
    return Table()


@pytest.fixture(scope="module")
def tool(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "victim", "echo",
                            f"# {CANARY}\ndef main(n: int = 0) -> int:\n    return n\n")


@pytest.fixture
def admind(instance, table):
    with Peer.open(table, instance, "gwlocal", "admind", "gateway-local") as p:
        yield p


@pytest.fixture
def sandboxd(instance, table):
    with Peer.open(table, instance, "gwlocal", "sandboxd", "gateway-local") as p:
        yield p


def authorise(admind, tool, arguments=b'{"n":7}'):
    a = admind.call("AUTHORISE", credential="", tool=tool, protocol="2025-11-25",
                    client="hostile 1", capabilities=b"{}", arguments=arguments)
    return a


def record(instance, execution, seconds=10):
    """(state, outcome) of an execution once closed."""
    last = []

    def closed():
        last[:] = instance.psql("SELECT state, outcome FROM mcpbox.executions WHERE "
                                f"replace(id::text, '-', '') = '{execution.hex()}'")
        assert len(last) == 1
        return last[0][0] == "closed"
    eventually(closed, seconds, 0.05)
    return tuple(last[0])


# Who may connect.

EVERY_SOCKET = [("admind", "gateway-local"), ("admind", "gateway-tunnel"), ("admind", "http"),
                ("admind", "ctl"), ("admind-check", "admind"), ("admind-vault", "admind"),
                ("admind-vault", "http"), ("admind-vault", "ctl"), ("admind-vault", "sandboxd"),
                ("sandboxd", "gateway-local"), ("sandboxd", "gateway-tunnel"),
                ("sandboxd", "admind"), ("sandboxd", "ctl"), ("sandboxd-spawn", "sandboxd"),
                ("egress", "sandboxd"), ("egress", "peek")]
MAY = {("gwlocal", "admind", "gateway-local"), ("gwlocal", "sandboxd", "gateway-local"),
       ("gwtunnel", "admind", "gateway-tunnel"), ("gwtunnel", "sandboxd", "gateway-tunnel"),
       ("adminweb", "admind", "http"), ("adminweb", "admind-vault", "http"),
       ("admind", "admind-check", "admind"), ("admind", "admind-vault", "admind"),
       ("admind", "sandboxd", "admind"), ("sandbox", "admind-vault", "sandboxd"),
       ("sandbox", "sandboxd-spawn", "sandboxd"),
       ("sandbox", "egress", "sandboxd"), ("sandbox", "egress", "peek")}


@pytest.mark.parametrize("who", ["gwlocal", "gwtunnel", "adminweb", "check", "vault", "sandbox",
                                 "pool", "egress", "dbowner", "log", "stranger"])
def test_each_user_reaches_its_own_sockets_only(instance, table, who):
    for process, name in EVERY_SOCKET:
        path = instance.run(process, name) + ".sock"
        if (who, process, name) in MAY:
            continue	# reached by the tests below and by the daemons
        try:
            s = socket_as(instance.uid(who), instance.groups(who), path)
        except PermissionError as e:
            assert e.errno == errno.EACCES
            continue
        # Its group may enter the directory; the listener looks at the uid.
        with Peer(table, s, hello=False) as p:
            p.send("HELLO", table=table.hash, process="x", build="x", epoch=os.urandom(16))
            assert p.closed(), (who, process, name)


def test_group_of_the_directory_alone_is_not_enough(instance, table):
    """A stranger given every group is still not the client."""
    groups = [instance.base + i for i in range(1, 12)]
    for process, name in EVERY_SOCKET:
        with Peer(table, socket_as(instance.uid("stranger"), groups,
                                   instance.run(process, name) + ".sock"), hello=False) as p:
            p.send("HELLO", table=table.hash, process="x", build="x", epoch=os.urandom(16))
            assert p.closed(), (process, name)


# What it may say.

def test_another_table_is_refused(instance, table):
    with Peer(table, socket_as(instance.uid("gwlocal"), instance.groups("gwlocal"),
                               instance.run("admind", "gateway-local.sock")), hello=False) as p:
        p.send("HELLO", table=b"\0" * 32, process="x", build="x", epoch=os.urandom(16))
        assert p.closed()


def test_nothing_before_hello(instance, table):
    with Peer(table, socket_as(instance.uid("gwlocal"), instance.groups("gwlocal"),
                               instance.run("admind", "gateway-local.sock")), hello=False) as p:
        p.send("GW_ATTACH", request=1)
        assert p.closed()


@pytest.mark.parametrize("where", ["admind", "sandboxd"])
def test_messages_of_other_roles_close_the_connection(instance, table, where):
    allowed = {"admind": {"HELLO", "GW_ATTACH", "AUTHENTICATE", "CATALOGUE_GET", "AUTHORISE",
                          "SESSION_END", "TASK_GET", "TASK_UPDATE", "TASK_CANCEL", "TASK_DROP",
                          "REFUSED", "OK"},
               "sandboxd": {"HELLO", "RUN", "CANCEL", "CALL_ANSWER", "REFUSED", "OK"}}[where]
    for name in table.by_name:
        if name in allowed or any(k == "fd" for k, _ in table.by_name[name]["fields"]):
            continue
        with Peer.open(table, instance, "gwlocal", where, "gateway-local") as p:
            p.send(name, request=99)
            try:
                got = p.receive(patience(5))
                raise AssertionError(f"{name} was answered: {got}")
            except Closed:
                pass


def hostile_packets(table):
    number = table.by_name["AUTHENTICATE"]["number"]
    good = table.encode("AUTHENTICATE", {"credential": "x"})
    yield "trailing byte", HEADER.pack(number, 0, len(good) + 1, 1) + good + b"\0"
    yield "short", HEADER.pack(number, 0, len(good) - 1, 1) + good[:-1]
    yield "wrong length", HEADER.pack(number, 0, len(good) + 7, 1) + good
    yield "header only", HEADER.pack(number, 0, 0, 1)
    yield "half a header", b"\0\x0c\0\0"
    yield "unknown type", HEADER.pack(250, 0, 0, 1)
    yield "type zero", HEADER.pack(0, 0, 0, 1)
    yield "unknown flag", HEADER.pack(number, 2, len(good), 1) + good
    yield "memfd flag without one", HEADER.pack(number, 1, len(good), 1) + good
    long = struct.pack(">I", 0xFFFFFFFF) + b"x"
    yield "string length", HEADER.pack(number, 0, len(long), 1) + long
    nul = struct.pack(">I", 3) + b"a\0b"
    yield "NUL in a string", HEADER.pack(number, 0, len(nul), 1) + nul
    bad = struct.pack(">I", 2) + b"\xc0\x80"
    yield "overlong UTF-8", HEADER.pack(number, 0, len(bad), 1) + bad


def test_malformed_frames_close_and_harm_nobody(instance, table, tool):
    for what, packet in hostile_packets(table):
        with Peer.open(table, instance, "gwlocal", "admind", "gateway-local") as p:
            p.raw(packet)
            assert p.closed(), what
    with Peer.open(table, instance, "gwlocal", "admind", "gateway-local") as p:
        n = os.open("/dev/null", os.O_RDONLY)
        good = table.encode("AUTHENTICATE", {"credential": "x"})
        p.raw(HEADER.pack(table.by_name["AUTHENTICATE"]["number"], 0, len(good), 1) + good, [n])
        assert p.closed(), "surplus descriptor"
        os.close(n)
    with Client(instance.address) as c:
        assert c.call(tool, {"n": 1}).result


def test_unsealed_memfd_is_refused(instance, table):
    """Else its bytes could change between check and use."""
    rest = table.encode("AUTHORISE", {"arguments": b"x" * 100000}, apart=True)
    with Peer.open(table, instance, "gwlocal", "admind", "gateway-local") as p:
        fd = os.memfd_create("blob", os.MFD_ALLOW_SEALING)
        os.write(fd, b"x" * 100000)
        p.raw(HEADER.pack(table.by_name["AUTHORISE"]["number"], 1, len(rest), 1) + rest, [fd])
        assert p.closed()
        os.close(fd)


# One id, one run.

def test_an_authorised_call_runs_once(instance, admind, sandboxd, tool):
    a = authorise(admind, tool)
    assert a["_"] == "RUN_ID", a
    r = sandboxd.call("RUN", execution=a["execution"], arguments=b'{"n":7}')
    assert r["_"] == "CALL_RESULT" and r["outcome"] == 1
    body = r["body_meta"][:r["body_len"]]
    assert json.loads(body)["content"][0]["text"] == "7"
    for _ in range(3):
        assert sandboxd.call("RUN", execution=a["execution"], arguments=b'{"n":7}')["_"] == "REFUSED"
    assert record(instance, a["execution"]) == ("closed", "done")


def test_both_connections_at_once_run_it_once(instance, table, admind, sandboxd, tool):
    a = authorise(admind, tool)
    with Peer.open(table, instance, "gwlocal", "sandboxd", "gateway-local") as other:
        one = sandboxd.start("RUN", execution=a["execution"], arguments=b'{"n":7}')
        two = other.start("RUN", execution=a["execution"], arguments=b'{"n":7}')
        answers = sorted([sandboxd.answer(one)["_"], other.answer(two)["_"]])
    assert answers == ["CALL_RESULT", "REFUSED"]
    assert record(instance, a["execution"]) == ("closed", "done")


def test_other_arguments_burn_the_id(instance, admind, sandboxd, tool):
    a = authorise(admind, tool)
    assert sandboxd.call("RUN", execution=a["execution"], arguments=b'{"n":8}')["_"] == "REFUSED"
    assert sandboxd.call("RUN", execution=a["execution"], arguments=b'{"n":7}')["_"] == "REFUSED"
    assert record(instance, a["execution"]) == ("closed", "refused")


def test_an_invented_id_runs_nothing(instance, sandboxd):
    before = instance.psql("SELECT count(*) FROM mcpbox.executions")
    assert sandboxd.call("RUN", execution=os.urandom(16), arguments=b"{}")["_"] == "REFUSED"
    assert instance.psql("SELECT count(*) FROM mcpbox.executions") == before


def test_another_listener_can_not_run_it(instance, table, admind, sandboxd, tool):
    a = authorise(admind, tool)
    with Peer.open(table, instance, "gwtunnel", "sandboxd", "gateway-tunnel") as t:
        assert t.call("RUN", execution=a["execution"], arguments=b'{"n":7}')["_"] == "REFUSED"
    # Whether that burned the id or not, it runs at most once, for its owner.
    r = sandboxd.call("RUN", execution=a["execution"], arguments=b'{"n":7}')
    outcome = {"CALL_RESULT": "done", "REFUSED": "refused"}[r["_"]]
    assert record(instance, a["execution"]) == ("closed", outcome)


def test_the_tunnel_has_no_rights_without_a_credential(instance, table, tool):
    with Peer.open(table, instance, "gwtunnel", "admind", "gateway-tunnel") as t:
        for credential in ("", "local", "A" * 43):
            a = t.call("AUTHENTICATE", credential=credential)
            assert a["_"] == "REFUSED", a
            a = t.call("AUTHORISE", credential=credential, tool=tool, protocol="2025-11-25",
                       client="x", capabilities=b"{}", arguments=b"{}")
            assert a["_"] == "REFUSED", a


def test_another_connection_can_not_cancel(instance, table, admind, sandboxd):
    with Client(instance.address) as c:
        slow = flow.publish(instance, c, "victim", "slow",
                            "import time\ndef main() -> str:\n    time.sleep(1)\n    return 'done'\n")
    a = authorise(admind, slow, b"{}")
    run = sandboxd.start("RUN", execution=a["execution"], arguments=b"{}")
    time.sleep(0.2)
    with Peer.open(table, instance, "gwtunnel", "sandboxd", "gateway-tunnel") as t:
        t.send("CANCEL", execution=a["execution"], failure=0)
        time.sleep(0.2)
    r = sandboxd.answer(run)
    assert r["_"] == "CALL_RESULT" and r["outcome"] == 1, r


def test_an_unused_context_ends_in_one_record(instance, admind, tool):
    a = authorise(admind, tool)
    assert record(instance, a["execution"], 60) == ("closed", "refused")


# What it learns.

def everything_it_hears(peer, *requests):
    heard = b""
    for name, fields in requests:
        request = peer.start(name, **fields)
        while True:
            got, f = peer.receive()
            heard += repr(f).encode()
            for v in f.values():
                heard += v if isinstance(v, bytes) else str(v).encode()
            if got == request and peer.table.by_name[f["_"]]["kind"] == "answer":
                break
    return heard


def test_it_never_hears_code(instance, admind, sandboxd, tool):
    heard = everything_it_hears(
        admind, ("GW_ATTACH", {}), ("AUTHENTICATE", {"credential": ""}),
        ("CATALOGUE_GET", {"permission_set": admind.call("AUTHENTICATE", credential="")
                           ["permission_set"]}),
        ("AUTHORISE", {"tool": tool, "protocol": "2025-11-25", "capabilities": b"{}",
                       "arguments": b'{"n":"wrong"}'}))
    assert tool.encode() in heard	# so it listened well
    a = authorise(admind, tool)
    heard += everything_it_hears(sandboxd, ("RUN", {"execution": a["execution"],
                                                    "arguments": b'{"n":7}'}))
    assert CANARY.encode() not in heard


def test_it_can_not_name_a_permission_set_or_principal(admind):
    """An invented permission set is refused or empty, never somebody's."""
    request = admind.start("CATALOGUE_GET", permission_set="administrator")
    items = []
    while True:
        got, f = admind.receive()
        if got != request:
            continue
        if f["_"] != "CATALOGUE_ITEM":
            break
        items.append(f)
    assert not items or f["_"] == "REFUSED"


def test_its_process_can_not_read_what_others_keep(instance):
    """Files and processes, tried as its user."""
    uid, groups = instance.uid("gwlocal"), instance.groups("gwlocal")
    targets = [os.path.join(instance.state, *p) for p in (
        ("key", "master.key"), ("key",), ("pg",), ("pg", "PG_VERSION"),
        ("log", "admind", "current"), ("run", "postgresql"), ("run", "admind-vault"),
        ("run", "sandboxd-spawn"), ("run", "egress"))]
    for name in ("admind", "admind-vault", "sandboxd"):
        targets += [f"/proc/{instance.service_pid(name)}/{f}" for f in ("mem", "environ", "fd")]
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        opened = []
        try:
            os.setgroups(groups)
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            for t in targets:
                try:
                    os.listdir(t) if os.path.isdir(t) else os.close(os.open(t, os.O_RDONLY))
                    opened.append(t)
                except OSError:
                    pass
        finally:
            os.write(w, json.dumps(opened).encode())
            os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        assert json.load(f) == []
    os.waitpid(pid, 0)


# Tokens.

def items(peer, permission_set):
    """Names of a catalogue, or the failure."""
    request = peer.start("CATALOGUE_GET", permission_set=permission_set)
    names = []
    while True:
        got, m = peer.receive()
        if got != request:
            continue
        if m["_"] != "CATALOGUE_ITEM":
            return names if m["_"] == "CATALOGUE_END" else m["failure"]
        names.append(m["name"])


def test_a_set_is_of_one_listener_and_ends_with_its_tokens(instance, table, admind, tool):
    """The name of a permission set, heard or kept, opens no catalogue at another listener, nor behind its last token."""
    t = Token(instance, scopes="tools:call", allow="victim__*")
    with Peer.open(table, instance, "gwtunnel", "admind", "gateway-tunnel") as g:
        who = g.call("AUTHENTICATE", credential=t.text)
        assert who["principal"] == t.principal and who["cache_ms"] <= 30_000
        assert tool in items(g, who["permission_set"])
        assert items(g, "local") == FAILURES["FORBIDDEN"]
        # A name of the form is "busy" wherever it means nothing now: the gateway is to ask who its client is.
        unknown = FAILURES["BUSY"]
        assert items(admind, who["permission_set"]) == unknown
        assert items(g, who["permission_set"][:-1] + "x") == unknown
        # A token that may the same has the same set; one that may more another, and neither is told by the other.
        assert g.call("AUTHENTICATE", credential=Token(instance, scopes="tools:call", allow="victim__*").text)[
            "permission_set"] == who["permission_set"]
        more = Token(instance, scopes="tools:call")
        other = g.call("AUTHENTICATE", credential=more.text)["permission_set"]
        assert other != who["permission_set"]

        # A hostile gateway does not answer the revocation: it is late, which the administrator hears, and the set is gone.
        r = instance.ctl("tokens", "revoke", more.name, check=False)
        assert r.returncode == 1 and "does not answer" in r.stderr
        assert items(g, other) == unknown
        assert g.call("AUTHENTICATE", credential=more.text)["_"] == "REFUSED"
        a = g.call("AUTHORISE", credential=more.text, tool=tool, protocol="2025-11-25", client="hostile 1",
                   capabilities=b"{}", arguments=b"{}")
        assert a["_"] == "REFUSED"


def test_what_a_token_may_is_not_the_gateways_word(instance, table, tool):
    """AUTHORISE names a tool outside the token's patterns: unknown, as one that does not exist."""
    t = Token(instance, scopes="tools:call", allow="nobody__*")
    with Peer.open(table, instance, "gwtunnel", "admind", "gateway-tunnel") as g:
        both = [g.call("AUTHORISE", credential=t.text, tool=name, protocol="2025-11-25", client="hostile 1",
                       capabilities=b"{}", arguments=b"{}") for name in (tool, "victim__nothing")]
        assert [m["_"] for m in both] == ["REFUSED"] * 2
        assert both[0]["failure"] == both[1]["failure"] and both[0]["message"] == both[1]["message"]
        # Another's credential is another's rights, not this gateway's: without one it has none.
        assert g.call("AUTHENTICATE", credential="")["_"] == "REFUSED"
