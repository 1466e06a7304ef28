"""A form with all five sorts of choice (SEP-1330)."""
import json

import mcpbox

OPTIONS = ["option1", "option2", "option3"]


def titled(*titles):
    return [{"const": f"value{i}", "title": t}
            for i, t in enumerate(titles, 1)]


SCHEMA = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": OPTIONS},
        "titledSingle": {"type": "string", "oneOf": titled(
            "First Option", "Second Option", "Third Option")},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
                       "enumNames": ["Option One", "Option Two",
                                     "Option Three"]},
        "untitledMulti": {"type": "array",
                          "items": {"type": "string", "enum": OPTIONS}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled(
            "First Choice", "Second Choice", "Third Choice")}},
    },
    "required": [],
}


def main() -> str:
    """Asks with every sort of choice."""
    action, content = mcpbox.elicit("Please choose", SCHEMA)
    return (f"Elicitation completed: action={action}, "
            f"content={json.dumps(content)}")
