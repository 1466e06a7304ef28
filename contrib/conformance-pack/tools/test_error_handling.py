from mcpbox import ToolError


def main():
    raise ToolError("This tool intentionally returns an error for testing")
