"""Calls that a person has to say yes to: how a client waits, how it is decided."""
import itertools
import json

from harness.clients import flow
from harness.patience import until

CODE = '''\
def main(n: int) -> str:
    """Does what can't be undone.

    Args:
        n: Which.
    """
    return f"did {n}"
'''

#: Every test's arguments are its own: equal calls share a request.
numbers = itertools.count(1)


def publish(instance, client, server, tool, code=CODE, **more):
    return flow.publish(instance, client, server, tool, code, **{"confirm": True, **more})


def waiting(instance, n, timeout=10):
    """The request that waits with these arguments, as mcpboxctl shows it."""
    def asked():
        for item in instance.ctl_json("approvals", "list", "--kind", "call")["items"]:
            if json.loads(item["arguments"]) == {"n": n}:
                return instance.ctl_json("approvals", "show", item["id"])
        return None
    return until(asked, timeout, 0.05, say=lambda: "nobody asked")


def approve(instance, item):
    instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])


def reject(instance, item, reason):
    instance.ctl("approvals", "reject", item["id"], "--reason", reason)


def expire(instance):
    """The time of all that wait is over. Without triggers: a request is immutable."""
    instance.psql("SET session_replication_role = replica;"
                  " UPDATE mcpbox.call_requests SET expires_at = now() - interval '1 second' WHERE id IN"
                  " (SELECT id FROM mcpbox.approval_requests WHERE kind = 'call' AND state = 'pending')")
    until(lambda: one(instance, "SELECT count(*) FROM mcpbox.approval_requests WHERE kind = 'call'"
                      " AND state = 'pending'") == "0")


def runs(instance, n):
    """How often the tool ran with n."""
    return int(one(instance, "SELECT count(*) FROM mcpbox.executions WHERE kind = 'tool'"
                   f" AND arguments = '{{\"n\": {n}}}' AND outcome = 'done'"))


def one(instance, query):
    return instance.psql(query)[0][0]


def failure(reply):
    assert reply.result is not None and reply.result["isError"], reply
    return reply.result["_meta"]["mcpbox/failure"]["failure_mode"]
