"""A question of a call that streams."""
import mcpbox


def main() -> str:
    """Reports progress, then asks the person at the client."""
    mcpbox.progress(1, 2, "about to ask")
    answer = mcpbox.elicit("Go on?", {"ok": bool})
    mcpbox.progress(2, 2, "answered")
    return f"action={answer.action}"
