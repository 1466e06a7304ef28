def main():
    """What a tool can do about the list of tools: nothing. The test's own
    administrator watches for this call and changes the list."""
    return "Asked."
