"""The tools of contrib/tools that use a network, installed by their command and
called with each of their examples: with the services played, in a network
namespace. Runners trust no certificate of a test's, so the folder is copied with
http in place of https; test_libraries.py has the TLS."""
import json
import os
import shutil

import pytest

from harness import examples
from harness.clients.mcp import Client, text
from harness.played import dns as d
from harness.played.upstream import Service

ADDRESS = "93.184.216.34"
TABLES = {name: examples.table(name) for name in examples.names()}
NAMES = [name for name in TABLES if TABLES[name].get("hosts")]
CALLS = [(name, n) for name in NAMES for n, e in enumerate(TABLES[name]["examples"]) if "service" in e]
SECRET = "canary-a-secret-of-nobody"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """contrib/tools with plain HTTP."""
    top = tmp_path_factory.mktemp("contrib")
    for name in ("tools", "conformance-pack"):
        shutil.copytree(os.path.join(examples.FOLDER, "..", name), top / name)
    for file in (top / "tools").glob("*.*"):
        plain = file.read_text(encoding="utf-8").replace("https://", "http://").replace(":443", ":80")
        file.write_text(plain, encoding="utf-8")
    return str(top / "tools")


class World:
    """The services of one example at a time."""

    def __init__(self, dns):
        self.dns, self.answers, self.status, self.seen = dns, {}, 200, []

    def plays(self, example):
        self.answers, self.status, self.seen = example["service"], example.get("status", 200), []
        self.dns.zone.clear()
        for place in self.answers:
            self.dns.zone[place.split(" ")[1].split("/")[0]] = d.Answer(a=[ADDRESS])

    def handle(self, r):
        self.seen.append(r)
        place = f"{r.method} {r.headers['host']}{r.path}"
        if place not in self.answers:
            return 500, {}, {"nobody asked for": place}
        return self.status, {}, self.answers[place]


@pytest.fixture(scope="module")
def world(ns, dns):
    w = World(dns)
    with Service(w.handle, sock=ns.listen(ADDRESS, 80)):
        yield w


@pytest.fixture(scope="module")
def installed(instance, folder):
    for name in NAMES:
        r = examples.install(instance, name, "--yes", folder=folder)
        assert r.returncode == 0, (name, r.stdout, r.stderr)
        for key in TABLES[name].get("secrets", ()):
            assert f"mcpboxctl secret set {TABLES[name]['server']} {key}" in r.stdout
            instance.ctl("secret", "set", TABLES[name]["server"], key, stdin=SECRET)


@pytest.fixture
def client(instance, installed):
    with Client(instance.address) as c:
        yield c


def played(instance, client, world, folder, name, n):
    """The reply to an example's call, compared; and the example."""
    example = examples.table(name, folder)["examples"][n]
    world.plays(example)
    r = examples.call(instance, client, name, example)
    examples.compare(r, example)
    assert SECRET not in r.raw.decode()
    return r, example


@pytest.mark.parametrize("name, n", CALLS, ids=[f"{name}-{n + 1}" for name, n in CALLS])
def test_an_example(instance, client, world, folder, name, n):
    r, example = played(instance, client, world, folder, name, n)
    # Each answer was asked for, and nothing else.
    assert {f"{s.method} {s.headers['host']}{s.path}" for s in world.seen} == set(example["service"])
    if not example["service"]:
        # A tool of ours says it in words, not in a traceback.
        assert "Traceback" not in text(r) or name == "web_fetch", text(r)


def test_forecast_asks_for_what_it_was_asked(instance, client, world, folder):
    _, example = played(instance, client, world, folder, "forecast", 0)
    place, weather = world.seen
    assert dict(place.query) == {"name": example["arguments"]["place"], "count": "1"}
    sent = dict(weather.query)
    assert (sent["latitude"], sent["longitude"], sent["forecast_days"]) == ("59.91", "10.75", "2")


def test_notify_sends_its_topic_once_somebody_said_yes(instance, client, world, folder):
    example = examples.table("notify", folder)["examples"][0]
    world.plays(example)
    call = {"name": "notify", "arguments": example["arguments"]}
    waits = client.request("tools/call", call).result
    assert waits["resultType"] == "input_required" and not world.seen
    shown = examples.approve_call(instance, example["arguments"])
    assert shown["content"]["arguments"]["message"] in instance.ctl("approvals", "show", shown["id"]).stdout
    assert not world.seen       # approved, and not yet called for
    r = client.request("tools/call", {**call, "requestState": waits["requestState"]})
    examples.compare(r, example)
    assert [json.loads(s.body) for s in world.seen] == [
        {"topic": SECRET, "message": "The backup is done.", "title": "Backup", "priority": 2}]


def test_github_issue_sends_its_token_in_its_header_alone(instance, client, world, folder):
    _, example = played(instance, client, world, folder, "github_issue", 0)
    sent, = world.seen
    assert sent.headers["authorization"] == f"Bearer {SECRET}"
    assert sent.headers["x-github-api-version"] == "2022-11-28"
    assert SECRET not in sent.target and json.loads(sent.body) == {"title": "It rains", "labels": ["weather"]}


def test_a_service_that_fails_is_told_in_words(instance, client, world, folder):
    """Status 500 of whatever it is asked."""
    for name, says in (("forecast", "answered with status 500: try again later"),
                       ("notify", "refused the message with status 500: nothing was sent")):
        example = {**examples.table(name, folder)["examples"][0], "status": 500}
        world.plays(example)
        r = examples.call(instance, client, name, example)
        assert r.result["isError"] and says in text(r) and "Traceback" not in text(r), text(r)
