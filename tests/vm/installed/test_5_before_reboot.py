"""Leaves clients that call; whoever runs the tests reboots the machine then
(`systemctl reboot`), and test_6_after_reboot looks at what became of them."""
from harness.traffic import Traffic


def test_calls_are_under_way(suite, tool, token, notes):
    traffic = Traffic("reboot", tool, ms=300, pause=0.05, token=token)
    traffic.__enter__()
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        notes["boot"] = f.read()
