"""The editors say all that the management tools take, and what JSON says stays as it was written."""
import json
import os

from harness.place import SRC

from .scripts import run

with open(os.path.join(SRC, "admind", "tooldef", "schemas", "shared.json"), encoding="utf-8") as f:
    SHARED = json.load(f)["$defs"]
#: Of an object: its own members of the schemas, beside name and description.
OF = {"tool": ["version", "run"], "prompt": ["prompt", "run"], "resource": ["resource", "run"]}


def test_each_member_of_the_schemas_has_a_field(tmp_path):
    kinds = {"tool": ["python", "command", "http"], "prompt": ["python", "static"], "resource": ["python", "static"]}
    fits = run(tmp_path, "pages/tools/fields.ts", """return Object.fromEntries(Object.entries(given).map(([object, kinds]) =>
        [object, [...new Set(kinds.flatMap(k => Object.keys(m.fieldsNew(k)).filter(f => m.fieldFits(object, k, f))))]]));""", kinds)
    for object_, parts in OF.items():
        wanted = {"name", "description", *(n for p in parts for n in SHARED[p]["properties"])}
        have = set(fits[object_])
        if object_ == "tool":
            wanted.add("python_code")
        else:
            have.discard("kind")
        if object_ == "resource":      # a template's, which is an object of its own in the panel
            wanted -= {"uri_template", "arguments"}
        assert have == wanted, (object_, have ^ wanted)


def test_each_member_of_a_specification_has_a_field():
    with open(os.path.join(SRC, "admind", "panel", "src", "pages", "tools", "spec.tsx"), encoding="utf-8") as f:
        source = f.read()
    members = SHARED["version"]["properties"]["spec"]["properties"]
    assert len(members) > 10
    for name in members:
        assert f'"{name}"' in source, name


def test_only_what_was_changed_is_sent_and_numbers_stay(tmp_path):
    answer = ('{"tool_id":"t","name":"n","object":"tool","kind":"python","python_code":"c","description":"d","title":null,"secrets":["A"],'
              '"modules":[],"requires":[],"client_capabilities":[],"limits":{"timeout_ms":5000},"confirm":false,"task":null,'
              '"input_schema":{"9":9007199254740993,"1":1.0},"output_schema":null,"annotations":null,"icons":null,"meta":{"a":1e400}}')
    got = run(tmp_path, "pages/tools/fields.ts", """
        const before = m.fieldsOf(JSON.parse(given), given), now = {...before, meta: '{"b":12345678901234567890}', secrets: [],
            limits: {...before.limits, cpu_ms: '200'}};
        const changed = m.fieldsChanged('tool', before, now);
        return {same: m.fieldsChanged('tool', before, {...before}), schema: before.input_schema, meta: changed.meta.text,
                names: Object.keys(changed).sort(), limits: changed.limits, secrets: changed.secrets};""", answer)
    assert got["same"] == {} and got["names"] == ["limits", "meta", "secrets"]
    assert "9007199254740993" in got["schema"] and "1.0" in got["schema"] and got["schema"].index('"9"') < got["schema"].index('"1"')
    assert (got["meta"], got["limits"], got["secrets"]) == ('{"b":12345678901234567890}', {"cpu_ms": 200}, [])


def test_exact_text_of_a_value(tmp_path):
    got = run(tmp_path, "api/exact.ts", """return given.map(t => m.exactText({a: [new m.Exact(t), '"$&'], b: {c: new m.Exact(t)}}));""",
              ["12345678901234567890", '{"x":1.0}', '"$1"'])
    assert got == [f'{{"a":[{t},"\\"$&"],"b":{{"c":{t}}}}}' for t in ("12345678901234567890", '{"x":1.0}', '"$1"')]
