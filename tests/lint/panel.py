"""The panel's sources use no sink of markup or code, ask no other place, and style by classes.

The policy of admind-http forbids most of this in the browser; here it is found before.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = "admind/panel/src"
LINES_MAX, WIDTH_MAX = 600, 200
#: A page's texts are in one file, which may be long and has long lines.
TEXTS = FOLDER + "/en.ts"
WHY = (
    (r"\b(?:inner|outer)HTML\b|insertAdjacentHTML|dangerouslySetInnerHTML|\bsrcdoc\b|createContextualFragment|DOMParser",
     "takes markup; make elements"),
    (r"\bdocument\.write|\beval\(|\bnew Function\b|set(?:Timeout|Interval)\(\s*[\"'`]", "takes code"),
    (r"\blocalStorage\b|\bindexedDB\b|\bdocument\.cookie\b", "outlives the tab; sessionStorage is the tab's"),
    (r"<[a-zA-Z][^>]*\sstyle=", "an inline style is refused by the policy; use a class"),
    (r"\btarget=\"_blank\"(?![^>]*noopener)", "hands this page to the other; add rel=\"noopener noreferrer\""),
    (r"\bXMLHttpRequest\b|\bEventSource\b|\bWebSocket\b|\bsendBeacon\b", "sets no header, or leaves the API; use api/client.ts"),
    (r"\bfetch\(", "goes past api/client.ts, which has the login's half"),
)
#: Where a rule does not hold, and why: the file that sends requests to REST, and those of the MCP client, which go to the gateway
#: without the login.
EXCEPT = {(f"{FOLDER}/{name}", r"\bfetch\(") for name in ("api/client.ts", "mcp/client.ts", "mcp/failure.ts")}
#: Each fetch of the MCP client leaves the browser's cookies out: they have no port, and half of the login is one.
OMIT = r"\bfetch\((?:[^()]|\([^()]*\))*?credentials: \"omit\""
ADDRESS = re.compile(r"[\"'`(]https?://(?!127\.0\.0\.1[:/]|mcp\.example\.org)")


def code(text):
    """The text without comments."""
    return re.sub(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", lambda m: "\n" * m[0].count("\n"), text, flags=re.S)


def faults(path, text):
    """(line, sentence) of each breach."""
    found = []
    bare = code(text)
    for pattern, why in WHY:
        if (path, pattern) in EXCEPT:
            continue
        found += [(bare.count("\n", 0, m.start()) + 1, f"{m[0].strip()}: {why}") for m in re.finditer(pattern, bare)]
    if path.startswith(FOLDER + "/mcp/"):
        whole = {m.start() for m in re.finditer(OMIT, bare, re.S)}
        found += [(bare.count("\n", 0, m.start()) + 1, "fetch without credentials: \"omit\": the gateway would get half of the login")
                  for m in re.finditer(r"\bfetch\(", bare) if m.start() not in whole]
    if path != TEXTS:
        found += [(bare.count("\n", 0, m.start()) + 1, f"{m[0]}: the page asks its own origin alone") for m in ADDRESS.finditer(bare)]
        found += [(i, f"over {WIDTH_MAX} columns") for i, line in enumerate(text.split("\n"), 1) if len(line) > WIDTH_MAX]
        if text.count("\n") > LINES_MAX:
            found.append((LINES_MAX, f"over {LINES_MAX} lines: split it"))
    return found


def rooms(path, text):
    """api/ and mcp/ know no component, api/ no mcp/, ui/ no page, and no page another page but by its name."""
    place = path.removeprefix(FOLDER + "/").split("/")
    for m in re.finditer(r"from \"(\.[^\"]+)\"", text):
        to = (ROOT / path).parent.joinpath(m[1]).resolve().relative_to(ROOT / FOLDER).parts
        line = text.count("\n", 0, m.start()) + 1
        if place[0] in ("api", "mcp") and to[0] in ("ui", "pages"):
            yield line, f"{place[0]}/ uses {'/'.join(to)}"
        if place[0] == "api" and to[0] == "mcp":
            yield line, f"api/ uses {'/'.join(to)}"
        if place[0] == "ui" and to[0] == "pages":
            yield line, f"ui/ uses {'/'.join(to)}"


def check_own():
    """The rules find what they are for."""
    for bad in ("x.innerHTML = y", "eval('1')", "localStorage.a", '<p style="x">', "fetch(x)", "a = 'https://x.org'", "setTimeout('x')",
                '<a target="_blank">'):
        assert faults("x.tsx", bad), bad
    client = FOLDER + "/mcp/client.ts"
    assert faults(client, "await fetch(this.url, {method: 'GET'})")
    assert not faults(client, 'await fetch(f(x), {method, credentials: "omit"})')
    assert list(rooms(client, 'import {X} from "../ui/text"'))
    for good in ("/* innerHTML */", "x.textContent = y", "setTimeout(() => x)", '<a target="_blank" rel="noopener">'):
        assert not faults("x.tsx", good), good


def main():
    check_own()
    names = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", FOLDER], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout.split()
    bad = 0
    for name in names:
        if not (ROOT / name).is_file() or not name.endswith((".ts", ".tsx")):
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        for line, what in [*faults(name, text), *rooms(name, text)]:
            print(f"{name}:{line}: {what}")
            bad += 1
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
