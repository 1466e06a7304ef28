"""SIGKILL of anything at two points of an import, while its text is brought and in
the middle of its transaction: all of it is there or nothing, and the same file
can be imported behind it."""
import json
import os
import signal
import subprocess

import psycopg
import pytest

from harness.clients.mcp import Client
from harness.instance import Instance
from harness.patience import patience, until

MANY = 12       # objects of each of two servers
PIECES = "x" * 90000    # what makes the text long enough to be met under way


@pytest.fixture(scope="module")
def instance():
    i = Instance()
    yield i
    i.close()


@pytest.fixture(scope="module")
def export(instance, tmp_path_factory):
    """A file of two servers with prompts."""
    with Client(instance.address) as c:
        for name in ("imp_a", "imp_b"):
            server = c.manage("mcpbox_create_server", name=name)["id"]
            for n in range(MANY):
                c.manage("mcpbox_create_prompt", server_id=server, name=f"p{n}", description="d", text=f"{n} {PIECES}")
    path = tmp_path_factory.mktemp("export") / "file"
    path.write_text(instance.ctl("export", "imp_a", "imp_b").stdout, encoding="utf-8")
    # each object takes a while, so that the transaction can be met half way
    instance.psql("CREATE FUNCTION mcpbox.slow() RETURNS trigger LANGUAGE plpgsql AS "
                  "$$ BEGIN PERFORM pg_sleep(0.05); RETURN NEW; END $$; CREATE TRIGGER a_slow BEFORE INSERT ON "
                  "mcpbox.tool_versions FOR EACH ROW EXECUTE FUNCTION mcpbox.slow()")
    return str(path)


def there(instance):
    """[objects of each server]"""
    return sorted(int(r[0]) for r in instance.psql(
        "SELECT (SELECT count(*) FROM mcpbox.tools t JOIN mcpbox.tool_versions v ON v.tool_id = t.id WHERE "
        "t.server_id = s.id AND v.state = 'draft') FROM mcpbox.servers s WHERE s.name LIKE 'imp%'"))


def comes(what, seconds=40):
    return until(what, seconds, 0.01, during=(RuntimeError, psycopg.Error, OSError))


STAGES = {"text": "SELECT 1 FROM mcpbox.import_parts LIMIT 1",
          "transaction": "SELECT 1 FROM pg_stat_activity WHERE usename = 'mcpbox_app' AND state = 'active' "
                         "AND query LIKE '%import_finish%' AND clock_timestamp() > query_start + interval '0.3 s'"}


@pytest.mark.parametrize("victim", ["mcpboxctl", "admind", "admind-vault", "postgresql"])
@pytest.mark.parametrize("stage", list(STAGES))
def test_killed_half_way(instance, export, stage, victim):
    before = there(instance)
    assert set(before) == {MANY}
    with psycopg.connect(f"host={instance.run('postgresql')} dbname=mcpbox user=postgres", autocommit=True) as c, \
            subprocess.Popen([os.path.join(instance.state, "bin", "mcpboxctl"), "import", export],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        comes(lambda: c.execute(STAGES[stage]).fetchone(), 20)
        pid = p.pid if victim == "mcpboxctl" else instance.service_pid(victim)
        os.kill(pid, signal.SIGKILL)
        p.communicate(timeout=patience(60))
    # what of it still runs comes to its end; then all is there, or nothing
    comes(lambda: instance.psql("SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE state = 'active' "
                                "AND query LIKE '%import_finish%' AND pid <> pg_backend_pid())"))
    after = there(instance)
    assert after in (before, before + [MANY] * 2), (stage, victim, after)
    # The vault's death, or a short one of admind, may pass unseen: then it was
    # told so. What lost its program or its transaction has not happened.
    assert p.returncode != 0 or after != before
    if (stage, victim) in (("text", "mcpboxctl"), ("transaction", "postgresql")):
        assert after == before
    # and once more: it goes through, beside whatever was left
    def again():
        r = instance.ctl("--json", "import", export, check=False)
        return r.returncode == 0 and json.loads(r.stdout)
    said = comes(again)
    assert said["objects"] == 2 * MANY and len(said["servers"]) == 2, said["skipped"][:1]
    assert there(instance) == after + [MANY] * 2
    assert not instance.psql("SELECT 1 FROM mcpbox.callable WHERE exposed_name LIKE 'imp%'")
