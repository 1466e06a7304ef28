"""The end of a client's access token, while a stream runs: it is over for the stream, too, and no longer than that."""
import http.client
import json
import ssl

import pytest

from harness.clients.mcp import MODERN, meta
from harness.clients.tasks import DECLARED
from harness.patience import patience, until
from remote.worker.way import Way

#: The least that the Worker's store keeps.
SECONDS = 60


@pytest.fixture(scope="module")
def way(instance):
    w = Way(instance, ACCESS_TOKEN_SECONDS=str(SECONDS))
    yield w
    w.close()


def test_end_of_a_token_ends_its_stream(way):
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": True}, "_meta": meta(MODERN, DECLARED)}}).encode()
    with way.sdk("client") as c:
        c.sign_in(way.browser())
        fields = {"Authorization": "Bearer " + c.token(), "Content-Type": "application/json", "MCP-Protocol-Version": MODERN,
                  "Mcp-Method": "subscriptions/listen", "Accept": "application/json, text/event-stream"}
        s = http.client.HTTPSConnection("localhost", way.worker.port, timeout=patience(2 * SECONDS),
                                        context=ssl.create_default_context(cafile=way.worker.cafile))
        s.request("POST", "/mcp", body, fields)
        r = s.getresponse()
        assert r.status == 200 and r.getheader("Content-Type") == "text/event-stream"
        # All that came until mcpbox ended it.
        assert b"notifications/subscriptions/acknowledged" in r.read()
        s.close()
        until(lambda: way.browser().ask("POST", way.worker.resource, body, fields).status == 401, SECONDS)
        # The client has its refresh token, and goes on.
        assert c.text("crm__canary", n=2) == "canary 2"
