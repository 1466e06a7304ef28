from mcpbox import Message, Resource


def main(resourceUri: str):
    return [Message("user", Resource(resourceUri, text="Embedded resource content for testing.",
                                     mime_type="text/plain")),
            Message("user", "Please process the embedded resource above.")]
