"""Greets; never a task (task: forbidden)."""


def main(name: str = "World") -> str:
    """Greets somebody.

    Args:
        name: Who is greeted.
    """
    return f"Hello, {name}!"
