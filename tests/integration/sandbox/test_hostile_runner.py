"""A runner that was taken over, towards sandboxd, and a tool that wants more
than its share; real sandboxd, spawn, pool-init and runner."""
import contextlib
import errno
import json
import os
import select

import pytest

from harness.instance import processes
from harness.patience import eventually, patience
from harness.played.hostile import FLOOD_DESCRIPTORS
from harness.played.sandbox import DONE, FAILED, KILLED, Sandbox, ask_for_user_namespace
from harness.work import cpu

RUNNER = "sandboxd/runner/mcpbox-runner"
ONE = "def main():\n    return 1\n"
MIB = 1 << 20


@pytest.fixture(scope="module")
def sandbox():
    # Without waiting runners, so that every process of the pool is a call's.
    with Sandbox(runner=RUNNER, slots=8, memory=64 * MIB, memory_budget=512 * MIB,
                 pool_min=0, pool_max=0) as s:
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


def answer(m):
    assert m["_"] == "CALL_RESULT", m
    blob = m["body_meta"]
    return (m["outcome"], json.loads(blob[:m["body_len"]]), json.loads(blob[m["body_len"]:]))


def run(gateway, execution, arguments=b"{}", timeout=patience(30)):
    return answer(gateway.call("RUN", timeout=timeout, execution=execution, arguments=arguments))


def text(body):
    return "".join(c.get("text", "") for c in body["content"])


def roles(sandbox):
    """Role -> pid; runners are left out."""
    found = {name: p.pid for name, p in sandbox.children.items()}
    for pid, argv in sandbox.pool().items():
        if processes().get(pid, (0, 0, 0))[2] == sandbox.uid("pool"):
            name = os.path.basename(argv[0])
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    comm = f.read().strip()
            except OSError:     # it has just ended
                continue
            if name in ("mcpbox-pool-init", "mcpbox-peek") or comm == "mcpbox-zygote":
                found[name] = pid
    return found


def runners(sandbox):
    """Pids of what has a runner's uid."""
    return [pid for pid, (_, state, uid, _) in processes().items()
            if sandbox.base + 1024 <= uid < sandbox.base + 65536 and state != "Z"]


def wait_for(f, timeout=5):
    return eventually(f, timeout, 0.02)


# --- Time. ---

def test_closing_the_channel_buys_no_time(sandbox, admind, gateway):
    """Closed just before the deadline: no grace beyond the deadline. With the grace
    of 250 ms no such call would end as soon as one that leaves the channel open."""
    sleeps = "import os, time\ndef main():\n    time.sleep(.97)\n    {}\n    time.sleep(9)\n"
    run(gateway, admind.held("def main():\n    return 1\n"))     # the pool is there
    closed, control = [], []
    while not closed or min(closed) >= min(control) + 200:
        assert len(closed) < 20, (closed, control)
        for took, does in ((closed, "os.close(3)"), (control, "pass")):
            outcome, _, meta = run(gateway, admind.held(sleeps.format(does), timeout=1000))
            assert outcome in (FAILED, KILLED)
            took.append(meta["mcpbox/execution"]["duration_ms"])


FLOOD = '''
import os
def main():
    frame = bytes([0, 170, 0, 0]) + (60004).to_bytes(4, "big") + bytes(8)
    frame += (60000).to_bytes(4, "big") + b"x" * 60000
    while True:
        os.write(3, frame)
'''


def ended(gateway, waiting, timeout):
    """Which of these calls were answered, without waiting longer for another."""
    done = []
    with contextlib.suppress(TimeoutError):
        while len(done) < len(waiting):
            request, m = gateway.receive(timeout)
            if m["_"] != "CALL_EVENT":
                assert request in waiting and m["outcome"] in (FAILED, KILLED), m
                done.append(request)
    return done


def flooded(sandbox, admind, gateway, code, count, calls):
    """So many calls flood without end, and others are served; the floods are ended
    after that, so whoever waits for one of them is never answered."""
    pid = sandbox.children["sandboxd"].pid
    with sandbox.gateway("tunnel") as other:
        ids = [admind.held(code, listener="tunnel", timeout=600000) for _ in range(count)]
        waiting = {other.start("RUN", execution=x, arguments=b"{}") for x in ids}
        assert wait_for(lambda: len(runners(sandbox)) >= count, 20)
        before, used = slept(pid), cpu(pid)
        for _ in range(calls):
            assert run(gateway, admind.held(ONE))[0] == DONE
        paused = slept(pid) - before
        print("sandboxd slept", paused, "times; its cpu", cpu(pid) - used)
        assert not ended(other, waiting, 0), "a flood has ended"
        for x in ids:
            other.send("CANCEL", execution=x, failure=0)
        assert len(ended(other, waiting, patience(20))) == count
    return paused


def slept(pid):
    """How often it has waited for something: never, where one flood follows another."""
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("voluntary_ctxt_switches:"))


def test_floods_leave_others_their_time(sandbox, admind, gateway):
    """Six runners that send the largest frames without pause; a seventh slot
    serves ordinary calls meanwhile. A flood is read with pauses, and its time ends it."""
    assert flooded(sandbox, admind, gateway, FLOOD, 6, 15) > 15
    outcome, _, meta = run(gateway, admind.held(FLOOD, timeout=1000))
    assert outcome == FAILED and meta["mcpbox/failure"]["failure_mode"] == "timeout"


SMALL = '''
import os
def main():
    data = DATA
    frame = bytes([0, TYPE, 0, 0]) + len(data).to_bytes(4, "big") + bytes(8) + data
    while True:
        os.write(3, frame)
'''


@pytest.mark.parametrize("kind, data", [
    (170, "bytes([0, 0, 0, 0])"), (170, "bytes([0, 0, 0, 1]) + b'x'"),
    (171, "bytes([1, 0, 0, 0, 4]) + b'null'"),
    (171, "bytes([1]) + (48001).to_bytes(4, 'big') + b'[' + b'1,' * 23999 + b'1]'"),
    (172, "bytes([0, 0, 0, 14]) + b'{\"progress\":1}'"),
    (173, "bytes([0, 0, 0, 0])")])
def test_small_frames_without_end(sandbox, admind, gateway, kind, data):
    """As above, by number of frames and by the dearest ones to look at."""
    code = SMALL.replace("TYPE", str(kind)).replace("DATA", data)
    flooded(sandbox, admind, gateway, code, 4, 10)


def test_a_gateway_that_reads_nothing(sandbox, admind, gateway):
    """Each large result is a memfd until it is read: what waits for one peer
    must not use up sandboxd's descriptors, which all listeners share."""
    pid = sandbox.children["sandboxd"].pid
    before = len(os.listdir(f"/proc/{pid}/fd"))
    code = "def main():\n    return 'x' * 100000\n"
    most, ids = 0, []
    with sandbox.gateway("tunnel") as deaf:
        ended = select.poll()
        ended.register(deaf.sock, 0)
        for n in range(600):
            while sum(i not in admind.records for i in ids) >= 16:
                admind.take(patience(20))
            ids.append(admind.held(code, listener="tunnel"))
            try:
                deaf.start("RUN", execution=ids[-1], arguments=b"{}")
            except OSError:
                pass
            if n % 10 == 0:
                most = max(most, len(os.listdir(f"/proc/{pid}/fd")))
                if ended.poll(100):     # it was given up
                    break
        else:
            pytest.fail("it was never given up")
        assert run(gateway, admind.held(ONE))[0] == DONE
    assert most < before + 200, most
    assert wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= before)


# --- Memory. ---

GREEDY = '''
import os, time
def main():
    made = 0
    try:
        while made < 200:
            if os.fork() == 0:
                held = []
                try:
                    while True:
                        held.append(b"x" * (1 << 20))
                except MemoryError:
                    pass
                time.sleep(60)
                os._exit(0)
            made += 1
    except OSError:
        pass
    time.sleep(2)
    return made
'''


def resident(pids):
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/statm", encoding="ascii") as f:
                total += int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            pass
    return total


@pytest.mark.alone
def test_processes_of_a_call_stay_under_the_memory_budget(sandbox, admind, gateway):
    """64 processes of 64 MiB each would be 4 GiB; the budget is 512 MiB."""
    assert wait_for(lambda: not runners(sandbox))
    request = gateway.start("RUN", execution=admind.held(GREEDY, timeout=8000), arguments=b"{}")
    most, processes_seen = 0, 0
    while True:
        pids = runners(sandbox)
        most, processes_seen = max(most, resident(pids)), max(processes_seen, len(pids))
        try:
            got, m = gateway.receive(0.05)
        except TimeoutError:
            continue
        assert got == request
        break
    outcome, body, _ = answer(m)
    assert outcome == DONE
    assert int(text(body)) == processes_seen - 1 == 6      # and the reader's thread
    assert 100 * MIB < most < 600 * MIB, most


@pytest.mark.parametrize("bomb", [
    "while True:\n        if os.fork() == 0:\n            time.sleep(60)\n",
    "while True:\n        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"])
def test_a_bomb_is_told_its_limit(sandbox, admind, gateway, bomb):
    outcome, body, meta = run(gateway, admind.held(
        f"import os, threading, time\ndef main():\n    {bomb}"))
    assert outcome == FAILED and meta["mcpbox/failure"]["failure_mode"] == "limit", body
    assert "8 processes and threads" in text(body), text(body)


def test_a_would_block_is_no_bomb(sandbox, admind, gateway):
    """The same error from a socket: an ordinary exception."""
    outcome, body, meta = run(gateway, admind.held(
        "import socket\ndef main():\n    a, b = socket.socketpair()\n    a.setblocking(False)\n"
        "    a.recv(1)\n"))
    assert outcome == FAILED and meta["mcpbox/failure"]["failure_mode"] == "exception"
    assert "processes and threads" not in text(body)


@pytest.mark.alone
def test_the_kernel_kills_runners_first(sandbox, admind, gateway):
    """oom_score_adj, read from outside: of runners, waiting or running, and of
    what they fork, the highest there is; of zygote and daemons as it was."""
    def score(pid):
        with open(f"/proc/{pid}/oom_score_adj", encoding="ascii") as f:
            return int(f.read())
    assert wait_for(lambda: not runners(sandbox))
    request = gateway.start("RUN", execution=admind.held(
        "import os, time\ndef main():\n    os.fork()\n    time.sleep(1)\n"), arguments=b"{}")
    pids = wait_for(lambda: p if len(p := runners(sandbox)) == 2 else None)
    assert [score(p) for p in pids] == [1000, 1000]
    found = roles(sandbox)
    assert score(found["mcpbox-runner"]) == 900
    own = score(os.getpid())
    for name in ("sandboxd", "sandboxd-spawn", "mcpbox-pool-init", "mcpbox-peek"):
        assert score(found[name]) == own, name
    assert gateway.receive()[0] == request


def test_the_pool_makes_no_user_namespace(sandbox, admind, gateway):
    """Where most kernel holes start, whatever in the pool was taken over."""
    limit, error = ask_for_user_namespace(0)
    assert limit > 0 and error == 0
    assert run(gateway, admind.held(ONE))[0] == DONE
    assert ask_for_user_namespace(roles(sandbox)["mcpbox-pool-init"]) == (0, errno.ENOSPC)


# --- What stays where. ---

def memory_has(pid, canary):
    """Is the canary in that process's memory?"""
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        areas = [line.split()[:2] for line in f]
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for area, rights in areas:
            if "w" not in rights:
                continue
            low, high = (int(x, 16) for x in area.split("-"))
            try:
                mem.seek(low)
                if canary in mem.read(high - low):
                    return True
            except (OSError, ValueError, OverflowError):
                continue
    return False


def test_no_process_keeps_anything_of_a_call(sandbox, admind, gateway):
    """Code, arguments and secrets: searched for in the memory of the runner
    while it runs, where they must be, then in everything that outlives it."""
    assert wait_for(lambda: not runners(sandbox))
    canaries = {"code": b"CANARYcode" + os.urandom(6).hex().encode(),
                "arguments": b"CANARYargs" + os.urandom(6).hex().encode(),
                "secret": b"CANARYkeep" + os.urandom(6).hex().encode()}
    arguments = b'{"a":"%s"}' % canaries["arguments"]
    code = ("import os, time\ndef main(a):\n"
            f"    b = '{canaries['code'].decode()}'\n    os.mkdir('/tmp/held')\n"
            "    while os.path.exists('/tmp/held'):\n        time.sleep(0.01)\n")
    x = admind.held(code, arguments=arguments, secrets=[("T", canaries["secret"].decode())])
    request = gateway.start("RUN", execution=x, arguments=arguments)
    # The one that has the code now; on a busy machine that takes a while.
    assert (found := wait_for(lambda: [p for p in runners(sandbox) if os.path.exists(f"/proc/{p}/root/tmp/held")]))
    pid, = found
    for what, canary in canaries.items():
        assert memory_has(pid, canary), what
    os.rmdir(f"/proc/{pid}/root/tmp/held")
    got, m = gateway.receive()
    assert got == request and answer(m)[0] == DONE
    admind.record(x)
    found = roles(sandbox)
    assert {"sandboxd", "sandboxd-spawn", "mcpbox-pool-init", "mcpbox-peek", "mcpbox-runner"} == set(found)
    for role, pid in found.items():
        for what, canary in canaries.items():
            assert not memory_has(pid, canary), (role, what)


@pytest.mark.parametrize("size", [12, 40, 63, 200])
def test_a_cut_never_goes_through_a_secret(sandbox, admind, gateway, size):
    """Output is cut at 64 KiB and errors show the last of it: whatever
    straddles a cut, no half of a secret is left."""
    secret = "S3" + os.urandom(size).hex()[:size - 2]
    for pad in range(0, 2 * size + 80, size // 3):
        x = admind.held("import sys, mcpbox\ndef main():\n"
                        f"    sys.stdout.write('x' * (65536 - {pad}) + mcpbox.secrets['T'] "
                        "+ 'y' * 9000)\n", secrets=[("T", secret)])
        _, body, meta = run(gateway, x)
        seen = json.dumps([body, meta])
        for n in range(len(secret) - 5):
            assert secret[n:n + 6] not in seen, (pad, n)


def test_a_cut_in_an_error_never_goes_through_a_secret(sandbox, admind, gateway):
    secret = "S3" + os.urandom(20).hex()
    for pad in (0, 10, 25, 41, 42):
        x = admind.held("import mcpbox\ndef main():\n    s = mcpbox.secrets['T']\n"
                        f"    print('x' * 99 + s + 'y' * (8191 - {pad}))\n"
                        "    raise ValueError(s + 'z' * 7000 + s + 'z' * 7000)\n",
                        secrets=[("T", secret)])
        _, body, meta = run(gateway, x)
        seen = json.dumps([body, meta])
        for n in range(len(secret) - 5):
            assert secret[n:n + 6] not in seen, (pad, n)


# --- Nothing grows. ---

ENDS = [
    (ONE, 5000), ("def main():\n    while True:\n        pass\n", 150),
    ("import ctypes\ndef main():\n    ctypes.string_at(0)\n", 5000),
    ("import os\ndef main():\n    os._exit(3)\n", 5000),
    ("import os, time\ndef main():\n    while True:\n        os.fork()\n", 300),
    ("import os, time\ndef main():\n    if os.fork() == 0:\n        os.setpgid(0, 0)\n"
     "        time.sleep(60)\n", 5000),
    ("import os\ndef main():\n    open('/tmp/x', 'wb').write(b'x' * 9000000)\n"
     "    os.close(3)\n", 5000),
    ("def main():\n    return 'x' * 500000\n", 5000),
    (FLOOD_DESCRIPTORS.replace("COUNT", "100").replace("FLAG", "1"), 1000),
    ("import os, socket\ndef main():\n    keep = [socket.socketpair() for _ in range(50)]\n"
     "    os.kill(1, 9)\n    os.abort()\n", 300),
]


def footprint(sandbox):
    """role -> (descriptors, memfds, mounts, zombies, threads)"""
    out = {}
    every = processes()
    for role, pid in roles(sandbox).items():
        links = []
        for fd in os.listdir(f"/proc/{pid}/fd"):
            try:
                links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
            except OSError:
                pass
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as f:
            mounts = len(f.readlines())
        children = [s for parent, s, _, _ in every.values() if parent == pid]
        # the daemons' mounts are the host's
        out[role] = (len(links), sum("memfd:" in n for n in links),
                     mounts if role.startswith("mcpbox-") else 0,
                     children.count("Z"), len(os.listdir(f"/proc/{pid}/task")))
    return out


@pytest.mark.alone
def test_nothing_grows_over_300_calls(sandbox, admind, gateway):
    """Results, time-outs, crashes, bombs, orphans, floods of descriptors."""
    for code, timeout in ENDS:
        run(gateway, admind.held(code, timeout=timeout))
    assert wait_for(lambda: not runners(sandbox))
    before, ids, waiting = footprint(sandbox), [], set()
    assert len(before) == 5, before
    while len(ids) < 300 or waiting:
        while len(ids) < 300 and len(waiting) < 8:
            code, timeout = ENDS[len(ids) % len(ENDS)]
            ids.append(admind.held(code, timeout=timeout))
            waiting.add(gateway.start("RUN", execution=ids[-1], arguments=b"{}"))
        request, m = gateway.receive()
        assert m["_"] == "CALL_RESULT", m
        waiting.remove(request)
    for x in ids:
        admind.record(x)
    assert wait_for(lambda: footprint(sandbox) == before), (before, footprint(sandbox))
    assert not runners(sandbox)
    assert run(gateway, admind.held(ONE))[0] == DONE
