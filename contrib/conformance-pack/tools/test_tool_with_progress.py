import time

import mcpbox


def main():
    for done in (0, 50, 100):
        mcpbox.progress(done, total=100)
        time.sleep(0.05)
    return "Progress reported."
