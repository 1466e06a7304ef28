"""A client of the tasks extension, and tools that take their time."""

from harness.clients.mcp import META, Client
from harness.patience import until

TASKS = "io.modelcontextprotocol/tasks"
ENDED = ("completed", "failed", "cancelled")
DECLARED = {"elicitation": {}, "extensions": {TASKS: {}}}

#: mode -> code: everything a task can come to, by argument.
WORK = '''\
import time
import mcpbox


def main(seconds: float = 0, how: str = "result", note: str = "") -> str:
    """Works.

    Args:
        seconds: How long.
        how: What it comes to.
        note: Is returned.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.02)
    if how == "error":
        raise mcpbox.ToolError("as asked")
    if how == "protocol":
        raise mcpbox.ProtocolError("broken as asked")
    if how == "large":
        return "x" * 900_000
    return "done " + note
'''
ASKS = '''\
import mcpbox


def main(rounds: int = 1) -> str:
    """Asks.

    Args:
        rounds: How often.
    """
    said = []
    for i in range(rounds):
        a = mcpbox.elicit(f"Name {i}?", {"name": str})
        said.append(a.content.get("name", a.action))
    return " ".join(said)
'''
ASKS_TWO = '''\
import mcpbox


def main() -> str:
    """Asks two things at once, and for what not every client can do."""
    asked = {"a": mcpbox.Elicit("A?", {"v": str}), "b": mcpbox.Elicit("B?", {"v": str})}
    got = mcpbox.ask(asked)
    try:
        mcpbox.sample("Say something.", max_tokens=5)
        sampled = "sampled"
    except mcpbox.ClientError as e:
        sampled = f"no sample: {e}"
    return ", ".join([got["a"].content["v"], got["b"].content["v"], sampled])
'''


class Tasks(Client):
    """Declares the extension unless told otherwise."""

    def __init__(self, where, capabilities=None, **kw):
        super().__init__(where, **kw)
        self.capabilities = DECLARED if capabilities is None else capabilities

    def ask(self, method, params, headers=None):
        h = {"Mcp-Name": params["taskId"]} if "taskId" in params else {}
        return self.request(method, {**params, "_meta": {
            META + "clientCapabilities": self.capabilities}}, {**h, **(headers or {})})

    def start(self, name, **arguments):
        """The id of the task that a call became."""
        r = self.ask("tools/call", {"name": name, "arguments": arguments})
        assert r.status == 200 and r.result and r.result["resultType"] == "task", r
        return r.result["taskId"]

    def get(self, task):
        r = self.ask("tasks/get", {"taskId": task})
        assert r.status == 200 and r.result and r.result["resultType"] == "complete", r
        return r.result

    def update(self, task, **responses):
        r = self.ask("tasks/update", {"taskId": task, "inputResponses": responses})
        assert r.status == 200 and r.result, r
        return r.result

    def cancel(self, task):
        r = self.ask("tasks/cancel", {"taskId": task})
        assert r.status == 200 and r.result, r
        return r.result

    def until(self, task, *states, timeout=20):
        """The task once it is in one of these states, or has ended."""
        def come():
            t = self.get(task)
            return t if t["status"] in (states or ENDED) or t["status"] in ENDED else None
        return until(come, timeout, say=lambda: self.get(task))

    def questions(self, task, **kw):
        t = self.until(task, "input_required", **kw)
        assert t["status"] == "input_required", t
        return t["inputRequests"]


def publish(instance, client, server, tool, code, mode):
    """An approved tool of this task mode: its exposed name."""
    from harness.clients import flow
    known = {s["name"]: s["id"] for s in client.manage("mcpbox_list_servers")["servers"]}
    server_id = known.get(server) or client.manage(
        "mcpbox_create_server", name=server, description="Of the tests.")["id"]
    tool_id = client.manage("mcpbox_create_tool", server_id=server_id, name=tool, task=mode,
                            description="A tool of the tests.", python_code=code)["id"]
    client.manage("mcpbox_request_publish", tool_id=tool_id)
    item = flow.pending(instance, tool)
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
    return f"{server}__{tool}"


def record(instance, task):
    """(outcome, failure) of the one execution of a task, once it is closed."""
    def closed():
        rows = instance.psql("SELECT state, outcome, coalesce(failure, ''), listener "
                             f"FROM mcpbox.executions WHERE id = '{task}'")
        assert len(rows) == 1, rows
        return (rows[0][1], rows[0][2]) if rows[0][0] == "closed" else None
    return until(closed, 20, 0.05)
