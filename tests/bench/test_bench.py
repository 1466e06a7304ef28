"""How long things take here: printed, and held against generous bounds that
only a mistake would pass."""
import statistics
import threading
import time

import pytest

from harness import flow
from harness.mcp import Client


@pytest.fixture(scope="module")
def tool(instance):
    with Client(instance.address) as c:
        return flow.publish(instance, c, "bench", "echo", "def main(n: int = 0) -> int:\n    return n\n")


def measure(f, n):
    times = []
    for _ in range(n):
        begin = time.perf_counter()
        f()
        times.append((time.perf_counter() - begin) * 1000)
    return sorted(times)


def show(what, times):
    print(f"\n{what}: median {statistics.median(times):.2f} ms, "
          f"p99 {times[int(len(times) * 0.99)]:.2f} ms, n {len(times)}")


def test_one_at_a_time(instance, tool):
    with Client(instance.address) as c:
        measure(lambda: c.call(tool, {"n": 1}), 20)
        calls = measure(lambda: c.call(tool, {"n": 1}), 300)
        lists = measure(c.tools, 300)
        management = measure(lambda: c.call("mcpbox_list_servers", {}), 300)
    show("tools/call", calls)
    show("tools/list", lists)
    show("management tool", management)
    assert statistics.median(calls) < 250 and statistics.median(lists) < 50


def test_at_once(instance, tool):
    times, lock = [], threading.Lock()

    def worker():
        with Client(instance.address) as c:
            mine = measure(lambda: c.call(tool, {"n": 1}), 40)
        with lock:
            times.extend(mine)

    begin = time.perf_counter()
    threads = [threading.Thread(target=worker) for _ in range(32)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    seconds = time.perf_counter() - begin
    show("tools/call, 32 at once", sorted(times))
    print(f"{len(times) / seconds:.0f} calls a second")
    assert len(times) == 32 * 40
