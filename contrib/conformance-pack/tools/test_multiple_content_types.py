import json

from mcpbox import Image, Resource, Text

PNG = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")


def main():
    return [Text("Multiple content types test:"), Image(PNG, "image/png"),
            Resource("test://mixed-content-resource", text=json.dumps({"test": "data", "value": 123}),
                     mime_type="application/json")]
