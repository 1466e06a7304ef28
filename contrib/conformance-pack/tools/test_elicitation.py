"""Asks the person at the client for two fields."""
import json

import mcpbox

SCHEMA = {
    "type": "object",
    "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    },
    "required": ["username", "email"],
}


def main(message: str) -> str:
    """Asks the person at the client.

    Args:
        message: The message to show.
    """
    action, content = mcpbox.elicit(message, SCHEMA)
    return f"User response: action={action}, content={json.dumps(content)}"
