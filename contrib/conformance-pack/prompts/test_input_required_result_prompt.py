"""A prompt that asks before it is made."""
import mcpbox


def main() -> str:
    """Asks for the context to use."""
    answer = mcpbox.ask({"user_context": mcpbox.Elicit(
        "What context should the prompt use?", {"context": str})})
    answer = answer["user_context"]
    return f"Use this context: {answer.content.get('context', 'none')}"
