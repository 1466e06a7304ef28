from mcpbox import Resource


def main():
    return Resource("test://embedded-resource", text="This is an embedded resource content.",
                    mime_type="text/plain")
