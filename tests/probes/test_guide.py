"""docs/TOOLS.md does what it says: its examples run, its numbers are true."""
import hashlib
import json
import os
import re

import pytest

from probes import runner_driver
from probes.ipcframes import ROOT

with open(os.path.join(ROOT, "docs", "TOOLS.md"), encoding="utf-8") as _f:
    GUIDE = _f.read()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", GUIDE, re.M | re.S)
PYTHON = [text for kind, text in BLOCKS if kind == "python"]


@pytest.mark.parametrize("code", PYTHON, ids=range(len(PYTHON)))
def test_example(pool, code):
    first = re.match(r"# example: (\{.*?\}) -> (.*)\n", code)
    assert first, "each example says what it is called with and returns"
    arguments, shown = json.loads(first.group(1)), first.group(2)
    found = pool.inspect(code)
    assert found["ok"] is True, found
    call = pool.call(code, arguments, secrets=[])
    assert call.kind == "run_result", call.text
    assert call.body["content"][0]["text"] == shown
    assert set(found["input_schema"]["required"]) <= set(arguments)


def test_signature_of_the_first_example(pool):
    found = pool.inspect(PYTHON[0])
    assert found["doc"] == "Greets somebody."
    assert found["input_schema"]["properties"] == {"name": {
        "type": "string", "default": "world",
        "description": "who is greeted"}}


def test_command_example():
    text, _ = [text for kind, text in BLOCKS if kind == "json"]
    tool = json.loads(text)
    pool = runner_driver.Pool(commands=tool["executable"])
    try:
        with open(tool["executable"], "rb") as f:
            digest = hashlib.sha256(f.read()).digest()
        call = pool.call(
            json.dumps(tool["spec"]), {"pattern": "-B", "text": "a\n-b\n"},
            profile={"kind": 1}, executable=tool["executable"],
            executable_digest=digest)
        assert call.text == "2:-b\n"
        for name in call.body["structuredContent"]:
            assert f"`{name}`" in GUIDE or name in (
                "stderr_truncated",), name
    finally:
        pool.close()


def test_defaults_are_those_of_the_configuration():
    with open(os.path.join(ROOT, "common", "conf", "conf_keys.def"),
              encoding="utf-8") as f:
        keys = dict(re.findall(r'^K\("[a-z-]+", (\w+), \w+, "([^"]*)"',
                               f.read(), re.M))
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "s": 1000, "": 1}

    def default(name):
        number, unit = re.fullmatch(r"(\d+)(\w?)", keys[name]).groups()
        return int(number) * units[unit]

    rows = {}
    for names, values in re.findall(r"^\| (`[^|]*`) \| ([\d, ]+) \|", GUIDE,
                                    re.M):
        rows.update(zip(re.findall(r"`(\w+)`", names),
                        (int(v) for v in values.split(","))))
    assert rows == {
        "timeout_ms": default("call_timeout"), "cpu_ms": default("cpu_time"),
        "memory_bytes": default("memory"), "processes": default("processes"),
        "files": default("files"), "file_bytes": default("file_size"),
        "tmp_bytes": default("tmp_size"),
        "result_bytes": default("result_size"),
        "stdout_bytes": default("stdout_size"),
        "argument_bytes": default("argument_bytes"),
        "log_rate": default("log_rate"),
        "progress_rate": default("progress_rate"),
        "connections": default("connections"),
        "network_bytes": default("network_bytes"),
        "network_rate": default("network_rate")}


def test_a_model_reads_it_at_once():
    # 3,500 tokens: tools, questions, tasks, prompts, resources, commands, and
    # since tools have a network, that and declared calls.
    assert len(GUIDE.encode("utf-8")) <= 14 * 1024 + 512
    assert len(GUIDE.splitlines()) <= 310
