"""sql/schema/stops.sql: who stopped a server or disabled an object, and who may undo it.
admin_act() with a role is what an administrator and root do; without it a function
is called for a principal, as the management tools do."""
import hashlib
import json
import uuid
from contextlib import contextmanager

import psycopg
import pytest

from database.test_database import Tool, guarded, one, refused, server
from database.test_transfer import export, put
from harness.played.admind import preimage

START = "SELECT mcpbox.set_server_status(%s, 'running', %s)"
STOP = "SELECT mcpbox.set_server_status(%s, 'stopped', %s)"
ENABLE = "SELECT mcpbox.set_tool_enabled(%s, %s, 'local')"


def act(c, name, subject, role="administrator", /, **body):
    actor = {"administrator": "ann", "root": "root"}[role]
    return json.loads(one(c, "SELECT mcpbox.admin_act(%s, %s, %s, %s, NULL, '', %s)", name, actor, role,
                          str(subject), json.dumps(body))[0])


def said(c, query, *args):
    """The sentence of a refusal, which is always forbidden."""
    with pytest.raises(psycopg.Error) as e:
        c.execute(query, args)
    kind, _, sentence = e.value.diag.message_primary.partition(": ")
    assert kind == "forbidden", e.value
    return sentence


@contextmanager
def automatic(c):
    """Versions of tools are approved by a policy meanwhile."""
    store = ("SELECT mcpbox.policy_store((SELECT coalesce(max(serial), 0) + 1 FROM mcpbox.approval_policies), "
             "%s, 'require', 'require', 'ann', %s, 'sealed', (SELECT coalesce(max(serial), 0) FROM mcpbox.approval_policies))")
    c.execute(store, ("automatic", "2999-01-01"))
    yield
    c.execute(store, ("require", None))


def status(c, i):
    return one(c, "SELECT status FROM mcpbox.servers WHERE id = %s", i)[0]


def test_a_model_does_not_start_what_an_administrator_stopped(app):
    i, name = server(app)
    shown = act(app, "server_stop", i, reason="it sends mail")
    assert (shown["stopped_by"], shown["stopped_authority"], shown["stopped_reason"]) == (
        "ann", "administrator", "it sends mail") and shown["stopped_at"]
    for who in ("local", "token:bot", "ann"):   # a name is no authority
        why = said(app, START, i, who)
        assert f"server {name} was stopped by the administrator ann at {shown['stopped_at']}" in why
        assert '"it sends mail"' in why and "only an administrator can start it" in why
        assert "mcpbox_" not in why
    assert status(app, i) == "stopped"
    shown = act(app, "server_start", i)
    assert shown["status"] == "running" and shown["stopped_by"] is None and shown["stopped_at"] is None
    app.execute(STOP, (i, "local"))
    assert one(app, START, i, "token:bot") == (True,)


def test_root_is_above_administrators(app):
    i, name = server(app)
    act(app, "server_stop", i, "root")
    assert f"mcpboxctl servers start {name}" in said(app, START, i, "local")
    with pytest.raises(psycopg.Error, match="only root can start it"):
        act(app, "server_start", i)
    with pytest.raises(psycopg.Error, match="only root can delete it"):
        act(app, "server_delete", i)
    act(app, "server_stop", i)                  # nor does a lower stop take it over
    assert act(app, "server_stop", i)["stopped_authority"] == "root"
    assert act(app, "server_start", i, "root")["status"] == "running"
    act(app, "server_stop", i)
    assert act(app, "server_start", i, "root")["status"] == "running"


def test_an_administrator_takes_a_models_stop_over(app, owner):
    t = Tool(app).approve()
    assert one(app, STOP, t.server, "local") == (True,)
    assert act(app, "server_stop", t.server)["stopped_by"] == "ann"
    said(app, START, t.server, "local")
    assert one(app, ENABLE, t.id, False) == (True,)
    assert act(app, "tool_disable", t.id)["tool"]["disabled_by"] == "ann"
    said(app, ENABLE, t.id, True)
    # and a model's later stop takes nothing from the administrator
    assert one(app, STOP, t.server, "local") == (False,) and one(app, ENABLE, t.id, False) == (False,)
    said(app, START, t.server, "local")
    details = [json.loads(d) for d, in owner.execute(
        "SELECT detail FROM mcpbox.audit_log WHERE action IN ('server_stopped', 'tool_disabled') "
        "AND detail LIKE ANY (%s) ORDER BY seq", ([f"%{t.server}%", f"%{t.id}%"],))]
    assert [(d["authority"], d.get("taken_over_from")) for d in details] == [
        ("principal", None), ("administrator", "local")] * 2


def test_an_object_is_held_like_a_server(app):
    t = Tool(app).approve()
    act(app, "tool_disable", t.id, reason="broken")
    why = said(app, ENABLE, t.id, True)
    assert "was disabled by the administrator ann" in why and "only an administrator can enable it" in why
    assert "mcpbox_" not in why
    assert act(app, "tool_enable", t.id)["tool"]["disabled_by"] is None
    app.execute(ENABLE, (t.id, False))
    assert one(app, ENABLE, t.id, True) == (True,)


def test_delete_and_make_again(app):
    t = Tool(app).approve()
    act(app, "server_stop", t.server)
    assert "only an administrator can delete it" in said(app, "SELECT mcpbox.manage_delete_server(%s, 'local')",
                                                         t.server)
    act(app, "server_start", t.server)
    act(app, "tool_disable", t.id)
    said(app, "SELECT mcpbox.delete_object(%s, 'tool', 'local')", t.id)
    said(app, "SELECT mcpbox.manage_delete_server(%s, 'local')", t.server)
    assert t.serving() and status(app, t.server) == "running"
    act(app, "server_delete", t.server)


def test_a_held_object_keeps_its_name(app):
    """A new version mends it and starts nothing; another name would free its own."""
    t = Tool(app).approve()
    act(app, "tool_disable", t.id)
    assert "only an administrator can rename it" in said(
        app, "SELECT mcpbox.add_version(%s, %s, '', 'local')", uuid.uuid4(), renamed(t))
    t.update(code="def main():\n    return 2\n")
    t.approve()
    assert t.serving() == t.version
    assert one(app, "SELECT enabled FROM mcpbox.tools WHERE id = %s", t.id) == (False,)
    said(app, ENABLE, t.id, True)
    assert act(app, "tool_update", t.id, name="other")["tool"]["name"] == "other"


def test_nothing_of_a_stopped_server_frees_its_name(app):
    """A URI, and a name without a prefix, would be another server's then."""
    t = Tool(app).approve()
    act(app, "server_stop", t.server)
    for query, args in (("SELECT mcpbox.delete_object(%s, 'tool', 'local')", (t.id,)),
                        ("SELECT mcpbox.add_version(%s, %s, '', 'local')", (uuid.uuid4(), renamed(t)))):
        why = said(app, query, *args)
        assert "nothing of a stopped server is deleted or renamed" in why and "the administrator ann" in why
    t.update(code="def main():\n    return 2\n")
    act(app, "server_start", t.server)
    app.execute(STOP, (t.server, "local"))      # a client's own stop holds nothing back from clients
    app.execute("SELECT mcpbox.delete_object(%s, 'tool', 'local')", (t.id,))


def renamed(t):
    return preimage(t.server.bytes, t.id.bytes, t.server_name, "other", **t.kw)


def test_a_call_is_told_the_true_next_step(app):
    t = Tool(app).approve()
    words = "SELECT mcpbox.call_stopped(%s, %s)"
    assert one(app, words, t.server, t.id) == (None,)
    app.execute(STOP, (t.server, "token:laptop"))
    told = one(app, words, t.server, t.id)[0]
    assert "by a client" in told and "mcpbox_start_server" in told and "laptop" not in told
    # where both are stopped: the act of the higher authority
    act(app, "tool_disable", t.id)
    told = one(app, words, t.server, t.id)[0]
    assert "the administrator ann" in told and "mcpbox_start_server" not in told
    act(app, "tool_enable", t.id)
    app.execute(START, (t.server, "local"))
    app.execute(ENABLE, (t.id, False))
    told = one(app, words, t.server, t.id)[0]
    assert "mcpbox_update_tool" in told and "mcpbox_start_server" not in told
    act(app, "server_stop", t.server)
    assert "mcpbox_" not in one(app, words, t.server, t.id)[0].replace("mcpboxctl", "")


def test_no_policy_approves_what_a_person_stopped(app, owner):
    with automatic(app):
        t = Tool(app)
        asked = "SELECT automatic FROM mcpbox.request_publish(gen_random_uuid(), gen_random_uuid(), %s, '', 'local')"
        assert one(app, asked, t.id) == (True,)
        act(app, "server_stop", t.server)
        t.update(code="def main():\n    return 2\n")
        assert one(app, asked, t.id) == (False,)
        act(app, "server_start", t.server)
        act(app, "tool_disable", t.id)
        t.update(code="def main():\n    return 3\n")
        assert one(app, asked, t.id) == (False,)
        act(app, "tool_enable", t.id)
        t.update(code="def main():\n    return 4\n")
        t.approve()
        t.update(code="def main():\n    return 5\n")
        assert one(app, asked, t.id) == (True,)
        # a person's no: the revoked bytes are not approved by asking again
        u = Tool(app).approve()
        app.execute("SELECT mcpbox.revoke_version(%s, 'bad', 'ann')", (u.version,))
        assert one(app, asked, u.id) == (False,)
        v = Tool(app)
        v.publish()
        v.decide(False)
        assert one(app, asked, v.id) == (False,)


ASKED = "SELECT automatic FROM mcpbox.request_publish(gen_random_uuid(), gen_random_uuid(), %s, '', 'local')"


def test_a_persons_no_outlives_the_tool(app):
    """Deleted and made again under the name that was rejected or revoked."""
    with automatic(app):
        for how in ("rejected", "revoked"):
            t = Tool(app)
            if how == "rejected":
                t.publish()
                t.decide(False)
            else:
                t.approve()
                app.execute("SELECT mcpbox.revoke_version(%s, 'bad', 'ann')", (t.version,))
            app.execute("SELECT mcpbox.delete_object(%s, 'tool', 'local')", (t.id,))
            again = Tool(app, t.name, server=(t.server, t.server_name))
            assert one(app, ASKED, again.id) == (False,), how
            other = Tool(app, "other", server=(t.server, t.server_name))
            assert one(app, ASKED, other.id) == (True,), how


@pytest.mark.parametrize("how", ["rejected", "revoked"])
def test_refused_bytes_are_asked_about_again(app, how):
    """Rolled back to after another version was approved."""
    bad, good = "def main():\n    return 'bad'\n", "def main():\n    return 'good'\n"
    with automatic(app):
        t = Tool(app, code=bad)
        if how == "rejected":
            t.publish()
            t.decide(False)
        else:
            t.approve()
        first = t.version
        t.update(code=good)
        t.approve()
        if how == "revoked":
            app.execute("SELECT mcpbox.revoke_version(%s, 'bad', 'ann')", (first,))
        t.update(code=bad)
        assert one(app, ASKED, t.id) == (False,)
        t.update(code=good + "\n")
        assert one(app, ASKED, t.id) == (True,)


@pytest.mark.parametrize("act_meanwhile", ["server_stop", "tool_disable", "revoke"])
def test_a_policys_yes_is_judged_again_when_it_is_stored(app, act_meanwhile):
    """Between the policy's answer and the vault's seal an administrator acts."""
    with automatic(app):
        t = Tool(app).approve()
        served = t.version
        t.update(code="def main():\n    return 2\n")
        assert one(app, ASKED, t.id) == (True,)
        if act_meanwhile == "revoke":
            app.execute("SELECT mcpbox.revoke_version(%s, 'bad', 'ann')", (served,))
        else:
            act(app, act_meanwhile, t.server if act_meanwhile == "server_stop" else t.id)
        request, digest = one(app, "SELECT id, hash FROM mcpbox.approval_requests WHERE tool_id = %s "
                              "AND state = 'pending'", t.id)
        decide = "SELECT mcpbox.decide_approval(%s, true, %s, %s, now(), '', 'seal')"
        assert "a person decides" in said(app, decide, request, digest, "policy:automatic")
        app.execute(decide, (request, digest, "ann"))       # whose yes it needs
        assert t.serving() is not None


def test_a_stopped_server_is_imported_stopped(app):
    t = Tool(app)
    u = Tool(app, "other", server=(t.server, t.server_name))
    app.execute(ENABLE, (u.id, False))
    app.execute(STOP, (t.server, "local"))
    text = export(app, t.server_name)[0]
    made = json.loads(one(app, "SELECT mcpbox.import_finish(%s, %s, 'ann')", put(app, text),
                          hashlib.sha256(text.encode()).digest())[0])
    copy, = made["servers"]
    assert status(app, copy["id"]) == "stopped"
    assert "the administrator ann" in said(app, START, copy["id"], "local")
    off, = app.execute("SELECT id FROM mcpbox.tools WHERE server_id = %s AND NOT enabled", (copy["id"],)).fetchone()
    said(app, ENABLE, off, True)


def test_a_hand_at_psql_is_root(app, owner):
    t = Tool(app).approve()
    owner.execute("UPDATE mcpbox.servers SET status = 'stopped' WHERE id = %s", (t.server,))
    owner.execute("UPDATE mcpbox.tools SET enabled = false WHERE id = %s", (t.id,))
    assert "only root can start it" in said(app, START, t.server, "local")
    assert "only root can enable it" in said(app, ENABLE, t.id, True)
    owner.execute("UPDATE mcpbox.servers SET status = 'running' WHERE id = %s", (t.server,))
    assert one(app, "SELECT stopped_by, stopped_at FROM mcpbox.servers WHERE id = %s", t.server) == (None, None)
    guarded(owner, "UPDATE mcpbox.servers SET status = 'stopped', stopped_by = 'x' WHERE id = %s", t.server)


def test_a_reason_is_one_short_line(app):
    i, _ = server(app)
    for wrong in ("x" * 201, "\U0001f600" * 151, "a\nb", "a\x1b[31m"):
        with pytest.raises(psycopg.Error, match="200 characters"):
            act(app, "server_stop", i, reason=wrong)
    assert act(app, "server_stop", i, reason="  \U0001f600" * 1 + "x" * 190)["stopped_reason"]
    assert act(app, "server_stop", i)["stopped_reason"]                 # without one: unchanged
    assert act(app, "server_stop", i, reason="other")["stopped_reason"] == "other"
    assert len(one(app, "SELECT mcpbox.server_stop_words(s, 'start') FROM mcpbox.servers s WHERE id = %s",
                   i)[0].encode()) < 1024


def test_the_role_ends_with_its_transaction(app):
    i, _ = server(app)
    act(app, "server_stop", i)
    act(app, "server_start", i)
    act(app, "server_stop", i)
    refused(app, "forbidden", START, i, "local")


@pytest.mark.parametrize("name", ["web_search", "mcpbox_x", "sandbox_run"])
def test_a_reserved_bare_name_is_refused_in_words(app, name):
    i, server_name = server(app)
    app.execute("SELECT mcpbox.set_server_expose(%s, 'bare', 'root')", (server_name,))
    pre = preimage(i.bytes, uuid.uuid4().bytes, server_name, name, exposed=name)
    with pytest.raises(psycopg.Error) as e:
        app.execute("SELECT mcpbox.create_tool(%s, %s, 'local')", (uuid.uuid4(), pre))
    said = e.value.diag.message_primary
    assert e.value.diag.sqlstate == "MB001" and said.startswith(f"conflict: the name {name} is reserved"), said
    assert "choose another" in said and "_check" not in said


def test_what_waits_for_review_is_bounded_a_principal(app, owner):
    who = "token:" + uuid.uuid4().hex[:8]
    ask = "SELECT mcpbox.request_publish(gen_random_uuid(), gen_random_uuid(), %s, '', %s)"
    s = server(app)
    most = 256
    tools = [Tool(app, f"t{n}", server=s) for n in range(most + 1)]
    for t in tools[:most]:
        app.execute(ask, (t.id, who))
    with pytest.raises(psycopg.Error) as e:
        app.execute(ask, (tools[most].id, who))
    said = e.value.diag.message_primary
    assert said.startswith(f"limit: {most} of your versions wait for review")
    assert f"{s[1]}__t0, {s[1]}__t1" in said and "mcpbox_delete_tool" in said
    assert tools[most].state(one(app, "SELECT id FROM mcpbox.tool_versions WHERE tool_id = %s",
                                 tools[most].id)[0]) == "draft"
    tools[0].update(code="def main():\n    return 2\n")
    app.execute(ask, (tools[0].id, who))                    # in the place of its own
    app.execute(ask, (tools[most].id, who + "2"))           # another one has its own bound
    app.execute("SELECT mcpbox.delete_object(%s, 'tool', %s)", (tools[1].id, who))
    more = Tool(app, "more", server=s)
    app.execute(ask, (more.id, who))
