"""Where the sources and the programs under test are."""
import os

SRC = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("MCPBOX_BUILD", os.path.join(SRC, "build", "release"))
