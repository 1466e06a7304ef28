"""Which job runs next. No input or output here: execute.py starts processes, this
file only chooses, so that a test can play any order of events.

A job takes `places` of the machine's. Both processors stay busy when there are some
more places than processors, since most tests wait for something most of the time.
A job that is `alone` runs when nothing else does.
"""
import dataclasses
import typing

#: Places a processor: integration's three workers alone kept 1.3 processors busy, and
#: beside them another part's two shall run.
PLACES_A_PROCESSOR = 3
#: Seconds that a job is expected to take when no run was recorded.
UNKNOWN_SECONDS = 30


@dataclasses.dataclass
class Job:
    name: str
    part: str
    do: typing.Callable = None
    needs: tuple = ()
    places: int = 1
    alone: bool = False
    #: Seconds after which the job is taken to hang; execute.py scales them.
    limit: int = 600
    #: Jobs of a lower stage start first where both could.
    stage: int = 0
    seconds: float = UNKNOWN_SECONDS
    #: Number of tests that the job had when it was last recorded.
    tests: int = 0


WAITING, RUNNING, DONE, FAILED, LEFT_OUT = "waiting", "running", "done", "failed", "left out"


class Graph:
    """The state of all jobs: begin() and end() change it, choose() reads it."""

    def __init__(self, jobs, places):
        self.jobs = {j.name: j for j in jobs}
        if len(self.jobs) != len(jobs):
            raise ValueError("two jobs of one name")
        self.places = places
        self.state = {name: WAITING for name in self.jobs}
        for j in jobs:
            for n in j.needs:
                if n not in self.jobs:
                    raise ValueError(f"{j.name} needs {n}, which is no job")
        self._order = self._critical()

    def _critical(self):
        """Names in the order in which they should start: by stage, then by the
        time of the longest chain of jobs that begins with each."""
        after = {name: [] for name in self.jobs}
        for j in self.jobs.values():
            for n in j.needs:
                after[n].append(j.name)
        length, busy = {}, set()

        def chain(name):
            if name in busy:
                raise ValueError(f"{name} needs itself")
            if name not in length:
                busy.add(name)
                length[name] = self.jobs[name].seconds + max(map(chain, after[name]), default=0)
                busy.discard(name)
            return length[name]

        return sorted(self.jobs, key=lambda n: (self.jobs[n].stage, -chain(n), n))

    def of_state(self, *states):
        return [n for n, s in self.state.items() if s in states]

    def choose(self):
        """The job to start now, or None. No job starts after one whose turn it is and
        that is alone: such a job would never find the machine idle."""
        running = [self.jobs[n] for n in self.of_state(RUNNING)]
        if any(j.alone for j in running):
            return None
        free = self.places - sum(j.places for j in running)
        for name in self._order:
            if self.state[name] != WAITING:
                continue
            j = self.jobs[name]
            if any(self.state[n] != DONE for n in j.needs):
                continue
            if j.alone:
                return None if running else name
            if min(j.places, self.places) <= free:
                return name
        return None

    def begin(self, name):
        assert self.state[name] == WAITING, (name, self.state[name])
        self.state[name] = RUNNING

    def end(self, name, good):
        """Returns the names of the jobs that can't run any more because of it."""
        assert self.state[name] == RUNNING, (name, self.state[name])
        self.state[name] = DONE if good else FAILED
        return [] if good else self._without(name, FAILED)

    def leave_out(self, name):
        """A job that is not started. Returns those that need it."""
        assert self.state[name] == WAITING, (name, self.state[name])
        self.state[name] = LEFT_OUT
        return self._without(name, LEFT_OUT)

    def _without(self, name, state):
        gone = []
        for j in self.jobs.values():
            if name in j.needs and self.state[j.name] == WAITING:
                self.state[j.name] = state
                gone += [j.name, *self._without(j.name, state)]
        return gone

    def over(self):
        return not self.of_state(WAITING, RUNNING)


def expected(graph, elapsed=None):
    """Seconds until all of a graph is done, by playing it. elapsed: job -> seconds
    that a running job has had."""
    g = Graph(list(graph.jobs.values()), graph.places)
    g.state = dict(graph.state)
    elapsed = elapsed or {}
    ends = {n: max(1.0, g.jobs[n].seconds - elapsed.get(n, 0)) for n in g.of_state(RUNNING)}
    now = 0.0
    while not g.over():
        while (name := g.choose()) is not None:
            g.begin(name)
            ends[name] = now + g.jobs[name].seconds
        if not ends:
            break	# what is left waits for something that will not come
        name = min(ends, key=ends.get)
        now = max(now, ends.pop(name))
        g.end(name, True)
    return now
