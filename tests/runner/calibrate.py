"""How fast this machine starts a process: the one figure that the limits which end a
hang are scaled by, and the expected times. No verdict depends on it."""
import os
import time

BATCHES, BATCH = 5, 20
#: Milliseconds of 100 fork+exec for which the limits in jobs.py are written. A slower
#: machine has more time in proportion; a faster one has no less.
REFERENCE_MS = 300


def measure():
    """Milliseconds that 100 fork+exec of /bin/true take: the median of five batches, so
    that one pause of the machine does not count."""
    took = []
    for _ in range(BATCHES):
        began = time.monotonic()
        for _ in range(BATCH):
            os.waitpid(os.posix_spawn("/bin/true", ["/bin/true"], {}), 0)
        took.append(time.monotonic() - began)
    return sorted(took)[BATCHES // 2] / BATCH * 100 * 1000


def patience(milliseconds):
    """What limits are multiplied by."""
    return max(1.0, milliseconds / REFERENCE_MS)
