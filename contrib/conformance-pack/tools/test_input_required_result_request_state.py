"""One question; the platform seals where the tool stands."""
import mcpbox


def main() -> str:
    """Asks to confirm."""
    answers = mcpbox.ask({
        "confirm": mcpbox.Elicit("Please confirm", {"ok": bool})})
    return f"state-ok {answers['confirm'].action}"
