import time

import mcpbox


def main():
    """Lets the server close the stream while it works."""
    mcpbox.pause_stream(retry_ms=500)
    time.sleep(0.3)
    return "The answer came over the stream that was opened again."
