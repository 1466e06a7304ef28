"""House rules that a program can check. Prints each breach as file:line.

Each rule is tried on a planted breach first: a rule that can't fail is itself
reported.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOP = {"gatewayd", "admind", "sandboxd", "common", "sql", "tests", "docs",
       "contrib", "meson.build", "meson_options.txt", "README.md",
       "HACKING.md", "STYLE.md", "SECURITY.md", "CHANGES.md", "LICENSE",
       ".ci", ".clang-format", ".clang-tidy", ".gitignore"}
BANNED = ("strcpy strcat sprintf vsprintf gets alloca system popen atoi atol "
          "atoll strtok mktemp tmpnam tempnam asctime ctime rand srand "
          "setuid setgid").split()
BANNED_RE = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|not implemented|unimplemented")
# Only these may link or include what the design gives them alone.
OWNERS = {
    # database.c: what a connection string may say (decision 0059), for admind
    # and mcpboxctl; a library of its own that nothing else is linked with.
    "libpq-fe.h": ("admind/", "common/database/"),
    "argon2.h": ("admind/vault/",),
    "json-c/": ("common/parse/", "gatewayd/", "admind/http/", "admind/check/",
                "admind/ctl/"),
    "Python.h": ("sandboxd/runner/",),
    # jwt_key.c: public keys of issuers, for admind-check alone. authkey.c: of passkeys. remote_key.c: the key
    # pair of a Worker, printed once.
    "openssl/": ("common/crypto/", "sandboxd/runner/", "admind/check/jwt/jwt_key.c", "admind/vault/passkeys/authkey.c",
                 "admind/ctl/remote/remote_key.c"),
    # remote_fetch.c: in a process without rights (decision 0101).
    "curl/": ("gatewayd/stdio/", "admind/ctl/remote/remote_fetch.c"),
}
LINES_MAX = 600


def strip_c(text):
    """C without comments and strings, line numbers kept."""
    def blank(m):
        return re.sub(r"[^\n]", " ", m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text,
                  flags=re.S)


def includes(text):
    for n, line in enumerate(text.splitlines(), 1):
        m = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
        if m:
            yield n, m.group(1), m.group(2)


def daemon(path):
    return path.split("/")[0]


def check_c(path, text, headers):
    """Breaches in one C file; headers maps a header's name to its folders."""
    out = []
    code = strip_c(text)
    for m in BANNED_RE.finditer(code):
        if path.startswith("tests/") and m.group(1) in ("rand", "srand"):
            continue  # a fixed seed makes a failing case repeatable
        line = code.count("\n", 0, m.start()) + 1
        out.append((line, f"{m.group(1)}() is banned (STYLE.md)"))
    if len(text.splitlines()) > LINES_MAX:
        out.append((LINES_MAX, f"over {LINES_MAX} lines: split it"))
    for n, kind, name in includes(text):
        for prefix, owners in OWNERS.items():
            if name.startswith(prefix) and not path.startswith(
                    ("tests/",) + owners):
                out.append((n, f"{name} belongs to {owners or 'nobody'}"))
        if kind == '"' and not path.startswith("tests/"):
            homes = headers.get(name.split("/")[-1], set())
            ok = any(daemon(h) in ("common", daemon(path))
                     for h in homes)
            if homes and not ok:
                out.append((n, f"{name} is another daemon's"))
    return out


def check_any(path, text):
    out = []
    for n, line in enumerate(text.splitlines(), 1):
        if UNFINISHED.search(line) and path != "tests/lint/rules.py":
            out.append((n, "unfinished: " + line.strip()[:60]))
        if re.search(r"/work/|\.library\b", line) and \
                path != "tests/lint/rules.py":
            out.append((n, "names a path of one machine"))
        if line.startswith(("<<<<<<< ", ">>>>>>> ")):
            out.append((n, "conflict marker"))
    return out


def check_packages(files):
    """Folders of Python tests that are no package: a module in one would exist
    twice as soon as another file imports it, with two of each of its classes
    and globals. tests/unit is apart: meson runs each file there by itself."""
    known, out = set(files), set()
    for f in files:
        parts = f.split("/")
        if parts[0] == "tests" and parts[1] != "unit" and \
                re.match(r"test_\w+\.py$", parts[-1]):
            for n in range(2, len(parts)):
                init = "/".join(parts[:n]) + "/__init__.py"
                if init not in known:
                    out.add(init)
    return sorted(out)


def check_migrations(files, build):
    """Migrations that are only in the folder, or only in the build."""
    return sorted({f for f in files if f.startswith("sql/migrations/")} ^
                  set(re.findall(r"'\.\./(sql/migrations/\d\w+\.sql)'", build)))


def self_test():
    """Each rule must find its planted breach."""
    headers = {"call.h": {"gatewayd"}, "buf.h": {"common/base"}}
    planted = [
        'int f(void) { return atoi("1"); }\n',
        "#include <libpq-fe.h>\n",
        '#include "call.h"\n',
        "\n" * 601,
    ]
    for text in planted:
        if not check_c("sandboxd/x.c", text, headers):
            sys.exit(f"rule without effect on {text[:40]!r}")
    clean = '/* atoi( */ #include "buf.h"\nchar *s = "system(";\n'
    if check_c("sandboxd/x.c", clean, headers):
        sys.exit("a rule objects to clean code")
    if not check_any("x", "/* TO" + "DO: later */"):
        sys.exit("unfinished marks are not found")
    some = ["tests/a/b/test_x.py", "tests/a/__init__.py", "tests/unit/test_y.py"]
    if check_packages(some) != ["tests/a/b/__init__.py"]:
        sys.exit("folders of tests that are no package are not found")
    if check_migrations(["sql/migrations/0002_a.sql", "x"], "'../sql/migrations/0003_b.sql'") != [
            "sql/migrations/0002_a.sql", "sql/migrations/0003_b.sql"]:
        sys.exit("a migration that is not built is not found")


def main():
    self_test()
    files = subprocess.check_output(
        ["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard"], text=True).split("\0")
    files = [f for f in files if f and (ROOT / f).is_file()]
    headers = {}
    for f in files:
        if f.endswith((".h", ".def", ".inc")):
            headers.setdefault(f.split("/")[-1], set()).add(
                "/".join(f.split("/")[:-1]))
    bad = 0
    for f in files:
        if f.split("/")[0] not in TOP:
            print(f"{f}:1: not a place the layout has")
            bad += 1
        if "/corpus/" in f or "/golden/" in f or f.startswith("docs/pictures/") or f.endswith(
                "package-lock.json"):
            continue
        try:
            text = (ROOT / f).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            print(f"{f}:1: not UTF-8 text")
            bad += 1
            continue
        found = check_any(f, text)
        if f.endswith((".c", ".h")):
            found += check_c(f, text, headers)
        for line, what in found:
            print(f"{f}:{line}: {what}")
            bad += 1
    for f in check_packages(files):
        print(f"{f}:1: every folder of tests is a package")
        bad += 1
    for f in check_migrations(files, (ROOT / "admind/meson.build").read_text(encoding="utf-8")):
        print(f"{f}:1: sql/migrations and the list in admind/meson.build have the same files")
        bad += 1
    for d in ("gatewayd", "admind", "admind/http", "admind/check",
              "admind/vault", "admind/ctl", "sandboxd", "sandboxd/spawn",
              "sandboxd/pool", "sandboxd/runner"):
        if not (ROOT / d / "DESIGN.md").is_file():
            print(f"{d}/DESIGN.md:1: every process folder has one")
            bad += 1
    return 1 if bad else 0


sys.exit(main())
