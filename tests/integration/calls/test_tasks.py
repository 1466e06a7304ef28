"""Tasks: what their client sees, who may, and what is kept."""
import json
import re

import pytest

from harness.clients import tasks
from harness.clients.mcp import LEGACY, Client, text
from harness.clients.tasks import Tasks, record
from harness.instance import Instance
from harness.patience import patience, until

ID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture(scope="module")
def instance():
    i = Instance(sets=["admind:tasks_active=4", "admind:tasks_kept=400"])
    yield i
    i.close()


@pytest.fixture(scope="module")
def names(instance):
    with Client(instance.address) as c:
        made = {"never": ("never", tasks.WORK, "forbidden"), "may": ("may", tasks.WORK, "optional"),
                "must": ("must", tasks.WORK, "required"), "asks": ("asks", tasks.ASKS, "optional"),
                "two": ("two", tasks.ASKS_TWO, "optional"),
                "first": ("first", tasks.ASKS, "after_questions")}
        said = {k: tasks.publish(instance, c, "tasks", *v) for k, v in made.items()}
    # A tool that a test ends may run for that long.
    instance.ctl("servers", "limits", "tasks", "timeout_ms=600000")
    return said


@pytest.fixture
def client(instance):
    with Tasks(instance.address) as c:
        yield c


def test_the_extension_is_advertised(client):
    capabilities = client.request("server/discover").result["capabilities"]
    assert capabilities["extensions"] == {tasks.TASKS: {}}
    assert "tasks" not in capabilities


def begun(client, name, seconds):
    """Calls it as a task: the answer."""
    r = client.ask("tools/call", {"name": name, "arguments": {"seconds": seconds, "note": "n"}})
    made = r.result
    assert made["resultType"] == "task" and made["status"] == "working"
    return made


def test_a_task_from_creation_to_result(instance, client, names):
    made = begun(client, names["may"], 600)
    assert re.fullmatch(ID, made["taskId"])
    assert re.fullmatch(TIME, made["createdAt"]) and re.fullmatch(TIME, made["lastUpdatedAt"])
    assert made["ttlMs"] == 3600000 and made["pollIntervalMs"] == 1000
    assert not {"result", "error", "inputRequests", "requestState", "task"} & set(made)
    # It can be fetched the moment its id is known.
    now = client.get(made["taskId"])
    assert now["taskId"] == made["taskId"] and now["status"] == "working"
    assert now["createdAt"] == made["createdAt"] and "result" not in now
    client.cancel(made["taskId"])
    # Another one, which ends by itself.
    made = begun(client, names["may"], 0.5)
    end = client.until(made["taskId"])
    assert end["taskId"] == made["taskId"] and end["createdAt"] == made["createdAt"]
    assert end["status"] == "completed" and "error" not in end
    assert text_of(end) == "done n"
    assert end["result"]["isError"] is False
    assert end["result"]["_meta"]["mcpbox/execution"]["execution_id"] == made["taskId"]
    assert end["lastUpdatedAt"] > made["lastUpdatedAt"]
    assert record(instance, made["taskId"]) == ("done", "")
    # Ended is ended: again, and cancelled in vain.
    assert client.cancel(made["taskId"])["resultType"] == "complete"
    assert client.get(made["taskId"]) == end


def text_of(task):
    return "".join(c.get("text", "") for c in task["result"]["content"])


def test_a_tools_error_completes_a_protocol_error_fails(instance, client, names):
    t = client.until(client.start(names["must"], how="error"))
    assert t["status"] == "completed" and t["result"]["isError"] is True
    assert text_of(t) == "as asked"
    t = client.until(client.start(names["must"], how="protocol"))
    assert t["status"] == "failed" and "result" not in t
    assert t["error"]["code"] == -32603 and t["error"]["message"] == "broken as asked"
    assert t["error"]["data"]["failure_mode"] == "tool_protocol_error"
    assert t["statusMessage"] == "broken as asked"
    assert record(instance, t["taskId"]) == ("failed", "tool_protocol_error")


def test_the_same_error_without_a_task(client, names):
    r = client.call(names["never"], {"how": "protocol"})
    assert r.status == 200 and r.error["code"] == -32603
    assert r.error["message"] == "broken as asked"


def test_a_large_result_is_whole(client, names):
    t = client.until(client.start(names["may"], how="large"))
    assert t["status"] == "completed" and text_of(t) == "x" * 900_000


def test_who_did_not_declare_gets_no_task(instance, names):
    with Tasks(instance.address, capabilities={}) as c:
        r = c.ask("tools/call", {"name": names["may"], "arguments": {}})
        assert r.result["resultType"] == "complete" and text(r) == "done "
        r = c.ask("tools/call", {"name": names["must"], "arguments": {}})
        assert r.status == 400 and r.error["code"] == -32021, r
        assert r.error["data"]["requiredCapabilities"] == {"extensions": {tasks.TASKS: {}}}
        for method, more in (("tasks/get", {}), ("tasks/update", {"inputResponses": {}}), ("tasks/cancel", {})):
            r = c.ask(method, {"taskId": "any", **more})
            assert r.status == 400 and r.error["code"] == -32021, r
            assert r.error["data"]["requiredCapabilities"] == {"extensions": {tasks.TASKS: {}}}
    # The older era has no such extension: a tool that must be a task is none for it.
    with Client(instance.address, version=LEGACY) as c:
        assert text(c.call(names["may"], {})) == "done "
        assert c.call(names["must"], {}).error["code"] == -32021
        assert c.request("tasks/get", {"taskId": "any"}).error["code"] == -32601


def test_a_tool_that_is_none(client, names):
    r = client.ask("tools/call", {"name": names["never"], "arguments": {},
                                  "task": {"ttl": 60000}})
    assert r.result["resultType"] == "complete" and text(r) == "done "


@pytest.mark.parametrize("task", [
    "tasks-nonexistent", "", "a" * 200, "00000000-0000-0000-0000-000000000000", "\U0001f600"])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_unknown_ids(client, method, task):
    header = {"Mcp-Name": task} if task.isascii() else {
        "Mcp-Name": "=?base64?8J+YgA==?="}
    r = client.ask(method, {"taskId": task}, header)
    assert r.error["code"] == -32602, r


def test_what_there_is_no_more(client):
    for method in ("tasks/result", "tasks/list"):
        assert client.ask(method, {"taskId": "x"}).error["code"] == -32601


def test_the_name_header_must_agree(client, names):
    task = client.start(names["may"], seconds=0.2)
    for header in ({"Mcp-Name": "another"}, {"Mcp-Name": None}):
        h = {k: v for k, v in header.items() if v is not None}
        r = client.request("tasks/get", {"taskId": task, "_meta": {
            "io.modelcontextprotocol/clientCapabilities": client.capabilities}}, h)
        assert r.status == 400 and r.error["code"] == -32020, r


def test_cancel_kills(instance, client, names):
    task = client.start(names["may"], seconds=600)
    until(instance.runners)
    ack = client.cancel(task)
    assert set(ack) <= {"resultType", "_meta"} and ack["resultType"] == "complete"
    t = client.until(task)
    assert t["status"] == "cancelled" and not {"result", "error"} & set(t)
    assert record(instance, task) == ("killed", "killed")
    until(lambda: not instance.runners(), say=instance.runners)


def test_questions_and_answers(instance, client, names):
    task = client.start(names["asks"], rounds=2)
    first = client.questions(task)
    (key, q), = first.items()
    assert q["method"] == "elicitation/create" and q["params"]["message"] == "Name 0?"
    assert client.get(task)["inputRequests"] == first
    # Wrong keys are ignored, what is no answer is told so.
    assert client.update(task, other={"action": "accept"})["resultType"] == "complete"
    r = client.ask("tasks/update", {"taskId": task, "inputResponses": {key: 5}})
    assert r.error["code"] == -32602, r
    assert client.get(task)["inputRequests"] == first
    ack = client.update(task, **{key: {"action": "accept", "content": {"name": "Ada"}}})
    assert set(ack) <= {"resultType", "_meta"}
    second = until(lambda: (q := client.questions(task)) != first and q)
    # A key is never used twice in a task's life.
    assert set(second) != set(first)
    assert second[list(second)[0]]["params"]["message"] == "Name 1?"
    client.update(task, **{key: {"action": "accept", "content": {"name": "late"}},
                           list(second)[0]: {"action": "decline"}})
    t = client.until(task)
    assert t["status"] == "completed" and text_of(t) == "Ada decline", t
    assert client.update(task, **{key: {"action": "accept"}})["resultType"] == "complete"
    assert client.get(task) == t


def test_one_answer_after_the_other(client, names):
    task = client.start(names["two"])
    asked = client.questions(task)
    assert len(asked) == 2
    a = next(k for k, q in asked.items() if q["params"]["message"] == "A?")
    b = next(k for k in asked if k != a)
    client.update(task, **{b: {"action": "accept", "content": {"v": "2"}}})
    t = client.get(task)
    assert t["status"] == "input_required" and set(t["inputRequests"]) == {a}
    # What was answered stays as it was answered.
    client.update(task, **{a: {"action": "accept", "content": {"v": "1"}},
                           b: {"action": "accept", "content": {"v": "3"}}})
    t = client.until(task)
    # It declared no sampling: the tool was told so, it was never asked.
    assert t["status"] == "completed" and text_of(t).startswith("1, 2, no sample: "), t


def test_nobody_answers():
    """In an instance of its own: the others have all the time that they need."""
    i = Instance(sets=["sandboxd:ask_timeout=1s"])
    try:
        with Client(i.address) as c:
            name = tasks.publish(i, c, "tasks", "asks", tasks.ASKS, "optional")
        with Tasks(i.address) as c:
            t = c.until(c.start(name), "completed")
        assert t["status"] == "completed" and t["result"]["isError"] is True
        assert "ask_timeout is 1000 ms" in text_of(t)
    finally:
        i.close()


def test_cancelled_while_it_asks(instance, client, names):
    task = client.start(names["asks"])
    client.questions(task)
    client.cancel(task)
    assert client.until(task, "cancelled")["status"] == "cancelled"
    assert record(instance, task) == ("killed", "killed")


def test_questions_before_the_task(client, names):
    params = {"name": names["first"], "arguments": {}}
    r = client.ask("tools/call", params)
    assert r.result["resultType"] == "input_required" and "taskId" not in r.result, r
    (key, q), = r.result["inputRequests"].items()
    assert q["method"] == "elicitation/create"
    state = r.result["requestState"]
    # Other parameters can't go on with it.
    r = client.ask("tools/call", {**params, "arguments": {"rounds": 3}, "requestState": state})
    assert r.error["code"] == -32602, r
    # Without an answer it is asked again.
    r = client.ask("tools/call", {**params, "requestState": state})
    assert r.result["resultType"] == "input_required" and list(r.result["inputRequests"]) == [key]
    state, old = r.result["requestState"], state
    assert client.ask("tools/call", {**params, "requestState": old}).error["code"] == -32602
    r = client.ask("tools/call", {**params, "requestState": state, "inputResponses": {
        key: {"action": "accept", "content": {"name": "Alice"}}}})
    assert r.result["resultType"] == "task", r
    assert not {"requestState", "inputRequests"} & set(r.result)
    t = client.until(r.result["taskId"])
    assert t["status"] == "completed" and text_of(t) == "Alice"


def test_questions_before_the_task_but_none_asked(client, names):
    """It asks nothing: a task at once."""
    r = client.ask("tools/call", {"name": names["first"], "arguments": {"rounds": 0}})
    assert r.result["resultType"] == "task", r
    assert client.until(r.result["taskId"])["status"] == "completed"


def test_bad_arguments_make_no_task(instance, client, names):
    before = instance.psql("SELECT count(*) FROM mcpbox.tasks")
    r = client.ask("tools/call", {"name": names["may"], "arguments": {"seconds": "x"}})
    assert r.result["isError"] is True and r.result["resultType"] == "complete"
    assert instance.psql("SELECT count(*) FROM mcpbox.tasks") == before


def test_quota(instance, client, names):
    running = [client.start(names["may"], seconds=600) for _ in range(4)]
    try:
        r = client.ask("tools/call", {"name": names["may"], "arguments": {}})
        assert r.result is None and "tasks_active" in r.error["message"], r
        assert r.error["data"]["failure_mode"] == "busy"
        # A call that is no task is not counted.
        assert text(client.call(names["never"], {})) == "done "
    finally:
        for task in running:
            client.cancel(task)
        for task in running:
            assert client.until(task)["status"] == "cancelled"
    assert client.until(client.start(names["may"]))["status"] == "completed"


def test_another_principal_sees_nothing(instance, client, names):
    """The row says whose it is; whoever else asks meets a wrong id's answer."""
    task = client.start(names["may"], seconds=0.1)
    client.until(task)
    instance.psql(f"UPDATE mcpbox.tasks SET principal = 'other' WHERE id = '{task}'")
    gone = client.ask("tasks/get", {"taskId": task})
    wrong = client.ask("tasks/get", {"taskId": "00000000-0000-0000-0000-000000000000"})
    assert gone.error == wrong.error and gone.status == wrong.status
    for method in ("tasks/update", "tasks/cancel"):
        assert client.ask(method, {"taskId": task}).error["code"] == -32602


def test_revoked_while_it_runs(instance, client, names):
    with Client(instance.address) as c:
        name = tasks.publish(instance, c, "gone", "gone", tasks.WORK, "required")
        task = client.start(name, seconds=600)
        sid = next(s["id"] for s in c.manage("mcpbox_list_servers")["servers"]
                   if s["name"] == "gone")
        c.manage("mcpbox_stop_server", server_id=sid)
    t = client.until(task)
    assert t["status"] == "failed" and t["error"]["data"]["failure_mode"] == "stopped", t
    assert record(instance, task) == ("killed", "stopped")


def test_notifications(instance, client, names):
    """subscriptions/listen: each change, as tasks/get would show it."""
    import http.client
    task = client.start(names["asks"])
    key, = client.questions(task)
    conn = http.client.HTTPConnection(*instance.address(), timeout=patience(20))
    body = {"jsonrpc": "2.0", "id": "sub", "method": "subscriptions/listen", "params": {
        "notifications": {"taskIds": [task]}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": tasks.DECLARED}}}
    conn.request("POST", "/mcp", json.dumps(body), {
        "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"})
    r = conn.getresponse()
    assert r.status == 200

    def event():
        while True:
            line = r.readline().decode()
            assert line
            if line.startswith("data:") and line[5:].strip():
                return json.loads(line[5:])
    ack = event()
    assert ack["method"] == "notifications/subscriptions/acknowledged"
    assert ack["params"]["notifications"]["taskIds"] == [task]
    client.update(task, **{key: {"action": "accept", "content": {"name": "Bob"}}})
    seen = []
    while not seen or seen[-1]["status"] not in tasks.ENDED:
        e = event()
        assert e["method"] == "notifications/tasks"
        assert e["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "sub"
        seen.append(e["params"])
    conn.close()
    assert all(s["taskId"] == task for s in seen)
    assert seen[-1]["status"] == "completed" and text_of(seen[-1]) == "Bob"
    shown = client.get(task)
    for k in ("status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "result"):
        assert seen[-1][k] == shown[k]


def test_a_task_is_forgotten_after_its_time(instance, client, names):
    task = client.start(names["may"])
    client.until(task)
    instance.psql("UPDATE mcpbox.tasks SET expires_at = now() WHERE id = "
                  f"'{task}'")
    assert client.ask("tasks/get", {"taskId": task}).error["code"] == -32602
    until(lambda: not instance.psql(f"SELECT 1 FROM mcpbox.tasks WHERE id = '{task}'"))
    # Its record stays.
    assert record(instance, task) == ("done", "")


def test_time_is_over_while_it_runs(instance, client, names):
    task = client.start(names["may"], seconds=600)
    instance.psql(f"UPDATE mcpbox.tasks SET expires_at = now() WHERE id = '{task}'")
    assert record(instance, task) == ("killed", "killed")
