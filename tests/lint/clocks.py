"""No test judges by the speed of the machine.

An assertion that compares a measured time with a bound from above fails on a slow
machine. This refuses each in tests/. A deadline that ends a hang is no such
assertion: `until()` and `patience()` of harness/patience.py. A test that judges speed
is a benchmark: tests/bench, tests/soak, and modules marked `bench`.

A literal as a hang's limit is refused too: patience() makes the limit grow where the
machine is slow.

And nobody writes the loop again that until() and eventually() are: one that sleeps
between looks, until a clock or a number of rounds ends it.
"""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
#: Names of times that another function measured.
NAMES = {"took", "elapsed", "slowest"}
CLOCKS = {"monotonic", "perf_counter", "time", "monotonic_ns", "perf_counter_ns", "time_ns"}
PLANTED = """
def test_bad():
    began = time.monotonic()
    f()
    assert x and time.monotonic() - began < 2
def test_named():
    t = time.monotonic()
    took = time.monotonic() - t
    assert 1 < took < 3
def test_lower():
    t = time.monotonic()
    assert time.monotonic() - t > 2
    assert 2 <= time.monotonic() - t
def test_hang():
    end = time.monotonic() + patience(5)
    while not f():
        assert time.monotonic() < end
def test_told(took):
    assert took < 2
def test_control(took, control):
    assert 10 * control > min(took)
def test_other():
    assert count < 3 and len(took) < 3
"""
PLANTED_C = """
	assert_true(lc_ms() - begun < 200);
	assert_in_range(now_boot_ms() -
	    start, 1500, 3000);
	assert_true(lc_ms() - begun >= 200);
	assert_true(lc_ms() < end);
"""
IN_C = re.compile(r"assert_(?:true\([^;]*_ms\(\)\s+-\s[^;]*<|in_range\([^;]*_ms\(\)\s+-\s)")
#: A hang's limit in C, which unit_patience() makes grow.
PLANTED_C_LIMITS = """
	alarm(20);
	alarm((unsigned)unit_patience(5000) / 1000);
	alarm(0);
"""
LIMITS_IN_C = re.compile(r"\balarm\([0-9]*[1-9][0-9]*\)")
#: Functions that take the limit of a hang: as `timeout`, and as their only argument.
LIMITED = {"run", "check_output", "check_call", "communicate", "wait", "join", "command", "systemctl",
           "create_connection", "urlopen", "HTTPConnection", "Client", "receive", "closed"}
LIMITED_ALONE = {"communicate", "wait", "join", "receive", "closed"}
PLANTED_LIMITS = """
p.wait(10); p.wait(patience(10)); p.communicate(timeout=3); stop.wait(0.05); ", ".join(x)
subprocess.run(["a"], timeout=60, check=True)
socket.create_connection(a, timeout=patience(4))
p.receive(5); p.receive(patience(5)); p.receive(0.1); p.receive(None); p.closed(3); p.closed()
"""

#: Loops that sleep and are no wait, each with its reason.
LOOPS = {
    "tests/harness/patience.py": (2, "the helpers themselves"),
    "tests/harness/clients/load.py": (1, "how long the service was away is the result"),
    "tests/bench/parts.py": (1, "a benchmark: the time until the first answer is what it measures"),
    "tests/lint/collection.py": (1, "waits for the clock's next second"),
    "tests/integration/sandbox/test_sandboxd_pool.py": (1, "kills runners for three seconds"),
    "tests/integration/vault/test_vault_admins.py": (1, "a login is used at a pace that the test sets"),
}
PLANTED_LOOPS = """
while not f():
    assert time.monotonic() < end
    time.sleep(1)
for _ in range(9):
    if f():
        break
    time.sleep(1)
for pause in (1, 2):
    time.sleep(pause)
while not stop.is_set():
    t = time.monotonic()
    time.sleep(1)
while True:
    while time.monotonic() < end:
        time.sleep(1)
def f():
    for _ in range(3):
        time.sleep(1)
"""


def reads_clock(node):
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS \
        and isinstance(node.func.value, ast.Name) and node.func.value.id == "time"


def measured(node, names):
    """Is a time that passed in this expression?"""
    return any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and reads_clock(n.left)
               or isinstance(n, ast.Name) and n.id in names for n in ast.walk(node))


def counts(node):
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "len"


def constant(node):
    """Is it written down, not measured beside it?"""
    return all(isinstance(n, ast.Constant) or isinstance(n, ast.Name) and n.id.isupper()
               for n in ast.walk(node) if isinstance(n, (ast.Constant, ast.Name, ast.Attribute, ast.Call)))


def functions(tree):
    for n in ast.walk(tree):
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield n


def found(text):
    """Names of functions, each as often as it has such an assertion."""
    out = []
    for f in functions(ast.parse(text)):
        names = {t.id for n in ast.walk(f) if isinstance(n, ast.Assign) and measured(n.value, ())
                 for t in n.targets if isinstance(t, ast.Name)}
        for a in ast.walk(f):
            if not isinstance(a, ast.Assert):
                continue
            for c in ast.walk(a.test):
                if not isinstance(c, ast.Compare):
                    continue
                sides = [c.left, *c.comparators]
                for left, op, right in zip(sides, c.ops, sides[1:]):
                    if isinstance(op, (ast.Gt, ast.GtE)):
                        left, right = right, left
                    elif not isinstance(op, (ast.Lt, ast.LtE)):
                        continue
                    told = measured(left, NAMES) and constant(right) and not counts(left)
                    if measured(left, names) or told:
                        out.append(f.name)
    return out


def seconds(node):
    """Is it a number of seconds that a test writes down? Less than one is a step."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value >= 1


def limits(text):
    """Lines of calls with a literal as the limit of a hang."""
    for c in ast.walk(ast.parse(text)):
        if isinstance(c, ast.Call):
            name = getattr(c.func, "attr", getattr(c.func, "id", ""))
            told = [k.value for k in c.keywords if k.arg == "timeout"] if name in LIMITED else []
            alone = c.args if name in LIMITED_ALONE and len(c.args) == 1 else []
            if any(map(seconds, (*told, *alone))):
                yield c.lineno


def inside(loop):
    """What a loop itself does: not the functions and loops that it holds."""
    nodes = list(ast.iter_child_nodes(loop))
    for n in nodes:
        yield n
        if not isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.While, ast.For)):
            nodes += ast.iter_child_nodes(n)


def polls(text):
    """Lines of loops that sleep between looks until a clock, or a count, ends them."""
    for loop in ast.walk(ast.parse(text)):
        if not isinstance(loop, (ast.While, ast.For)):
            continue
        does = list(inside(loop))
        sleeps = any(isinstance(n, ast.Call) and ast.unparse(n.func) == "time.sleep" for n in does)
        clock = any(isinstance(n, ast.Compare) and any(map(reads_clock, ast.walk(n))) for n in does)
        counted = isinstance(loop, ast.For) and getattr(loop.target, "id", "") == "_" \
            and any(isinstance(n, (ast.Break, ast.Return)) for n in does)
        if sleeps and (clock or counted):
            yield loop.lineno


def main():
    got = found(PLANTED), len(IN_C.findall(PLANTED_C)), sorted(limits(PLANTED_LIMITS)), sorted(polls(PLANTED_LOOPS))
    if len(LIMITS_IN_C.findall(PLANTED_C_LIMITS)) != 1 or got != (["test_bad", "test_named", "test_told"], 2, [2, 2, 3, 5, 5], [2, 5, 15]):
        sys.exit(f"the check can't fail: {got}")
    bad = 0
    for p in sorted((ROOT / "tests").rglob("*.[ch]")):
        for m in IN_C.finditer(text := p.read_text(encoding="utf-8")):
            print(f"{p.relative_to(ROOT)}:{text.count(chr(10), 0, m.start()) + 1}: judges by the speed of the machine")
            bad += 1
        for m in LIMITS_IN_C.finditer(text):
            print(f"{p.relative_to(ROOT)}:{text.count(chr(10), 0, m.start()) + 1}: a hang's limit that does not grow on a "
                  "slow machine: unit_patience(ms) of unit.h")
            bad += 1
    for p in sorted((ROOT / "tests").rglob("*.py")):
        name, text = p.relative_to(ROOT).as_posix(), p.read_text(encoding="utf-8")
        lines = sorted(polls(text))
        if len(lines) != LOOPS.get(name, (0, ""))[0]:
            print(f"{name}:{lines}: waits by a loop of its own: until() or eventually() of harness/patience.py "
                  f"({LOOPS.get(name, (0, ''))[0]} are known)")
            bad += 1
        if name.startswith(("tests/bench/", "tests/soak/")) or "pytestmark = pytest.mark.bench" in text:
            continue
        for f in found(text):
            print(f"{name}::{f}: judges by the speed of the machine: wait for an event, or compare with a control")
            bad += 1
        for line in sorted(limits(text)):
            print(f"{name}:{line}: a hang's limit that does not grow on a slow machine: write patience(seconds)")
            bad += 1
    return 1 if bad else 0


sys.exit(main())
