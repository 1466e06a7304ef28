"""Asks for the client's roots."""
import mcpbox


def main() -> str:
    """Lists the client's roots."""
    roots = mcpbox.ask({"client_roots": mcpbox.Roots()})["client_roots"]
    return "Roots: " + ", ".join(
        f"{r.get('name', '')} {r['uri']}" for r in roots)
