"""What a client learns when a call goes wrong: typed, and enough to mend it."""
import json
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.instance import Instance
from harness.patience import until

TOOLS = {
    "adder": "def main(a: int, b: int, *, label: str = '') -> int:\n    return a + b\n",
    "raiser": "def main(x: int = 0):\n    print('before the fall')\n    y = x\n"
              "    return 1 // y\n",
    "sleeper": "import time\ndef main(s: float = 60.0):\n    time.sleep(s)\n    return 'awake'\n",
    "spinner": "def main():\n    while True:\n        pass\n",
    "talker": "def main(n: int = 0) -> str:\n    print('x' * n)\n    return 'done'\n",
    "big": "def main(n: int) -> str:\n    return 'x' * n\n",
    "eater": "def main():\n    x = []\n    while True:\n        x.append(bytearray(1 << 20))\n",
    "forker": "import os, time\ndef main():\n    n = 0\n    try:\n        while n < 10000:\n"
              "            if os.fork() == 0:\n                time.sleep(60)\n                os._exit(0)\n"
              "            n += 1\n    except OSError:\n        pass\n    return n\n",
    "leaver": "import os\ndef main():\n    os._exit(3)\n",
    "liar": "class Odd:\n    pass\ndef main():\n    return Odd()\n",
    "shapes": "def main() -> dict:\n    return {'ok': True, 'none': None, 'list': [1, 2.5, 'x']}\n",
}
# They meet other limits than time.
LONG = {"timeout_ms": 60000}
MORE = {"eater": {"limits": {"memory_bytes": 96 << 20, **LONG}}, "talker": {"limits": LONG},
        "big": {"limits": LONG}, "forker": {"limits": LONG}}


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:call_timeout=2s"])
    yield i
    i.close()


@pytest.fixture(scope="module")
def tools(instance):
    with Client(instance.address) as c:
        return {n: flow.publish(instance, c, "faulty", n, code, **MORE.get(n, {}))
                for n, code in TOOLS.items()}


def failed(reply, mode):
    """An isError result with that failure mode: its text."""
    assert reply.status == 200 and reply.result, reply
    assert reply.result["isError"] is True, reply
    failure = reply.result["_meta"]["mcpbox/failure"]
    assert failure["failure_mode"] == mode, reply
    assert failure["fix"]
    return text(reply)


def test_all_argument_errors_at_once(mcp, tools):
    t = failed(mcp.call(tools["adder"], {"a": "1", "colour": "red"}), "invalid_arguments")
    assert "b" in t and "colour" in t and "a" in t


def test_exception_shows_type_line_code_and_output(mcp, tools):
    t = failed(mcp.call(tools["raiser"], {}), "exception")
    assert "ZeroDivisionError" in t
    assert "4" in t and "return 1 // y" in t
    assert "before the fall" in t


@pytest.mark.parametrize("tool", ["sleeper", "spinner"])
def test_timeout_is_hard(instance, mcp, tools, tool):
    begin = time.monotonic()
    t = failed(mcp.call(tools[tool], {}), "timeout")
    assert time.monotonic() - begin >= 1.9
    assert "2" in t	# names the limit: else none would end it
    assert_nothing_runs(instance)


def assert_nothing_runs(instance):
    """Only the zygote is left, and runners that wait for a call."""
    until(lambda: not instance.runners(), 5, say=instance.pool)


def test_output_is_capped_while_produced(mcp, tools):
    r = mcp.call(tools["talker"], {"n": 10_000_000})
    assert r.result, r
    assert len(r.raw) < 1_000_000


def test_too_big_a_result_is_a_limit(mcp, tools):
    assert failed(mcp.call(tools["big"], {"n": 3_000_000}), "limit")


def test_a_large_result_passes(mcp, tools):
    assert text(mcp.call(tools["big"], {"n": 500_000})) == "x" * 500_000


def test_memory_is_limited(instance, mcp, tools):
    r = mcp.call(tools["eater"], {})
    assert r.result["isError"], r
    assert r.result["_meta"]["mcpbox/failure"]["failure_mode"] in ("limit", "exception", "killed")
    assert_nothing_runs(instance)


def test_fork_bomb_is_limited_and_reaped(instance, mcp, tools):
    r = mcp.call(tools["forker"], {})
    assert r.result, r
    if not r.result.get("isError"):
        assert int(text(r)) < 64
    assert_nothing_runs(instance)


def test_a_tool_that_exits_is_an_error(mcp, tools):
    r = mcp.call(tools["leaver"], {})
    assert r.result["isError"], r


def test_unserialisable_result_is_an_error(mcp, tools):
    assert "Odd" in failed(mcp.call(tools["liar"], {}), "exception")


def test_results_are_json(mcp, tools):
    r = mcp.call(tools["shapes"], {})
    assert json.loads(text(r)) == {"ok": True, "none": None, "list": [1, 2.5, "x"]}


def test_syntax_error_names_the_line(mcp):
    sid = mcp.manage("mcpbox_create_server", name="broken")["id"]
    r = mcp.call("mcpbox_create_tool", {"server_id": sid, "name": "bad", "description": "x",
                                        "python_code": "def main():\n    return 1 +\n"})
    assert r.result["isError"], r
    assert "line 2" in text(r) or '"line": 2' in text(r) or ":2" in text(r), r
    r = mcp.call("mcpbox_create_tool", {"server_id": sid, "name": "bad", "description": "x",
                                        "python_code": "x = 1\n"})
    assert r.result["isError"] and "main" in text(r), r


def test_every_authorised_call_is_closed(instance, tools):
    until(lambda: instance.psql("SELECT count(*) FROM mcpbox.executions WHERE state = 'open'") == [["0"]], 10)
