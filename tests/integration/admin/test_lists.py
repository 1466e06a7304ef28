"""Lists of REST by what a person asks for: the runs of one content, the newest requests, the secrets of all
servers; and the address that the status names."""
import json
import secrets

import pytest

from harness.clients import flow
from harness.patience import until

URL = "http://127.0.0.1:18002/mcp"
INSTANCE_SETS = (f"admind:mcp_url={URL}",)
CODE = "def main(n: int) -> int:\n    return n + %d\n"
HASH = "0" * 64


def new(word):
    return word + secrets.token_hex(3)


def paged(rest, where, limit=2):
    """Every item, by pages of 2."""
    items, cursor = [], ""
    where = where.rstrip("?&")
    sign = "&" if "?" in where else "?"
    while cursor is not None:
        code, _, page = rest.get(f"{where}{sign}limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        assert code == 200 and len(page["items"]) <= limit, page
        items += page["items"]
        cursor = page["next_cursor"]
    return items


def refused(answer, status=400, mode="invalid_params"):
    assert (answer[0], answer[2]["failure_mode"]) == (status, mode), answer


def test_the_runs_of_one_content(instance, rest, mcp):
    server = new("h")
    tool_id = flow.draft(mcp, server, "adds", CODE % 1)

    def publish():
        mcp.manage("mcpbox_request_publish", tool_id=tool_id)
        item = flow.pending(instance, "adds")
        instance.ctl("approvals", "approve", item["id"], "--hash", item["hash"])
        return item["hash"]
    first = publish()
    for n in range(3):
        assert mcp.call(f"{server}__adds", {"n": n}).result
    mcp.manage("mcpbox_update_tool", tool_id=tool_id, python_code=CODE % 2)
    second = publish()
    assert mcp.call(f"{server}__adds", {"n": 9}).result
    instance.psql("SELECT mcpbox.records_work(1000)", role="mcpbox_app")
    mcp.call(f"{server}__adds", {"n": 10})    # still in the queue
    found = {h: until(lambda h=h, n=n: len(i := paged(rest, f"/api/executions?hash={h}")) == n and i)
             for h, n in ((first, 3), (second, 2))}
    for h, items in found.items():
        assert {i["hash"] for i in items} == {h} and len({i["id"] for i in items}) == len(items)
        times = [i["created_at"] for i in items]
        assert times == sorted(times, reverse=True)
    assert paged(rest, f"/api/executions?hash={first}&outcome=failed") == []
    assert len(paged(rest, f"/api/executions?hash={first}&tool={server}__adds&outcome=done&kind=tool")) == 3
    assert paged(rest, f"/api/executions?hash={HASH}") == []
    lines = rest.request("GET", f"/api/executions/export?hash={first}")[2]
    assert len(lines.decode().splitlines()) == 3


@pytest.mark.parametrize("hash", ["0" * 63, "0" * 65, "A" * 64, "g" * 64, "%5c" * 8])
def test_what_is_no_hash(rest, hash):
    refused(rest.get("/api/executions?hash=" + hash))


def test_a_hash_is_not_searched_by_words(rest):
    refused(rest.get(f"/api/executions?hash={HASH}&search=word"))


def test_requests_in_both_orders(instance, rest, mcp):
    """The same requests, by every filter that the list has; pages follow one another."""
    server = new("o")
    for n in range(5):
        tool_id = flow.draft(mcp, server, f"t{n}", CODE % n)
        mcp.manage("mcpbox_request_publish", tool_id=tool_id)
    server_id = next(s["id"] for s in mcp.manage("mcpbox_list_servers")["servers"] if s["name"] == server)
    for words in ("", "state=pending", "kind=tool", "kind=tool&state=pending", f"server={server_id}",
                  f"server={server_id}&state=pending", f"search={server}", f"tool={server}__t3"):
        old = [i["id"] for i in paged(rest, "/api/approvals?" + words)]
        assert old == sorted(old) and len(old) == (1 if "tool=" in words else len(old)) >= 1
        assert [i["id"] for i in paged(rest, f"/api/approvals?order=oldest&{words}")] == old
        assert [i["id"] for i in paged(rest, f"/api/approvals?order=newest&{words}")] == old[::-1]
    assert len(paged(rest, f"/api/approvals?server={server_id}&order=newest")) == 5
    refused(rest.get("/api/approvals?order=up"))
    refused(rest.get("/api/servers?order=newest"))


def test_a_viewer_sees_no_arguments_in_either_order(instance, rest):
    name, password = new("v_"), "a long password of tests"
    instance.ctl("administrators", "create", name, "--role", "viewer", stdin=password + "\n")
    viewer = type(rest)(lambda: instance.address("admind-http"))
    assert viewer.login(name, password)[0] == 200
    for order in ("oldest", "newest"):
        assert all(i["arguments"] is None for i in paged(viewer, "/api/approvals?order=" + order))


def test_the_secrets_of_all_servers(instance, rest):
    names = sorted(new("s") for _ in range(3))
    value = "hidden-" + secrets.token_hex(12)
    for name in names:
        assert rest.request("POST", "/api/servers", {"name": name})[0] == 200
        for key in ("B_TWO", "A_ONE"):
            assert rest.request("POST", f"/api/servers/{name}/secrets", {"key": key})[0] == 200
    assert rest.request("PUT", f"/api/servers/{names[1]}/secrets/A_ONE", {"value": value})[0] == 204
    items = paged(rest, "/api/secrets")
    assert [(i["server"], i["key"]) for i in items if i["server"] in names] == [
        (n, k) for n in names for k in ("A_ONE", "B_TWO")]
    assert value not in json.dumps(items)
    for i in items:
        one = rest.get(f"/api/servers/{i['server']}/secrets")[2]["items"]
        assert i in one
    gone = next(s["id"] for s in rest.get("/api/servers?limit=200")[2]["items"] if s["name"] == names[0])
    assert rest.request("DELETE", f"/api/servers/{gone}")[0] in (200, 204)
    assert names[0] not in {i["server"].split("@")[0] for i in paged(rest, "/api/secrets")}
    for cursor in ("x", "%2f", "zz/ZZ/ZZ"):    # a place, whatever it is
        assert rest.get("/api/secrets?cursor=" + cursor)[0] == 200
    assert paged(rest, "/api/secrets", 1) == paged(rest, "/api/secrets", 200)


def test_the_status_names_the_address(instance, rest):
    assert rest.get("/api/status")[2]["mcp_url"] == URL
    assert rest.get("/api/status")[2]["counts"]["audit_verified"] is None
