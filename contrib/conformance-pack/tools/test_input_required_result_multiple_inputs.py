"""Three questions of three sorts at once."""
import mcpbox


def main() -> str:
    """Asks person, model and roots in one round."""
    answers = mcpbox.ask({
        "user_name": mcpbox.Elicit("What is your name?", {"name": str}),
        "greeting": mcpbox.Sample("Generate a greeting", max_tokens=50),
        "client_roots": mcpbox.Roots(),
    })
    name = answers["user_name"].content.get("name", "nobody")
    return (f"{answers['greeting'].text} {name}: "
            f"{len(answers['client_roots'])} roots")
