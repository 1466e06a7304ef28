"""What an import that finds nothing says: who can ask for the module, and how.

A finder behind all others. It answers only a real import: code that asks
whether a module is there (importlib.util.find_spec) is told no, as everywhere.
"""

import sys
import types

#: Parts of the standard library that are left out, and why.
ABSENT = {
    "tkinter": "there is no display", "turtle": "there is no display",
    "idlelib": "there is no display", "turtledemo": "there is no display",
    "curses": "there is no terminal", "readline": "there is no terminal",
    "ensurepip": "modules are granted, not installed",
    "venv": "modules are granted, not installed",
}


#: Modules that come with a package of another name; a package that has the
#: module's name is somebody else's, or free for anybody to take.
PACKAGES = {
    "Crypto": "pycryptodome", "Cryptodome": "pycryptodomex", "Xlib":
    "python-xlib", "MySQLdb": "mysqlclient", "OpenSSL": "pyOpenSSL",
    "PIL": "Pillow", "attr": "attrs", "bs4": "beautifulsoup4",
    "cairo": "pycairo", "cv2": "opencv-python", "dateutil": "python-dateutil",
    "discord": "discord.py", "dns": "dnspython", "docx": "python-docx",
    "dotenv": "python-dotenv", "faiss": "faiss-cpu", "fitz": "PyMuPDF",
    "git": "GitPython", "github": "PyGithub", "gitlab": "python-gitlab",
    "googleapiclient": "google-api-python-client", "jose": "python-jose",
    "jwt": "PyJWT", "kafka": "kafka-python", "ldap": "python-ldap",
    "magic": "python-magic", "multipart": "python-multipart",
    "nacl": "PyNaCl", "pkg_resources": "setuptools", "pptx": "python-pptx",
    "psycopg2": "psycopg2-binary", "pythoncom": "pywin32", "ruamel":
    "ruamel.yaml", "serial": "pyserial", "skimage": "scikit-image",
    "sklearn": "scikit-learn", "slugify": "python-slugify",
    "socks": "PySocks", "telegram": "python-telegram-bot", "usb": "pyusb",
    "websocket": "websocket-client", "yaml": "PyYAML", "zmq": "pyzmq",
}


def package(name):
    """How to ask for the package that brings a module."""
    known = PACKAGES.get(name)
    if known:
        return (f"ask for it with mcpbox_request_module (module_name "
                f"{known!r}: the package that brings {name!r}; a package "
                f"named {name!r} would be another's)")
    return ("ask for it with mcpbox_request_module. That takes the package's "
            "name on the index, which need not be the module's, and anybody "
            "can publish a package of that name: look it up")


def text(name):
    """The sentence for a top-level name."""
    if name in sys.stdlib_module_names:
        why = ABSENT.get(name.lstrip("_"))
        return (f"No module named {name!r}: this part of Python's standard "
                "library is not available here"
                + (f" ({why})" if why else ""))
    return (f"No module named {name!r}: only Python's standard library is "
            "there by itself. A third-party module has to be granted to the "
            f"tool: {package(name)}; or do without it. Only a tool that is "
            "there can ask: create a new one without this import first.")


class Finder:
    """Stands last in sys.meta_path."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is not None:        # a part of a package that is there
            return None
        # importlib._bootstrap: _find_spec calls us; an import calls that.
        caller = sys._getframe(2).f_code.co_name
        if caller == "_find_and_load_unlocked":
            raise ModuleNotFoundError(text(name), name=name)
        return None


def _tracker():
    """In place of multiprocessing.resource_tracker, which starts a program to
    remove what a process left in /dev/shm. Here there is no program to start,
    and /dev/shm goes with the call."""
    module = types.ModuleType(
        "multiprocessing.resource_tracker", _tracker.__doc__)

    def nothing(*_):
        return None

    module.register = module.unregister = nothing
    module.ensure_running = module.getfd = nothing
    return module


def install():
    sys.meta_path.append(Finder)
    sys.modules["multiprocessing.resource_tracker"] = _tracker()
