"""No test judges by the speed of the machine.

An assertion that compares a measured time with a bound from above fails on a slow
machine. This refuses each in tests/. A deadline that ends a hang is no such
assertion: `until()` and `patience()` of harness/patience.py. A test that judges speed
is a benchmark: tests/bench, tests/soak, and modules marked `bench`.
"""
import ast
import pathlib
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


def main():
    got = found(PLANTED)
    if got != ["test_bad", "test_named", "test_told"]:
        sys.exit(f"the check can't fail: {got}")
    bad = 0
    for p in sorted((ROOT / "tests").rglob("*.py")):
        name, text = p.relative_to(ROOT).as_posix(), p.read_text(encoding="utf-8")
        if name.startswith(("tests/bench/", "tests/soak/")) or "pytestmark = pytest.mark.bench" in text:
            continue
        for f in found(text):
            print(f"{name}::{f}: judges by the speed of the machine: wait for an event, or compare with a control")
            bad += 1
    return 1 if bad else 0


sys.exit(main())
