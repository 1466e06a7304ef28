"""Asks the client's model what the prompt says."""
import mcpbox


def main(prompt: str) -> str:
    """Asks the client's model.

    Args:
        prompt: The prompt to send to the model.
    """
    answer = mcpbox.sample(prompt, max_tokens=100)
    return f"LLM response: {answer.text}"
