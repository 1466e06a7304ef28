"""The run that sends a notification, in a plain interpreter: each kind of target against a played server, and what it
says of the answers."""

import base64
import email
import hashlib
import hmac
import json
import os
import re
import sys
import time

import pytest

from test_inspect import fake  # noqa: F401: the played _mcpbox

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", ".."))
from harness.net.trust import Authority
from harness.played.notified import Mail, Web
from harness.played.upstream import Raw

import mcpbox_drivers as drivers
import mcpbox_http
import mcpbox_mcp_clean as clean
import mcpbox_notify as notify
import mcpbox_notify_mail as mail

ID, AT = "01890a5d-ac96-774b-bcce-b302099a8057", 1700000000
LINK = "https://panel.example:8443/#/requests"
TEXT = "2 requests wait for you:\n- tool \u201ea\u201c\n.\n- from x"
NOTICE = {"id": ID, "at": AT, "title": "2 requests wait", "text": TEXT, "link": LINK, "data": {"waiting": 2}}
WEBHOOK_SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TOKEN, PASSWORD = "tk_canary0token0canary", "canary:p\u00e4ssword"
LOGIN = "mcp:" + PASSWORD
FROM_TO = "mcpbox@example.org admin@example.net"
ROOM = "!opaque:example.org"
HTTP = {"webhook": WEBHOOK_SECRET, "ntfy": TOKEN, "matrix": "syt_canary_token"}


def send(target, secret=None, **changes):
    secrets = {} if secret is None else {"notify": secret}
    body = notify.main({"target": target, "hosts": []}, {**NOTICE, **changes}, secrets)
    assert body.value["content"] == [] and body.value["isError"] is False
    said = body.value["structuredContent"]
    assert set(said) == {"sent", "status", "retry_after", "rejected", "why"} and said["rejected"] == 0
    assert "\n" not in said["why"] and len(said["why"]) <= 300 and bool(said["why"]) == (said["sent"] == 0)
    return said


def sent(status):
    return {"sent": 1, "status": status, "retry_after": 0, "rejected": 0, "why": ""}


@pytest.fixture(autouse=True)
def nothing_withheld():
    yield
    clean.withhold(())


@pytest.fixture
def web():
    with Web() as w:
        yield w


@pytest.fixture(scope="module")
def ca(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def context(ca):
    return ca.context("127.0.0.1", "localhost")


@pytest.fixture
def trusted(ca, monkeypatch):
    """The runner's authorities are those of the test."""
    monkeypatch.setenv("SSL_CERT_FILE", str(ca.crt))
    monkeypatch.setattr(mcpbox_http, "_tls", None)


def target(kind, url):
    return f"{kind} {url}" + (f" {ROOM}" if kind == "matrix" else "")


# ---- webhook

def test_the_vector_of_standard_webhooks():
    """From the tests of its reference libraries."""
    assert notify.sign(WEBHOOK_SECRET, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}') == \
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret, key", [
    (WEBHOOK_SECRET, base64.b64decode(WEBHOOK_SECRET[6:])), ("plain s\u00e4cret", "plain s\u00e4cret".encode()),
    ("with a line end\n", b"with a line end\n"), ("whsec_YWJjZA", b"abcd"), ("\udcff", b"\xff")])
def test_a_webhook(web, secret, key):
    before = int(time.time())
    assert send(f"webhook {web.url('/hook?a=b')}", secret) == sent(200)
    r, = web.got
    assert (r.method, r.target, r.headers["Content-Type"]) == ("POST", "/hook?a=b", "application/json")
    assert json.loads(r.body) == {
        "type": "mcpbox.requests", "timestamp": "2023-11-14T22:13:20Z",
        "data": {"waiting": 2, "title": NOTICE["title"], "text": TEXT, "link": LINK}}
    stamp = r.headers["webhook-timestamp"]      # of this try: a receiver refuses an old one
    assert r.headers["webhook-id"] == ID and before <= int(stamp) <= int(time.time())
    made = hmac.new(key, f"{ID}.{stamp}.".encode() + r.body, hashlib.sha256).digest()
    assert r.headers["webhook-signature"] == "v1," + base64.b64encode(made).decode()


def test_over_https(trusted, context):
    with Web(context=context) as web:
        assert send(f"webhook https://127.0.0.1:{web.port}/", WEBHOOK_SECRET) == sent(200)
        assert len(web.got) == 1


def test_a_certificate_of_somebody(context):
    with Web(context=context) as web:
        said = send(f"webhook https://127.0.0.1:{web.port}/", WEBHOOK_SECRET)
        assert (said["sent"], said["status"]) == (0, 0) and "the certificate is refused" in said["why"]
        assert web.got == []


# ---- ntfy

def test_ntfy(web):
    assert send(f"ntfy {web.url('/topic')}") == sent(200)
    r, = web.got
    assert (r.method, r.target, r.body.decode()) == ("POST", "/topic", TEXT)
    assert (r.headers["Title"], r.headers["Click"], r.headers["Authorization"]) == (NOTICE["title"], LINK, None)


@pytest.mark.parametrize("secret, value", [
    (TOKEN, "Bearer " + TOKEN), (LOGIN, "Basic " + base64.b64encode(LOGIN.encode()).decode()),
    ("tk_user:x", "Basic " + base64.b64encode(b"tk_user:x").decode())])
def test_who_sends_to_ntfy(web, secret, value):
    assert send(f"ntfy {web.url('/topic')}", secret) == sent(200)
    assert web.got[0].headers["Authorization"] == value


def test_a_title_that_is_not_ascii(web):
    title = "\u00dcber 2 Anfragen " + "\U0001f514\u20ac" * 40
    send(f"ntfy {web.url('/t')}", title=title)
    value = web.got[0].headers["Title"]
    assert value.isascii() and all(len(w) <= 75 for w in value.split(" "))
    assert str(email.header.make_header(email.header.decode_header(value))) == title


def test_no_link_and_no_text(web):
    send(f"ntfy {web.url('/t')}", link="", text="")
    assert web.got[0].headers["Click"] is None and web.got[0].body.decode() == NOTICE["title"]


@pytest.mark.parametrize("one", ["a", "\u00e4", "\u20ac", "\U0001f514", "12345\u20ac\n"])
def test_a_long_text_is_cut_at_a_character(web, one):
    whole = one * (4096 // len(one.encode()) + 40)
    send(f"ntfy {web.url('/t')}", text=whole)
    text = web.got[0].body.decode()
    assert len(text.encode()) <= 4096 and text.endswith(notify.CUT) and whole.startswith(text.removesuffix(notify.CUT))
    assert len(text.encode()) > 4096 - 4


def test_a_text_that_just_fits_is_whole(web):
    send(f"ntfy {web.url('/t')}", text="a" * 4096)
    assert web.got[0].body == b"a" * 4096


# ---- Matrix

@pytest.mark.parametrize("end", ["", "/"])
def test_matrix(web, end):
    assert send(f"matrix {web.url('')}{end} {ROOM}", HTTP["matrix"]) == sent(200)
    r, = web.got
    assert (r.method, r.target) == (
        "PUT", f"/_matrix/client/v3/rooms/%21opaque%3Aexample.org/send/m.room.message/{ID}")
    assert r.headers["Authorization"] == "Bearer " + HTTP["matrix"]
    assert json.loads(r.body) == {"msgtype": "m.text", "m.mentions": {}, "body": f"{NOTICE['title']}\n{TEXT}\n{LINK}"}


def test_a_room_stays_in_its_place(web):
    send(f"matrix {web.url('/base')} !a/../b?c#d%2f:e", HTTP["matrix"])
    assert web.got[0].target == f"/base/_matrix/client/v3/rooms/%21a%2F..%2Fb%3Fc%23d%252f%3Ae/send/m.room.message/{ID}"


def test_a_long_event(web):
    send(target("matrix", web.url("")), HTTP["matrix"], text="\"\n" * 40000)
    body = json.loads(web.got[0].body)
    assert len(json.dumps(body, ensure_ascii=False).encode()) < 60000
    assert body["body"].endswith(notify.CUT + "\n" + LINK)


# ---- answers of all that speak HTTP

@pytest.mark.parametrize("kind", HTTP)
@pytest.mark.parametrize("status, headers, retry", [
    (503, {"Retry-After": "7"}, 7), (429, {"Retry-After": "120"}, 120), (404, {"Retry-After": "never"}, 0),
    (500, {"Retry-After": "-1"}, 0), (400, {}, 0), (401, {}, 0), (410, {}, 0)])
def test_a_refusal(web, kind, status, headers, retry):
    web.answer = status, headers, b"canary-body"
    said = send(target(kind, web.url("/x")), HTTP[kind])
    assert said == {"sent": 0, "status": status, "retry_after": retry, "rejected": 0,
                    "why": f"http://127.0.0.1:{web.port}: HTTP {status}"}
    assert len(web.got) == 1


@pytest.mark.parametrize("body, retry", [
    (b'{"errcode": "M_LIMIT_EXCEEDED", "error": "canary-body", "retry_after_ms": 2500}', 3),
    (b'{"retry_after_ms": 1}', 1), (b'{"retry_after_ms": 0}', 0), (b'{"retry_after_ms": 120000}', 120),
    (b'{"retry_after_ms": 1e3}', 0), (b'{"retry_after_ms": "7000"}', 0), (b'{"retry_after_ms": true}', 0),
    (b'{"retry_after_ms": -5}', 0), (b'{"retry_after_ms": null}', 0), (b'{"retry_after_ms": NaN}', 0),
    (b'{"retry_after_ms": ' + b"9" * 400 + b"}", 99999), (b'{"retry_after_ms": ' + b"9" * 6000 + b"}", 0),
    (b"[]", 0), (b"7", 0), (b"", 0), (b"canary-body", 0), (b"\xff", 0), (b"[" * 50000, 0),
    (b'{"retry_after_ms": 7000}' + b" " * (64 << 10), 0)])
def test_matrix_says_in_its_body_when_to_come_again(web, body, retry):
    web.answer = 429, {}, body
    said = send(target("matrix", web.url("")), HTTP["matrix"])
    assert said == {"sent": 0, "status": 429, "retry_after": retry, "rejected": 0,
                    "why": f"http://127.0.0.1:{web.port}: HTTP 429"}


@pytest.mark.parametrize("kind, status, headers, retry", [
    ("matrix", 429, {"Retry-After": "9"}, 9),   # the header is the newer way
    ("matrix", 503, {}, 0), ("ntfy", 429, {}, 0), ("webhook", 429, {}, 0)])
def test_no_other_body_is_read(web, kind, status, headers, retry):
    web.answer = status, headers, b'{"retry_after_ms": 7000}'
    assert send(target(kind, web.url("/x")), HTTP[kind])["retry_after"] == retry


def test_a_status_that_is_none(web):
    web.answer = 999, {}, b""
    said = send(f"ntfy {web.url('/t')}")
    assert (said["sent"], said["status"]) == (0, 0) and said["why"].endswith("HTTP 999")


@pytest.mark.parametrize("status", [200, 201, 202, 204])
def test_a_success(web, status):
    web.answer = status, {"Retry-After": "7"}, b""
    assert send(f"ntfy {web.url('/t')}") == sent(status)


@pytest.mark.parametrize("kind", HTTP)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(web, kind, status):
    web.answer = status, {"Location": "https://evil.example/\x1b[2J"}, b""
    said = send(target(kind, web.url("/x")), HTTP[kind])
    assert (said["sent"], said["status"]) == (0, status)
    assert "a redirect, which is not followed; it leads to https://evil.example/" in said["why"]
    assert "\x1b" not in said["why"] and len(web.got) == 1


def forms(secret):
    """Spellings in which a server that knows a secret may say it."""
    raw = secret.encode()
    return [secret, base64.b64encode(raw).decode(), base64.urlsafe_b64encode(raw).decode(), raw.hex(),
            "".join(f"%{b:02X}" if b > 126 or chr(b) in ":" else chr(b) for b in raw)]


@pytest.mark.parametrize("kind, secret", [*HTTP.items(), ("ntfy", "mcp:canary-password")])
def test_no_secret_in_a_redirect(web, kind, secret):
    parts = {secret, secret.partition(":")[2], secret.removeprefix("whsec_")} - {""}
    for said_by_it in [f for p in parts for f in forms(p)] + ["x" * 185 + secret]:
        web.answer = 302, {"Location": "https://evil.example/" + said_by_it}, b""
        why = send(target(kind, web.url("/x")), secret)["why"]
        assert "it leads to https://evil.example/" in why
        for f in [f for p in parts for f in forms(p)]:
            assert f.rstrip("=") not in why


def test_the_path_is_not_said(web):
    web.answer = 301, {"Location": "https://ntfy.example/canary-topic"}, b""
    assert "canary" not in send(f"ntfy {web.url('/canary-topic')}")["why"]


@pytest.mark.parametrize("reply", [
    b"canary " + TOKEN.encode() + b"\r\n\r\n", b"HTTP/1.1 " + TOKEN.encode() + b" x\r\n\r\n", b"",
    b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n", b"HTTP/1.1 99999 x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: " + b"y" * 70000 + b"\r\n\r\n", b"HTTP/1.1 101 Switching\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 5000])
def test_an_answer_that_is_none(reply):
    with Raw(reply) as raw:
        said = send(f"ntfy {raw.url('/t')}", TOKEN)
    assert (said["sent"], said["status"]) == (0, 0)
    assert "canary" not in said["why"] and said["why"].startswith(f"http://127.0.0.1:{raw.port}: ")


@pytest.mark.parametrize("rest", [
    b"Content-Length: 99999999999\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\nzzz",
    b"Content-Encoding: br\r\n\r\nx"])
def test_the_body_of_an_answer_is_not_read(rest):
    with Raw(b"HTTP/1.1 200 OK\r\n" + rest) as raw:
        assert send(f"ntfy {raw.url('/t')}") == sent(200)


def test_nobody_answers():
    with Raw() as raw:
        pass
    said = send(f"ntfy {raw.url('/t')}", TOKEN)
    assert (said["sent"], said["status"]) == (0, 0) and "no connection" in said["why"]


def _waits(c):
    c.settimeout(None)
    while c.recv(4096):
        pass


@pytest.mark.parametrize("form", ["ntfy http://127.0.0.1:{}/t", "smtp 127.0.0.1:{} " + FROM_TO,
                                  "smtps 127.0.0.1:{} " + FROM_TO])
def test_a_silent_target(form, monkeypatch):
    monkeypatch.setattr(notify, "SEND_S", 0.3)
    with (Raw(_waits) if form.startswith("ntfy") else Mail()) as peer:
        if isinstance(peer, Mail):
            peer.replies["GREETING"] = _waits
        said = send(form.format(peer.port))
    assert (said["sent"], said["status"]) == (0, 0) and "no whole answer in the time there is" in said["why"]


# ---- mail

def test_a_local_mail_server(ca):
    with Mail() as m:
        assert send(f"smtp 127.0.0.1:{m.port} {FROM_TO}") == sent(250)
    got, = m.got
    assert (got.sender, got.recipients) == ("<mcpbox@example.org>", ["<admin@example.net>"])
    assert (got.tls, got.user, got.hello) == (False, None, "example.org")
    h = got.message
    assert (h["From"], h["To"], h["Subject"]) == ("mcpbox@example.org", "admin@example.net", NOTICE["title"])
    assert (h["Message-ID"], h["Auto-Submitted"]) == (f"<{ID}@example.org>", "auto-generated")
    assert h["Date"] == "Tue, 14 Nov 2023 22:13:20 +0000"
    assert (h.get_content_type(), h.get_content_charset()) == ("text/plain", "utf-8")
    assert h.get_content().replace("\r\n", "\n") == f"{TEXT}\n\n{LINK}\n"
    assert got.data.isascii() and b"\n" not in got.data.replace(b"\r\n", b"")


def test_a_second_sending_is_the_same_mail():
    with Mail() as m:
        send(f"smtp 127.0.0.1:{m.port} {FROM_TO}")
        send(f"smtp 127.0.0.1:{m.port} {FROM_TO}")
    assert m.got[0].data == m.got[1].data


@pytest.mark.parametrize("ways", [("PLAIN", "LOGIN"), ("LOGIN",), ("PLAIN",), ("XOAUTH2", "LOGIN")])
@pytest.mark.parametrize("kind", ["smtp", "smtps"])
def test_a_login(trusted, context, kind, ways):
    with Mail(users={"mcp": PASSWORD}, context=context, at_once=kind == "smtps", ways=ways) as m:
        assert send(f"{kind} 127.0.0.1:{m.port} {FROM_TO}", LOGIN) == sent(250)
    got, = m.got
    assert got.tls and got.user == "mcp"
    # before TLS there are a greeting and STARTTLS, nothing else
    assert [c for c, tls in m.commands if not tls] == (["ehlo example.org", "STARTTLS"] if kind == "smtp" else [])


@pytest.mark.parametrize("kind", ["smtp", "smtps"])
def test_a_name_instead_of_an_address(trusted, context, kind):
    with Mail(context=context, at_once=kind == "smtps") as m:
        assert send(f"{kind} localhost:{m.port} {FROM_TO}") == sent(250)
    assert m.got[0].tls


@pytest.mark.parametrize("server, secret", [("127.0.0.1", LOGIN), ("localhost", None), ("localhost", LOGIN)])
def test_nothing_is_sent_without_tls(server, secret):
    with Mail(users=secret and {"mcp": PASSWORD}) as m:
        said = send(f"smtp {server}:{m.port} {FROM_TO}", secret)
    assert (said["sent"], said["status"]) == (0, 0) and "offers no STARTTLS" in said["why"]
    assert m.got == [] and [c for c, _ in m.commands] == ["ehlo example.org"]


@pytest.mark.parametrize("reply", ["454 4.7.0 not now", "502 what?"])
def test_starttls_is_offered_and_refused(context, reply):
    with Mail(users={"mcp": PASSWORD}, context=context) as m:
        m.replies["STARTTLS"] = reply
        said = send(f"smtp 127.0.0.1:{m.port} {FROM_TO}", LOGIN)
    assert said["status"] == int(reply[:3]) and "STARTTLS is refused" in said["why"]
    assert len(m.commands) == 2 and m.got == []


@pytest.mark.parametrize("kind, server, secret", [
    ("smtp", "127.0.0.1", LOGIN), ("smtp", "localhost", None), ("smtps", "127.0.0.1", None)])
def test_an_unknown_certificate(context, kind, server, secret):
    with Mail(users=secret and {"mcp": PASSWORD}, context=context, at_once=kind == "smtps") as m:
        said = send(f"{kind} {server}:{m.port} {FROM_TO}", secret)
    assert (said["sent"], said["status"]) == (0, 0) and "the certificate is refused" in said["why"] and m.got == []


def test_a_certificate_of_another_name(trusted, ca):
    with Mail(context=ca.context("other.example"), at_once=True) as m:
        assert "the certificate is refused" in send(f"smtps 127.0.0.1:{m.port} {FROM_TO}")["why"]


def test_tls_that_is_not_demanded(context):
    """On the local network a certificate that nobody signed still helps."""
    with Mail(context=context) as m:
        assert send(f"smtp 127.0.0.1:{m.port} {FROM_TO}") == sent(250)
    assert m.got[0].tls


def test_what_came_before_tls_does_not_count(trusted, context):
    """A man in the middle adds replies to that of STARTTLS; they are dropped, and the offers that came in the clear."""
    def forged(c):
        c.sendall(b"220 go on\r\n250-evil\r\n250 AUTH PLAIN\r\n")
        with context.wrap_socket(c, server_side=True) as tls:
            seen.append(tls.recv(4096))
            tls.sendall(b"250 mail.example\r\n")
            seen.append(tls.recv(4096))
    seen = []
    with Mail(users={"mcp": PASSWORD}, context=context) as m:
        m.replies["STARTTLS"] = forged
        said = send(f"smtp 127.0.0.1:{m.port} {FROM_TO}", LOGIN)
    assert seen[0] == b"ehlo example.org\r\n" and not any(b"AUTH" in s for s in seen)
    assert said["status"] == 0 and "neither AUTH PLAIN nor AUTH LOGIN" in said["why"]


@pytest.mark.parametrize("ways", [("PLAIN",), ("LOGIN",)])
def test_a_wrong_password(trusted, context, ways):
    """The played server repeats it."""
    with Mail(users={"mcp": "another"}, context=context, at_once=True, ways=ways) as m:
        said = send(f"smtps 127.0.0.1:{m.port} {FROM_TO}", LOGIN)
    assert said == {"sent": 0, "status": 535, "retry_after": 0, "rejected": 0, "why":
                    f"smtps://127.0.0.1:{m.port}: the user or the password is refused: SMTP 535"}
    assert m.got == []


@pytest.mark.parametrize("word, says", [
    ("GREETING", "the connection"), ("EHLO", "EHLO"), ("MAIL", "the sender"), ("RCPT", "the recipient"),
    ("DATA", "the mail"), ("END", "the mail")])
@pytest.mark.parametrize("code", [421, 451, 550])
def test_a_refusal_of_mail(word, says, code):
    with Mail() as m:
        m.replies[word] = f"{code}-5.1.1 canary\r\n{code} canary"
        if word == "EHLO":
            m.replies["HELO"] = m.replies[word]
        said = send(f"smtp 127.0.0.1:{m.port} {FROM_TO}")
    assert said == {"sent": 0, "status": code, "retry_after": 0, "rejected": 0,
                    "why": f"smtp://127.0.0.1:{m.port}: {says} is refused: SMTP {code}"}
    assert m.got == []


@pytest.mark.parametrize("word", ["GREETING", "MAIL", "END"])
@pytest.mark.parametrize("reply", [
    b"canary\r\n", b"\r\n", b"999 canary\r\n", b"-12 canary\r\n", b"000 x\r\n", b"\xff\xff\xff\r\n",
    b"220" + b"x" * 9000 + b"\r\n", lambda c: None])
def test_a_reply_that_is_none(word, reply):
    with Mail() as m:
        m.replies[word] = reply
        said = send(f"smtp 127.0.0.1:{m.port} {FROM_TO}")
    assert (said["sent"], said["status"]) == (0, 0) and "canary" not in said["why"]
    assert re.search("no reply of a mail server|ended the connection|no connection", said["why"]), said


@pytest.mark.parametrize("word", ["GREETING", "EHLO", "RCPT", "END"])
def test_a_reply_without_end(word):
    def endless(c):
        while True:
            c.sendall(b"250-canary\r\n" * 1000)
    with Mail() as m:
        m.replies[word] = endless
        said = send(f"smtp 127.0.0.1:{m.port} {FROM_TO}")
    assert (said["sent"], said["status"]) == (0, 0) and "larger than" in said["why"] and "canary" not in said["why"]


def test_the_end_of_the_dialogue_changes_nothing():
    with Mail() as m:
        m.replies["QUIT"] = "500 canary"
        assert send(f"smtp 127.0.0.1:{m.port} {FROM_TO}") == sent(250)


def test_a_server_without_ehlo():
    with Mail() as m:
        m.replies["EHLO"] = "502 what?"
        assert send(f"smtp 127.0.0.1:{m.port} {FROM_TO}") == sent(250)


@pytest.mark.parametrize("host, yes", [
    ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("10.1.2.3", True), ("172.16.0.1", True),
    ("172.31.255.255", True), ("192.168.1.5", True), ("fd00::1", True), ("172.32.0.1", False), ("192.169.0.1", False),
    ("8.8.8.8", False), ("fe80::1", False), ("::ffff:8.8.8.8", False), ("localhost", False),
    ("127.0.0.1.example", False), ("0.0.0.0", False)])
def test_what_is_local(host, yes):
    assert mail.is_local(host) is yes


@pytest.mark.parametrize("text, host, port", [
    ("mail.example", "mail.example", 587), ("mail.example:25", "mail.example", 25), ("[::1]", "::1", 587),
    ("[::1]:26", "::1", 26)])
def test_where_a_mail_server_is(text, host, port):
    u = mail.server("smtp", text)
    assert (u.host, u.port) == (host, port)
    if ":" not in text:
        assert mail.server("smtps", text).port == 465


# ---- hostile notifications and targets

INJECTED = ["a\r\nX-Canary: 1", "a\nX-Canary: 1", "a\rX-Canary: 1", "a\x00b", "a\u2028X-Canary: 1", "a\x85X-Canary: 1",
            "=?utf-8?q?a=0D=0AX-Canary:_1?=", "=?utf-8?b?YQ0KWC1DYW5hcnk6IDE=?=",
            "\u00e4=?utf-8?q?=0D=0AX-Canary:_1?=", "\ud800", ""]


@pytest.mark.parametrize("title", INJECTED)
def test_no_line_of_a_title_becomes_a_header(web, title):
    for kind, secret in HTTP.items():
        assert send(target(kind, web.url("/x")), secret, title=title)["sent"] == 1
    with Mail() as m:
        assert send(f"smtp 127.0.0.1:{m.port} {FROM_TO}", title=title)["sent"] == 1
    for r in web.got:
        assert r.headers["X-Canary"] is None and "\n" not in (r.headers["Title"] or "")
    assert b"\nX-Canary" not in m.got[0].data and m.got[0].message["X-Canary"] is None
    subject = str(email.header.make_header(email.header.decode_header(m.got[0].message["Subject"] or "")))
    assert not re.search("[\r\n\x85\u2028]", subject)


@pytest.mark.parametrize("text", ["a\r\n.\r\nMAIL FROM:<evil@example.com>\r\n", "\n.\n", "x\r.\r", ".", "\x00",
                                  "\ud800", "From x\n" * 3])
def test_no_line_of_a_text_becomes_a_command(text):
    with Mail() as m:
        assert send(f"smtp 127.0.0.1:{m.port} {FROM_TO}", text=text) == sent(250)
    assert [c.split(" ")[0].upper() for c, _ in m.commands][:4] == ["EHLO", "MAIL", "RCPT", "DATA"]
    assert {c.upper() for c, _ in m.commands[4:]} <= {"QUIT"} and len(m.got) == 1
    body = m.got[0].message.get_content().replace("\r\n", "\n")
    assert body.strip() == ("\n".join(clean.text(text).splitlines()) + "\n\n" + LINK).strip()


@pytest.mark.parametrize("changes", [
    {"id": "x"}, {"id": ID + "\r\nX: 1"}, {"id": None}, {"id": ID.replace("-", "")}, {"at": "1"}, {"at": -1},
    {"at": True}, {"at": 1.5}, {"at": 1 << 60}, {"title": None}, {"title": 1}, {"text": None}, {"link": None},
    {"link": "javascript:alert(1)"}, {"link": "https://a.example/\r\nX: 1"}, {"link": "https://u:p@a.example/"},
    {"data": None}, {"data": []}])
def test_arguments_that_are_none(web, changes):
    with pytest.raises(drivers.InvalidArguments):
        send(f"ntfy {web.url('/t')}", **changes)
    assert web.got == []


def test_a_link_of_other_letters(web):
    send(f"ntfy {web.url('/t')}", link="https://panel.example/\u00e4#b%20c")
    assert web.got[0].headers["Click"] == "https://panel.example/%C3%A4#b%20c"


@pytest.mark.parametrize("text", [
    "", "webhook", "ntfy", "mqtt http://a", "ntfy  http://127.0.0.1/t", "ntfy http://127.0.0.1/t ",
    "ntfy ftp://127.0.0.1/t", "ntfy http://u:p@127.0.0.1/t", "ntfy http://127.0.0.1:99999/t",
    "ntfy\thttp://127.0.0.1/t", "ntfy http://127.0.0.1/\r\nX:", "webhook http://127.0.0.1/t more",
    "matrix http://127.0.0.1", f"matrix http://127.0.0.1/?a {ROOM}", f"matrix http://127.0.0.1/#a {ROOM}",
    "matrix http://127.0.0.1 #alias:a", "matrix http://127.0.0.1 !a\r\nb", "matrix http://127.0.0.1 !" + "a" * 255,
    "smtp 127.0.0.1", "smtp 127.0.0.1 a@b", "smtp 127.0.0.1 a@b c@d e@f", "smtp 127.0.0.1 a b@c",
    "smtp 127.0.0.1 a@b @c", "smtp 127.0.0.1 a@b c@d@e", "smtp 127.0.0.1 a@b c@d,e", "smtp 127.0.0.1 <a@b> c@d",
    "smtp 127.0.0.1 a@b\r\nDATA c@d", "smtp 127.0.0.1 a\u00e4@b c@d", "smtp 127.0.0.1 a@b =?utf-8?q?=0D=0AX?=@d",
    "smtp 127.0.0.1:0 a@b c@d", "smtp 127.0.0.1:x a@b c@d", "smtp http://127.0.0.1 a@b c@d", "smtp u@127.0.0.1 a@b c@d",
    "smtp ::1 a@b c@d", "smtp 127.0.0.1/x a@b c@d", "smtps [::1 a@b c@d"])
def test_targets_that_are_none(text):
    with pytest.raises(drivers.InvalidArguments):
        send(text, "mcp:canary" if text[:4] == "smtp" else TOKEN)


@pytest.mark.parametrize("form, secret", [
    ("webhook http://127.0.0.1:{}/", None), ("webhook http://127.0.0.1:{}/", ""),
    ("webhook http://127.0.0.1:{}/", "whsec_canary!"), ("webhook http://127.0.0.1:{}/", "whsec_"),
    ("matrix http://127.0.0.1:{}/ " + ROOM, None), ("matrix http://127.0.0.1:{}/ " + ROOM, "canary\r\nX-Y: 1"),
    ("matrix http://127.0.0.1:{}/ " + ROOM, "canary \u00e4"), ("ntfy http://127.0.0.1:{}/t", "canary"),
    ("ntfy http://127.0.0.1:{}/t", ""), ("ntfy http://127.0.0.1:{}/t", "tk_canary\n"),
    ("ntfy http://127.0.0.1:{}/t", "canary:a\r\nX-Y: 1"), ("smtp 127.0.0.1:{} " + FROM_TO, "canary"),
    ("smtp 127.0.0.1:{} " + FROM_TO, "canary:"), ("smtp 127.0.0.1:{} " + FROM_TO, ":canary"),
    ("smtp 127.0.0.1:{} " + FROM_TO, "mcp:canary\x00"), ("smtp 127.0.0.1:{} " + FROM_TO, "")])
def test_secrets_that_are_none(web, form, secret):
    with pytest.raises(drivers.InvalidArguments) as e:
        send(form.format(web.port), secret)
    assert "canary" not in str(e.value) and web.got == []
