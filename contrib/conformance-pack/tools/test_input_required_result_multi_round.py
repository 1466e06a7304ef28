"""Two questions, the second after the first was answered."""
import mcpbox


def main() -> str:
    """Asks twice."""
    one = mcpbox.ask({"step1": mcpbox.Elicit(
        "Step 1: What is your name?", {"name": str})})["step1"]
    two = mcpbox.ask({"step2": mcpbox.Elicit(
        "Step 2: What is your favorite color?", {"color": str})})["step2"]
    return f"{one.content.get('name')} likes {two.content.get('color')}"
