"""Asks before it does something; runs as a task (task: optional)."""
import mcpbox


def main(filename: str = "file.txt") -> str:
    """Asks, then pretends to delete a file.

    Args:
        filename: What to delete.
    """
    answer = mcpbox.elicit(f"Delete {filename}?", {"confirm": bool})
    if answer.accepted and answer.content["confirm"]:
        return f"deleted {filename}"
    return f"kept {filename}"
