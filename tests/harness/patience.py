"""How much longer than on an ordinary machine a wait may take before it is a hang.
tests/run measures it at its start (tests/runner/calibrate.py). A wait looks for an
event; this only bounds how long it looks."""
import math
import os
import time

#: Beside the measured factor: tests give the seconds that a quiet machine needs at most,
#: and several of them run at once, beside whatever else the machine does.
SLACK = 4
FACTOR = SLACK * max(1.0, float(os.environ.get("MCPBOX_PATIENCE", "1")))


#: The setting wait_factor of daemons (mcpbox.conf(5)): they wait for one another as much
#: longer as the machine is slower.
WAIT_FACTOR = min(20, math.ceil(FACTOR / SLACK))
#: sandboxd's queue_wait: its default, as much longer, or the longest there is.
QUEUE_WAIT = f"{min(60, 5 * WAIT_FACTOR)}s"


def patience(seconds):
    """Seconds after which a wait is a hang, where a quiet machine takes this many."""
    return seconds * FACTOR


def until(what, seconds=60, step=0.02, say=lambda: "", during=()):
    """Waits until what() is true, and returns what it returned. say: called for the
    message if it never is. during: exceptions of what() that mean "not yet"; one that
    lasts is raised."""
    end = time.monotonic() + patience(seconds)
    while True:
        # Before the look: a machine that stands still after it must not decide.
        late = time.monotonic() > end
        try:
            if got := what():
                return got
        except during:
            if late:
                raise
        assert not late, f"still not after {patience(seconds):.0f} s: {say()}"
        time.sleep(step)


def eventually(what, seconds=120, step=0.1):
    """The same for who judges what came: the value of what() once it is true, or its
    last one."""
    end = time.monotonic() + patience(seconds)
    while True:
        late = time.monotonic() > end
        if (got := what()) or late:
            return got
        time.sleep(step)
