"""What an author of tools is told when something is missing or wrong: each time what, and whose turn it is."""
import re
import uuid

import pytest

from harness.clients import flow
from harness.clients.mcp import Client, text
from harness.patience import until

CODE = "def main(n: int) -> int:\n    return n\n"


@pytest.fixture(scope="module")
def author(instance):
    with Client(instance.address) as c:
        yield c


@pytest.fixture
def server(author):
    name = "a" + uuid.uuid4().hex[:12]
    author.manage("mcpbox_create_server", name=name, description="Of these tests.")
    return name


def create(author, server, name="tool", code=CODE, **more):
    return author.manage("mcpbox_create_tool", server_id=server, name=name, python_code=code, description="d", **more)


def refused(author, tool, mode, /, **arguments):
    r = author.call("mcpbox_" + tool, arguments)
    assert r.result is not None and r.result.get("isError") is True, r
    assert r.result["_meta"]["mcpbox/failure"]["failure_mode"] == mode, r
    return text(r)


# --- tests, hosts, secrets ----------------------------------------------------

CONNECTS = "import urllib.request\ndef main() -> str:\n    return urllib.request.urlopen('http://api.example/').read()\n"
READS = "def main() -> str:\n    return secrets['API_KEY']\n"


def test_a_test_has_neither_network_nor_secrets_and_says_so(author, server):
    author.manage("mcpbox_create_server_secret", server_id=server, key="API_KEY", description="d")
    for name, code, more in (("connects", CONNECTS, {"requires": ["api.example"]}),
                             ("reads", READS, {"secrets": ["API_KEY"]})):
        create(author, server, name, code, **more)
        got = author.manage("mcpbox_test_code", tool_id=f"{server}__{name}")
        assert not got["success"] and "mcpbox_test_code runs code without" in got["error"], got["error"]
        assert "calls of the approved version have" in got["error"]
        assert "mcpbox_request_network_access" not in got["error"] and "names it in" not in got["error"]


def test_a_call_says_that_the_declaration_is_missing(instance, author, server):
    r = author.call(flow.publish(instance, author, server, "connects", CONNECTS))
    assert r.result["isError"] and "declares no hosts" in text(r) and "`requires`" in text(r)
    assert "mcpbox_test_code" not in text(r)
    r = author.call(flow.publish(instance, author, server, "reads", READS))
    assert r.result["isError"] and "is not named by this tool's version" in text(r) and "`secrets`" in text(r)


def test_a_secret_at_import_is_read_too_early(author, server):
    said = refused(author, "create_tool", "bad_code", server_id=server, name="early", description="d",
                   python_code="KEY = secrets['API_KEY']\n" + CODE)
    assert "read secrets within main" in said


# --- imports ------------------------------------------------------------------

@pytest.mark.parametrize("module,package", [
    ("yaml", "PyYAML"), ("bs4", "beautifulsoup4"), ("PIL", "Pillow"), ("cv2", "opencv-python"),
    ("sklearn", "scikit-learn"), ("dateutil", "python-dateutil"), ("dotenv", "python-dotenv"),
    ("Crypto", "pycryptodome"), ("attr", "attrs")])
def test_a_module_of_another_name_is_asked_for_by_its_package(author, server, module, package):
    said = refused(author, "create_tool", "bad_code", server_id=server, name="imports", description="d",
                   python_code=f"import {module}\n" + CODE)
    assert f"module_name '{package}'" in said and f"module_name '{module}'" not in said
    assert f"a package named '{module}' would be another's" in said


def test_of_an_unknown_module_no_package_is_proposed(author, server):
    said = refused(author, "create_tool", "bad_code", server_id=server, name="imports", description="d",
                   python_code="import frobnicate.parts\n" + CODE)
    assert "mcpbox_request_module" in said and "module_name" not in said and "need not be the module's" in said
    # No request names a tool that is not there: this one was refused.
    assert "create a new one without this import first" in said


# --- names --------------------------------------------------------------------

def test_names_are_taken_where_ids_are(author, server):
    made = create(author, server)
    shown = author.manage("mcpbox_get_server", server_id=server)
    assert shown["name"] == server and [t["id"] for t in shown["tools"]] == [made["id"]]
    assert author.manage("mcpbox_get_tool", tool_id=f"{server}__tool")["id"] == made["id"]
    author.manage("mcpbox_update_tool", tool_id=f"{server}__tool", title="Titled")
    assert author.manage("mcpbox_get_tool", tool_id=made["id"])["title"] == "Titled"
    prompt = author.manage("mcpbox_create_prompt", server_id=server, name="hail", description="d", text="Hail!")
    author.manage("mcpbox_update_prompt", prompt_id=f"{server}__hail", title="Hail")
    assert author.manage("mcpbox_get_tool", tool_id=f"{server}__hail")["id"] == prompt["id"]
    author.manage("mcpbox_create_resource", server_id=server, name="note", uri=f"notes://{server}", text="x")
    got = author.manage("mcpbox_request_network_access", tool_ids=[f"{server}__tool", f"{server}__note"],
                        host="api.example.com", justification="j")
    assert len(got["tools"]) == 2
    author.manage("mcpbox_add_external_source", server_id=server, name="far", url="https://mcp.example.com/")
    said = refused(author, "discover_external_tools", "missing_grant", source_id=f"{server}__far")
    assert "no source" not in said
    author.manage("mcpbox_delete_prompt", prompt_id=f"{server}__hail")
    assert f"no prompt is named {server}__hail" in refused(author, "delete_prompt", "not_found",
                                                           prompt_id=f"{server}__hail")


def test_a_name_that_is_no_one_things(author, server):
    name = "t" + uuid.uuid4().hex[:12]
    other = "b" + server[1:]
    author.manage("mcpbox_create_server", name=other)
    for s in (server, other):
        create(author, s, name)
    said = refused(author, "get_tool", "invalid_arguments", tool_id=name)
    assert f"ambiguous, it may be {server}__{name}, {other}__{name}" in said
    assert author.manage("mcpbox_get_tool", tool_id=f"{other}__{name}")["server_name"] == other
    said = refused(author, "delete_tool", "not_found", tool_id=name + "x")
    assert f"is named {name}x: see mcpbox_list_tools" in said
    # of another kind
    assert "no resource is named" in refused(author, "delete_resource", "not_found", resource_id=f"{server}__{name}")
    assert "no server is named" in refused(author, "stop_server", "not_found", server_id=name)


def test_a_name_finds_only_what_a_token_may_name(instance, author, server):
    create(author, server, "seen")
    create(author, server, "unseen")

    def found(name, allow):
        return instance.psql(f"SELECT n, likes FROM mcpbox.manage_named('tool {name}', {allow}, NULL)")[0]

    assert found(f"{server}__unseen", "NULL") == ["1", f"{server}__unseen"]
    assert found(f"{server}__unseen", f"'{server}__seen'") == ["0", ""]
    assert found(f"{server}__seen", f"'{server}__seen'") == ["1", f"{server}__seen"]


def test_rules_of_names_are_told_in_words(author, server):
    for tool, arguments, words in (
            ("create_server", {"name": "My Server"}, "lower-case letters, digits and single underscores"),
            ("get_tool", {"tool_id": "a-b"}, "an id (a uuid) or a name"),
            ("create_server_secret", {"server_id": server, "key": "api-key"}, "upper-case letters"),
            ("request_module", {"tool_id": "x", "module_name": "a b", "justification": "j"}, "a package's name")):
        said = refused(author, tool, "invalid_arguments", **arguments)
        assert words in said and "^" not in said, said


# --- a schema against main ----------------------------------------------------

def schema(required=("n",), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize("given,says", [
    (schema(n={"type": "integer"}, m={"type": "string"}), "it has m, which main does not take"),
    (schema(n={"type": "string"}), "n is string there and integer in main"),
    (schema((), n={"type": "integer"}), "main needs n, which it does not require"),
    (schema(n={"type": ["boolean", "array"]}), "n is boolean or array there"),
])
def test_a_schema_that_contradicts_main_is_refused(author, server, given, says):
    said = refused(author, "create_tool", "invalid_arguments", server_id=server, name="tool", description="d",
                   python_code=CODE, input_schema=given)
    assert "input_schema contradicts main: " in said and says in said, said
    create(author, server)
    said = refused(author, "update_tool", "invalid_arguments", tool_id=f"{server}__tool", input_schema=given)
    assert says in said, said


@pytest.mark.parametrize("code,given", [
    (CODE, schema(n={"type": "integer", "minimum": 1})),
    (CODE, schema(n={"type": ["number", "null"]})),
    (CODE, schema(n={"enum": [1, 2]})),
    ("def main(n):\n    return n\n", schema(n={"type": "string"})),
    ("def main(n: int = 1, **rest):\n    return n\n", schema((), n={"type": "integer"}, m={"type": "string"})),
    (CODE, {"type": "object", "allOf": [schema(n={"type": "integer"})]}),
])
def test_a_schema_that_says_more_than_main_is_taken(author, server, code, given):
    assert create(author, server, code=code, input_schema=given)["input_schema"] == given


# --- what was printed ---------------------------------------------------------

PRINTS = "def main(n: int) -> str:\n    print('\\u00fc' * n, end='')\n    return 'said'\n"


def test_what_is_printed_beside_a_result_is_cut_and_the_record_has_it(instance, author, server):
    name = flow.publish(instance, author, server, "prints", PRINTS)
    execution = author.call(name, {"n": 4096}).result["_meta"]["mcpbox/execution"]
    assert execution["stdout"] == "ü" * 4096            # 8 KiB: whole
    execution = author.call(name, {"n": 20000}).result["_meta"]["mcpbox/execution"]
    shown, note = execution["stdout"].split("\n", 1)
    assert shown == "ü" * 4096 and "8192 of 40000 bytes" in note and "mcpbox_get_tool_logs" in note
    assert execution["execution_id"] in note

    def recorded():
        (log,) = author.manage("mcpbox_get_tool_logs", tool_id=name, execution_id=execution["execution_id"])["logs"]
        return log["outcome"] and log

    log = until(recorded)       # the record follows the answer
    assert log["stdout"] == "ü" * 20000 and log["id"] == execution["execution_id"]
    shown = instance.ctl_json("executions", execution["execution_id"])
    assert shown["stdout"] == "ü" * 20000
    assert "no record with this execution_id" in refused(
        author, "get_tool_logs", "not_found", tool_id=name, execution_id=str(uuid.uuid4()))
    # another tool's record is not this one's
    create(author, server)
    refused(author, "get_tool_logs", "not_found", tool_id=f"{server}__tool", execution_id=execution["execution_id"])


def test_what_is_printed_beside_an_error_is_whole(instance, author, server):
    name = flow.publish(instance, author, server, "fails", PRINTS.replace("return 'said'", "raise ValueError(n)"))
    r = author.call(name, {"n": 20000})
    assert r.result["isError"] and r.result["_meta"]["mcpbox/execution"]["stdout"] == "ü" * 20000


# --- imports and inspections --------------------------------------------------

DOCUMENT = {
    "openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "servers": [{"url": "https://api.example.com/v1"}],
    "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
    "security": [{"key": []}],
    "paths": {"/a": {"get": {"operationId": "getA", "responses": {"200": {"description": "ok"}}}}}}


def test_an_imported_document_names_what_its_tools_need(author, server):
    got = author.manage("mcpbox_import_openapi", server_id=server, document=DOCUMENT)
    (tool,) = got["tools"]
    assert tool["requires"] == ["api.example.com:443"] == got["missing_hosts"]
    assert tool["secrets"] == got["missing_secrets"] and len(tool["secrets"]) == 1
    (key,) = tool["secrets"]
    assert "api.example.com:443 (ask with mcpbox_request_network_access)" in got["message"]
    assert f"Secrets without a place: {key} (make one with mcpbox_create_server_secret)" in got["message"]
    assert f"An administrator sets the value of: {key}." in got["message"]


def test_an_inspection_that_ends_late_says_timeout(author, server):
    said = refused(author, "create_tool", "bad_code", server_id=server, name="slow", description="d",
                   python_code="import time\ntime.sleep(600)\n" + CODE)
    assert re.search(r"timeout, it did not end within \d+ s", said) and "move slow work into main" in said


def test_a_module_that_no_index_can_serve_says_whose_turn_it_is(author, server):
    create(author, server)
    author.manage("mcpbox_request_module", tool_id=f"{server}__tool", module_name="frobnicate", justification="j")

    def problem():
        (request,) = author.manage("mcpbox_get_tool_status", tool_id=f"{server}__tool")["module_requests"]
        return (request["fetching"] or {}).get("error")

    assert "no module_index is configured: an administrator names one in sandboxd.conf" in until(problem)
