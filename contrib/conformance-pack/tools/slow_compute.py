"""Takes its time; may run as a task (task: optional)."""
import time

import mcpbox


def main(seconds: float = 1, label: str = "") -> str:
    """Sleeps, then returns a text.

    Args:
        seconds: How long it takes.
        label: Is returned with the result.
    """
    if not 0 <= seconds <= 3600:
        raise mcpbox.ToolError("seconds is a number from 0 to 3600")
    time.sleep(seconds)
    return f"computed {label or 'it'} in {seconds:g} s"
