import mcpbox


def main():
    mcpbox.log("Only for requests that asked for log messages.")
    return "Logged."
