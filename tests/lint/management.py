"""The management tools' texts for clients: admind/tooldef/schemas (decision 0094).

Each row of management_tool.def has its file and each file its row. A file looks as
`schemas.py --write` writes it. As clients see them, schemas are JSON Schema 2020-12 of
the keywords that our own check admits (admind/check/schema/schema.c; a unit test
compiles them with it). An input is closed, at each object in it that names members;
each argument is described and has a row in management_field.def, of its type's kind. An
output is open, so that a later release can add members. Nothing shared is unused.
"""
import pathlib
import re
import sys

import jsonschema

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "admind/tooldef"
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE))
import schemas  # noqa: E402 (the generator that the build runs)

#: Members of a tool's file, in order.
MEMBERS = ["$comment", "title", "description", "inputSchema", "outputSchema"]
#: The one whose result is another tool's, so nothing can be said of it.
NO_OUTPUT = {"mcpbox_call_tool"}
#: Keywords whose value is a schema, a list of schemas, an object of schemas.
ONE, MANY, NAMED = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"), \
    ("allOf", "anyOf", "oneOf", "prefixItems"), ("properties", "patternProperties", "dependentSchemas", "$defs")


def admitted(text):
    """Keywords of schema.c that a stored schema may have."""
    return set(re.findall(r'^    \{"([$\w]+)", KW_(?!NOT_HERE)\w+,', text, re.M))


def parts(schema, at=""):
    """Each schema within a schema, with its place."""
    if not isinstance(schema, dict):
        return
    yield at or "/", schema
    for k, v in schema.items():
        below = [("", v)] if k in ONE else enumerate(v) if k in MANY else v.items() if k in NAMED else ()
        for name, s in below:
            yield from parts(s, f"{at}/{k}/{name}".rstrip("/"))


def keywords(schema, known):
    """Breaches of a whole schema, whichever it is."""
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as e:
        yield f"no JSON Schema: {e.message}"
        return
    for at, s in parts(schema):
        for k in sorted(set(s) - known):
            yield f"{at}: our check does not admit {k}"
        for name in set(s.get("required", ())) - set(s.get("properties", ())):
            yield f"{at}: requires {name}, which is no member"
    if schema.get("type") != "object" or "properties" not in schema or not isinstance(schema.get("required"), list):
        yield "is no object of properties with a list of required ones"


def kind(schema):
    """The kind of field (management_field.def) that an argument of this schema is."""
    t = schema.get("type", "string" if all(isinstance(v, str) for v in schema.get("enum", [0])) else None)
    if t == "string":
        return "I" if "[0-9a-fA-F]{8}" in schema.get("pattern", "") else "S"
    if t == "array":
        return "M" if schema.get("items", {}).get("type", "string") == "string" else "J"
    return {"integer": "N", "boolean": "B", "object": "J"}.get(t)


def arguments(schema):
    """{name: schema} of an input, as management_field.def names them. Members of an
    object are fields of their own if all of them are numbers: limits."""
    for name, s in schema.get("properties", {}).items():
        inner = s.get("properties", {})
        if inner and all(v.get("type") == "integer" for v in inner.values()):
            for n, v in inner.items():
                yield f"{name}.{n}", v
        else:
            yield name, s


def input_schema(schema, fields):
    for at, s in parts(schema):
        if "properties" in s and s.get("additionalProperties") is not False:
            yield f"{at}: is open: an argument that nobody knows would be taken for nothing"
    for name, s in schema.get("properties", {}).items():
        if not s.get("description"):
            yield f"{name}: has no description"
    for name, s in arguments(schema):
        if name not in fields:
            yield f"{name}: has no row in management_field.def"
        elif fields[name] != kind(s):
            yield f"{name}: is of kind {kind(s)}, and {fields[name]} in management_field.def"


def output_schema(schema):
    for at, s in parts(schema):
        if "additionalProperties" in s:
            yield f"{at}: is closed: a later release could add no member"


def order(tool, name):
    if list(tool) != [m for m in MEMBERS if m in tool] or not {"title", "description", "inputSchema"} <= set(tool):
        yield f"members are {MEMBERS}, in this order"
    if ("outputSchema" in tool) == (name in NO_OUTPUT):
        yield "has an outputSchema, unless it passes another tool's result on"
    if not str(tool.get("title", "")).strip() or not str(tool.get("description", "")).endswith("."):
        yield "has a title, and a description of whole sentences"


def fields_of(text):
    return dict((name, k) for _, _, name, k in re.findall(r'^MF\((\d+), (\w+), "([\w.]+)", (\w)\)', text, re.M))


def named(text):
    """Names of shared.json that a file uses."""
    return set(re.findall(r'"(?:shared\.json)?#/\$defs/(\w+)"', text))


def self_test(known):
    fields = {"a": "S", "limits.n": "N", "id": "I"}
    good = {"type": "object", "properties": {"a": {"type": "string", "description": "x"}}, "required": ["a"],
            "additionalProperties": False}
    if list(keywords(good, known)) + list(input_schema(good, fields)) + list(output_schema({"type": "object"})):
        sys.exit("a rule objects to a good schema")
    inner = {"type": "object", "description": "x", "properties": {"n": {"type": "integer"}}, "required": [],
             "additionalProperties": False}
    planted = [
        keywords({**good, "type": "no"}, known), keywords({**good, "nullable": True}, known),
        keywords({**good, "required": ["b"]}, known), keywords({"type": "object"}, known),
        input_schema({**good, "additionalProperties": True}, fields),
        input_schema({**good, "properties": {"a": {"type": "string"}}}, fields),
        input_schema({**good, "properties": {"b": {"type": "string", "description": "x"}}}, fields),
        input_schema({**good, "properties": {"a": {"type": "integer", "description": "x"}}}, fields),
        input_schema({**good, "properties": {"a": {**inner, "additionalProperties": True}}}, {"a": "J", "a.n": "N"}),
        input_schema({**good, "properties": {"limits": inner}}, {"limits.n": "S"}),
        output_schema({"type": "object", "properties": {"a": {"additionalProperties": False}}}),
        order({"title": "x", "inputSchema": {}, "description": "x."}, "x"),
        order({"title": "x", "description": "no sentence", "inputSchema": {}, "outputSchema": {}}, "x"),
        order({"title": "x", "description": "x.", "inputSchema": {}}, "x")]
    for n, found in enumerate(planted):
        if not list(found):
            sys.exit(f"a rule is without effect on breach {n}")
    if len(known) < 40 or "nullable" in known:
        sys.exit("the keywords of schema.c are not understood")


def generator_test(limit_h):
    """schemas.py puts a `$ref` in its place, joins groups, and takes nothing twice."""
    read = schemas.Schemas(HERE / "schemas", limit_h)
    read.files["s.json"] = {"$defs": {
        "text": {"type": "string", "pattern": "^a", "x-rule": "must begin with a"},
        "two": {"properties": {"a": {"$ref": "#/$defs/text", "maxLength": 3}}, "required": ["a"]}}}
    made = read.expand({"type": "object", "$comment": "x", "properties": {"b": {}}, "required": ["b"],
                        "$ref": "s.json#/$defs/two"}, "x.json")
    if schemas.flat(made) != schemas.flat({
            "type": "object", "properties": {"b": {}, "a": {"type": "string", "pattern": "^a", "maxLength": 3}},
            "required": ["b", "a"]}):
        sys.exit(f"schemas.py makes {made}")
    if read.rules != {"^a": "must begin with a"} or "timeout_ms" not in read.limits["properties"]:
        sys.exit("schemas.py loses rules or limits")
    for twice in ({"type": "object", "$ref": "s.json#/$defs/text"},
                  {"properties": {"a": {}}, "$ref": "s.json#/$defs/two"}):
        try:
            read.expand(twice, "x.json")
        except SystemExit:
            continue
        sys.exit(f"schemas.py takes {twice}")


def main():
    known = admitted((ROOT / "admind/check/schema/schema.c").read_text(encoding="utf-8"))
    self_test(known)
    generator_test((ROOT / "common/version/limit.h").read_text(encoding="utf-8"))
    names = schemas.rows((HERE / "management_tool.def").read_text(encoding="utf-8"))
    fields = fields_of((HERE / "management_field.def").read_text(encoding="utf-8"))
    read = schemas.Schemas(HERE / "schemas", (ROOT / "common/version/limit.h").read_text(encoding="utf-8"))
    page = (ROOT / "docs/MANAGEMENT.md").read_text(encoding="utf-8")
    bad, used, given = [], set(), set()

    for path in sorted((HERE / "schemas").iterdir()):
        text = path.read_text(encoding="utf-8")
        used |= named(text)
        if schemas.pretty(read.file(path.name)) != text:
            bad.append((path.name, "looks otherwise: admind/tooldef/schemas.py --write admind/tooldef/schemas/*.json"))
        if path.stem not in ("shared", "imported") and path.stem not in names:
            bad.append((path.name, "has no row in management_tool.def"))
    for name in names:
        here = name + ".json"
        if not (HERE / "schemas" / here).is_file():
            bad.append(("management_tool.def", f"{name} has no file in schemas/: HACKING.md, A management tool"))
            continue
        if f"`{name}`" not in page:
            bad.append((here, "is missing in docs/MANAGEMENT.md"))
        tool = read.tool(name)
        bad += [(here, b) for b in order(read.file(here), name)]
        bad += [(here, f"inputSchema: {b}") for b in (*keywords(tool["inputSchema"], known),
                                                      *input_schema(tool["inputSchema"], fields))]
        if "outputSchema" in tool:
            bad += [(here, f"outputSchema: {b}") for b in (*keywords(tool["outputSchema"], known),
                                                           *output_schema(tool["outputSchema"]))]
        given |= {n for n, _ in arguments(tool["inputSchema"])}
    bad += [("imported.json", b) for b in keywords(read.tool("imported")["inputSchema"], known)]
    bad += [("shared.json", f"{n} is used nowhere") for n in set(read.file("shared.json")["$defs"]) - used]
    bad += [("management_field.def", f"{n} is no tool's argument") for n in sorted(set(fields) - given)]
    rows = (HERE / "management_tool.def").read_text(encoding="utf-8").split("\n")
    for name, what in bad:
        line = next((n for n, row in enumerate(rows, 1) if row.startswith(f"M({what.split()[0]},")), 1)
        print(f"admind/tooldef/{name}:{line}: {what}" if name.endswith(".def") else
              f"admind/tooldef/schemas/{name}:1: {what}")
    return 1 if bad else 0


sys.exit(main())
