"""The stream that makes an entry of the module store (sandboxd/store/tree.h)."""
import importlib.machinery
import importlib.util
import os
import struct

SRC = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
MAGIC = b"mcpbox tree 1\0"


def module_add():
    """contrib/module-add as a module: its digest() is the definition."""
    path = os.path.join(SRC, "contrib", "module-add")
    loader = importlib.machinery.SourceFileLoader("module_add", path)
    spec = importlib.util.spec_from_loader("module_add", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def directory(path):
    return struct.pack(">BI", 1, len(path)) + path


def file(path, content, length=None):
    return (struct.pack(">BI", 2, len(path)) + path
            + struct.pack(">Q", len(content) if length is None else length) + content)


def stream(files):
    """A whole one from {path: bytes}, directories made as they are needed."""
    entries = {}
    for path, content in files.items():
        path = path.encode() if isinstance(path, str) else path
        parts = path.split(b"/")
        for i in range(1, len(parts)):
            entries[b"/".join(parts[:i])] = None
        entries[path] = content
    return MAGIC + b"".join(directory(p) if c is None else file(p, c)
                            for p, c in sorted(entries.items()))


def write(top, files):
    """The same as files below top."""
    for path, content in files.items():
        full = os.path.join(top, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "wb") as f:
            f.write(content)
