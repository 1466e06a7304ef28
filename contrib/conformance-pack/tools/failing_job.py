"""Always fails after a second; runs as a task only (task: required)."""
import time

import mcpbox


def main() -> str:
    """Fails as tools do: with a result that says so."""
    time.sleep(1)
    raise mcpbox.ToolError("the job failed, as it always does")
