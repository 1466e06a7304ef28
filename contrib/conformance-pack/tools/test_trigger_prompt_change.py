def main():
    """As test_trigger_tool_change, for prompts."""
    return "Asked."
