"""The targets of notifications, on the page Access: how the sending goes, and a test of a target."""
import pytest

from harness.clients.signed_token import set_document
from harness.patience import until
from harness.played.notified import Web


@pytest.fixture
def target(instance, rest):
    """A played topic of ntfy, which the access document names."""
    with Web() as web:
        got = set_document(instance, {"notifications": {"targets": [{"name": "phone", "notify": "ntfy " + f"http://127.0.0.1:{web.port}/topic"}]}})
        assert got["_"] == "ACCESS_STATE", got
        until(lambda: [t["target"] for t in rest.get("/api/notifications")[2]["items"]] == ["phone"])
        yield web
        assert set_document(instance, {})["_"] == "ACCESS_STATE"
        until(lambda: rest.get("/api/notifications")[2]["items"] == [])


def test_without_a_target_it_says_how_to_add_one(page):
    page.go("#/access/notifications")
    page.see("No targets")
    page.see("Add the member notifications to the access document.")


def test_a_target_is_tested(page, target):
    page.go("#/access/notifications")
    page.see("phone")
    page.click("button", "Send a test")
    page.see("phone took the test: look whether it came.")
    assert [(r.path, r.headers["Title"]) for r in target.got][-1] == ("/topic", "mcpbox: a test")
    target.answer = 403, {}, b""
    page.click("button", "Send a test")
    page.see("The test was not sent.")
    page.see("HTTP 403")
    assert page.axe() == []
