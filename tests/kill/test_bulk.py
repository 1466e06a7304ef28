"""Many approvals at once, and SIGKILL of anything half way: each one is whole or
has not happened, and the same lines again do the rest."""
import http.client
import os
import signal
import subprocess
import threading

import pytest

from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.instance import Instance
from harness.patience import patience, until

MANY = 24


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


def made(instance, prefix):
    """Pending prompts (nothing runs to make one): [(request, hash)]."""
    out = []
    with Client(instance.address) as c:
        known = {s["name"]: s["id"] for s in c.manage("mcpbox_list_servers")["servers"]}
        server = known.get("many") or c.manage("mcpbox_create_server", name="many", description="x")["id"]
        for n in range(MANY):
            p = c.manage("mcpbox_create_prompt", server_id=server, name=f"{prefix}{n}", description="d",
                         text=f"Number {n}.")
            r = c.manage("mcpbox_request_publish", tool_id=p["id"])["request_id"]
            out.append((r, instance.ctl_json("approvals", "show", r)["hash"]))
    return out


def state(instance, items):
    ids = ",".join(f"'{r}'" for r, _ in items)
    return dict(instance.psql(f"SELECT a.id, a.state FROM mcpbox.approval_requests a WHERE a.id IN ({ids})"))


def whole(instance, items):
    """Whatever was decided is decided altogether: request, seal, version, what
    serves, and one audit row."""
    ids = ",".join(f"'{r}'" for r, _ in items)
    rows = instance.psql(
        "SELECT a.id, a.state, v.state, t.serving_version IS NOT DISTINCT FROM v.id, s.seal IS NOT NULL, "
        "(SELECT count(*) FROM mcpbox.audit_log l WHERE l.action = 'tool_approved' "
        "AND l.detail::json ->> 'request_id' = a.id::text) FROM mcpbox.approval_requests a "
        "JOIN mcpbox.tool_versions v ON v.id = a.subject JOIN mcpbox.tools t ON t.id = v.tool_id "
        f"LEFT JOIN mcpbox.approval_seals s ON s.request_id = a.id WHERE a.id IN ({ids})")
    assert len(rows) == len(items)
    for r in rows:
        assert r[1:] in (["approved", "approved", "t", "t", "1"], ["pending", "pending_review", "f", "f", "0"]), r


@pytest.mark.parametrize("victim", ["mcpboxctl", "admind", "admind-vault", "postgresql"])
def test_killed_half_way(instance, victim):
    items = made(instance, {"admind-vault": "v"}.get(victim, victim[0]))
    lines = "".join(f"{r} {h}\n" for r, h in items)
    ctl = os.path.join(instance.state, "bin", "mcpboxctl")
    with subprocess.Popen([ctl, "approvals", "bulk", "approve"], stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        pid = p.pid if victim == "mcpboxctl" else instance.service_pid(victim)
        # All of it is read before the first is decided; a third is, when it strikes.
        p.stdin.write(lines)
        p.stdin.close()
        for _ in range(len(items) // 3):
            assert p.stdout.readline().endswith(" approved\n")
        os.kill(pid, signal.SIGKILL)
        p.wait(patience(60))
        p.stdout.read()
        p.stderr.read()
    said = []

    def approved():
        whole(instance, items)
        said[:] = [instance.ctl("approvals", "bulk", "approve", stdin=lines, check=False)]
        return set(state(instance, items).values()) == {"approved"}
    # until what was killed is back
    until(approved, 40, 0.3, say=lambda: (victim, said), during=RuntimeError)
    whole(instance, items)
    r = instance.ctl("approvals", "bulk", "approve", stdin=lines, check=False)
    assert r.returncode == 1 and r.stdout.count(" refused\n") == MANY


@pytest.mark.parametrize("done", [1, 2 * MANY // 3])
@pytest.mark.parametrize("victim", ["admind-http", "admind", "admind-vault", "postgresql"])
def test_killed_half_way_over_rest(instance, victim, done):
    """The same as one request, killed near its begin and near its end."""
    items = made(instance, f"r{victim[-4:].replace('-', '')}{done}x")
    bulk = {"action": "approve", "items": [{"id": r, "hash": h} for r, h in items]}

    def post():
        rest = Rest(lambda: instance.address("admind-http"))
        if rest.login("admin", instance.password)[0] != 200:
            raise OSError("no login yet")
        got.append(rest.request("POST", "/api/approvals/bulk", bulk))

    def quiet():
        try:
            post()
        except (OSError, http.client.HTTPException):
            pass    # its connection was cut

    got = []
    t = threading.Thread(target=quiet)
    t.start()
    until(lambda: sum(s == "approved" for s in state(instance, items).values()) >= done, 20, 0.005)
    os.kill(instance.service_pid(victim), signal.SIGKILL)
    t.join(patience(60))
    assert not t.is_alive()
    def approved():
        whole(instance, items)
        post()
        return set(state(instance, items).values()) == {"approved"}
    until(approved, 40, 0.3, say=lambda: (victim, got[-1:]), during=(OSError, RuntimeError, http.client.HTTPException))
    whole(instance, items)
    # who asks once more is told of each that it is done
    until(lambda: post() or True, 20, 0.3, during=(OSError, http.client.HTTPException))
    assert [i["failure_mode"] for i in got[-1][2]["items"]] == ["already_decided"] * MANY
