"""Drivers in a plain interpreter: what a module of ours says becomes the
call's end, and nothing of a specification is ever run as code."""

import json
import sys
import types

import pytest

from test_inspect import fake

import mcpbox
import mcpbox_drivers as drivers
import mcpbox_harness

TOOL, INSPECT, MODULE = 1, 2, 6
PLAIN, STRUCTURED = 0, 3


@pytest.fixture
def driver(monkeypatch):
    """Puts a module in the place of the driver for http."""
    def put(**functions):
        name = drivers.MODULES[drivers.HTTP]
        m = types.ModuleType(name)
        m.__dict__.update(functions)
        monkeypatch.setitem(sys.modules, name, m)
    return put


@pytest.fixture(autouse=True)
def loop():
    mcpbox_harness._new_module()
    loop = mcpbox_harness.asyncio.new_event_loop()
    mcpbox_harness._loop = loop
    mcpbox_harness.first_task()
    yield
    loop.run_until_complete(mcpbox_harness._task)
    loop.close()


def start(spec=b"{}", arguments=b"{}", secrets=None, kind=TOOL, form=PLAIN,
          which=drivers.HTTP, limit=4096):
    fake.sent.clear()
    mcpbox_harness.start(kind, "tool", spec, None, arguments, secrets or {},
                         limit, form, which)
    assert len(fake.sent) == 1
    return fake.sent[0]


def test_gets_the_values_and_answers_like_a_main(driver):
    driver(main=lambda spec, arguments, secrets: [spec, arguments, secrets])
    failure, body = start(b'{"url":"x"}', b'{"n":1}', {"key": "v"})
    assert failure == 0
    assert json.loads(body["content"][0]["text"]) == [
        {"url": "x"}, {"n": 1}, {"key": "v"}]


def test_may_wait(driver):
    async def main(spec, arguments, secrets):
        await mcpbox_harness.asyncio.sleep(0)
        return "later"
    driver(main=main)
    assert start()[1]["content"][0]["text"] == "later"


def test_a_whole_body_passes_as_it_is(driver):
    said = {"content": [{"type": "image", "data": "AA==", "mimeType": "image/png"}],
            "structuredContent": {"a": 1}, "isError": False}
    driver(main=lambda *a: drivers.Body(said))
    assert start() == (0, said)
    assert start(form=STRUCTURED) == (0, said)
    # the other side's own error is a failed call, of the same content
    said["isError"] = True
    assert start() == (fake.UPSTREAM, said)


def test_a_structured_form_is_made_of_a_plain_value(driver):
    driver(main=lambda *a: {"a": [1]})
    assert start(form=STRUCTURED)[1]["structuredContent"] == {"a": [1]}


@pytest.mark.parametrize("raised, failure", [
    (drivers.Upstream("status 500"), fake.UPSTREAM),
    (drivers.Timeout("20 s"), fake.TIMEOUT),
    (drivers.UpstreamChanged("its definition"), fake.UPSTREAM_CHANGED),
    (drivers.MissingGrant("no grant"), fake.MISSING_GRANT),
    (drivers.InvalidArguments("n is missing"), fake.INVALID_ARGUMENTS),
    (drivers.Limit("too long"), fake.LIMIT),
    (mcpbox.ToolError("said so"), fake.EXCEPTION),
    (RuntimeError("a defect"), fake.EXCEPTION),
    (MemoryError(), fake.LIMIT),
    (SystemExit(3), fake.EXCEPTION)])
def test_each_failure_is_its_own(driver, raised, failure):
    def main(*a):
        raise raised
    driver(main=main)
    said, body = start()
    assert said == failure and body["isError"] is True
    if not isinstance(raised, (MemoryError, SystemExit)):
        assert str(raised) in body["content"][0]["text"]


def test_a_result_too_large_is_a_limit(driver):
    driver(main=lambda *a: drivers.Body({"content": [
        {"type": "text", "text": "x" * 5000}]}))
    assert start()[0] == fake.LIMIT


def test_secrets_are_hidden_before_texts_are_cut(driver):
    driver(main=lambda *a: mcpbox_harness.mcpbox_hide.hidden("a hunter2hunter2"))
    failure, body = start(secrets={"key": "hunter2hunter2"})
    assert body["content"][0]["text"] == "a [secret]"


def test_one_that_is_not_there_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "mcpbox_wheel", raising=False)
    failure, body = start(kind=MODULE, which=drivers.MODULE)
    assert failure == fake.EXCEPTION
    assert "no driver mcpbox_wheel" in body["content"][0]["text"]


def test_a_specification_is_never_code(driver):
    ran = []
    driver(main=lambda spec, *a: ran.append(spec))
    fake.canary = ran
    failure, body = start(b"__import__('_mcpbox').canary.append('ran')")
    assert failure == fake.EXCEPTION and ran == []
    # The canary is reachable: as a tool's code the same text runs.
    test_inspect_code = b"import _mcpbox\ndef main():\n  _mcpbox.canary.append('ran')\n"
    mcpbox_harness.start(TOOL, "tool", test_inspect_code, None, b"{}", {},
                         4096, PLAIN, 0)
    assert ran == ["ran"]


def test_inspection(driver):
    driver(main=None, inspect=lambda spec: {"ok": True, "spec": spec})
    assert start(b'{"a":1}', kind=INSPECT) == (0, {"ok": True, "spec": {"a": 1}})
    failure, body = start(b"{", kind=INSPECT)
    assert failure == 0 and body["ok"] is False
    driver(main=None)
    assert "not inspected" in start(kind=INSPECT)[1]["error"]["message"]
