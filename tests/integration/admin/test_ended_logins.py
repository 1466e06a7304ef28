"""An administrator's running call ends when its login ends, or the administrator: by the whole suite, as the calls of a
revoked token end. Calls of other logins go on."""
import json
import secrets
import threading

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.patience import patience, until

# Its own end is far beyond any wait of these tests.
SLOW = "import time\ndef main(mark: str) -> str:\n    time.sleep(90)\n    return 'slept'\n"


@pytest.fixture(scope="module")
def slow(instance):
    with Client(instance.address) as mcp:
        return flow.publish(instance, mcp, "ends", "sleeps", SLOW, limits={"timeout_ms": 120_000})


@pytest.fixture(scope="module")
def rest(instance):
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    return r


class Person:
    def __init__(self, instance, rest, role="administrator"):
        self.instance, self.rest = instance, rest
        self.name, self.password = "p" + secrets.token_hex(4), secrets.token_urlsafe(18)
        assert rest.request("POST", "/api/administrators", {
            "username": self.name, "new_password": self.password, "role": role, "password": instance.password})[0] == 204

    def login(self):
        r = Rest(lambda: self.instance.address("admind-http"))
        assert r.login(self.name, self.password)[0] == 200
        return r

    def post(self, path, body):
        body = {"password": self.instance.password, **body}
        answer = self.rest.request("POST", f"/api/administrators/{self.name}/{path}", body)
        assert answer[0] == 204, answer


class Call:
    """A call under way, in a thread of its own."""

    def __init__(self, instance, login, tool):
        self.instance, self.mark, self.answer = instance, secrets.token_hex(6), None
        body = {"name": tool, "arguments": {"mark": self.mark}}
        self.thread = threading.Thread(target=lambda: setattr(self, "answer", login.request("POST", "/api/calls", body)))
        self.thread.start()
        until(lambda: self.row()[0] == "open" and self.started())

    def row(self):
        rows = self.instance.psql("SELECT state, outcome, failure, id FROM mcpbox.executions "
                                  f"WHERE arguments LIKE '%{self.mark}%'")
        return rows[0] if rows else (None,) * 4

    def started(self):
        """The sandbox has it."""
        return self.instance.ctl_json("query", "status")["calls_in_work"] == 0

    def ended(self):
        self.thread.join(patience(30))
        assert not self.thread.is_alive(), "it goes on"
        status, _, value = self.answer
        assert value["failure_mode"] == "killed" and status in (200, 409), self.answer
        until(lambda: self.row()[0] == "closed")
        assert tuple(self.row()[1:3]) == ("killed", "killed"), self.row()

    def goes_on(self):
        assert self.row()[0] == "open" and self.thread.is_alive(), (self.row(), self.answer)



def remove(p, own, other):
    p.post("delete", {})


def demote(p, own, other):
    body = {"password": p.instance.password, "role": "viewer"}
    assert p.rest.request("PUT", f"/api/administrators/{p.name}/role", body)[0] == 204


def other_password(p, own, other):
    p.post("password", {"new_password": secrets.token_urlsafe(18)})


def end_all(p, own, other):
    assert p.rest.request("DELETE", f"/api/administrators/{p.name}/logins")[0] == 204


def by_root(p, own, other):
    p.instance.ctl("administrators", "delete", p.name)


@pytest.mark.parametrize("how", [remove, demote, other_password, end_all, by_root])
def test_the_calls_of_a_person_end(instance, rest, slow, how):
    p, q = Person(instance, rest), Person(instance, rest)
    mine, again, others = (Call(instance, x.login(), slow) for x in (p, p, q))
    how(p, None, None)
    mine.ended()
    again.ended()
    others.goes_on()
    remove(q, None, None)
    others.ended()


def by_id(p, own):
    [login] = [x for x in own.get("/api/logins")[2]["items"] if x["current"]]
    assert p.rest.request("DELETE", "/api/logins/" + login["id"])[0] == 204


def by_logout(p, own):
    assert own.request("POST", "/api/logout")[0] == 204


@pytest.mark.parametrize("how", [by_id, by_logout])
def test_the_calls_of_one_login_end(instance, rest, slow, how):
    """... and those of the person's other logins go on."""
    p = Person(instance, rest)
    own, other = p.login(), p.login()
    call, others = Call(instance, own, slow), Call(instance, other, slow)
    how(p, own)
    call.ended()
    others.goes_on()
    assert other.get("/api/me")[0] == 200
    remove(p, None, None)
    others.ended()


def test_a_login_of_another_ends_no_call(instance, rest, slow):
    """What the vault tells of others, failed logins among them, ends nothing."""
    p = Person(instance, rest)
    call = Call(instance, p.login(), slow)
    other = Person(instance, rest)
    by_logout(other, other.login())
    remove(other, None, None)
    stranger = Rest(lambda: instance.address("admind-http"))
    assert stranger.login(p.name, "a wrong password of tests")[0] == 401
    until(lambda: [r for r in instance.ctl_json("audit", "--limit", "50")["items"]
                   if r["action"] == "login_failed" and p.name in json.dumps(r)])
    call.goes_on()
    remove(p, None, None)
    call.ended()
