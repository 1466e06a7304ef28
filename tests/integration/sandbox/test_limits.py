"""Every limit of a call, exceeded end to end over /mcp: the error is typed and
names the limit and its value, the value is the tool's, else its server's, else
the configured one, and a neighbour's call is unharmed."""
import json
import os
import re
import threading
import time

import pytest

from harness.clients import flow
from harness.clients.mcp import META, Client, text
from harness.instance import Instance, processes
from harness.patience import patience, until

MIB = 1 << 20

# Configured values of the instance, small so that each is met soon.
DEFAULTS = {"timeout_ms": 6000, "memory_bytes": 96 * MIB, "processes": 20, "tmp_bytes": 4 * MIB,
            "result_bytes": 64 * 1024, "cpu_ms": 1000, "files": 40, "file_bytes": 2 * MIB,
            "stdout_bytes": 8192, "log_rate": 7, "progress_rate": 4}
SETTINGS = {"timeout_ms": "admind:call_timeout={}ms", "memory_bytes": "sandboxd:memory={}",
            "processes": "sandboxd:processes={}", "tmp_bytes": "sandboxd:tmp_size={}",
            "result_bytes": "sandboxd:result_size={}", "cpu_ms": "sandboxd:cpu_time={}ms",
            "files": "sandboxd:files={}", "file_bytes": "sandboxd:file_size={}",
            "stdout_bytes": "sandboxd:stdout_size={}", "log_rate": "sandboxd:log_rate={}",
            "progress_rate": "sandboxd:progress_rate={}"}
# What a version and a server set instead: neither the default nor each other's.
TOOL = {"timeout_ms": 700, "memory_bytes": 128 * MIB, "processes": 12, "tmp_bytes": 1 * MIB,
        "result_bytes": 20000, "cpu_ms": 2000, "files": 32, "file_bytes": MIB,
        "stdout_bytes": 4096, "log_rate": 3, "progress_rate": 2, "argument_bytes": 1000}
SERVER = {"timeout_ms": 900, "memory_bytes": 80 * MIB, "processes": 16, "tmp_bytes": 2 * MIB,
          "result_bytes": 30000, "cpu_ms": 2000, "files": 36, "file_bytes": MIB + 4096,
          "stdout_bytes": 6000, "log_rate": 5, "progress_rate": 3, "argument_bytes": 2000}
VALUES = {"default": DEFAULTS, "tool": TOOL, "server": SERVER}
SHOWN = 8192    # bytes of output beside a result
UNITS = {"processes": "processes and threads", "files": "descriptors", "timeout_ms": "ms", "cpu_ms": "ms"}

# Each of them meets its limit, whatever the value, and none of the others.
EXCEED = {
    "timeout_ms": "import time\ndef main():\n    time.sleep(60)\n",
    "cpu_ms": "def main():\n    while True:\n        pass\n",
    "memory_bytes": "def main():\n    held = []\n    while True:\n        held.append(bytearray(1 << 20))\n",
    "processes": "import os, time\ndef main():\n    while True:\n        if os.fork() == 0:\n"
                 "            time.sleep(60)\n            os._exit(0)\n",
    "files": "def main():\n    held = []\n    while True:\n        held.append(open('/tmp/x', 'ab'))\n",
    "file_bytes": "def main():\n    with open('/tmp/x', 'wb', 0) as f:\n        while True:\n"
                  "            f.write(b'x' * 65536)\n",
    "tmp_bytes": "def main():\n    n = 0\n    while True:\n        n += 1\n"
                 "        with open(f'/tmp/{n}', 'wb', 0) as f:\n            f.write(b'x' * 65536)\n",
    "result_bytes": "def main():\n    return 'x' * 2000000\n",
}
THREADS = "import threading, time\ndef main():\n    while True:\n" \
          "        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
TALKER = "def main(n: int):\n    print('x' * n)\n    return 'said'\n"
LOGGER = "import mcpbox\ndef main(n: int):\n    for i in range(n):\n        mcpbox.log(f'line {i}')\n    return 'logged'\n"
REPORTER = "import mcpbox\ndef main(n: int):\n    for i in range(n):\n        mcpbox.progress(i + 1, n)\n    return 'told'\n"
TAKER = "def main(s: str):\n    return len(s)\n"
NEIGHBOUR = "import time\ndef main(rounds: int):\n    n = 0\n" \
            "    while n < rounds:\n        with open('/tmp/n', 'wb') as f:\n" \
            "            f.write(b'n' * 5000)\n        held = bytearray(1 << 20)\n        n += 1\n" \
            "        time.sleep(.01)\n    return {'rounds': n}\n"
CODES = {**EXCEED, "threads": THREADS, "talker": TALKER, "logger": LOGGER, "reporter": REPORTER, "taker": TAKER}


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=[form.format(DEFAULTS[name]) for name, form in SETTINGS.items()])
    yield i
    i.close()


def server_of(c, name):
    known = {s["name"]: s["id"] for s in c.manage("mcpbox_list_servers")["servers"]}
    return known.get(name) or c.manage("mcpbox_create_server", name=name, description="Of the tests.")["id"]


def publish(instance, c, server, name, code, limits=None):
    more = {"limits": limits} if limits else {}
    tool_id = c.manage("mcpbox_create_tool", server_id=server_of(c, server), name=name,
                       description="Of the tests.", python_code=code, **more)["id"]
    c.manage("mcpbox_request_publish", tool_id=tool_id)
    item = flow.pending(instance, name)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    return f"{server}__{name}"


# What a version sets beside the limit it is about: CPU time must be met before
# the wall clock, a file's length before /tmp is full.
BESIDE = {"cpu_ms": {"timeout_ms": 20000}, "file_bytes": {"tmp_bytes": 4 * MIB}}
ABOUT = {"threads": "processes", "talker": "stdout_bytes", "logger": "log_rate", "reporter": "progress_rate",
         "taker": "argument_bytes"}


class Tools(dict):
    """(level, name) -> exposed name, published when it is first asked for.
    The level says where the limit's value comes from."""

    def __init__(self, instance):
        super().__init__()
        self.instance = instance

    def __missing__(self, key):
        level, name = key
        code = {**CODES, "neighbour": NEIGHBOUR}[name]
        limit = ABOUT.get(name, name)
        own, server = BESIDE.get(limit, {}) if level == "default" else {}, level
        with Client(self.instance.address) as c:
            if name == "neighbour":
                own = {"timeout_ms": 600000}
            elif level == "tool":
                own = {**BESIDE.get(limit, {}), limit: TOOL[limit]}
            elif level == "server":
                server = "srv_" + name
                values = {**BESIDE.get(limit, {}), limit: SERVER[limit]}
                server_of(c, server)
                self.instance.ctl("servers", "limits", server, *(f"{k}={v}" for k, v in values.items()))
            self[key] = publish(self.instance, c, server, f"{level[0]}_{name}", code, own)
        return self[key]


@pytest.fixture(scope="module")
def tools(instance):
    return Tools(instance)


@pytest.fixture
def neighbour(instance, tools):
    """Runs beside a test; its result must be as if it were alone."""
    got, name = {}, tools["default", "neighbour"]

    def run():
        with Client(instance.address) as c:
            got["reply"] = c.call(name, {"rounds": 90})
    t = threading.Thread(target=run)
    t.start()
    time.sleep(0.1)
    yield
    t.join(patience(30))
    reply = got["reply"]
    assert reply.result and not reply.result.get("isError"), reply
    assert reply.result["structuredContent"]["rounds"] == 90


def says(name, value):
    return f"the limit {name} is {value} {UNITS.get(name, 'bytes')}"


def failed(reply, mode):
    assert reply.status == 200 and reply.result, reply
    assert reply.result["isError"] is True, reply
    failure = reply.result["_meta"]["mcpbox/failure"]
    assert failure["failure_mode"] == mode, reply
    assert failure["fix"]
    return text(reply)


@pytest.mark.parametrize("name", EXCEED)
@pytest.mark.parametrize("level", VALUES)
def test_the_error_names_limit_and_value(mcp, tools, neighbour, level, name):
    value = VALUES[level][name]
    told = failed(mcp.call(tools[level, name], {}), "timeout" if name == "timeout_ms" else "limit")
    assert says(name, value) in told, told


@pytest.mark.parametrize("level", VALUES)
def test_threads_count_as_processes(mcp, tools, neighbour, level):
    value = VALUES[level]["processes"]
    assert says("processes", value) in failed(mcp.call(tools[level, "threads"], {}), "limit")


def test_files_in_tmp(instance, mcp, neighbour):
    name = publish(instance, mcp, "default", "inodes", "def main():\n    n = 0\n    while True:\n"
                   "        n += 1\n        open(f'/tmp/{n}', 'wb').close()\n", {"timeout_ms": 20000})
    assert re.search(r"the limit tmp_inodes is \d+ files and directories", failed(mcp.call(name, {}), "limit"))


@pytest.mark.parametrize("level", VALUES)
def test_output_is_cut_and_says_so(mcp, tools, level):
    """Not an error: the result stands, what was printed is cut, and more so beside the result."""
    value = VALUES[level]["stdout_bytes"]
    for n in (value - 1, 3_000_000):
        name = tools[level, "talker"]
        r = mcp.call(name, {"n": n})
        assert text(r) == "said"
        execution = r.result["_meta"]["mcpbox/execution"]
        assert ("execution_id" in execution["stdout"]) == (min(n, value) > SHOWN)

        def recorded(name=name, execution=execution):
            (log,) = mcp.manage("mcpbox_get_tool_logs", tool_id=name,
                                execution_id=execution["execution_id"])["logs"]
            return log["outcome"] and log

        out = until(recorded)["stdout"]
        assert len(out) <= value
        assert (says("stdout_bytes", value) in out) == (n > value), out[-200:]


def events(reply, method):
    return [e["params"] for e in reply.events if e.get("method") == method]


def call_with_events(mcp, name, n):
    return mcp.request("tools/call", {"name": name, "arguments": {"n": n}, "_meta": {
        META + "logLevel": "debug", "progressToken": "p"}})


@pytest.mark.parametrize("level", VALUES)
@pytest.mark.parametrize("what, limit, method", [
    ("logger", "log_rate", "notifications/message"),
    ("reporter", "progress_rate", "notifications/progress")])
def test_rates(mcp, tools, level, what, limit, method):
    """Above its rate an event is dropped, and the caller told how many."""
    rate = VALUES[level][limit]
    r = call_with_events(mcp, tools[level, what], rate)
    assert not r.result.get("isError")
    assert len(events(r, method)) == rate
    begin = time.monotonic()
    r = call_with_events(mcp, tools[level, what], 500)
    seconds = int(time.monotonic() - begin) + 2
    notices = [p["data"] for p in events(r, "notifications/message") if "were dropped" in str(p["data"])]
    assert len(notices) == 1, notices
    passed = len(events(r, method)) - (1 if what == "logger" else 0)
    assert rate <= passed <= rate * seconds
    unit = "lines a second" if what == "logger" else "reports a second"
    assert f"the limit {limit} is {rate} {unit}" in notices[0]
    assert int(notices[0].split()[0]) + passed == 500
    # Who takes no log lines finds it beside the result.
    assert f'_dropped": {500 - passed}' in json.dumps(r.result["_meta"]["mcpbox/execution"])
    # It is the last that is said before the result.
    assert r.events[-2]["params"]["data"] == notices[0]


def test_arguments(mcp, tools):
    """Refused before anything runs."""
    for level in ("tool", "server"):
        value = VALUES[level]["argument_bytes"]
        r = mcp.call(tools[level, "taker"], {"s": "x" * (value - 100)})
        assert text(r) == str(value - 100)
        assert says("argument_bytes", value) in failed(mcp.call(tools[level, "taker"], {"s": "x" * value}), "limit")
    # The bound of all: 1 MiB.
    r = mcp.call(tools["default", "taker"], {"s": "x" * (MIB - 100)})
    assert text(r) == str(MIB - 100)
    r = mcp.call(tools["default", "taker"], {"s": "x" * MIB})
    said = json.dumps(r.value)
    assert (r.error or r.result.get("isError")) and says("argument_bytes", MIB) in said, said


def create(mcp, server, name, size):
    code = "def main():\n    return 1\n"
    return mcp.call("mcpbox_create_tool", {
        "server_id": server_of(mcp, server), "name": name, "description": "Of the tests.",
        "python_code": code + "#" + "x" * (size - len(code) - 2) + "\n"})


@pytest.mark.parametrize("server, most", [("default", 100_000), ("small", 5000)])
def test_code(instance, mcp, server, most):
    """So many bytes are taken, one more is refused by name and value."""
    server_of(mcp, server)
    if server == "small":
        instance.ctl("servers", "limits", server, f"code_bytes={most}")
    r = create(mcp, server, "fits", most)
    assert r.result and not r.result.get("isError"), r
    r = create(mcp, server, "beyond", most + 1)
    said = json.dumps(r.value)
    assert r.error or r.result.get("isError"), said
    # The bound of all is the schema's, told with all other errors of the arguments.
    assert re.search(rf"(limit code_bytes\D*|/python_code must have at most) {most}\b", said), said


def test_the_tool_s_value_goes_before_its_server_s(instance, mcp, tools):
    """Smaller or larger. What a version may use was approved with it."""
    server_of(mcp, "both")
    instance.ctl("servers", "limits", "both", "timeout_ms=900", "result_bytes=5000")
    for name, ms in (("both_less", 400), ("both_more", 1500)):
        tool = publish(instance, mcp, "both", name, EXCEED["timeout_ms"], {"timeout_ms": ms})
        assert says("timeout_ms", ms) in failed(mcp.call(tool, {}), "timeout")
    tool = publish(instance, mcp, "both", "both_result", EXCEED["result_bytes"], {"result_bytes": 9000})
    assert says("result_bytes", 9000) in failed(mcp.call(tool, {}), "limit")
    # A server's value changes with no new approval, from the next call on.
    tool = tools["server", "timeout_ms"]
    assert says("timeout_ms", SERVER["timeout_ms"]) in failed(mcp.call(tool, {}), "timeout")
    instance.ctl("servers", "limits", "srv_timeout_ms", "timeout_ms=300")
    assert says("timeout_ms", 300) in failed(mcp.call(tool, {}), "timeout")
    instance.ctl("servers", "limits", "srv_timeout_ms", f"timeout_ms={SERVER['timeout_ms']}")


# --- The wall clock ends everything. ---

FAMILY = '''
import os, signal, sys, time
for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
    signal.signal(n, signal.SIG_IGN)
def stay():
    while True:
        time.sleep(1)
def main(how: str):
    print("uid", os.getuid(), flush=True)
    if os.fork() == 0:                  # ignores signals
        stay()
    if os.fork() == 0:                  # a daemon: its own group, parent gone
        os.setpgid(0, 0)
        if os.fork() == 0:
            os.setpgid(0, 0)
            stay()
        os._exit(0)
    if os.fork() == 0:                  # spins
        while True:
            pass
    if os.fork() == 0:                  # holds the output and writes to it
        while True:
            print("still here", flush=True)
            time.sleep(.01)
    if how == "return":
        return "done"
    if how == "exit":
        os._exit(3)
    if how == "closed":
        os.closerange(0, 3)
    stay()
'''


def of_uid(instance, inner):
    """Live processes of one call, by its uid of the pool."""
    outer = instance.base + 1024 + inner - 1
    return [pid for pid, (_, state, uid, _) in processes().items() if uid == outer and state != "Z"]


@pytest.mark.parametrize("how", ["stay", "closed", "return", "exit"])
def test_the_whole_tree_dies(instance, mcp, tools, neighbour, how):
    """None of its processes ends by itself; where the call does, its time is far."""
    ends = how in ("return", "exit")
    name = "tool__kin" if ends else "tool__family"
    if name not in mcp.tools():
        publish(instance, mcp, "tool", name.removeprefix("tool__"), FAMILY, {"timeout_ms": 600000 if ends else 3000})
    got, most = {}, 0

    def run():
        with Client(instance.address) as c:
            begin = time.monotonic()
            got["reply"] = c.call(name, {"how": how})
            got["took"] = time.monotonic() - begin
    low, high = instance.base + 1024, instance.base + 65536
    # On a busy machine the time of a call may be over before all of its processes were
    # there, or were seen. That round says nothing of a whole tree: another one does.
    rounds = 0
    while rounds == 0 or not ends and most < 5:
        assert rounds < 20, most
        rounds, most = rounds + 1, 0
        t = threading.Thread(target=run)
        t.start()
        while t.is_alive():
            count = {}
            for _, state, uid, _ in processes().values():
                if low <= uid < high and state != "Z":
                    count[uid] = count.get(uid, 0) + 1
            most = max([most, *count.values()])
            time.sleep(0.01)
        t.join()
    reply = got["reply"]
    if how == "return":
        assert text(reply) == "done"
    elif how == "exit":
        failed(reply, "exception")
    else:
        assert says("timeout_ms", 3000) in failed(reply, "timeout")
        assert got["took"] >= 3, got["took"]
    inner = int(re.search(r"uid (\d+)", reply.result["_meta"]["mcpbox/execution"]["stdout"]).group(1))
    until(lambda: not of_uid(instance, inner), say=lambda: of_uid(instance, inner))


@pytest.mark.parametrize("limit", [137, 503, 1201])
def test_the_wall_clock_is_exact(instance, mcp, tools, limit):
    """To the millisecond where the machine is idle; here others run, so one of
    many is enough, and what a call costs that ends at once is added. Never early."""
    name = publish(instance, mcp, "tool", f"exact{limit}", EXCEED["timeout_ms"], {"timeout_ms": limit})
    # duration_ms counts from RUN, the limit from the start of the tool's code.
    start = min(mcp.call(tools["default", "taker"], {"s": ""}).result["_meta"]["mcpbox/execution"]["duration_ms"]
                for _ in range(10))
    over = []
    while len(over) < 3 or min(over) >= 20 + 2 * start:
        assert len(over) < 40, (over, start)
        r = mcp.call(name, {})
        assert says("timeout_ms", limit) in failed(r, "timeout")
        over.append(r.result["_meta"]["mcpbox/execution"]["duration_ms"] - limit)
        assert over[-1] >= 0


def test_a_limit_out_of_bounds_is_refused(mcp):
    server_id = server_of(mcp, "default")
    for limit, value in (("timeout_ms", 99), ("timeout_ms", 600_001), ("memory_bytes", 1), ("processes", 0),
                         ("processes", 1025), ("result_bytes", MIB + 1), ("tmp_bytes", -1)):
        r = mcp.call("mcpbox_create_tool", {
            "server_id": server_id, "name": "beyond", "description": "Of the tests.",
            "python_code": "def main():\n    return 1\n", "limits": {limit: value}})
        assert r.error or r.result.get("isError"), (limit, value)
        assert limit in json.dumps(r.value)


def test_nothing_is_left(instance, mcp, tools):
    """After all that the instance serves, and no call's process lives."""
    assert text(mcp.call(tools["default", "taker"], {"s": "abc"})) == "3"
    log = os.path.join(instance.state, "log", "sandboxd", "current")
    with open(log, encoding="utf-8", errors="replace") as f:
        assert "runner_violation" not in f.read()
