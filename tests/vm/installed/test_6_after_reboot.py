"""The machine was rebooted in the middle of calls."""
from harness.clients.load import account
from harness.clients.mcp import Client
from harness.installed import systemctl
from harness.patience import eventually, patience
from harness.traffic import Traffic


def test_all_is_up_without_hands(suite, notes):
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        assert f.read() != notes["boot"], "this is the same boot"
    assert eventually(suite.up), systemctl("list-units", "--all", "mcpbox*") + suite.logs()
    assert suite.failed() == [], suite.logs()


def test_each_call_has_one_record(suite, tool, notes):
    traffic = Traffic("reboot", tool)
    print(traffic.report())
    assert len(traffic.seen("ok")) >= 8, "there was no load"
    records = account(suite, tool, {n: m["ok"] for n, m in traffic.seen("ok").items()})
    # What was begun and not answered ran once or not at all, and what ran says
    # how it ended.
    for nonce in traffic.unanswered() | set(traffic.seen("cut")):
        assert all(outcome for _, outcome in records.get(nonce, [])), records[nonce]


def test_the_tool_works(suite, tool):
    assert eventually(suite.runs_tools, step=1), suite.logs()
    with Client(suite.address, timeout=patience(120)) as c:
        assert suite.ran(c, tool, "after the reboot") == "ran after the reboot"
