"""Asks what this client can answer, and goes on without the rest."""
import mcpbox


def main() -> str:
    """Asks person and model; only what the client declared is asked."""
    answers = mcpbox.ask({
        "confirm": mcpbox.Elicit("Please confirm", {"ok": bool}),
        "summary": mcpbox.Sample("Say something short", max_tokens=50),
    })
    return "; ".join(
        f"{key}: {'not available' if isinstance(a, mcpbox.ClientError) else a}"
        for key, a in answers.items())
