"""Two questions at once; runs as a task (task: optional)."""
import mcpbox


def main() -> str:
    """Asks for a name and a confirmation in parallel."""
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"},
                       "confirm": {"type": "boolean"}},
    }
    answers = mcpbox.ask({
        "first": mcpbox.Elicit("What is your name?", schema),
        "second": mcpbox.Elicit("Are you sure?", schema),
    })
    return ", ".join(f"{k}: {a.action}" for k, a in answers.items())
