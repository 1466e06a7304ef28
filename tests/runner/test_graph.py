"""The order of jobs, played without a process."""
import pytest

from runner.graph import DONE, FAILED, LEFT_OUT, WAITING, Graph, Job, expected


def job(name, *needs, **more):
    return Job(name, "part", needs=needs, **more)


def started(graph):
    """Starts all that may start now; their names in order."""
    names = []
    while (name := graph.choose()) is not None:
        graph.begin(name)
        names.append(name)
    return names


def test_what_needs_nothing_starts_first_and_the_longest_chain_leads():
    g = Graph([job("short"), job("build"), job("long", "build", seconds=100)], 2)
    assert started(g) == ["build", "short"]
    assert g.end("build", True) == []
    assert started(g) == ["long"]


def test_places_bound_what_runs_at_once():
    g = Graph([job("a", places=3), job("b", places=2), job("c", places=1)], 4)
    assert started(g) == ["a", "c"]
    g.end("c", True)
    assert started(g) == []
    g.end("a", True)
    assert started(g) == ["b"]


def test_a_job_of_more_places_than_there_are_runs_all_the_same():
    g = Graph([job("a", places=9), job("b")], 4)
    assert started(g) == ["a"]
    g.end("a", True)
    assert started(g) == ["b"]


def test_who_is_alone_runs_with_nothing_else():
    g = Graph([job("a"), job("one", alone=True, stage=2), job("two", alone=True, stage=2)], 4)
    assert started(g) == ["a"]
    g.end("a", True)
    assert started(g) == ["one"]
    g.end("one", True)
    assert started(g) == ["two"]
    g.end("two", True)
    assert g.over()


def test_nothing_of_a_later_stage_overtakes_who_waits_to_be_alone():
    g = Graph([job("a"), job("one", alone=True, stage=1), job("late", stage=2)], 4)
    assert started(g) == ["a"]
    g.end("a", True)
    assert started(g) == ["one"]
    g.end("one", True)
    assert started(g) == ["late"]


def test_a_failed_need_takes_all_that_build_on_it_and_no_other():
    g = Graph([job("build"), job("a", "build"), job("b", "a"), job("c")], 4)
    started(g)
    assert sorted(g.end("build", False)) == ["a", "b"]
    assert g.state["a"] == g.state["b"] == FAILED and g.state["c"] != FAILED
    g.end("c", True)
    assert g.over()


def test_what_is_left_out_takes_what_needs_it_along():
    g = Graph([job("packages"), job("guest", "packages")], 4)
    assert g.leave_out("packages") == ["guest"]
    assert set(g.state.values()) == {LEFT_OUT} and g.over()


@pytest.mark.parametrize("jobs, why", [
    ([job("a"), job("a")], "two jobs"), ([job("a", "x")], "no job"), ([job("a", "b"), job("b", "a")], "needs itself")])
def test_a_table_that_makes_no_sense_is_refused(jobs, why):
    with pytest.raises(ValueError, match=why):
        Graph(jobs, 4)


def test_expected_time_is_that_of_the_played_graph_and_changes_nothing():
    g = Graph([job("build", seconds=10), job("a", "build", seconds=20), job("b", seconds=25)], 2)
    assert expected(g) == 30
    assert set(g.state.values()) == {WAITING}
    started(g)
    assert expected(g, {"build": 4, "b": 4}) == 26
    g.end("build", True)
    assert g.state["build"] == DONE
    one = Graph([job("a", seconds=10), job("b", seconds=10)], 1)
    assert expected(one) == 20
