"""OAuth 2.1 of sources against a real authorization server (oidc-provider) and
an MCP server that takes its tokens alone: found by its metadata, registered,
agreed to in a browser that the test plays, renewed one at a time; and nobody
but the vault can read a token."""
import concurrent.futures
import http.cookiejar
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import pytest

from egress.test_external_mcp import approve, call, failure, node, server
from harness.clients.mcp import Client
from harness.clients.rest import Rest
from harness.patience import patience

AS, MCP = "142.250.185.14", "93.184.216.34"
ISSUER, URL = f"http://{AS}:9000", f"http://{MCP}:9001"
TTL = 66     # tokens are renewed when they have a minute left


class Guarded:
    def __init__(self, ns):
        self.ns = ns
        self.start()

    def start(self):
        self.p = node(self.ns, "oidc.mjs", AS, 9000, MCP, 9001, env={"TTL": str(TTL)})
        for line in self.p.stdout:
            if line.strip() == "up":
                return
        raise AssertionError("the authorization server does not start")

    def seen(self):
        with urllib.request.urlopen(URL + "/seen") as r:
            return json.load(r)

    def close(self):
        self.p.terminate()
        self.p.wait(patience(10))


@pytest.fixture(scope="module")
def guarded(inside):
    g = Guarded(inside)
    yield g
    g.close()


@pytest.fixture(scope="module")
def client(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture(scope="module")
def rest(instance):
    r = Rest(lambda: instance.address("admind-http"))
    assert r.login("admin", instance.password)[0] == 200
    return r


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


class Browser:
    """Follows redirects by hand, keeps cookies, fills the provider's forms."""

    def __init__(self):
        self.open = urllib.request.build_opener(
            NoRedirect, urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())).open

    def go(self, url, data=None):
        try:
            with self.open(urllib.request.Request(url, data, {"Sec-Fetch-Site": "cross-site"}), timeout=patience(20)) as r:
                return r.status, r.headers, r.read().decode()
        except urllib.error.HTTPError as e:
            return e.code, e.headers, e.read().decode()

    def agree(self, url, until, deny=False):
        """From the authorization URL to the redirect URI, which is returned."""
        for _ in range(20):
            status, headers, page = self.go(url)
            while status in (302, 303):
                url = urllib.parse.urljoin(url, headers["location"])
                if url.startswith(until):
                    return url
                status, headers, page = self.go(url)
            assert status == 200, page
            action = re.search(r'action="([^"]+)"', page)[1]
            if deny:
                url = urllib.parse.urljoin(url, re.search(r'href="([^"]*abort[^"]*)"', page)[1])
                continue
            prompt = re.search(r'name="prompt" value="([^"]+)"', page)[1]
            form = {"prompt": prompt, "login": "ada", "password": "any"}
            status, headers, page = self.go(urllib.parse.urljoin(url, action),
                                            urllib.parse.urlencode(form).encode())
            assert status in (302, 303), page
            url = urllib.parse.urljoin(url, headers["location"])
        raise AssertionError("the consent did not end")


@pytest.fixture(scope="module")
def source(instance, client, guarded):
    at = server(client, "guarded")
    instance.ctl("sources", "add", "guarded", "who", URL + "/mcp", "auth_type=oauth", f"oauth_issuer={ISSUER}",
                 f"oauth_hosts={AS}:9002", "oauth_hosts=tokens.example:443")
    done = approve(instance)
    shown = json.dumps(done)
    assert "OAUTH_WHO" in shown and ISSUER in shown      # what a reviewer sees
    assert f"{AS}:9002" in shown and "tokens.example:443" in shown
    return client.manage("mcpbox_list_external_sources", server_id=at)["sources"][0]["id"]


def begin(rest, source):
    status, _, made = rest.request("POST", f"/api/sources/{source}/authorise", {})
    assert status == 200, made
    return made


def status_of(rest, source):
    status, _, value = rest.get(f"/api/sources/{source}")
    assert status == 200
    return value


def test_before_consent_nothing_works(client, source, guarded):
    mode, text = failure(client, "mcpbox_discover_external_tools", {"source_id": source})
    assert mode == "missing_grant" and "OAUTH_WHO" in text


def test_a_state_nobody_knows(rest, instance, source):
    host, port = instance.address("admind-http")
    browser = Browser()
    code, headers, page = browser.go(f"http://{host}:{port}/api/oauth/callback?state={'x' * 43}&code=abc")
    assert code == 400 and "xxx" not in page and "not authorised" in page
    assert headers["content-type"].startswith("text/plain")
    assert browser.go(f"http://{host}:{port}/api/oauth/callback?code=abc")[0] == 400
    # the guard against other sites' pages holds for everything else
    assert browser.go(f"http://{host}:{port}/api/sources")[0] == 403


def test_refused_consent(rest, source, guarded):
    made = begin(rest, source)
    back = Browser().agree(made["authorization_url"], made["redirect_uri"], deny=True)
    assert "error=access_denied" in back
    assert Browser().go(back)[0] == 400
    assert status_of(rest, source)["oauth"]["status"] == "failed"
    assert "access_denied" in status_of(rest, source)["health"]["error"]


def test_consent(rest, client, source, guarded):
    made = begin(rest, source)
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(made["authorization_url"]).query)
    assert asked["code_challenge_method"] == ["S256"] and asked["resource"] == [URL + "/mcp"]
    assert "mcp:tools" in asked["scope"][0]
    back = Browser().agree(made["authorization_url"], made["redirect_uri"])
    # another authorization server's answer (RFC 9207) is no answer, and uses the state up
    forged = re.sub(r"iss=[^&]*", "iss=http%3A%2F%2Fevil.example", back)
    assert forged != back
    assert Browser().go(forged)[0] == 400
    assert Browser().go(back)[0] == 400

    made = begin(rest, source)
    back = Browser().agree(made["authorization_url"], made["redirect_uri"])
    code, _, page = Browser().go(back)
    assert code == 200 and "authorised" in page, (page, status_of(rest, source))
    assert Browser().go(back)[0] == 400     # once
    shown = status_of(rest, source)["oauth"]
    assert shown["status"] == "authorised" and shown["refreshable"] is True
    # registered once: the same client every time
    assert len(guarded.seen()["registered"]) == 1

    found = client.manage("mcpbox_discover_external_tools", source_id=source)
    assert [t["name"] for t in found["tools"]] == ["whoami"]
    assert guarded.seen()["tokens"]


@pytest.fixture(scope="module")
def tool(instance, client, source, rest):
    made = client.manage("mcpbox_import_external_tools", source_id=source, tool_names=["whoami"])
    approve(instance)
    return made["imported_tools"][0]["exposed_name"]


def test_a_token_that_comes_back_is_withheld(client, tool, guarded):
    text = call(client, tool)["content"][0]["text"]
    assert text.startswith("let in with [secret]"), text


def test_renewed_once_for_all_who_wait(instance, client, tool, guarded):
    before = guarded.seen()
    assert before["grants"].count("refresh_token") == 0
    instance.psql("UPDATE mcpbox.external_sources SET oauth_expires_at = clock_timestamp() WHERE name = 'who'")

    def one(_):
        with Client(instance.address) as c:
            return call(c, tool)
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(one, range(6)))
    assert all(not a.get("isError") for a in answers), answers
    after = guarded.seen()
    assert after["grants"].count("refresh_token") == 1, after["grants"]
    assert len(set(after["tokens"]) - set(before["tokens"])) == 1
    # the refresh token was rotated, and the new one kept: it serves, too
    instance.psql("UPDATE mcpbox.external_sources SET oauth_expires_at = clock_timestamp() WHERE name = 'who'")
    assert not call(client, tool).get("isError")
    assert guarded.seen()["grants"].count("refresh_token") == 2


def test_renewed_by_the_clock(instance, client, tool, guarded):
    """A minute before it expires; its time is the one that the issuer gave."""
    left = float(instance.psql("SELECT extract(epoch FROM oauth_expires_at - clock_timestamp())"
                               " FROM mcpbox.external_sources WHERE name = 'who'")[0][0])
    assert left < TTL
    instance.psql("UPDATE mcpbox.external_sources SET oauth_expires_at = clock_timestamp() + interval '59 s'"
                  " WHERE name = 'who'")
    n = guarded.seen()["grants"].count("refresh_token")
    assert not call(client, tool).get("isError")
    assert guarded.seen()["grants"].count("refresh_token") == n + 1


def test_nobody_can_read_a_token(instance, client, tool, guarded):
    """Not in the database, not in a log, not in a record: and what is looked
    for could be found, were it there."""
    tokens = set(guarded.seen()["tokens"])
    assert len(tokens) >= 3
    dump = subprocess.run(["pg_dump", "-h", instance.run("postgresql"), "-U", "postgres", "mcpbox"],
                          capture_output=True, text=True, check=True, timeout=patience(60)).stdout
    assert "OAUTH_WHO" in dump and "redirect_uri" in dump
    found = [t for t in tokens if t in dump or t.encode().hex() in dump]
    assert not found
    logs = ""
    for where, _, names in os.walk(os.path.join(instance.state, "log")):
        for name in names:
            with open(os.path.join(where, name), encoding="utf-8", errors="replace") as f:
                logs += f.read()
    assert "whoami" in logs or "guarded__who" in logs
    assert not [t for t in tokens if t in logs]


def test_a_withdrawn_consent_is_told(instance, client, tool, rest, source, guarded):
    """A refresh token that is refused is not tried for ever."""
    instance.psql("UPDATE mcpbox.external_sources SET oauth_expires_at = clock_timestamp() WHERE name = 'who'")
    # the grant goes with the server's memory
    guarded.p.terminate()
    guarded.p.wait(patience(10))
    mode, text = failure(client, tool)
    assert mode == "upstream_error", text
    guarded.start()
    time.sleep(5.2)
    mode, text = failure(client, tool)
    assert mode == "upstream_error" and "401" in text
    shown = status_of(rest, source)
    assert shown["oauth"]["status"] == "failed" and "invalid_grant" in shown["health"]["error"] \
        or "invalid_client" in shown["health"]["error"], shown
    n = len(guarded.seen()["grants"])
    failure(client, tool)
    assert len(guarded.seen()["grants"]) <= n + 1

