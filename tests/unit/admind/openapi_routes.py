#!/usr/bin/python3
"""Do admind/http/routes.def and docs/openapi.yaml say the same?

Compared: paths with methods, query parameters, which routes need a login, and
which need the CSRF token. No YAML module: the two-space layout of our own file
is read, and a line that doesn't fit it fails.
"""
import re
import sys


def routes(path):
    text = re.sub(r"/\*.*?\*/", "", open(path).read(), flags=re.S)
    found = {}
    for m in re.finditer(
            r'R\((\w+),\s*"([^"]+)",\s*(\w+),\s*(\w+),\s*"([^"]*)",\s*"[^"]*"\)', text):
        method, where, access, _, query = m.groups()
        found[(where, method.lower())] = (access, sorted(query.split()))
    calls = len(re.findall(r"^R\(", text, flags=re.M))
    assert calls == len(found), "a row of routes.def was not understood"
    return found


def described(path):
    found = {}
    where = method = None
    inside = False
    for line in open(path):
        if re.match(r"^\S", line):
            inside = line.startswith("paths:")
            continue
        if not inside:
            continue
        if m := re.match(r"^  (/\S*):$", line):
            where, method = m.group(1), None
        elif m := re.match(r"^    (\w+):$", line):
            method = m.group(1)
            found[(where, method)] = {"query": [], "login": True, "csrf": False}
        elif method is None:
            raise SystemExit(f"not understood: {line!r}")
        elif re.match(r"^      security: \[\]$", line):
            found[(where, method)]["login"] = False
        elif m := re.match(r"^        - \{name: (\w+), in: query,", line):
            found[(where, method)]["query"].append(m.group(1))
        elif "#/components/parameters/Csrf" in line:
            found[(where, method)]["csrf"] = True
    return found


def main():
    table, api = routes(sys.argv[1]), described(sys.argv[2])
    wrong = 0
    for key in sorted(set(table) | set(api)):
        name = f"{key[1].upper()} {key[0]}"
        if key not in api:
            print(f"{name}: missing in openapi.yaml")
            wrong += 1
            continue
        if key not in table:
            print(f"{name}: missing in routes.def")
            wrong += 1
            continue
        access, query = table[key]
        doc = api[key]
        for what, a, b in (
                ("query", query, sorted(doc["query"])),
                ("login", access != "PUBLIC", doc["login"]),
                ("csrf", access == "WRITE", doc["csrf"])):
            if a != b:
                print(f"{name}: {what}: routes.def {a}, openapi.yaml {b}")
                wrong += 1
    if len(table) < 10:
        print("too few routes were read")
        wrong += 1
    sys.exit(1 if wrong else 0)


main()
