"""Servers, their secrets, hosts and sources, by clicks; each effect is checked by REST."""
import secrets

import pytest

from harness.patience import until


def ask(page, button, **fields):
    """Presses a button that opens a dialog, fills it, and presses the same button in it."""
    page.click("button", button)
    page.get("dialog")
    for name, text in fields.items():
        page.fill(name, text)
    page.confirm(button)
    page.gone("dialog")


def fresh():
    return "s" + secrets.token_hex(3)


@pytest.fixture
def server(page, rest):
    """A new server, by REST: (its name, its id)."""
    name = fresh()
    assert rest.request("POST", "/api/servers", {"name": name, "description": "Of a test."})[0] == 200
    [row] = [s for s in rest.get("/api/servers?limit=200")[2]["items"] if s["name"] == name]
    return name, row["id"]


def state(rest, id):
    return rest.get("/api/servers/" + id)[2]


def test_a_server_is_made(page, rest):
    name = fresh()
    page.go("#/servers")
    page.click("button", "New server")
    page.fill("Name", name.upper())
    page.click("button", "Make the server")
    page.get("alert")
    assert page.get("textbox", "Name").value == name.upper(), "what was typed is kept"
    page.fill("Name", name)
    page.click("button", "Make the server")
    page.see(f"The server {name} is made")
    page.get("heading", name)
    assert name in [s["name"] for s in rest.get("/api/servers?limit=200")[2]["items"]]


def test_stop_start_describe_delete(page, rest, server):
    name, id = server
    page.go("#/servers/" + id)
    ask(page, "Stop", Reason="it is moved")
    page.see("Stopped by")
    page.see("it is moved")
    assert (state(rest, id)["status"], state(rest, id)["stopped_by"]) == ("stopped", "admin")
    ask(page, "Start")
    page.get("button", "Stop")
    assert state(rest, id)["status"] == "running"
    page.click("button", "Describe")
    page.fill("Description", "Another text.")
    page.click("button", "Save")
    page.see("Another text.")
    assert state(rest, id)["description"] == "Another text."
    ask(page, "Delete")
    page.see("The server is deleted")
    assert name not in [s["name"] for s in rest.get("/api/servers?limit=200")[2]["items"]]


def test_a_change_of_somebody_else_is_not_overwritten_unseen(page, rest, server):
    _, id = server
    page.go("#/servers/" + id)
    page.click("button", "Describe")
    page.fill("Description", "Mine.")
    assert rest.request("PATCH", "/api/servers/" + id, {"description": "Theirs."}, {"If-Match": rest.get("/api/servers/" + id)[1]["etag"]})[0] == 200
    page.click("button", "Save")
    page.see("Somebody changed this meanwhile")
    assert state(rest, id)["description"] == "Theirs."
    page.click("button", "Read again")
    page.see("Theirs.")
    assert page.get("textbox", "Description").value == "Mine."
    page.click("button", "Save")
    page.gone("dialog")
    assert state(rest, id)["description"] == "Mine."


def test_names_of_tools_and_all_public_hosts(page, rest, server):
    _, id = server
    page.go("#/servers/" + id)
    page.click("button", "Names of tools")
    page.choose("Names of its tools", "bare")
    page.click("button", "Save")
    page.gone("dialog")
    page.see("New versions have such names.")
    assert state(rest, id)["expose"] == "bare"
    ask(page, "Ask for all public hosts", Why="it reads feeds")
    page.see("It waits for an approval.")
    assert [a for a in rest.get(f"/api/approvals?kind=network&state=pending&server={id}")[2]["items"]]


def test_limits_keep_what_was_typed(page, rest, server):
    _, id = server
    page.go("#/servers/" + id)
    page.click("button", "Change the limits")
    page.fill("Time, ms", "5")
    page.click("button", "Save")
    page.get("alert")
    assert page.get("spinbutton", "Time, ms").value == "5"
    page.fill("Time, ms", "20000")
    page.click("button", "Save")
    page.see("The limits hold")
    assert rest.get(f"/api/servers/{id}/limits")[2]["limits"]["timeout_ms"] == 20000


def test_hosts_wait_for_a_yes_and_are_taken_back(page, rest, server):
    _, id = server
    page.go("#/servers/" + id)
    page.fill("Host", "api.example.org")
    page.all("button", "Ask for a host")[-1].click()
    page.see("api.example.org waits for an approval")
    [item] = [a for a in rest.get(f"/api/approvals?kind=network&state=pending&server={id}")[2]["items"]]
    tag = rest.get("/api/approvals/" + item["id"])[1]["etag"]
    assert rest.request("POST", f"/api/approvals/{item['id']}/approve", {}, {"If-Match": tag})[0] == 200
    page.go(f"#/network?server={id}")
    page.see("api.example.org")
    page.see("each host is approved")
    assert page.get("link", "Request for api.example.org").attr("href") == "#/approvals/" + item["id"]
    ask(page, "Revoke", Reason="it belongs to somebody else")
    page.see("is taken back")
    until(lambda: all(g["revoked_at"] for g in rest.get(f"/api/network?server={id}")[2]["items"]))


def test_a_secret_is_set_and_never_shown(page, rest, server):
    name, _ = server
    value = "hidden-" + secrets.token_hex(8)
    page.go("#/secrets?server=" + name)
    page.click("button", "New secret")
    page.fill("Name", "API_KEY")
    page.click("button", "Make the secret")
    page.see("API_KEY is made")
    page.click("button", "Set the value of API_KEY")
    page.fill("New value", value)
    page.confirm("Set the value")
    page.see("API_KEY has its value")
    page.go(f"#/secrets/{name}/API_KEY")
    page.see("set, version 1")
    page.see("No version names it.")
    assert value not in page.js("return document.documentElement.outerHTML")
    assert value not in page.js("return JSON.stringify({...sessionStorage}) + location.href")
    assert rest.get(f"/api/servers/{name}/secrets/API_KEY")[2]["has_value"] is True
    ask(page, "Delete")
    page.see("The secret is deleted")
    assert rest.get(f"/api/servers/{name}/secrets")[2]["items"] == []


def test_the_secrets_of_all_servers_are_one_list(page, rest, server):
    """A secret of another server is made there and set from the list."""
    name, _ = server
    other = fresh()
    assert rest.request("POST", "/api/servers", {"name": other})[0] == 200
    for s in (name, other):
        assert rest.request("POST", f"/api/servers/{s}/secrets", {"key": "SHARED_NAME"})[0] == 200
    page.go("#/secrets")
    hrefs = {f"#/secrets/{s}/SHARED_NAME" for s in (name, other)}
    until(lambda: hrefs <= {n.attr("href") for n in page.all("link", "SHARED_NAME")})
    page.click("button", "New secret")
    dialog = page.get("dialog", "New secret")
    dialog.js("const s = this.querySelector('select'); s.value = arguments[0]; s.dispatchEvent(new Event('change', {bubbles: true}))", other)
    page.fill("Name", "ONLY_THERE")
    page.click("button", "Make the secret")
    page.see("ONLY_THERE is made")
    page.click("button", "Set the value of ONLY_THERE on " + other)
    page.fill("New value", "a value " + secrets.token_hex(8))
    page.confirm("Set the value")
    page.see("ONLY_THERE has its value")
    assert rest.get(f"/api/servers/{other}/secrets/ONLY_THERE")[2]["has_value"] is True
    assert page.axe() == []
    page.go(f"#/secrets?server={name}")
    page.gone("link", "ONLY_THERE")
    assert len(page.all("link", "SHARED_NAME")) == 1


def test_a_source_is_asked_for(page, rest, server):
    _, id = server
    page.go("#/servers/" + id)
    page.all("textbox", "Name")[-1].fill("elsewhere")
    page.fill("Address", "https://mcp.example.org/mcp")
    page.all("button", "Ask for another MCP server")[-1].click()
    page.see("elsewhere waits for an approval")
    page.go("#/sources?server=" + id)
    page.click("link", "elsewhere")
    page.see("Its host is not granted yet")
    page.click("button", "Ask for its tools")
    page.get("alert")
    ask(page, "Forget")
    page.see("The source is forgotten")
    assert rest.get("/api/sources?server=" + id)[2]["items"] == []


def test_an_openapi_document_is_imported(page, rest, server):
    _, id = server
    page.go("#/servers/" + id)
    page.fill("Document", "{")
    page.click("button", "Import")
    page.see("This is no JSON.")
    page.fill("Document", '{"openapi": "3.0.3", "info": {"title": "Pets", "version": "1"}, "servers": [{"url": "https://pets.example.org"}],'
              ' "paths": {"/pets": {"get": {"operationId": "listPets", "summary": "Lists pets", "responses": {"200": {"description": "ok"}}},'
              ' "delete": {"operationId": "dropPets", "summary": "Drops pets", "responses": {"200": {"description": "ok"}}}}}}')
    page.fill("Operations", "listPets")
    page.click("button", "Import")
    page.see("Hosts that are not granted yet")
    assert [t["name"].lower() for t in rest.get(f"/api/tools?server={id}")[2]["items"]] in (["listpets"], ["list_pets"])


def test_a_viewer_changes_nothing(as_role, server, rest):
    v = as_role("viewer").page
    name, id = server
    v.go("#/servers/" + id)
    v.get("heading", name)
    for label in ("Stop", "Describe", "Delete", "Change the limits", "Ask for a host"):
        assert not v.all("button", label), label
    v.go("#/secrets?server=" + name)
    assert not v.all("button", "New secret") and not v.all("alert")
    v.go("#/sources")
    v.go("#/network")
    v.clean()
