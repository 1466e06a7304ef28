"""What attacks on the approval gate share: canaries. A canary says a mark of
its own in its result and on its standard output, so that a run is seen twice:
by who called and in the record of the call. Every mark ever made is counted;
at the end there are just as many records with it as runs that were meant."""
import uuid

from harness.clients import flow
from harness.clients.mcp import text
from harness.patience import until

CODE = "def main(x: int = 0) -> str:\n    print('{0}')\n    return '{0}'\n"
#: What says no to a call of what isn't approved as it is, or isn't there.
NO = {"unknown_tool", "unknown_prompt", "unknown_resource", "not_approved", "revoked", "stopped", "missing_grant"}


def unique(prefix="t"):
    return prefix + uuid.uuid4().hex[:10]


def failure(reply):
    """The failure mode of a call that did not succeed; None for success."""
    assert reply.value is not None, reply
    if reply.error:
        return reply.error["data"]["failure_mode"]
    if reply.result.get("isError"):
        return reply.result["_meta"]["mcpbox/failure"]["failure_mode"]
    return None


class Gate:
    def __init__(self, instance):
        self.instance = instance
        self.meant = {}     # mark -> runs that were meant

    # --- making ---

    def code(self, more=""):
        """(mark, a canary's code)"""
        mark = "MARK" + uuid.uuid4().hex
        self.meant[mark] = 0
        return mark, CODE.format(mark) + more

    def draft(self, mcp, server, name=None, **more):
        """A draft: (tool's id, name, mark)"""
        name = name or unique()
        mark, code = self.code()
        return flow.draft(mcp, server, name, code, **more), name, mark

    def approved(self, mcp, server, name=None, **more):
        """One that is approved and was seen to run: (tool's id, exposed name, mark)"""
        tool, name, mark = self.draft(mcp, server, name, **more)
        self.approve(mcp, tool)
        exposed = f"{server}__{name}"
        self.runs(mcp, exposed, mark)
        return tool, exposed, mark

    # --- reviewing, as root ---

    def ask(self, mcp, tool):
        """Publishes the newest version: the request as mcpboxctl shows it."""
        request = mcp.manage("mcpbox_request_publish", tool_id=tool)["request_id"]
        return self.instance.ctl_json("approvals", "show", request)

    def yes(self, item, digest=None):
        """mcpboxctl approves: exit status"""
        return self.instance.ctl("approvals", "approve", item["id"], "--hash", digest or item["hash"],
                                 check=False).returncode

    def approve(self, mcp, tool):
        item = self.ask(mcp, tool)
        assert self.yes(item) == 0
        return item

    # --- looking ---

    def records(self, mark):
        """Records of calls that ran with this mark."""
        return int(self.instance.psql(
            "SELECT count(*) FROM mcpbox.executions WHERE kind = 'tool' AND (stdout LIKE "
            f"'%{mark}%' OR result LIKE '%{mark}%')")[0][0])

    def runs(self, mcp, exposed, mark, **arguments):
        """It runs, by both names, and both runs are on record."""
        assert text(mcp.call(exposed, arguments)) == mark
        assert text(mcp.call("mcpbox_call_tool", {"name": exposed, "arguments": arguments})) == mark
        self.meant[mark] += 2
        until(lambda: self.records(mark) >= self.meant[mark], 10, 0.05, say=lambda: "a run without a record")

    def silent(self, mcp, exposed, *marks, listed=False):
        """It neither runs nor is listed, whatever it is called by; the modes."""
        before = {m: self.records(m) for m in marks}
        modes = set()
        for r in (mcp.call(exposed), mcp.call("mcpbox_call_tool", {"name": exposed, "arguments": {}})):
            modes.add(failure(r))
            assert not any(m.encode() in r.raw for m in self.meant), r
        assert modes <= NO, modes
        assert (exposed in mcp.tools()) == listed
        assert before == {m: self.records(m) for m in marks}
        return modes

    def state(self, tool):
        """(state of the newest version, version number that serves or "")"""
        return tuple(self.instance.psql(
            "SELECT v.state, coalesce((SELECT s.version_no::text FROM mcpbox.tool_versions s "
            "WHERE s.id = t.serving_version), '') FROM mcpbox.tools t JOIN mcpbox.tool_versions v "
            f"ON v.tool_id = t.id WHERE t.id = '{tool}' ORDER BY v.version_no DESC LIMIT 1")[0])

    def balance(self):
        """The last test of a file: no mark ran more often, or less, than was meant."""
        values = ", ".join(f"('{m}')" for m in self.meant)

        def ran():
            return {m: int(n) for m, n in self.instance.psql(
                f"SELECT m, count(e.id) FROM (VALUES {values}) AS x (m) LEFT JOIN mcpbox.executions e ON e.kind = 'tool' "
                "AND (e.stdout LIKE '%' || m || '%' OR e.result LIKE '%' || m || '%') GROUP BY m")}
        # A record may come after its answer.
        until(lambda: all(n >= self.meant[m] for m, n in ran().items()), 10, 0.05, say=ran)
        assert ran() == self.meant
        assert sum(self.meant.values()) > 0


def body(preimage):
    """A pre-image's fields: [(tag, value)]"""
    head, data, out = preimage.index(b"\0") + 1, None, []
    data = preimage[head:]
    while data:
        n = int.from_bytes(data[1:5])
        out.append((data[0], data[5:5 + n]))
        data = data[5 + n:]
    return out


def whole(fields, head=b"mcpbox version 1\0"):
    return head + b"".join(bytes([tag]) + len(v).to_bytes(4) + v for tag, v in fields)

