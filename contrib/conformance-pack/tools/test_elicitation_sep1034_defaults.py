"""A form whose fields have defaults (SEP-1034)."""
import json

import mcpbox

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"],
                   "default": "active"},
        "verified": {"type": "boolean", "default": True},
    },
    "required": [],
}


def main() -> str:
    """Asks with defaults of every primitive type."""
    action, content = mcpbox.elicit("Please review the defaults", SCHEMA)
    return (f"Elicitation completed: action={action}, "
            f"content={json.dumps(content)}")
