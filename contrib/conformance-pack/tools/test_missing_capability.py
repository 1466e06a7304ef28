"""Needs a client that can sample: its version says so (client capability
sampling), and one that can't is told before anything runs."""
import mcpbox


def main() -> str:
    """Asks the client's model."""
    return mcpbox.sample("Say yes", max_tokens=10).text
