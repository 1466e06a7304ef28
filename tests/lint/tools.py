"""The tools of contrib/tools are whole: each NAME.json is one that the installer
takes, each NAME.py has one, docs/EXAMPLES.md has a row for each, and the code is
what people may copy.

Each rule is tried on a planted breach first.
"""
import ast
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "contrib" / "tools"
#: The longest an example may be; web_fetch, which is more than one, has its own reasons.
LINES_MAX, COLUMNS_MAX, APART = 90, 79, {"web_fetch"}


def installer():
    loader = importlib.machinery.SourceFileLoader("example_install", str(FOLDER / "install"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("example_install", loader))
    loader.exec_module(module)
    return module


def code_breaches(name, code):
    """Finds breaches in a NAME.py."""
    tree = ast.parse(code)
    if not (ast.get_docstring(tree) or "").startswith(f"{name}: "):
        yield f"its first line is not \"\"\"{name}: ..."
    if len(code.splitlines()) > LINES_MAX and name not in APART:
        yield f"over {LINES_MAX} lines: an example is short"
    if any(len(line) > COLUMNS_MAX for line in code.splitlines()):
        yield f"a line over {COLUMNS_MAX} columns"
    main = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == "main"]
    if len(main) != 1:
        yield "it needs one main"
        return
    for a in main[0].args.args + main[0].args.kwonlyargs:
        text = re.search(rf"^\s+{a.arg}: \S", ast.get_docstring(main[0]) or "", re.M)
        if a.annotation is None:
            yield f"main's {a.arg} has no type"
        elif text is None and "Annotated" not in ast.unparse(a.annotation):
            yield f"main's {a.arg} has no description"
    if "mcpbox.ToolError(" not in code:
        yield "it raises no mcpbox.ToolError"


def rows(text):
    return set(re.findall(r"^\| `(\w+)` \|", text, re.M))


def breaches(tools, codes, guide):
    """tools: name to table; codes: name to NAME.py; guide: docs/EXAMPLES.md."""
    install = installer()
    about = {}
    for name in sorted(set(codes) - set(tools)):
        yield f"{name}.py has no {name}.json"
    for name, tool in sorted(tools.items()):
        bad = install.wrong(tool, codes.get(name))
        yield from (f"{name}.json: {b}" for b in bad)
        if bad:
            continue
        if about.setdefault(tool["server"], tool["about"]) != tool["about"]:
            yield f"{name}.json: about is another tool's of the server {tool['server']}"
        if not tool["fields"].get("title") or not tool["fields"].get("annotations"):
            yield f"{name}.json: fields needs title and annotations"
        if not any("error" in e for e in tool["examples"]) or all("error" in e for e in tool["examples"]):
            yield f"{name}.json: examples need one that works and one that fails"
    for name, code in sorted(codes.items()):
        yield from (f"{name}.py: {b}" for b in code_breaches(name, code))
    for name in sorted(rows(guide) ^ set(tools)):
        yield f"docs/EXAMPLES.md: {name} is there or in contrib/tools alone"


def planted():
    code = '"""a: Does."""\nimport mcpbox\ndef main(b: str):\n    """Does.\n\n    Args:\n        b: text\n    """\n' \
           "    raise mcpbox.ToolError(b)\n"
    tool = {"server": "s", "about": "S.", "fields": {"title": "A", "annotations": {"readOnlyHint": True}},
            "examples": [{"arguments": {}, "text": ""}, {"arguments": {}, "error": ""}]}
    good = ({"a": tool}, {"a": code}, "| `a` |")
    assert not list(breaches(*good)), list(breaches(*good))
    other = {**tool, "about": "T.", "fields": {**tool["fields"], "kind": "http", "description": "D.", "spec": {"url": ""}}}
    for tools, codes, guide in (
            ({}, good[1], ""), (good[0], {}, good[2]), (good[0], good[1], ""), ({"a": tool, "b": other}, good[1], "| `a` |\n| `b` |"),
            ({"a": {**tool, "x": 1}}, *good[1:]), ({"a": {**tool, "fields": {"title": "A"}}}, *good[1:]),
            ({"a": {**tool, "examples": tool["examples"][:1]}}, *good[1:]),
            *((good[0], {"a": code.replace(was, is_)}, good[2]) for was, is_ in (
                ("a: Does", "Does"), ("b: str", "b"), ("        b: text\n", ""), ("ToolError", "Error"), ("def main", "def run"),
                ("import", "\n" * 91 + "import"), ("import", "#" * 80 + "\nimport"), ('    """Does.', '    """\n')))):
        if not list(breaches(tools, codes, guide)):
            sys.exit(f"a rule without effect: {tools} {codes} {guide}")


def main():
    planted()
    bad = []
    tools, codes = {}, {p.stem: p.read_text(encoding="utf-8") for p in FOLDER.glob("*.py")}
    for file in FOLDER.glob("*.json"):
        try:
            tools[file.stem] = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as e:
            bad.append(f"{file.name}: {e}")
    bad += breaches(tools, codes, (ROOT / "docs/EXAMPLES.md").read_text(encoding="utf-8"))
    print("\n".join(f"contrib/tools: {b}" for b in bad))
    return 1 if bad else 0


sys.exit(main())
