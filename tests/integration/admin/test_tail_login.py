"""A live tail (GET /api/activity/stream) ends with its login, whatever ends that, and
its last event says so."""
import http.client
import json
import os
import signal
import uuid

import pytest

from harness.clients.rest import Rest
from harness.patience import patience, until

PASSWORD = "a long password of tests"


class Tail:
    def __init__(self, rest):
        self.c = http.client.HTTPConnection(*rest.where(), timeout=patience(30))
        self.c.request("GET", "/api/activity/stream?kind=activity",
                       headers={"Cookie": rest.cookie, "X-CSRF-Token": rest.csrf, "Host": "127.0.0.1"})
        self.r = self.c.getresponse()
        assert self.r.status == 200

    def last(self):
        """The last event of the stream, once the server has ended it."""
        lines = [line for line in self.r.read().splitlines() if line.startswith(b"data: ")]
        self.c.close()
        return json.loads(lines[-1][6:])


@pytest.fixture
def user(instance):
    """A viewer who is logged in: the name, and REST as it."""
    name = "tail" + uuid.uuid4().hex[:8]
    instance.ctl("administrators", "create", name, "--role", "viewer", stdin=PASSWORD + "\n")
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login(name, PASSWORD)[0] == 200
    return name, r


def log_out(instance, name, r):
    assert r.request("POST", "/api/logout", {})[0] in (200, 204)


def end_logins(instance, name, r):
    instance.ctl("logins", "end", "--username", name)


def change_role(instance, name, r):
    instance.ctl("administrators", "role", name, "reviewer")


def change_password(instance, name, r):
    instance.ctl("administrators", "password", name, stdin=PASSWORD + " else\n")


def delete(instance, name, r):
    instance.ctl("administrators", "delete", name)


@pytest.mark.parametrize("how", [log_out, end_logins, change_role, change_password, delete])
def test_a_tail_ends_with_its_login(instance, user, how):
    t = Tail(user[1])
    how(instance, *user)
    e = t.last()
    assert e["type"] == "end" and e["failure_mode"] == "unauthenticated" and "log in" in e["message"]


def test_others_go_on(instance, user, rest):
    mine, other = Tail(user[1]), Tail(rest)
    log_out(instance, *user)
    assert mine.last()["type"] == "end"
    assert rest.get("/api/me")[0] == 200
    other.c.sock.setblocking(False)
    with pytest.raises(BlockingIOError):    # open, with nothing of an end in it
        while b'"end"' not in other.c.sock.recv(65536):
            pass
    other.c.close()


def test_the_vault_takes_its_logins_with_it(instance, user):
    t = Tail(user[1])
    old = instance.service_pid("admind-vault")
    os.kill(old, signal.SIGKILL)
    e = t.last()
    assert e["type"] == "end" and e["failure_mode"] in ("vault_unavailable", "unauthenticated")
    until(lambda: instance.service_pid("admind-vault") not in (None, old))
