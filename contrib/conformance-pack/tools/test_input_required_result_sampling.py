"""One question to the client's model."""
import mcpbox


def main() -> str:
    """Asks the client's model for a capital."""
    answers = mcpbox.ask({"capital_question": mcpbox.Sample(
        "What is the capital of France?", max_tokens=100)})
    return answers["capital_question"].text
