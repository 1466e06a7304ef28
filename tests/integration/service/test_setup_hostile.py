"""`mcpboxctl setup` and `doctor` run as root, and as the database's superuser, among what others made: functions of a
database user where anybody may make some, files in directories that belong to a daemon which was taken over."""
import json

import pytest

from harness.machine import Machine
from harness.patience import patience

# Of a user who may make objects in `public`, as everybody may on a cluster that pg_upgrade brought from before
# PostgreSQL 15. Each is a better match for its arguments than what pg_catalog has (CVE-2018-1058).
TRAPS = """
CREATE TABLE mallory.sprung (who text, what text);
GRANT ALL ON mallory.sprung TO PUBLIC;
GRANT USAGE ON SCHEMA mallory TO PUBLIC;
CREATE FUNCTION mallory.spring(text) RETURNS void LANGUAGE sql AS $$INSERT INTO mallory.sprung VALUES (current_user, $1)$$;
CREATE FUNCTION public.has_database_privilege(text, text, text) RETURNS bool LANGUAGE plpgsql
AS $$BEGIN PERFORM mallory.spring('privilege'); RETURN true; END$$;
CREATE FUNCTION mallory.sum(text, name, text) RETURNS text LANGUAGE plpgsql
AS $$BEGIN PERFORM mallory.spring('aggregate'); RETURN ''; END$$;
CREATE AGGREGATE public.string_agg(name, text) (SFUNC = mallory.sum, STYPE = text, INITCOND = '');
CREATE FUNCTION mallory.join(text, integer) RETURNS text LANGUAGE plpgsql
AS $$BEGIN PERFORM mallory.spring('operator'); RETURN ''; END$$;
CREATE OPERATOR public.|| (FUNCTION = mallory.join, LEFTARG = text, RIGHTARG = integer);
"""


@pytest.fixture(scope="module")
def m():
    x = Machine()
    yield x
    print(x.logs()[-4000:])
    x.close()


@pytest.fixture(scope="module")
def ready(m):
    """Set up, among the traps."""
    m.sql("CREATE ROLE mallory LOGIN; GRANT CREATE ON SCHEMA public TO PUBLIC; CREATE SCHEMA mallory AUTHORIZATION mallory",
          "postgres")
    m.sql(f"SET SESSION AUTHORIZATION mallory; {TRAPS}", "postgres")
    # they work: whoever writes as `setup` did runs them
    m.sql("BEGIN; SELECT has_database_privilege('mallory', 'postgres', 'CONNECT'), string_agg(rolname, ', ') FROM pg_roles;"
          " DO $$BEGIN ASSERT (SELECT count(DISTINCT what) = 2 FROM mallory.sprung); END$$; ROLLBACK", "postgres")
    # a line for PostgreSQL to find fault with, so that it is quoted
    hba = f"{m.pgdir}/pg_hba.conf"
    m.sh(f"cp -p {hba} {hba}.whole; echo 'local all all nonsense' >>{hba}")
    assert m.setup()[0]["access"][0] == "failed"
    m.sh(f"cat {hba}.whole >{hba}")
    m.write("/etc/mcpbox/password", "correct horse battery\n", "0600")
    steps, status, _ = m.setup("--username", "ada", "--password-file", "/etc/mcpbox/password")
    assert status == 0, steps
    return m


def test_functions_of_others_are_not_called(ready):
    assert ready.sql("SELECT * FROM mallory.sprung", "postgres") == ""


def listeners(m):
    r = m.ctl("--json", "doctor", check=False, timeout=patience(20))
    return {row["layer"]: (row["state"], row["detail"]) for row in json.loads(r.stdout)
            if row["layer"].startswith("listener_")}, r.stdout


ADDR = "/run/mcpbox/gatewayd-local/addr"


def test_a_daemon_s_file_is_only_a_file(ready):
    """/run/mcpbox/gatewayd-local is its user's, who may put there what it likes."""
    ready.sh(f"echo canary-in-a-file-of-root >/etc/canary; chmod 600 /etc/canary; rm -f {ADDR}; ln -s /etc/canary {ADDR}")
    rows, text = listeners(ready)
    assert rows["listener_local"][0] == "missing" and "canary-in" not in text
    # waits for a writer that never comes (or, were it a link to a watchdog, restarts the machine)
    ready.sh(f"rm {ADDR}; mkfifo {ADDR}")
    assert listeners(ready)[0]["listener_local"][0] == "missing"
    ready.sh(f"rm {ADDR}")


def test_doctor_connects_to_this_machine_s_listeners_only(ready):
    """The daemon has no network; root has."""
    ready.sh("ip route add 192.0.2.0/24 dev lo; ip -6 route add 2001:db8::/32 dev lo")
    for addr in ("192.0.2.7:80", "[2001:db8::7]:80", "[::ffff:127.0.0.1]:8002", "[::1", "::1:8002", "[]:1", "/run/postgresql/.s.PGSQL.5432", "/run/mcpbox/../postgresql/.s.PGSQL.5432"):
        ready.sh(f"echo {addr} >{ADDR}")
        assert listeners(ready)[0]["listener_local"][0] == "missing", addr
    # what it is there for
    ready.sh("python3 -c 'import socket, time; s = socket.create_server((\"127.0.0.1\", 8002)); time.sleep(60)' >/dev/null 2>&1 & sleep 1; "
             f"echo 127.0.0.1:8002 >{ADDR}")
    assert listeners(ready)[0]["listener_local"] == ("enforced", "127.0.0.1:8002")
    ready.sh("python3 -c 'import socket, time; s = socket.create_server((\"::1\", 8003), family=socket.AF_INET6); time.sleep(60)'"
             f" >/dev/null 2>&1 & sleep 1; echo '[::1]:8003' >{ADDR}")
    assert listeners(ready)[0]["listener_local"] == ("enforced", "[::1]:8003")
    ready.sh(f"echo '[::1]:8004' >{ADDR}")
    assert listeners(ready)[0]["listener_local"] == ("missing", "[::1]:8004: Connection refused")
    ready.sh(f"rm {ADDR}")


def test_doctor_follows_no_link_to_a_socket(ready):
    """Its own socket is what a listener's file may name; a link of the daemon's leads anywhere."""
    below = ADDR.removesuffix("/addr")
    ready.sh("nohup python3 -c 'import socket, time\n"
             "a, b = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)\n"
             f"a.bind(\"/run/canary.sock\"); a.listen(); b.bind(\"{below}/mine.sock\"); b.listen(); time.sleep(600)'"
             f" >/dev/null 2>&1 & until test -S {below}/mine.sock; do sleep 0.1; done")
    # the canary is reached where a link is followed
    ready.sh(f"ln -s /run {below}/directory; ln -s /run/canary.sock {below}/link.sock")
    for path in ("directory/canary.sock", "link.sock"):
        ready.sh(f"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{below}/{path}\")'")
        ready.sh(f"echo {below}/{path} >{ADDR}")
        assert listeners(ready)[0]["listener_local"][0] == "missing", path
    ready.sh(f"echo {below}/mine.sock >{ADDR}")
    assert listeners(ready)[0]["listener_local"] == ("enforced", f"{below}/mine.sock")
    ready.sh(f"rm {ADDR} {below}/directory {below}/link.sock {below}/mine.sock /run/canary.sock")


def test_a_key_that_can_t_be_written_leaves_no_bytes(ready):
    """Half of one is half of a secret."""
    before = ready.sh("ls /etc/mcpbox")
    r = ready.run("bash", "-c", "head -c 32 /dev/urandom >/run/other.key; chmod 400 /run/other.key; "
                  f"exec prlimit --fsize=16 {ready.libexec}/mcpboxctl key import /run/other.key", check=False)
    assert r.returncode != 0 and "master.key" in r.stderr
    assert ready.sh("ls /etc/mcpbox") == before
