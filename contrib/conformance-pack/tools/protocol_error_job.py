"""Ends with a JSON-RPC error; may run as a task (task: optional)."""
import mcpbox


def main() -> str:
    """Fails as servers do: without a result."""
    raise mcpbox.ProtocolError("the job broke down")
