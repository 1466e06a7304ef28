import time

import mcpbox


def main():
    mcpbox.log("Tool execution started")
    time.sleep(0.05)
    mcpbox.log("Tool processing data")
    time.sleep(0.05)
    mcpbox.log("Tool execution completed")
    return "Logged three times."
