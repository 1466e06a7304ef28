"""One question whose state a client may try to change."""
import mcpbox


def main() -> str:
    """Asks to confirm."""
    answers = mcpbox.ask({
        "confirm": mcpbox.Elicit("Please confirm", {"ok": bool})})
    return f"state-ok {answers['confirm'].action}"
