"""The differences that the panel shows: exact, the shortest where the work suffices, and bounded by counted steps."""
import pytest

from harness.seed import rng

from .scripts import run

#: Lines of one change, so that each pair of them may be compared.
LINES = 30
#: The words of a line are bounded by the panel; this many are looked at.
WORDS = 399


def shortest(a, b):
    """Edits of the shortest difference, by the table of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for x in a:
        last = row
        row = [0]
        for k, y in enumerate(b):
            row.append(last[k] + 1 if x == y else max(last[k + 1], row[k]))
    return len(a) + len(b) - 2 * row[-1]


@pytest.fixture(scope="module")
def pairs():
    r = rng("linediff")
    return [[[r.choice("abcd") for _ in range(r.randrange(12))] for _ in range(2)] for _ in range(400)]


DIFF = """return given.map(([a, b, max, left]) => {
    const work = new m.Work(left), steps = m.listDiff(a, b, max, work);
    return {holds: m.diffHolds(steps, a, b), edits: steps.filter(s => s.kind !== 'same').length, taken: left - work.left};
});"""


def test_small_differences_are_exact_and_the_shortest(tmp_path, pairs):
    made = run(tmp_path, "ui/linediff.ts", DIFF, [[a, b, 100, 1_000_000] for a, b in pairs])
    assert len(made) == len(pairs)
    for (a, b), got in zip(pairs, made):
        assert got["holds"] and got["edits"] == shortest(a, b), (a, b, got)


def test_without_work_a_difference_is_right_and_not_short(tmp_path, pairs):
    made = run(tmp_path, "ui/linediff.ts", DIFF, [[a, b, 100, 3] for a, b in pairs])
    assert all(got["holds"] for got in made)
    assert any(got["edits"] > shortest(a, b) for (a, b), got in zip(pairs, made)), "the bound stopped nothing"


def test_a_fault_of_the_steps_is_found(tmp_path):
    made = run(tmp_path, "ui/linediff.ts", "return given.map(([steps, a, b]) => m.diffHolds(steps, a, b));", [
        [[{"kind": "same", "a": 0, "b": 0}], ["x"], ["x"]], [[{"kind": "same", "a": 0, "b": 0}], ["x"], ["y"]], [[], ["x"], ["x"]],
        [[{"kind": "del", "a": 0}], ["x"], ["y"]]])
    assert made == [True, False, False, False]


WORD = """return given.map(({a, b, left}) => {
    const work = new m.Work(left), d = new m.WordDiff(a, b, s => s, work), begun = work.left;
    const found = a.map((_, i) => b.map((_, k) => d.pair(i, k)));
    const taken = begun - work.left;
    for (let i = 0; i < a.length; i++) for (let k = 0; k < b.length; k++) d.pair(i, k);
    return {found, taken, again: begun - work.left - taken, spent: d.spent};
});"""


def lines(r, words, count, size):
    return [" ".join(r.choice(words) for _ in range(size)) for _ in range(count)]


def test_words_are_marked_where_they_differ(tmp_path):
    """The marked parts apart, both lines are the same text; and a filter leaves no pair out that the search would mark."""
    r = rng("worddiff")
    given = [{"a": lines(r, ["one", "two", "three", "x", "="], 4, 9), "b": lines(r, ["one", "two", "three", "x", "="], 4, 9), "left": 10**7}
             for _ in range(60)]
    marked = 0
    for case, got in zip(given, run(tmp_path, "ui/worddiff.ts ui/linediff.ts", WORD, given)):
        assert not got["spent"] and got["again"] == 0
        for i, row in enumerate(got["found"]):
            for k, (ra, rb) in enumerate(row):
                a, b = case["a"][i], case["b"][k]
                if ra or rb:
                    marked += 1
                    assert without(a, ra) == without(b, rb), (a, b, ra, rb)
                else:
                    common = len("".join(a.split())) - sum(len("".join(a[x:y].split())) for x, y in ra)
                    assert a == b or 3 * most(a, b) < max(len(a), len(b)) + 3 * common, (a, b)
    assert marked > 200


def without(line, ranges):
    kept, at = "", 0
    for x, y in ranges:
        kept, at = kept + line[at:x], y
    return kept + line[at:]


def most(a, b):
    """Characters of a longest common subsequence of words, at most."""
    return sum(len(w) * min(a.split().count(w), b.split().count(w)) for w in set(a.split()))


def test_lines_that_have_little_in_common_cost_little(tmp_path):
    """Controls in the same run: the same number of lines that are alike, and twice as many of both."""
    r = rng("worddiff-cost")
    mine, theirs = [f"a{i}" for i in range(5000)], [f"b{i}" for i in range(5000)]

    def apart(n):
        return {"a": lines(r, mine, n, WORDS // 2), "b": lines(r, theirs, n, WORDS // 2), "left": 10**9}

    def alike(n):
        return {"a": lines(r, mine[:40], n, WORDS // 2), "b": lines(r, mine[:40], n, WORDS // 2), "left": 10**9}
    few, many, near = run(tmp_path, "ui/worddiff.ts ui/linediff.ts", WORD, [apart(LINES), apart(2 * LINES), alike(LINES)])
    assert few["taken"] * 5 < near["taken"], (few["taken"], near["taken"])
    assert many["taken"] < 5 * few["taken"], "more than the product of the lines"


def test_all_pairs_together_keep_to_the_steps(tmp_path):
    base = [f"w{i}" for i in range(WORDS // 2)]
    a, b = ([" ".join([*base[:n], side, *base[n:]]) for n in range(LINES)] for side in ("mine", "theirs"))
    [got] = run(tmp_path, "ui/worddiff.ts ui/linediff.ts", WORD, [{"a": a, "b": b, "left": 100_000}])
    assert got["spent"] and got["taken"] == 100_001
    flat = [pair for row in got["found"] for pair in row]
    assert any(x or y for x, y in flat) and flat[-1] == [[], []]
