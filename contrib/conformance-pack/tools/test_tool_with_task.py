"""Asks first, then runs as a task (task: after_questions)."""
import mcpbox


def main() -> str:
    """Asks for a name before it becomes a task, and greets as one."""
    answer = mcpbox.elicit("What is your name?", {"name": str})
    if not answer.accepted:
        return "Hello, whoever you are!"
    return f"Hello, {answer.content['name']}!"
