"""One question to the person at the client."""
import mcpbox


def main() -> str:
    """Asks for a name, then greets."""
    answers = mcpbox.ask({
        "user_name": mcpbox.Elicit("What is your name?", {"name": str})})
    answer = answers["user_name"]
    if not answer.accepted:
        return "No name was given."
    return f"Hello, {answer.content['name']}!"
