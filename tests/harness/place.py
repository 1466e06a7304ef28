"""Where the sources and the programs under test are, and a place that a runner's user reads."""
import contextlib
import os
import pathlib
import tempfile

SRC = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
BUILD = os.environ.get("MCPBOX_BUILD", os.path.join(SRC, "build", "release"))


@contextlib.contextmanager
def readable_directory():
    """Makes a directory that every user may read, and removes it after. It is not one of
    pytest's: each pytest that starts beside this one closes the directory above all of them
    to other users."""
    with tempfile.TemporaryDirectory(prefix="mcpbox") as path:
        os.chmod(path, 0o755)
        yield pathlib.Path(path)
