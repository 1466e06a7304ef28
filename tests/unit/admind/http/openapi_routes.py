#!/usr/bin/python3
"""Do admind/http/routes.def, common/admin/admin_action.def and docs/openapi.yaml say
the same?

Compared: paths with methods, query parameters and their closed values, which
routes need a login (both halves of it), the scope of a script's key, the
placeholders; and of actions
their bodies' members with types, If-Match and Idempotency-Key. No YAML module: the two-space layout of our own file
is read, and a line that doesn't fit it fails.
"""
import re
import sys


SCOPES = ("READ", "METRICS", "OPERATE", "EXPORT")


def scope_of(word):
    assert word == "NEVER" or word in SCOPES, word
    return None if word == "NEVER" else word.lower()


def routes(path):
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    found = {}
    for m in re.finditer(
            r'R\((\w+),\s*"([^"]+)",\s*(\w+),\s*(\w+),\s*(\w+),\s*"([^"]*)",\s*"[^"]*"\)', text):
        method, where, access, scope, _, query = m.groups()
        found[(where, method.lower())] = {
            "login": access not in ("PUBLIC", "CALLBACK"), "scope": scope_of(scope),
            "query": {w.split("=")[0]: sorted(w.split("=")[1].split("|")) if "=" in w else None
                      for w in query.split()}}
    calls = len(re.findall(r"^R\(", text, flags=re.M))
    assert calls == len(found), "a row of routes.def was not understood"
    return found


TYPES = {"s": "string", "i": "integer", "b": "boolean", "a": "array", "o": "object",
         "l": "object"}


def actions(path):
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    found = {}
    for m in re.finditer(r'A\((\w+),\s*(\w+),\s*(\w+),\s*(\w+),\s*"([^"]+)",\s*(\w+),\s*"([^"]*)",\s*"[^"]+"\)', text):
        name, role, scope, method, where, seen, members = m.groups()
        assert role in ("VIEWER", "REVIEWER", "ADMINISTRATOR") and seen in ("NONE", "OPTIONAL", "REQUIRED"), name
        body = {}
        for w in members.split():
            k = re.fullmatch(r"([a-z][a-z0-9_]{0,62}):([sibaol])(!?)", w)
            assert k, f"{name}: {w} is no member"
            body[k.group(1)] = (TYPES[k.group(2)], k.group(3) == "!")
        assert (where, method.lower()) not in found, f"{name}: its route is another action's"
        found[(where, method.lower())] = {"login": True, "scope": scope_of(scope), "query": {}, "members": body,
                                          "seen": seen, "key": True}
    calls = len(re.findall(r"^A\(", text, flags=re.M))
    assert calls == len(found), "a row of admin_action.def was not understood"
    return found


def described(path):
    found = {}
    where = method = None
    inside = closed = False
    for line in open(path):
        if re.match(r"^\S", line):
            inside = line.startswith("paths:")
            continue
        if not inside:
            continue
        here = found.get((where, method))
        if m := re.match(r"^  (/\S*):$", line):
            where, method = m.group(1), None
        elif m := re.match(r"^    (\w+):$", line):
            method = m.group(1)
            here = found[(where, method)] = {"query": {}, "login": True, "scope": None, "members": {},
                                             "seen": "NONE", "key": False, "path": []}
            required = []
        elif method is None:
            raise SystemExit(f"not understood: {line!r}")
        elif m := re.match(r"^      security: \[\{session: \[\], half: \[\]\}, \{key: \[(\w+)\]\}(, \{metrics: \[\]\})?\]$",
                           line):
            here["scope"] = m.group(1)
            here["login"] = m.group(2) is None	# /metrics asks for one of several itself
        elif re.match(r"^      security: \[\]$", line):
            here["login"] = False
        elif m := re.match(r"^        - \{name: (\w+), in: query, schema: \{(.*)\}\}$", line):
            e = re.search(r"enum: \[([^\]]*)\]", m.group(2))
            here["query"][m.group(1)] = sorted(e.group(1).split(", ")) if e else None
        elif re.match(r"^      security:", line):
            raise SystemExit(f"not understood: {line!r}")
        elif re.match(r"^        - .*in: query", line):
            raise SystemExit(f"not understood: {line!r}")
        elif m := re.match(r'^        - \$ref: "#/components/parameters/(\w+)"$', line):
            p = m.group(1)
            if p == "IdempotencyKey":
                here["key"] = True
            elif p.startswith("IfMatch"):
                here["seen"] = "OPTIONAL" if p == "IfMatchOptional" else "REQUIRED"
            elif p in ("Id", "Name", "Id2", "Name2"):
                here["path"].append("{" + p.lower() + "}")
        elif m := re.match(r"^              required: \[([^\]]*)\]$", line):
            required = m.group(1).split(", ")
        elif m := re.match(r"^                (\w+): \{type: (\[?)(\w+)", line):
            here["members"][m.group(1)] = (m.group(3), m.group(1) in required)
    return found


def main():
    table, acts, api = routes(sys.argv[1]), actions(sys.argv[2]), described(sys.argv[3])
    assert not set(table) & set(acts), "a route stands in both tables"
    wrong = 0
    if "\nsecurity:\n  - {session: [], half: []}\npaths:\n" not in open(sys.argv[3]).read():
        print("openapi.yaml: a login is the cookie and the header, each for every route")
        wrong += 1
    for key in sorted(set(table) | set(acts) | set(api)):
        name = f"{key[1].upper()} {key[0]}"
        if key not in api:
            print(f"{name}: missing in openapi.yaml")
            wrong += 1
            continue
        row = table.get(key) or acts.get(key)
        if row is None:
            print(f"{name}: missing in routes.def and admin_action.def")
            wrong += 1
            continue
        for what, a in row.items():
            if a != api[key][what]:
                print(f"{name}: {what}: the table says {a}, openapi.yaml {api[key][what]}")
                wrong += 1
        if api[key]["path"] != re.findall(r"\{\w+\}", key[0]):
            print(f"{name}: path: parameters {api[key]['path']}")
            wrong += 1
    if len(table) < 10 or len(acts) < 2:
        print("too few routes were read")
        wrong += 1
    sys.exit(1 if wrong else 0)


main()
