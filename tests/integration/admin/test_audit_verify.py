"""`mcpboxctl audit verify` against everything that somebody with the run-time
role, or with the owner's, can do to the audit log. The chain that is spoiled is
a real one: logins, servers, tools, decisions, signed by the real vault."""
import contextlib
import hashlib
import json
import os
import struct
import time

import psycopg
import pytest

from harness.clients.rest import Rest
from harness.instance import Instance
from harness.patience import until

TABLES = ("audit_log", "audit_anchors", "audit_head")


@pytest.fixture(scope="module")
def instance():
    """Rows of some kinds, the newest signed; a copy of it all, and an older one."""
    i = Instance()
    try:
        r = Rest(lambda: i.address("admind-http"))
        assert r.login("admin", i.password)[0] == 200
        for n in range(3):
            i.ctl("settings", "set", "confirm_destructive", ("on", "off")[n % 2])
            assert r.login("admin", i.password + "x" * (n % 2))[0] in (200, 401)
            settle(i)
        save(i, "old")
        i.ctl("administrators", "create", "rita", "--role", "reviewer", stdin="a long password of hers\n")
        settle(i)
        i.ctl("settings", "set", "confirm_destructive", "on")
        i.ctl("logins", "end", "--username", "admin")
        i.ctl("administrators", "delete", "rita")
        settle(i)
        save(i, "now")
        yield i
    finally:
        i.close()


def settle(i):
    """Until the newest row is signed, and a little more."""
    soon = time.monotonic() + 1

    def signed():
        if not i.psql("SELECT 1 FROM mcpbox.audit_head h WHERE NOT EXISTS (SELECT 1 FROM mcpbox.audit_anchors a "
                      "WHERE a.seq = h.seq)"):
            return True
        if time.monotonic() > soon:
            # what no login or change of administrators follows waits for the minute
            Rest(lambda: i.address("admind-http")).login("admin", i.password)
        return False
    until(signed, 70, 0.1)


def save(i, name):
    for t in TABLES:
        i.psql(f"CREATE TABLE public.{name}_{t} AS TABLE mcpbox.{t}")


def put_back(i, name):
    """As the superuser, past all triggers and keys: what tests end with."""
    c = "; ".join(f"DELETE FROM mcpbox.{t}" for t in TABLES[::-1])
    c += "; " + "; ".join(f"INSERT INTO mcpbox.{t} SELECT * FROM public.{name}_{t}" for t in TABLES)
    i.psql(f"BEGIN; SET session_replication_role = replica; {c}; COMMIT")


class Owner:
    """Somebody with the owner's role: may switch triggers off and drop keys, and
    computes hashes as well as we do."""

    def __init__(self, i):
        self.c = psycopg.connect(host=i.run("postgresql"), user="mcpbox_owner", dbname="mcpbox", autocommit=True)
        for t in TABLES:
            self.c.execute(f"ALTER TABLE mcpbox.{t} DISABLE TRIGGER USER")
        for (name,) in self.c.execute("SELECT conname FROM pg_constraint WHERE contype = 'f' AND conrelid = "
                                      "'mcpbox.audit_anchors'::regclass").fetchall():
            self.c.execute(f"ALTER TABLE mcpbox.audit_anchors DROP CONSTRAINT {name}")
        for (name,) in self.c.execute("SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = "
                                      "'mcpbox.audit_log'::regclass").fetchall():
            self.c.execute(f"ALTER TABLE mcpbox.audit_log DROP CONSTRAINT {name}")

    def execute(self, *args):
        return self.c.execute(*args)

    def one(self, *args):
        return self.c.execute(*args).fetchone()

    def rechain(self, start):
        """Hashes of the rows from start on, and the head, as if all was well."""
        rows = self.c.execute("SELECT seq, at, actor, action, subject, detail FROM mcpbox.audit_log "
                              "ORDER BY seq").fetchall()
        prev = bytes(32)
        for seq, at, *texts in rows:
            b = b"mcpbox audit 1\0" + struct.pack(">QQ", seq, round(at.timestamp() * 1000))
            for t in texts:
                b += struct.pack(">I", len(t.encode())) + t.encode()
            own = hashlib.sha256(prev + b).digest()
            if seq >= start:
                self.c.execute("UPDATE mcpbox.audit_log SET prev = %s, hash = %s WHERE seq = %s", (prev, own, seq))
            prev = own
        self.c.execute("UPDATE mcpbox.audit_head SET seq = %s, hash = %s", (rows[-1][0], prev))

    def close(self):
        for t in TABLES:
            self.c.execute(f"ALTER TABLE mcpbox.{t} ENABLE TRIGGER USER")
        self.c.close()


@pytest.fixture
def owner(instance):
    o = Owner(instance)
    yield o
    o.close()
    put_back(instance, "now")
    assert verify(instance)[0] == 0     # the test left nothing behind


def journal(i):
    """What admind and the vault wrote."""
    path = os.path.join(i.parent, "journal")
    with open(path, "wb") as out:
        for process in ("admind", "admind-vault"):
            with open(os.path.join(i.state, "log", process, "current"), "rb") as f:
                out.write(f.read())
    return path


def verify(i, *args):
    r = i.ctl("audit", "verify", "--json", *args, check=False)
    value = json.loads(r.stdout) if r.stdout else None
    return r.returncode, value


def found(i, kind, *args, at=None):
    status, v = verify(i, *args)
    assert status == 1 and v["ok"] is False, v
    kinds = [p["kind"] for p in v["problems"]]
    assert kind in kinds, v["problems"]
    if at is not None:
        assert at in [p["seq"] for p in v["problems"] if p["kind"] == kind], v["problems"]
    return v


def test_a_chain_that_holds(instance):
    rows = int(instance.psql("SELECT count(*) FROM mcpbox.audit_log")[0][0])
    anchors = int(instance.psql("SELECT count(*) FROM mcpbox.audit_anchors")[0][0])
    status, v = verify(instance)
    assert status == 0 and v["ok"] and v["problems"] == []
    assert (v["rows"], v["anchors"], v["anchored_seq"]) == (rows, anchors, rows) and rows > 10 and anchors > 4
    status, v = verify(instance, "--journal", journal(instance))
    assert status == 0 and v["journal_lines"] >= 2 * anchors - 1 and v["journal_lines_of_older_keys"] == 0
    text = instance.ctl("audit", "verify").stdout
    assert text.startswith(f"the chain holds: {rows} rows") and "see --journal" in text
    with open(journal(instance), encoding="utf-8") as f:
        assert "the chain holds" in instance.ctl("audit", "verify", "--journal", "-", stdin=f.read()).stdout


def verified(i):
    return i.ctl_json("query", "status")["counts"]["audit_verified"]


def test_the_result_is_kept(instance):
    """... for the status, which the panel reads; the chain gets no row of it."""
    rows = instance.psql("SELECT count(*) FROM mcpbox.audit_log")
    _, v = verify(instance, "--journal", journal(instance))
    kept = verified(instance)
    assert kept["holds"] is True and kept["problems"] == 0
    assert [kept[k] for k in ("rows", "anchors", "anchored_seq", "journal_lines")] == [
        v[k] for k in ("rows", "anchors", "anchored_seq", "journal_lines")]
    assert instance.psql("SELECT count(*) FROM mcpbox.audit_log") == rows
    verify(instance)
    later = verified(instance)
    assert later["at"] > kept["at"] and later["journal_lines"] == 0


@pytest.mark.parametrize("attack", ["UPDATE mcpbox.audit_verdict SET problems = 0", "DELETE FROM mcpbox.audit_verdict"])
def test_the_run_time_role_writes_a_result_by_its_function_only(instance, attack):
    with pytest.raises(RuntimeError, match="permission denied"):
        instance.psql(attack, role="mcpbox_app")


def test_a_journal_that_is_none(instance):
    assert instance.ctl("audit", "verify", "--journal", "/etc/passwd", check=False).returncode == 2
    assert instance.ctl("audit", "verify", "--journal", "/nonexistent", check=False).returncode == 2


# --- the run-time role: a taken-over admind ---

@pytest.mark.parametrize("attack", [
    "DELETE FROM mcpbox.audit_log WHERE seq > 5", "TRUNCATE mcpbox.audit_log CASCADE",
    "UPDATE mcpbox.audit_log SET actor = 'x'", "UPDATE mcpbox.audit_log SET seq = 100 - seq",
    "INSERT INTO mcpbox.audit_log SELECT * FROM public.now_audit_log LIMIT 1",
    "DELETE FROM mcpbox.audit_anchors", "UPDATE mcpbox.audit_anchors SET signature = head",
    "UPDATE mcpbox.audit_head SET seq = 5", "ALTER TABLE mcpbox.audit_log DISABLE TRIGGER USER",
    "SET session_replication_role = replica", "DROP TABLE mcpbox.audit_anchors",
    "CREATE OR REPLACE FUNCTION mcpbox.audit_row(seq bigint, at timestamptz, actor text, action text, subject text,"
    " detail text) RETURNS bytea LANGUAGE sql AS 'SELECT null::bytea'"])
def test_the_run_time_role_can_not(instance, attack):
    with pytest.raises(RuntimeError, match="permission denied|must be owner"):
        instance.psql(attack, role="mcpbox_app")
    assert verify(instance)[0] == 0


def test_an_anchor_that_the_run_time_role_made_up(instance):
    """It may store anchors, so it may be first with a worthless one."""
    try:
        args = instance.psql("SELECT pronargs FROM pg_proc WHERE proname = 'anchor_store'")[0][0]
        key = ", '\\x0000000000000000'" if args == "4" else ""
        instance.psql("SELECT mcpbox.audit_append('mcpbox', 'test', '', '{}')", role="mcpbox_app")
        instance.psql("SELECT mcpbox.anchor_store(seq, hash, sha256('x')" + key + ") FROM mcpbox.audit_head",
                      role="mcpbox_app")
        found(instance, "anchor_forged", at=verify(instance)[1]["rows"])
    finally:
        put_back(instance, "now")


# --- the owner's role: who has the database ---

def test_a_row_rewritten(instance, owner):
    owner.execute("UPDATE mcpbox.audit_log SET actor = 'nobody' WHERE seq = 3")
    found(instance, "changed", at=3)


@pytest.mark.parametrize("column,value", [("subject", "x"), ("detail", '{"a": 1}'), ("action", "logout"),
                                          ("at", "2020-01-01 00:00:00Z")])
def test_any_member_rewritten(instance, owner, column, value):
    owner.execute(f"UPDATE mcpbox.audit_log SET {column} = %s WHERE seq = 4", (value,))
    found(instance, "changed", at=4)


def test_a_row_rewritten_with_its_hash(instance, owner):
    owner.execute("UPDATE mcpbox.audit_log SET actor = 'nobody' WHERE seq = 3")
    owner.execute("UPDATE mcpbox.audit_log SET hash = sha256(prev || mcpbox.audit_row(seq, at, actor, action, "
                  "subject, detail)) WHERE seq = 3")
    found(instance, "broken", at=4)


def rewrite(owner):
    owner.execute("UPDATE mcpbox.audit_log SET actor = 'nobody' WHERE seq = 3")
    owner.rechain(3)


def test_a_row_rewritten_with_all_that_follows(instance, owner):
    rewrite(owner)
    v = found(instance, "rewritten")
    assert v["problem_count"] > 3
    text = instance.ctl("audit", "verify", check=False).stdout
    assert "THE CHAIN DOES NOT HOLD" in text
    kept = verified(instance)
    assert kept["holds"] is False and kept["problems"] == v["problem_count"]


def test_a_rewrite_with_the_anchors_told_the_same(instance, owner):
    rewrite(owner)
    owner.execute("UPDATE mcpbox.audit_anchors a SET head = l.hash FROM mcpbox.audit_log l WHERE l.seq = a.seq")
    found(instance, "anchor_forged")


def test_a_rewrite_without_any_anchor(instance, owner):
    """The vault remembers what it signed."""
    rewrite(owner)
    owner.execute("DELETE FROM mcpbox.audit_anchors")
    found(instance, "rewritten")
    found(instance, "anchor_missing")
    found(instance, "rewritten", "--journal", journal(instance))


def test_two_rows_changed_about(instance, owner):
    owner.execute("UPDATE mcpbox.audit_log SET seq = -seq WHERE seq IN (5, 6)")
    owner.execute("UPDATE mcpbox.audit_log SET seq = 11 + seq WHERE seq < 0")
    found(instance, "changed", at=5)
    owner.rechain(5)
    found(instance, "rewritten")
    owner.execute("DELETE FROM mcpbox.audit_anchors")
    found(instance, "rewritten", "--journal", journal(instance))


def test_a_row_taken_out(instance, owner):
    owner.execute("DELETE FROM mcpbox.audit_log WHERE seq = 4")
    found(instance, "missing", at=4)


def test_a_row_taken_out_and_the_rest_moved_up(instance, owner):
    owner.execute("DELETE FROM mcpbox.audit_log WHERE seq = 4")
    for seq, in owner.execute("SELECT seq FROM mcpbox.audit_log WHERE seq > 4 ORDER BY seq").fetchall():
        owner.execute("UPDATE mcpbox.audit_log SET seq = %s WHERE seq = %s", (seq - 1, seq))
    owner.rechain(4)
    found(instance, "rewritten")
    owner.execute("DELETE FROM mcpbox.audit_anchors")
    found(instance, "truncated")        # one row less than the vault signed


def test_a_row_put_between(instance, owner):
    for seq, in owner.execute("SELECT seq FROM mcpbox.audit_log WHERE seq >= 4 ORDER BY seq DESC").fetchall():
        owner.execute("UPDATE mcpbox.audit_log SET seq = %s WHERE seq = %s", (seq + 1, seq))
    owner.execute("INSERT INTO mcpbox.audit_log SELECT 4, at, 'admin', 'tool_approved', 'tool x', '{}', prev, "
                  "sha256('new') FROM mcpbox.audit_log WHERE seq = 3")
    owner.rechain(4)
    found(instance, "rewritten")


def cut(owner, rows):
    last = owner.one("SELECT max(seq) FROM mcpbox.audit_log")[0] - rows
    owner.execute("DELETE FROM mcpbox.audit_log WHERE seq > %s", (last,))
    return last


def test_the_end_cut_off(instance, owner):
    cut(owner, 1)
    found(instance, "head")
    found(instance, "truncated")


def test_the_end_cut_off_with_its_anchors_and_the_head(instance, owner):
    last = cut(owner, 4)
    owner.execute("DELETE FROM mcpbox.audit_anchors WHERE seq > %s", (last,))
    owner.rechain(last)
    for args in ((), ("--journal", journal(instance))):
        v = found(instance, "truncated", *args, at=last)
        assert [p["kind"] for p in v["problems"]] == ["truncated"]


def test_all_of_it_gone(instance, owner):
    owner.execute("DELETE FROM mcpbox.audit_anchors")
    owner.execute("DELETE FROM mcpbox.audit_log")
    owner.execute("UPDATE mcpbox.audit_head SET seq = 0, hash = decode(repeat('00', 32), 'hex')")
    found(instance, "truncated", at=0)


def test_an_old_backup_put_back(instance, owner):
    """A chain that holds, with anchors that are the vault's own: only shorter."""
    put_back(instance, "old")
    rows = int(instance.psql("SELECT count(*) FROM mcpbox.audit_log")[0][0])
    v = found(instance, "truncated", at=rows)
    assert [p["kind"] for p in v["problems"]] == ["truncated"] and "old copy" in v["problems"][0]["message"]
    found(instance, "truncated", "--journal", journal(instance))
    # and what is written behind it gets no signature: the vault knows better
    Rest(lambda: instance.address("admind-http")).login("admin", "wrong wrong wrong")
    until(lambda: "with another history" in open(journal(instance), encoding="utf-8").read(), 10, 0.1)
    assert verify(instance)[1]["anchored_seq"] == rows < verify(instance)[1]["rows"]


def test_the_newest_anchor_taken_out(instance, owner):
    owner.execute("DELETE FROM mcpbox.audit_anchors WHERE seq = (SELECT max(seq) FROM mcpbox.audit_anchors)")
    found(instance, "anchor_missing")


def test_an_older_anchor_taken_out(instance, owner):
    seq = owner.one("SELECT seq FROM mcpbox.audit_anchors ORDER BY seq OFFSET 2 LIMIT 1")[0]
    owner.execute("DELETE FROM mcpbox.audit_anchors WHERE seq = %s", (seq,))
    found(instance, "anchor_missing", "--journal", journal(instance), at=seq)


def test_an_anchor_with_another_signature(instance, owner):
    seq = owner.one("SELECT seq FROM mcpbox.audit_anchors ORDER BY seq OFFSET 1 LIMIT 1")[0]
    owner.execute("UPDATE mcpbox.audit_anchors SET signature = sha256(signature) WHERE seq = %s", (seq,))
    found(instance, "anchor_forged", at=seq)


def test_an_anchor_of_another_row(instance, owner):
    a, b = (r[0] for r in owner.execute("SELECT seq FROM mcpbox.audit_anchors ORDER BY seq LIMIT 2").fetchall())
    owner.execute("UPDATE mcpbox.audit_anchors x SET head = y.head, signature = y.signature FROM "
                  "mcpbox.audit_anchors y WHERE x.seq = %s AND y.seq = %s", (a, b))
    found(instance, "rewritten", at=a)
    found(instance, "anchor_forged", at=a)


def test_a_journal_that_was_written_in(instance):
    """Its lines can't be forged either: another head is told."""
    with open(journal(instance), encoding="utf-8") as f:
        lines = [s for s in f if "audit_anchor" in s]
    seq, head = lines[1].split("seq=")[1].split()[:2]
    head = head.removeprefix("head=")
    forged = lines[1].replace(head, head[::-1])
    r = instance.ctl("audit", "verify", "--journal", "-", "--json", stdin="".join([*lines, forged]), check=False)
    v = json.loads(r.stdout)
    assert r.returncode == 1 and (int(seq), "rewritten") in [(p["seq"], p["kind"]) for p in v["problems"]]


def test_a_rewrite_behind_a_restart_of_the_vault(instance, owner):
    """The worst: everything rewritten, no anchor left, and the vault knows
    nothing any more. In itself that chain holds; the journal knows better."""
    lines = journal(instance)
    rewrite(owner)
    owner.execute("DELETE FROM mcpbox.audit_anchors")
    before = instance.service_pid("admind-vault")
    with contextlib.suppress(ProcessLookupError):
        os.kill(before, 15)
    until(lambda: instance.service_pid("admind-vault") not in (None, before)
          and instance.ctl("doctor", check=False).returncode != 3, 15, 0.1)
    status, v = verify(instance)
    assert status == 0 and v["anchors"] == 0    # as decision 0040 says
    found(instance, "rewritten", "--journal", lines)
