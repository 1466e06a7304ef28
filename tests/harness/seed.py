"""The seed of a run. tests/run shows it and gives it to every test, so that a failure
can be repeated (`--seed N`)."""
import os
import random
import time

SEED = int(os.environ.get("MCPBOX_SEED", time.time_ns() // 1000 % 1_000_000_000))


def rng(name):
    """A generator of a test's own: which other tests ran before changes nothing."""
    print(f"seed {SEED} of {name}")
    return random.Random(f"{SEED} {name}")
