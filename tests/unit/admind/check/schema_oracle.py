"""Compares admind-check's verdicts with python3-jsonschema (draft 2020-12).

Generated schemas of the closed subset, for arguments and for results (whose
root may be of any type), generated values near them. Seeded: a
failure repeats. Where python's jsonschema computes with binary floats and we
exactly, the generator stays with numbers that both hold exactly.
"""
import json
import random
import subprocess
import sys

import jsonschema

NAMES = ["a", "b", "c", "a/b", "m~n", "\u00e9", ""]
PATTERNS = ["^a", "b$", "^[a-c]+$", "^(ab|c)*$", "x", "^.{2}$", "\u00e9"]
WORDS = ["", "a", "ab", "abc", "cab", "x", "\u00e9", "\U0001f600", "aaaa"]
TYPES = ["null", "boolean", "object", "array", "number", "string", "integer"]


def number(rnd):
    return rnd.choice([0, 1, -1, 2, 3, 4.0, 1.5, -2.5, 10, 1e3, 2**53, 0.25, 1.0])


def value(rnd, depth=0):
    r = rnd.random()
    if r < 0.3 or depth > 3:
        return number(rnd)
    if r < 0.5:
        return rnd.choice(WORDS)
    if r < 0.6:
        return rnd.choice([None, True, False])
    if r < 0.8:
        return [value(rnd, depth + 1) for _ in range(rnd.randint(0, 4))]
    return {rnd.choice(NAMES): value(rnd, depth + 1) for _ in range(rnd.randint(0, 4))}


def schema(rnd, depth=0):
    r = rnd.random()
    if r < 0.06:
        return rnd.random() < 0.7
    if r < 0.15:
        return {"$ref": rnd.choice(["#/$defs/x", "#/$defs/y~1z", "#", "#/$defs/p%25q"])}
    s = {}
    if rnd.random() < 0.7:
        s["type"] = rnd.choice(TYPES) if rnd.random() < 0.7 else rnd.sample(TYPES, rnd.randint(1, 3))
    keys = ["properties", "required", "additionalProperties", "items", "prefixItems", "enum", "const", "minimum",
            "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems",
            "maxItems", "uniqueItems", "minProperties", "maxProperties", "pattern", "allOf", "anyOf", "oneOf", "not",
            "format", "title", "default", "x-note", "if", "then", "else", "dependentRequired", "dependentSchemas",
            "patternProperties", "propertyNames", "contains", "minContains", "maxContains"]
    for k in rnd.sample(keys, rnd.randint(0, 3 if depth else 5)):
        deep = depth > 2
        if k == "properties":
            s[k] = {n: True if deep else schema(rnd, depth + 1) for n in rnd.sample(NAMES, rnd.randint(0, 3))}
        elif k == "required":
            s[k] = rnd.sample(NAMES, rnd.randint(0, 2))
        elif k in ("dependentSchemas", "patternProperties"):
            s[k] = {n: True if deep else schema(rnd, depth + 1)
                    for n in rnd.sample(NAMES if k[0] == "d" else PATTERNS, rnd.randint(0, 2))}
        elif k == "dependentRequired":
            s[k] = {n: rnd.sample(NAMES, rnd.randint(0, 2)) for n in rnd.sample(NAMES, rnd.randint(0, 2))}
        elif k == "propertyNames":
            s[k] = rnd.choice([{"maxLength": 1}, {"enum": ["a", "b"]}, {"const": "\u00e9"}, {"pattern": "^[ab]"},
                               {"type": "string"}, {"type": "number"}, False, {"$ref": "#/$defs/x"}])
        elif k == "if":
            s[k] = rnd.random() < 0.5 if deep else schema(rnd, depth + 1)
            for x in rnd.sample(["then", "else"], rnd.randint(1, 2)):
                s[x] = rnd.random() < 0.5 if deep else schema(rnd, depth + 1)
        elif k in ("additionalProperties", "items", "not", "then", "else", "contains"):
            s[k] = rnd.random() < 0.5 if deep else schema(rnd, depth + 1)
        elif k in ("prefixItems", "allOf", "anyOf", "oneOf"):
            s[k] = [True if deep else schema(rnd, depth + 1) for _ in range(rnd.randint(1, 3))]
        elif k == "enum":
            s[k] = [value(rnd) for _ in range(rnd.randint(1, 4))]
        elif k == "const":
            s[k] = value(rnd)
        elif k in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            s[k] = number(rnd)
        elif k == "multipleOf":
            s[k] = rnd.choice([1, 2, 0.5, 3, 1.0, 0.25])
        elif k == "uniqueItems":
            s[k] = rnd.random() < 0.8
        elif k == "pattern":
            s[k] = rnd.choice(PATTERNS)
        elif k in ("format", "title"):
            s[k] = "email"
        elif k in ("default", "x-note"):
            s[k] = value(rnd)
        else:
            s[k] = rnd.randint(0, 4)
    return s


def guided(rnd, s, root, depth=0):
    """A value that has a chance to fit the schema."""
    if rnd.random() < 0.15 or depth > 4 or not isinstance(s, dict):
        return value(rnd, depth)
    if "const" in s:
        return s["const"]
    if "enum" in s:
        return rnd.choice(s["enum"])
    for k in ("anyOf", "oneOf", "allOf"):
        if k in s and rnd.random() < 0.7:
            return guided(rnd, rnd.choice(s[k]), root, depth + 1)
    t = s.get("type", "object" if "properties" in s or "required" in s else None)
    t = rnd.choice(t) if isinstance(t, list) else t
    if t == "object":
        names = set(s.get("required", []))
        for n in list(s.get("properties", {})) + rnd.sample(NAMES, rnd.randint(0, 2)):
            if rnd.random() < 0.6:
                names.add(n)
        return {n: guided(rnd, s.get("properties", {}).get(n, s.get("additionalProperties", True)), root, depth + 1)
                for n in sorted(names)}
    if t == "array":
        pre = s.get("prefixItems", [])
        n = rnd.randint(0, 4)
        return [guided(rnd, pre[i] if i < len(pre) else s.get("items", True), root, depth + 1) for i in range(n)]
    if t == "string":
        return rnd.choice(WORDS)
    if t in ("number", "integer"):
        return number(rnd)
    if t == "boolean":
        return rnd.random() < 0.5
    return None if t == "null" else value(rnd, depth)


def dump(v):
    """JSON as different clients would write it."""
    return json.dumps(v, ensure_ascii=random.random() < 0.5, separators=random.choice([(",", ":"), (" , ", " : ")]))


def endless(s, root, seen):
    """Does the schema refer to itself without going down into the value?"""
    if not isinstance(s, dict):
        return False
    below = [x for k in ("allOf", "anyOf", "oneOf") for x in s.get(k, [])]
    below += [s[k] for k in ("not", "if", "then", "else") if k in s] + list(s.get("dependentSchemas", {}).values())
    if "$ref" in s:
        if s["$ref"] in seen:
            return True
        name = {"#/$defs/x": "x", "#/$defs/y~1z": "y/z", "#/$defs/p%25q": "p%q"}.get(s["$ref"])
        if endless(root if name is None else root["$defs"][name], root, seen | {s["$ref"]}):
            return True
    return any(endless(x, root, seen) for x in below)


def generate(rnd, count):
    """Schemas, and values for each."""
    for root in ["object", None] * (count // 2):
        s = schema(rnd)
        if not isinstance(s, dict):
            continue
        if root:
            s["type"] = root
        s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
        s["$defs"] = {"x": schema(rnd, 2), "y/z": schema(rnd, 2), "p%q": schema(rnd, 2)}
        if any(endless(x, s, frozenset()) for x in [s] + list(s["$defs"].values())):
            continue
        yield s, [guided(rnd, s, s) for _ in range(4)] + [value(rnd)]


def main():
    random.seed(7)
    cases = []
    for s, values in generate(random.Random(20201212), 8000):
        v = jsonschema.Draft202012Validator(s)
        cases += [(s, v, x) for x in values]
    lines = "".join(dump(s).encode().hex() + " " + dump(x).encode().hex() + "\n" for s, _, x in cases)
    out = subprocess.run([sys.argv[1], "any"], input=lines, text=True, capture_output=True, check=True).stdout.split("\n")
    assert len(out) == len(cases) + 1, (len(out), len(cases))
    bad = valid = 0
    for (s, v, x), got in zip(cases, out):
        want = "ok" if v.is_valid(x) else "no"
        valid += want == "ok"
        if got.split(" ")[0] != want:
            bad += 1
            if bad < 6:
                print("differ, python says %s: %s\n  schema %s\n  value %s" % (want, got, json.dumps(s), json.dumps(x)))
    print("%d cases, %d valid, %d differ" % (len(cases), valid, bad))
    return 1 if bad or not len(cases) // 10 < valid < len(cases) * 9 // 10 else 0


if __name__ == "__main__":
    sys.exit(main())
