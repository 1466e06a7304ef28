"""Notifications (decision 0112), through the whole suite: real requests, real confined runs, and targets that the test
plays, in a network namespace. A target is told once a minute; the tests make it due by its row."""
import base64
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import signal
import threading

import pytest

from harness.clients.flow import draft
from harness.clients.mcp import Client
from harness.clients.signed_token import set_document
from harness.instance import Instance
from harness.net.trust import Authority
from harness.patience import patience, until
from harness.played import dns as d
from harness.played.egress import DNS
from harness.played.notified import Mail, Web

HOME, PUBLIC, OTHER, PORT = "192.168.1.5", "93.184.216.34", "142.250.185.14", 8080
KEY, TOKEN, PASSWORD = ("canary" + secrets.token_hex(12) for _ in range(3))
DESCRIPTION = "canary" + secrets.token_hex(12)
CODE = "def main() -> int:\n    return 1\n"
PANEL = "http://127.0.0.1:8000"


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def instance(inside, dns, ca):
    dns.zone["mail.example"], dns.zone["push.example"] = d.Answer(a=[PUBLIC]), d.Answer(a=[PUBLIC])
    with ca.trusted():
        i = Instance(sets=(f"egress:dns_servers={DNS}",))
    with Client(i.address) as client:
        server = client.manage("mcpbox_create_server", name="alerts", description="Has the targets' secrets.")["id"]
        for key, value in (("HOOK", KEY), ("TOKEN", "tk_" + TOKEN), ("MAIL", "box:" + PASSWORD), ("EMPTY", None)):
            client.manage("mcpbox_create_server_secret", server_id=server, key=key)
            if value:
                i.ctl("secret", "set", "alerts", key, stdin=value)
    yield i
    i.close()


@pytest.fixture
def web(ns):
    with Web(sock=ns.listen(HOME, PORT)) as w:
        yield w


@pytest.fixture(autouse=True)
def nothing_waits(instance):
    """No test begins or ends with targets, or with requests of another."""
    yield
    to(instance)
    for item in instance.ctl_json("approvals", "list", "--state", "pending")["items"]:
        instance.ctl("approvals", "reject", item["id"], "--reason", "the test is over")


def to(instance, *texts, **named):
    """Puts a document with these targets into force; none: without."""
    targets = [{"name": f"t{i}", "notify": text} for i, text in enumerate(texts)]
    targets += [{"name": name, "notify": text} for name, text in named.items()]
    document = {"notifications": {"panel": PANEL, "targets": targets}} if targets else {}
    got = set_document(instance, document)
    assert got["_"] == "ACCESS_STATE", got
    until(lambda: {t["target"] for t in state(instance)} == {t["name"] for t in targets}, 60, say=lambda: state(instance))


def state(instance):
    return instance.ctl_json("notifications")["items"]


def of(instance, name="t0"):
    return next((t for t in state(instance) if t["target"] == name), {})


def due(instance):
    """Lets the minute be over."""
    instance.psql("UPDATE mcpbox.notification_targets SET due_at = '-infinity'")


def ask(instance, name=None):
    """A request that waits; it, as `mcpboxctl approvals` shows it."""
    name = name or "n" + secrets.token_hex(4)
    with Client(instance.address) as client:
        tool = draft(client, "demo", name, CODE, description=DESCRIPTION)
        client.manage("mcpbox_request_publish", tool_id=tool)
    return next(i for i in instance.ctl_json("approvals", "list", "--state", "pending")["items"] if i["tool"] == name)


def logged(instance):
    return lambda: (state(instance), instance.logs()[-3000:])


def hook(ns=None, path="/in", host=f"{HOME}:{PORT}"):
    return f"webhook http://{host}{path} secret=alerts/HOOK"


def test_a_webhook_is_signed_and_says_what_waits(instance, web):
    to(instance, hook())
    item = ask(instance)
    until(lambda: web.got, 60, say=logged(instance))
    r, = web.got
    body = json.loads(r.body)
    assert (r.method, r.path, body["type"]) == ("POST", "/in", "mcpbox.requests")
    made = hmac.new(KEY.encode(), f"{r.headers['webhook-id']}.{r.headers['webhook-timestamp']}.".encode() + r.body, hashlib.sha256)
    assert r.headers["webhook-signature"] == "v1," + base64.b64encode(made.digest()).decode()
    data = body["data"]
    one, = data["requests"]
    assert (data["waiting"], data["test"], one["id"], one["hash"], one["kind"]) == (1, False, item["id"], item["hash"], "tool")
    assert data["title"] == "mcpbox: 1 request waits for you"
    assert data["link"] == f"{PANEL}/#/approvals/{item['id']}"
    assert data["text"] == (f"tool demo__{item['tool']}, version 1 (server demo), asked by {item['requested_by']},"
                            f" hash {item['hash'][:12]}")
    # Nothing but what finds the request; its content is on the panel's page.
    assert DESCRIPTION not in r.body.decode() and "notes" not in one and "arguments" not in one, one
    until(lambda: of(instance).get("sent") == 1, 60, say=logged(instance))
    assert of(instance)["waiting"] == 0 and of(instance)["error"] is None and of(instance)["sent_at"]
    kept, = instance.psql("SELECT arguments FROM mcpbox.executions WHERE tool = 'notification' AND state = 'closed'"
                          " ORDER BY created_at DESC LIMIT 1")[0]
    assert json.loads(kept) == {"target": "t0", "requests": 1}


def test_ntfy_and_matrix(instance, web):
    web.answer = lambda r: (200, {}, b"{}")
    to(instance, f"ntfy http://{HOME}:{PORT}/topic secret=alerts/TOKEN",
       f"matrix http://{HOME}:{PORT} !room:home.example secret=alerts/HOOK")
    item = ask(instance)
    until(lambda: len(web.got) == 2, 120, say=logged(instance))
    ntfy, = (r for r in web.got if r.method == "POST")
    matrix, = (r for r in web.got if r.method == "PUT")
    assert ntfy.path == "/topic" and ntfy.headers["Authorization"] == "Bearer tk_" + TOKEN
    assert ntfy.headers["Title"] == "mcpbox: 1 request waits for you"
    assert ntfy.headers["Click"] == f"{PANEL}/#/approvals/{item['id']}"
    assert item["hash"][:12] in ntfy.body.decode() and item["tool"] in ntfy.body.decode()
    assert matrix.target.startswith("/_matrix/client/v3/rooms/%21room%3Ahome.example/send/m.room.message/")
    assert matrix.headers["Authorization"] == "Bearer " + KEY
    event = json.loads(matrix.body)
    assert event["msgtype"] == "m.text" and item["hash"][:12] in event["body"] and item["id"] in event["body"]


def test_mail(ns, instance, ca):
    """By STARTTLS and by TLS at once, to a name, with a password; and without all of it on the local network."""
    with Mail({"box": PASSWORD}, sock=ns.listen(PUBLIC, 587), context=ca.context("mail.example")) as starttls, \
            Mail({"box": PASSWORD}, sock=ns.listen(PUBLIC, 465), context=ca.context("mail.example"), at_once=True) as tls, \
            Mail(sock=ns.listen(HOME, 25)) as plain:
        to(instance, "smtp mail.example box@mail.example ann@mail.example secret=alerts/MAIL",
           "smtps mail.example box@mail.example ann@mail.example secret=alerts/MAIL",
           f"smtp {HOME}:25 box@home.example ann@home.example")
        item = ask(instance)
        until(lambda: starttls.got and tls.got and plain.got, 120, say=logged(instance))
        for server, user in ((starttls, "box"), (tls, "box"), (plain, None)):
            got, = server.got
            assert bool(got.tls) == (server is not plain) and got.user == user
            assert got.message["Subject"] == "mcpbox: 1 request waits for you"
            assert got.message["Auto-Submitted"] == "auto-generated"
            assert item["hash"][:12] in got.message.get_content() and item["id"] in got.message.get_content()


def test_a_password_never_goes_without_tls(ns, instance):
    with Mail({"box": PASSWORD}, sock=ns.listen(HOME, 25)) as plain:
        to(instance, f"smtp {HOME}:25 box@home.example ann@home.example secret=alerts/MAIL")
        ask(instance)
        until(lambda: of(instance).get("error"), 60, say=logged(instance))
        assert plain.commands and not any(c.startswith(("AUTH", "MAIL", "DATA")) for c, _ in plain.commands), plain.commands
        assert of(instance)["waiting"] == 1


def test_one_digest_a_minute(instance, web):
    """Requests that come within a minute are one notification, after it."""
    to(instance, hook())
    first = ask(instance)
    until(lambda: of(instance).get("sent") == 1, 60, say=logged(instance))
    assert [r["id"] for r in json.loads(web.got[0].body)["data"]["requests"]] == [first["id"]]
    others = {ask(instance)["id"] for _ in range(12)}
    assert of(instance)["waiting"] == 12 and len(web.got) == 1
    wait, = instance.psql("SELECT extract(epoch FROM due_at - sent_at) FROM mcpbox.notification_targets")[0]
    assert float(wait) == 60
    due(instance)
    until(lambda: of(instance).get("sent") == 2, 60, say=logged(instance))
    data = json.loads(web.got[1].body)["data"]
    assert data["waiting"] == 12 and len(data["requests"]) == 10 and {r["id"] for r in data["requests"]} < others
    assert data["text"].splitlines()[-1] == "and 2 more" and of(instance)["waiting"] == 0
    assert data["title"] == "mcpbox: 12 requests wait for you" and data["link"] == f"{PANEL}/#/approvals"
    due(instance)
    third = ask(instance)
    until(lambda: of(instance).get("sent") == 3, 60, say=logged(instance))
    assert [r["id"] for r in json.loads(web.got[2].body)["data"]["requests"]] == [third["id"]]


def test_what_was_decided_is_not_told(instance, web):
    to(instance, hook())
    ask(instance)
    until(lambda: of(instance).get("sent") == 1, 60, say=logged(instance))
    gone, stays = ask(instance), ask(instance)
    instance.ctl("approvals", "reject", gone["id"], "--reason", "no")
    due(instance)
    until(lambda: of(instance).get("sent") == 2, 60, say=logged(instance))
    assert [r["id"] for r in json.loads(web.got[1].body)["data"]["requests"]] == [stays["id"]]


@pytest.mark.parametrize("answer, words", [
    ((503, {"Retry-After": "800"}, b"canaryanswer"), "HTTP 503"), ((401, {}, b"canaryanswer"), "HTTP 401"),
    ((307, {"Location": f"http://{OTHER}:{PORT}/in"}, b""), f"leads to http://{OTHER}"),
], ids=["503", "401", "redirect"])
def test_a_target_with_trouble_is_told_later(ns, instance, web, answer, words):
    web.answer = answer
    with Web(sock=ns.listen(OTHER, PORT)) as other:
        to(instance, hook())
        item = ask(instance)
        until(lambda: words in (of(instance).get("error") or ""), 60, say=logged(instance))
        assert of(instance)["waiting"] == 1 and of(instance)["sent"] == 0 and "canaryanswer" not in of(instance)["error"]
        wait, = instance.psql("SELECT extract(epoch FROM due_at - now()) FROM mcpbox.notification_targets")[0]
        assert float(wait) <= 900 * 1.125 and (answer[0] != 503 or float(wait) > 68), wait
        web.answer = 200, {}, b""
        due(instance)
        until(lambda: of(instance).get("sent") == 1, 60, say=logged(instance))
        assert of(instance)["error"] is None and other.got == []
        assert [r["id"] for r in json.loads(web.got[-1].body)["data"]["requests"]] == [item["id"]]


def test_an_answer_that_is_cut_is_still_an_answer(instance, web):
    """A long place of a redirect, whose letters have two bytes each: the fault is shown, and the next try waits."""
    web.answer = 302, {"Location": "x" + ("\u00e9" * 220).encode().decode("latin-1")}, b""
    to(instance, hook())
    ask(instance)
    until(lambda: "HTTP 302" in (of(instance).get("error") or ""), 60, say=logged(instance))
    assert instance.psql("SELECT failures, due_at > now(), claim IS NULL FROM mcpbox.notification_targets") == [["1", "t", "t"]]


def test_silent_targets_delay_no_other(instance, web):
    """Three say nothing, and the fourth is told while they are waited for."""
    told = threading.Event()

    def answer(r):
        if r.path != "/good":
            told.wait(patience(60))
        return 200, {}, b""
    web.answer = answer
    to(instance, *(hook(path=f"/silent{n}") for n in range(3)), hook(path="/good"))
    try:
        ask(instance)
        until(lambda: of(instance, "t3").get("sent") == 1, 60, say=logged(instance))
        assert [(of(instance, f"t{n}")["sent"], of(instance, f"t{n}")["error"]) for n in range(3)] == [(0, None)] * 3
    finally:
        told.set()


def test_each_try_has_the_id_of_the_digest(instance, web):
    web.answer = 503, {}, b""
    to(instance, hook())
    ask(instance)
    until(lambda: of(instance).get("error"), 60, say=logged(instance))
    due(instance)
    until(lambda: len(web.got) == 2 and of(instance)["error"], 60, say=logged(instance))
    ask(instance)
    web.answer = 200, {}, b""
    due(instance)
    until(lambda: of(instance).get("sent") == 1, 60, say=logged(instance))
    first, again, last = (r.headers["webhook-id"] for r in web.got)
    assert first == again != last


def test_one_target_with_trouble_holds_up_no_other(instance, web):
    web.answer = lambda r: (500 if r.path == "/bad" else 200, {}, b"")
    to(instance, hook(path="/bad"), hook(path="/good"))
    ask(instance)
    until(lambda: of(instance, "t0").get("error") and of(instance, "t1").get("sent") == 1, 120, say=logged(instance))


def test_a_name_needs_a_good_certificate(ns, instance, ca):
    with Web(sock=ns.listen(PUBLIC, 443), context=ca.context("other.example")) as w:
        to(instance, "webhook https://push.example/in secret=alerts/HOOK")
        ask(instance)
        until(lambda: "push.example" in (of(instance).get("error") or ""), 60, say=logged(instance))
        assert w.got == []
    with Web(sock=ns.listen(PUBLIC, 443), context=ca.context("push.example")) as w:
        due(instance)
        until(lambda: w.got, 60, say=logged(instance))


def test_a_restart_loses_nothing(instance, web):
    web.answer = 503, {"Retry-After": "300"}, b""
    to(instance, hook())
    item = ask(instance)
    until(lambda: of(instance).get("error"), 60, say=logged(instance))
    old = instance.service_pid("admind")
    os.kill(old, signal.SIGKILL)
    until(lambda: instance.service_pid("admind") not in (None, old), during=(OSError, ValueError))
    web.answer = 200, {}, b""
    due(instance)
    until(lambda: any(item["id"].encode() in r.body for r in web.got[1:]), 180, say=lambda: instance.logs()[-3000:])


def test_a_target_that_was_taken_out_is_told_nothing(instance, web):
    to(instance, hook(path="/out"), hook(path="/in"))
    to(instance, t1=hook(path="/in"))
    ask(instance)
    until(lambda: web.got, 60, say=logged(instance))
    assert {r.path for r in web.got} == {"/in"}
    with contextlib.suppress(StopIteration):
        raise AssertionError(next(t for t in state(instance) if t["target"] == "t0"))


def test_a_secret_without_a_value_is_said(instance, web):
    to(instance, f"webhook http://{HOME}:{PORT}/in secret=alerts/EMPTY")
    ask(instance)
    until(lambda: "mcpboxctl secret set" in (of(instance).get("error") or ""), 60, say=logged(instance))
    assert web.got == []


def test_a_test_of_a_target(instance, web):
    to(instance, phone=hook())
    r = instance.ctl("notifications", "test", "phone")
    assert r.stdout.strip() == "sent: look whether it came"
    data = json.loads(web.got[0].body)["data"]
    assert (data["test"], data["waiting"], data["requests"], data["title"]) == (True, 0, [], "mcpbox: a test")
    web.answer = 403, {}, b""
    r = instance.ctl("notifications", "test", "phone", check=False)
    assert r.returncode != 0 and "not sent" in r.stderr and "HTTP 403" in r.stderr, r
    r = instance.ctl("notifications", "test", "nobody", check=False)
    assert r.returncode != 0 and "no target of this name" in r.stderr, r
    assert of(instance, "phone")["sent"] == 0       # a test is no notification


def test_no_secret_is_where_it_does_not_belong(instance, web):
    web.answer = lambda r: (401, {"WWW-Authenticate": str(r.headers.get("webhook-signature"))}, KEY.encode())
    to(instance, hook(), f"ntfy http://{HOME}:{PORT}/topic secret=alerts/TOKEN")
    ask(instance)
    until(lambda: of(instance, "t0").get("error") and of(instance, "t1").get("error"), 120, say=logged(instance))
    assert any(TOKEN in str(r.headers) for r in web.got)       # it would be found
    rows = instance.psql("SELECT x::text FROM mcpbox.executions x WHERE tool = 'notification'")
    text = json.dumps([rows, state(instance)]) + instance.logs()
    for canary in (KEY, TOKEN, PASSWORD):
        assert canary not in text, canary
