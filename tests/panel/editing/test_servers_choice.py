"""The choice of a server where there are more than one page of REST has."""
import psycopg
import pytest

from harness.clients.mcp import Client
from harness.patience import until

from ..seeds import login

MANY = 230


@pytest.fixture(scope="module")
def rest(instance):
    """One login for all tests: a person has sixteen, and the page's must stay."""
    return login(instance)


@pytest.fixture(scope="module")
def many(instance):
    with Client(instance.address) as mcp:
        one = mcp.manage("mcpbox_create_server", name="zz_last", description="Comes last.")["id"]
    with psycopg.connect(f"host={instance.run('postgresql')} user=postgres dbname=mcpbox", autocommit=True) as db:
        db.execute("INSERT INTO mcpbox.servers (id, name, description, created_by) SELECT gen_random_uuid(), 'bulk_' || lpad(n::text, 3, '0'),"
                   " '', 'test' FROM generate_series(1, %s) n", (MANY,))
    return one


def test_rest_finds_a_server_by_part_of_its_name(rest, many):
    def names(query):
        return [s["name"] for s in rest.get("/api/servers?limit=200&" + query)[2]["items"]]
    assert names("search=Z_LAS") == ["zz_last"]
    assert names("search=bulk_00") == [f"bulk_00{n}" for n in range(1, 10)]
    assert names("search=%25") == names("search=_x") == [] and len(names("search=bulk&state=running")) == 200
    assert names("search=zz&state=stopped") == []


def options(page):
    return page.get("combobox", "Server").js("return [...this.options].map(o => o.text)")


def test_any_server_can_be_chosen(page, rest, many):
    page.go("#/tools/new")
    page.get("searchbox", "Find a server")
    assert "zz_last" not in options(page)
    page.see("Type more of the name to find the others.")
    page.fill("Find a server", "zz_l")
    until(lambda: options(page) == ["zz_last"], say=page.text)
    page.choose("Server", many)
    page.fill("Find a server", "bulk_00")
    until(lambda: options(page) == ["zz_last", *(f"bulk_00{n}" for n in range(1, 10))], say=page.text)
    page.fill("Find a server", "nothing")
    page.see("No server has such a name.")
    page.fill("Name", "far_away")
    page.click("button", "Make the draft")
    page.see("The draft is made.")
    [tool] = rest.get(f"/api/tools?server={many}")[2]["items"]
    assert tool["name"] == "far_away"


def test_a_list_is_filtered_by_any_server(page, rest, many):
    page.go(f"#/tools?server={many}")
    until(lambda: "zz_last" in options(page), say=page.text)
    assert page.get("combobox", "Server").value == many
    for place in ("approvals", "calls", "network", "sources"):
        page.go("#/" + place)
        page.get("searchbox", "Find a server")
        page.fill("Find a server", "zz_l")
        until(lambda: options(page)[1:] == ["zz_last"], say=page.text)
        page.choose("Server", many)
        until(lambda: f"server={many}" in page.js("return location.hash"))
    assert page.axe() == []
