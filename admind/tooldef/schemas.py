#!/usr/bin/python3
"""Writes management_text.h: each management tool's texts for clients, as C strings.

    schemas.py OUTPUT MANAGEMENT_TOOL.DEF LIMIT.H      the header, and OUTPUT.d for ninja
    schemas.py --write FILE...                         FILEs as they should look

A row M(NAME, ...) of management_tool.def has schemas/NAME.json: title, description,
inputSchema and outputSchema, which is absent where another tool's result is passed on.

`$ref` is as in JSON Schema, and stands where its members go in what clients see. It
names a whole value, the beginning of one, or a group: members of `properties` are
added to those beside it, and so are names in `required`. A member said twice is an
error. `limit.h` stands for the limits of common/version/limit.h.
`$comment` and `x-rule` are not for clients. `x-rule` says a `pattern` in words, for
the error of an argument that does not match.
"""
import json
import re
import sys
from pathlib import Path

#: Columns of a JSON file; a text that is longer stays on its line.
WIDTH = 100
NOT_FOR_CLIENTS = ("$comment", "x-rule")


def fail(what):
    sys.exit(f"schemas.py: {what}")


def once(pairs):
    """An object of members that JSON text has; the same name twice is an error."""
    out = dict(pairs)
    if len(out) != len(pairs):
        fail(f"a name is there twice: {[n for n, _ in pairs]}")
    return out


def flat(value):
    """JSON on one line, as a person writes it."""
    if isinstance(value, dict) and value:
        return "{ " + ", ".join(f"{json.dumps(k)}: {flat(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(flat, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def lines(value, indent, room):
    """JSON of a value that begins after `room` columns: on one line if it fits."""
    if len(flat(value)) <= WIDTH - room or not isinstance(value, (dict, list)) or not value:
        return flat(value)
    pad = " " * (indent + 2)
    if isinstance(value, list):
        return "[\n" + ",\n".join(pad + lines(v, indent + 2, indent + 3) for v in value) + "\n" + " " * indent + "]"
    return "{\n" + ",\n".join(f"{pad}{json.dumps(k)}: " + lines(v, indent + 2, indent + 5 + len(json.dumps(k)))
                              for k, v in value.items()) + "\n" + " " * indent + "}"


def pretty(value):
    """A file of schemas/: two blanks a level, and on one line what fits there."""
    return "{\n" + ",\n".join(f"  {json.dumps(k)}: " + lines(v, 2, 5 + len(json.dumps(k)))
                              for k, v in value.items()) + "\n}\n"


def limits(text):
    """The members that `limit.h` stands for, one for each row of LIMITS."""
    table = text[text.index("#define LIMITS("):text.index("#define LIMITS_SERVER(")].replace("\\\n", " ")
    rows = re.findall(r'\b(?:FIRST|L)\((\w+), "(\w+)", "([^"]+)",\s*(\d+),\s*(\d+),\s*\d+,\s*\d+,\s*((?:"[^"]*"\s*)+)\)',
                      table)
    if len(rows) != len(re.findall(r"\b(?:FIRST|L)\([A-Z]", table)):
        fail("limit.h: a row of LIMITS has another form")
    return {"properties": {name: {"type": "integer", "minimum": int(least), "maximum": int(most),
                                  "description": f"In {unit}. " + "".join(re.findall(r'"([^"]*)"', reason))}
                           for _, name, unit, least, most, reason in rows}}


class Schemas:
    """The files of schemas/, read when they are needed."""

    def __init__(self, folder, limit_h):
        self.folder, self.limits = folder, limits(limit_h)
        self.files, self.rules = {}, {}

    def file(self, name):
        if name not in self.files:
            self.files[name] = json.loads((self.folder / name).read_text(encoding="utf-8"), object_pairs_hook=once)
        return self.files[name]

    def named(self, ref, here):
        """Returns the value that a `$ref` names, and the file that holds it."""
        if ref == "limit.h":
            return self.limits, here
        name, _, pointer = ref.partition("#")
        value = self.file(name or here)
        for step in pointer.split("/")[1:]:
            value = value[step]
        return value, name or here

    def expand(self, value, here):
        """A value as clients see it."""
        if isinstance(value, list):
            return [self.expand(v, here) for v in value]
        if not isinstance(value, dict):
            return value
        if "x-rule" in value and self.rules.setdefault(value["pattern"], value["x-rule"]) != value["x-rule"]:
            fail(f"{here}: two rules for one pattern: {value['pattern']}")
        out = {}
        for name, member in value.items():
            if name == "$ref":
                for n, m in self.expand(*self.named(member, here)).items():
                    self.add(out, n, m, here)
            elif name not in NOT_FOR_CLIENTS:
                self.add(out, name, self.expand(member, here), here)
        return out

    def add(self, out, name, member, here):
        if name not in out:
            out[name] = member
        elif name == "properties" and not set(out[name]) & set(member):
            out[name] = {**out[name], **member}
        elif name == "required" and not set(out[name]) & set(member):
            out[name] = out[name] + member
        else:
            fail(f"{here}: {name} is said twice")

    def tool(self, name):
        """{title, description, inputSchema, outputSchema} of a tool, as far as its file has them."""
        here = name + ".json"
        return {k: v if isinstance(v, str) else self.expand(v, here) for k, v in self.file(here).items()}


def rows(text):
    """Names of the rows of management_tool.def."""
    return re.findall(r"^M\((\w+),", text, re.M)


def c_string(text):
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else "".join(f"\\{b:03o}" for b in c.encode())
                         for c in text) + '"'


def header(schemas, names):
    out = ["/* From schemas/, by schemas.py: title, description, input schema, output schema. */"]
    for name in [*names, "imported"]:
        tool = schemas.tool(name)
        texts = (v if v is None or isinstance(v, str) else json.dumps(v, ensure_ascii=False, separators=(",", ":"))
                 for v in map(tool.get, ("title", "description", "inputSchema", "outputSchema")))
        out.append(f"#define TEXT_{name} \\\n\t" + ", \\\n\t".join("NULL" if t is None else c_string(t) for t in texts))
    out.append("/* Patterns, and what they say. */\n#define MANAGEMENT_RULES \\\n\t" + ", \\\n\t".join(
        f"{{{c_string(p)}, {c_string(words)}}}" for p, words in schemas.rules.items()))
    return "\n".join(out) + "\n"


def main(output, table, limit_h):
    folder = Path(__file__).resolve().parent / "schemas"
    names = rows(Path(table).read_text(encoding="utf-8"))
    there = {p.stem for p in folder.glob("*.json")} - {"imported", "shared"}
    if set(names) != there or len(set(names)) != len(names):
        fail(f"rows of management_tool.def are not the files of schemas/: {sorted(set(names) ^ there)}")
    schemas = Schemas(folder, Path(limit_h).read_text(encoding="utf-8"))
    Path(output).write_text(header(schemas, names), encoding="utf-8")
    read = " ".join(str(folder / f).replace(" ", "\\ ") for f in sorted(schemas.files))
    Path(output + ".d").write_text(f"{output}: {read}\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--write":
        for path in map(Path, sys.argv[2:]):
            path.write_text(pretty(json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)), encoding="utf-8")
    else:
        main(*sys.argv[1:])
