"""-t finds what the process would not start with: a reload runs it first, and would else end a process that runs."""
import os
import pathlib
import subprocess

import pytest

from harness.patience import patience

BUILD = pathlib.Path(os.environ["MCPBOX_BUILD"])
ADMIND = BUILD / "admind/mcpbox-admind"
SANDBOXD = BUILD / "sandboxd/mcpbox-sandboxd"
HTTP = BUILD / "admind/http/mcpbox-admind-http"
VAULT = BUILD / "admind/vault/mcpbox-admind-vault"
GATEWAYD = BUILD / "gatewayd/mcpbox-gatewayd"
HTTP = BUILD / "admind/http/mcpbox-admind-http"
EGRESS = BUILD / "sandboxd/egress/mcpbox-sandboxd-egress"
# The machine that tests need not have our users.
USERS = {ADMIND: ("gateway_local_user", "gateway_tunnel_user", "web_user"), EGRESS: ("sandboxd_user",),
         HTTP: (),
         VAULT: ("admind_user", "web_user", "sandboxd_user"),
         SANDBOXD: ("gateway_local_user", "gateway_tunnel_user", "admind_user")}
GOOD = [
    (ADMIND, "database host=/run/postgresql dbname=mcpbox user=mcpbox_app"),
    (SANDBOXD, "module_index https://index.example.org/simple/"),
    (GATEWAYD, "panel_origin http://127.0.0.1:9000"),
    (GATEWAYD, "panel_origin -"),
    (HTTP, "mcp_url http://localhost:9002/mcp"),
    (HTTP, "mcp_url -"),
    (EGRESS, "never 10.0.0.5,192.0.2.1:5432"),
    (EGRESS, "dns_servers 192.0.2.1,[2001:db8::1]:53"),
    (HTTP, "panel_origins https://mcpbox.example:8443,https://box.example"),
    (VAULT, "passkey_rp_id mcpbox.example\npasskey_origins https://mcpbox.example"),
    (VAULT, "passkey_rp_id localhost\npasskey_origins http://localhost:8000\npasskey_localhost yes"),
]
BAD = [
    (ADMIND, "database host=db.example.org dbname=mcpbox user=mcpbox_app", "database"),
    (ADMIND, "owner_database host=db.example.org hostaddr=192.0.2.1 user=mcpbox_owner sslmode=require", "owner_database"),
    (ADMIND, "database not a connection string", "database"),
    (ADMIND, "mcp_url ftp://127.0.0.1/mcp", "mcp_url"),
    (ADMIND, "mcp_url 127.0.0.1:8002", "mcp_url"),
    (ADMIND, "mcp_url http://127.0.0.1/" + "x" * 500, "mcp_url"),
    (SANDBOXD, "module_index ftp://index.example.org/", "ftp://index.example.org/"),
    (SANDBOXD, "module_index https://index.example.org/simple/\nmodule_files_hosts a/b", "a/b"),
    (GATEWAYD, "panel_origin http://127.0.0.1:9000/", "panel_origin"),
    (HTTP, "mcp_url http://127.0.0.1:8002", "mcp_url"),
    (EGRESS, "never 10.0.0.5,nonsense", "nonsense"),
    (EGRESS, "dns_servers 192.0.2.1,nonsense", "dns_servers"),
    (HTTP, "panel_origins http://mcpbox.example", "panel_origins"),
    (HTTP, "panel_origins https://mcpbox.example:443", "panel_origins"),
    (HTTP, "panel_origins https://127.0.0.1:8443", "panel_origins"),
    (VAULT, "passkey_origins https://mcpbox.example", "passkey_rp_id"),
    (VAULT, "passkey_rp_id mcpbox.example", "passkey_origins"),
    (VAULT, "passkey_rp_id mcpbox.example\npasskey_origins http://mcpbox.example\npasskey_localhost yes",
     "passkey_origins"),
    (VAULT, "passkey_rp_id localhost\npasskey_origins http://localhost:8000", "passkey_localhost"),
]


def check(tmp_path, program, text):
    f = tmp_path / "x.conf"
    f.write_text("".join(f"{u} 65534\n" for u in USERS.get(program, ())) + text + "\n", encoding="utf-8")
    f.chmod(0o644)
    return subprocess.run([program, "-t", "-f", f], capture_output=True, text=True, timeout=patience(20), check=False)


@pytest.mark.parametrize("program, text", GOOD)
def test_what_is_right_passes(tmp_path, program, text):
    r = check(tmp_path, program, text)
    assert (r.returncode, r.stdout, r.stderr) == (0, "OK\n", "")


@pytest.mark.parametrize("program, text, named", BAD)
def test_what_would_not_start_is_refused(tmp_path, program, text, named):
    r = check(tmp_path, program, text)
    assert r.returncode == 1 and r.stdout == "" and named in r.stderr and r.stderr.startswith(str(tmp_path)), r
