"""A runner that floods any of its channels costs sandboxd a constant amount of
memory: measured before, during and after, in the real process."""
import json
import os

import pytest

from harness.patience import eventually, patience
from harness.played.sandbox import DONE, FAILED, KILLED, Sandbox

RUNNER = "sandboxd/runner/mcpbox-runner"
ONE = "def main():\n    return 1\n"
MIB = 1 << 20
FLOODS = 4

# A frame: u16 type, u8 0, u8 flags, u32 length, u64 request; then the fields. One
# write is one frame (SOCK_SEQPACKET). DATA is evaluated once.
SEND = '''
import os
def main():
    data = DATA
    frame = bytes([0, TYPE, 0, 0]) + len(data).to_bytes(4, "big") + bytes(8) + data
    n = 0
    while n < COUNT:
        os.write(3, frame)
        n += 1
    return n
'''
ENDLESS = 1 << 60


def frame(kind, data, count=ENDLESS):
    return SEND.replace("TYPE", str(kind)).replace("DATA", data).replace("COUNT", str(count))


def field(n):
    return f"({n}).to_bytes(4, 'big')"


PRINT = "import sys\ndef main():\n    while True:\n        sys.stdout.write('x' * 65536)\n"
PRINT_SMALL = "import os\ndef main():\n    while True:\n        os.write(1, b'y')\n"
LOG = "import mcpbox\ndef main():\n    while True:\n        mcpbox.log('x' * 2000)\n"
PROGRESS = "import mcpbox\ndef main():\n    n = 0\n    while True:\n        n += 1\n" \
           "        mcpbox.progress(n, message='m' * 900)\n"
# What a tool does with the module, and what it can do to the channel itself.
CHANNELS = {
    "print": PRINT,
    "print one byte": PRINT_SMALL,
    "mcpbox.log": LOG,
    "mcpbox.progress": PROGRESS,
    "STDOUT": frame(170, field(60000) + " + b'x' * 60000"),
    "STDOUT, one byte": frame(170, field(1) + " + b'x'"),
    "STDOUT, empty": frame(170, field(0)),
    "LOG": frame(171, "bytes([1]) + " + field(48001) + " + b'[' + b'1,' * 23999 + b'1]'"),
    "LOG, small": frame(171, "bytes([1, 0, 0, 0, 4]) + b'null'"),
    "PROGRESS": frame(172, field(14) + " + b'{\"progress\":1}'"),
    "CONTENT_PART": frame(173, field(60000) + " + b'x' * 60000"),
    "CONTENT_PART, empty": frame(173, field(0)),
    "CONTENT_PART, up to the limit, then silence": frame(173, field(65000) + " + b'x' * 65000", 16)
    + "\nold = main\ndef main():\n    import time\n    old()\n    time.sleep(60)\n",
}
# One frame and it is over: longer than a frame may be, or longer than it says.
OVERSIZED = {
    "longer than a frame may be": "bytes(120000)",
    "longer than it says": "b'\\x00\\x00\\x00\\x01' + b'x' * 60000",
    "says more than it has": "b'\\x7f\\xff\\xff\\xff' + b'x'",
}


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(runner=RUNNER, slots=8) as s:
        s.await_ready()
        yield s


@pytest.fixture
def admind(sandbox):
    a = sandbox.admind()
    yield a
    a.peer.sock.close()


@pytest.fixture
def gateway(sandbox):
    with sandbox.gateway() as g:
        yield g


def held(sandbox):
    """Bytes of memory that sandboxd has for itself: all but its share of program
    and library files, which changes with every process that comes and goes."""
    with open(f"/proc/{sandbox.children['sandboxd'].pid}/smaps_rollup", encoding="ascii") as f:
        sizes = dict(line.split()[:2] for line in f if line.startswith("Pss_"))
    return (int(sizes["Pss_Anon:"]) + int(sizes["Pss_Shmem:"])) * 1024


def at_rest(sandbox, most, seconds=3):
    """What it holds once that is no more than most, or when it does not become so:
    sandboxd gives back what calls left behind a moment after the last one."""
    now = []

    def gives_back():
        now[:] = [held(sandbox)]
        return now[0] <= most
    eventually(gives_back, seconds, 0.05)
    return now[0]


def peak(sandbox, reset=False):
    """VmHWM, the highest resident size since it was last reset (proc(5))."""
    pid = sandbox.children["sandboxd"].pid
    if reset:
        with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
            f.write("5")
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM:"))


def run(gateway, x):
    m = gateway.call("RUN", execution=x, arguments=b"{}")
    assert m["_"] == "CALL_RESULT", m
    body, meta = (json.loads(x) for x in (m["body_meta"][:m["body_len"]], m["body_meta"][m["body_len"]:]))
    return m["outcome"], body, meta.get("mcpbox/failure", {}).get("failure_mode")


def flood(sandbox, admind, code, seconds):
    """FLOODS calls at once for so long: (held before, highest RSS above the one
    before, held after)."""
    with sandbox.gateway("tunnel") as g:
        before, low, refused = held(sandbox), peak(sandbox, reset=True), 0
        ids = [admind.held(code, listener="tunnel", timeout=int(seconds * 1000)) for _ in range(FLOODS)]
        waiting = {g.start("RUN", execution=x, arguments=b"{}") for x in ids}
        while waiting:
            request, m = g.receive(seconds + patience(20))
            if m["_"] == "CALL_EVENT":
                continue
            waiting.remove(request)
            if m["_"] == "REFUSED":     # its time was over before it had begun: again
                refused += 1
                assert refused < 40, m
                ids.append(admind.held(code, listener="tunnel", timeout=int(seconds * 1000)))
                waiting.add(g.start("RUN", execution=ids[-1], arguments=b"{}"))
                continue
            assert m["_"] == "CALL_RESULT" and m["outcome"] in (FAILED, KILLED), m
        high = peak(sandbox)
        for x in ids:
            admind.record(x)
    return before, high - low, at_rest(sandbox, before + MIB)


@pytest.fixture(scope="module")
def warm(sandbox):
    """The first flood pays for buffers that are kept: not measured."""
    a = sandbox.admind()
    for code in (CHANNELS["CONTENT_PART"], CHANNELS["LOG"], CHANNELS["print"]):
        flood(sandbox, a, code, 0.5)
    a.peer.sock.close()


@pytest.mark.parametrize("name", CHANNELS)
def test_a_flood_costs_constant_memory(sandbox, admind, gateway, warm, name):
    """Four at once, shorter and longer: no more in the longer time."""
    _, short, _ = flood(sandbox, admind, CHANNELS[name], 0.7)
    before, longer, after = flood(sandbox, admind, CHANNELS[name], 2.1)
    print(f"{name}: held {before >> 10} KiB before, {after >> 10} KiB after; "
          f"peak {short >> 10} KiB in 0.7 s, {longer >> 10} KiB in 2.1 s")
    # A call may hold its result (1 MiB, twice while it grows), its output and
    # one turn of frames; nothing may add up with time.
    assert short < FLOODS * 4 * MIB and longer < FLOODS * 4 * MIB, (short, longer)
    assert longer < short + 4 * MIB, (short, longer)
    assert after < before + MIB, (before, after)
    assert run(gateway, admind.held(ONE))[0] == DONE


@pytest.mark.parametrize("name", OVERSIZED)
@pytest.mark.parametrize("kind", [170, 171, 172, 173])
def test_an_oversized_frame_ends_the_call(sandbox, admind, gateway, warm, name, kind):
    before = held(sandbox)
    code = "import os, time\ndef main():\n    data = DATA\n    size = len(data)\n" \
           "    try:\n        os.write(3, bytes([0, TYPE, 0, 0]) + size.to_bytes(4, 'big') + bytes(8) + data)\n" \
           "    except OSError:\n        os._exit(9)\n    time.sleep(30)\n"
    outcome, body, mode = run(gateway, admind.held(
        code.replace("DATA", OVERSIZED[name]).replace("TYPE", str(kind)), timeout=20000))
    # Not its time: that would be another failure, and the tool sleeps for longer.
    assert outcome in (FAILED, KILLED) and body["isError"] is True and mode != "timeout", mode
    assert at_rest(sandbox, before + MIB) < before + MIB
    assert run(gateway, admind.held(ONE))[0] == DONE


def test_a_gateway_that_does_not_read(sandbox, admind, gateway, warm):
    """Events of a flooding tool wait for it up to a bound and are then dropped."""
    with sandbox.gateway("tunnel") as deaf:
        before, low = held(sandbox), peak(sandbox, reset=True)
        ids = [admind.held(LOG, listener="tunnel", timeout=2500) for _ in range(FLOODS)]
        for x in ids:
            deaf.start("RUN", execution=x, arguments=b"{}")
        for x in ids:
            assert admind.record(x)["outcome"] == FAILED
        assert peak(sandbox) - low < FLOODS * 4 * MIB
        assert run(gateway, admind.held(ONE))[0] == DONE
        waited = held(sandbox) - before
    # Many small blocks, freed with the connection.
    after = at_rest(sandbox, before + MIB // 2)
    print(f"{waited >> 10} KiB waited, {(after - before) >> 10} KiB stay")
    assert after < before + MIB // 2, (before, after)


def test_memory_that_went_back_goes_back_again():
    """Events that waited for a gateway which left before its calls ended: the pages
    are used and freed while calls run, by each round, where the last one's were.
    In a sandboxd of its own: what others left there could hide that events wait."""
    with Sandbox(runner=RUNNER, slots=8) as s:
        s.await_ready()
        a = s.admind()
        with s.gateway() as gateway:
            assert run(gateway, a.held(ONE))[0] == DONE
            before = held(s)
            for n in range(4):
                ids = [a.held(LOG, listener="tunnel", timeout=60000) for _ in range(FLOODS)]
                with s.gateway("tunnel") as deaf:
                    for x in ids:
                        deaf.start("RUN", execution=x, arguments=b"{}")
                    assert eventually(lambda: held(s) > before + MIB, 10), "no event waited"
                for x in ids:
                    a.peer.send("CANCEL", execution=x, failure=0)
                    a.record(x)
                after = at_rest(s, before + MIB // 2)
                print(f"round {n}: {(after - before) >> 10} KiB stay")
                assert after < before + MIB // 2, (n, before, after)
            assert run(gateway, a.held(ONE))[0] == DONE
        a.peer.sock.close()


def test_it_would_be_seen(sandbox, admind, gateway, warm):
    """The measure measures: results that wait for a gateway are held, and show."""
    low = peak(sandbox, reset=True)
    with sandbox.gateway("tunnel") as deaf:
        ids = [admind.held("def main():\n    return 'x' * 900000\n", listener="tunnel") for _ in range(8)]
        for x in ids:
            deaf.start("RUN", execution=x, arguments=b"{}")
        for x in ids:
            admind.record(x)
        assert peak(sandbox) - low > MIB
    assert os.path.exists(f"/proc/{sandbox.children['sandboxd'].pid}")
