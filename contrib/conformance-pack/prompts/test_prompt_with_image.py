from mcpbox import Image, Message

PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")


def main():
    return [Message("user", Image(PNG, "image/png")), Message("user", "Please analyze the image above.")]
