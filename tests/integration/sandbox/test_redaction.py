"""No form of a call's secrets leaves by any way out: real sandboxd, real
runner. Each way is first shown to carry what is no secret."""
import base64
import html
import json

import pytest

from harness.patience import patience
from harness.played.sandbox import DONE, FAILED, KILLED, Sandbox

RUNNER = "sandboxd/runner/mcpbox-runner"
SECRET = "Tr0ub4dor&3/é \"q\"\\n"
DIGITS = "90871236548890"
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEF\nAASCBKcwggSjAgEAAoIBAQC7VJTU\n-----END KEY-----\n"
HEX = "9f8e7d6c5b4a39281706f5e4d3c2b1a0"
SECRETS = [("T", SECRET), ("N", DIGITS), ("K", KEY), ("H", HEX)]
MARK = "[secret]"

#: Of the middle of the secrets in forms inside each other.
TRACES = [x[len(x) // 3:len(x) // 3 + 12] for s in (SECRET.encode(),) for x in (
    base64.b64encode(base64.b64encode(s)).decode(), base64.b64encode(s).hex(), base64.b32encode(s).decode(),
    base64.b32encode(s).decode().lower(), base64.b64encode(base64.b32encode(s)).decode(),
    base64.b64encode(s.decode().encode("utf-16-le")).decode())] + [
        "\\x00r\\x000\\x00u", "r0ub4dor", HEX.upper()[2:-2], "8e:7d:6c:5b", base64.b64encode(bytes.fromhex(HEX)).decode()[4:16]]

# Names of encoders inside the tool; each makes of a str a str.
FORMS = {
    "plain": "s", "json": "json.dumps(s)", "repr": "repr(s)", "bytes": "repr(s.encode())",
    "quote": "urllib.parse.quote(s, safe='')", "plus": "urllib.parse.quote_plus(s)",
    "twice": "urllib.parse.quote(urllib.parse.quote(s))", "hex": "s.encode().hex()",
    "b64": "base64.b64encode(s.encode()).decode()", "b64url": "base64.urlsafe_b64encode(s.encode()).decode()",
    "basic": "base64.b64encode(b'user:' + s.encode()).decode()",
    "mime": "base64.encodebytes(b'Authorization: ' + s.encode() * 5).decode()",
    "jwt": "base64.urlsafe_b64encode(json.dumps({'k': s}).encode()).decode().rstrip('=')",
    "b64 twice": "base64.b64encode(base64.b64encode(s.encode())).decode()",
    "hex of b64": "base64.b64encode(s.encode()).hex()",
    "b32": "base64.b32encode(s.encode()).decode()", "b32 lower": "base64.b32encode(s.encode()).decode().lower()",
    "b64 of b32": "base64.b64encode(base64.b32encode(s.encode())).decode()",
    "html": "html.escape(s)", "xml": "''.join('&#x%X;' % ord(c) for c in s)",
    "printable": "quopri.encodestring(s.encode() * 5).decode()",
    "utf-16-le": "base64.b64encode(s.encode('utf-16-le')).decode()",
    "utf-16-be": "repr(s.encode('utf-16-be'))",
    "digits": "(s.upper() + ' ' + bytes.fromhex(s).hex(':') + ' ' + base64.b64encode(bytes.fromhex(s)).decode())",
    "lines": "'\\n'.join('| ' + x for x in s.splitlines())",
}
# Ways out: statements of main, in which f is the text.
WAYS = {
    "text": "return 'a ' + f + ' b'",
    "value": "return {'deep': [{'k': f}]}",
    "name": "return {f: 1}",
    "list": "return [f, 'x']",
    "content": "return [mcpbox.Text(f), mcpbox.ResourceLink('https://h/', f, title=f, description=f)]",
    "resource": "return mcpbox.Resource('mem:x', text=f)",
    "blob": "return mcpbox.Resource('mem:x', data=f.encode())",
    "image": "return mcpbox.Image(b'PNG' + f.encode())",
    "stdout": "print('a', f); return 1",
    "stderr": "print('a', f, file=sys.stderr); return 1",
    "pieces": "[(os.write(1, c), time.sleep(.001)) for c in chunks(f.encode())]; return 1",
    "log": "mcpbox.log(f); return 1",
    "log value": "mcpbox.log({f: [f]}); return 1",
    "progress": "mcpbox.progress(1, 2, f); return 1",
    "exception": "raise ValueError(f)",
    "chained": "\n    try:\n        raise KeyError(f)\n    except KeyError as e:\n        raise OSError(5, f) from e",
    "tool error": "raise mcpbox.ToolError(f)",
    "exit": "sys.exit(f)",
    "assert": "x = f; assert x == 'y', x",
    "printed, then an error": "print(f); raise RuntimeError('r')",
    "printed, then the end": "print(f, flush=True); time.sleep(.05); os._exit(3)",
}
CODE = """
import base64, html, json, os, quopri, sys, time, urllib.parse
import mcpbox
def chunks(b):
    return [b[i:i + 3] for i in range(0, len(b), 3)]
def main():
    s = SECRET
    f = FORM
    WAY
"""


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(runner=RUNNER, slots=4) as s:
        s.await_ready()
        yield s


@pytest.fixture(scope="module")
def admind(sandbox):
    a = sandbox.admind()
    yield a
    a.peer.sock.close()


@pytest.fixture
def gateway(sandbox):
    with sandbox.gateway() as g:
        yield g


def run(admind, gateway, code, secrets=SECRETS):
    """(outcome, body, everything that left, as one text)"""
    x = admind.held(code, secrets=secrets)
    request, left = gateway.start("RUN", execution=x, arguments=b"{}"), []
    while True:
        got, m = gateway.receive(patience(20))
        assert got == request
        if m["_"] == "CALL_EVENT":
            left.append(m["json"].decode())
            continue
        assert m["_"] == "CALL_RESULT", m
        break
    blob = m["body_meta"]
    record = admind.record(x)
    body, meta = json.loads(blob[:m["body_len"]]), json.loads(blob[m["body_len"]:])
    left += [json.dumps(body, ensure_ascii=False), json.dumps(meta, ensure_ascii=False),
             record["stdout_result"].decode("utf-8", "replace")]
    return m["outcome"], body, "\n".join(left)


def code(secret, form, way):
    return CODE.replace("SECRET", secret).replace("FORM", FORMS[form]).replace("WAY", WAYS[way])


def traces(left):
    """What of the secrets can still be read: parts that are in no code."""
    shown = left.replace("\\\\", "\\") + " " + html.unescape(left)
    return [part for part in ("Tr0ub4dor", "VHIwdWI0ZG9y", "IwdWI0ZG9y", "54723075623464", "MIIEvQIBADAN",
                              "AASCBKcwggSj", DIGITS, *TRACES) if part in left or part in shown]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_out(admind, gateway, way):
    """All forms by each way; the same of a value that is no secret passes."""
    for form in FORMS:
        secret = f"mcpbox.secrets['{ {'lines': 'K', 'digits': 'H'}.get(form, 'T') }']"
        outcome, _, left = run(admind, gateway, code(secret, form, way))
        assert outcome in (DONE, FAILED)
        assert MARK in left or "data withheld" in left, (form, left)
        assert not traces(left), (form, traces(left), left)
    for form in ("plain", "b64", "hex"):
        _, _, left = run(admind, gateway, code("'Tr0ub4dor-is-not-here'", form, way))
        assert MARK not in left and "withheld" not in left
        if way not in ("blob", "image"):
            assert traces(left) or "VHIwdWI0" in left, (form, left)


def test_numbers(admind, gateway):
    outcome, body, left = run(admind, gateway, "import mcpbox\ndef main():\n    n = int(mcpbox.secrets['N'])\n"
                              "    mcpbox.progress(n, n)\n    mcpbox.log([n, -n, float(n), n * 1.0])\n    print(n)\n"
                              "    return {'n': n, 'neg': -n, 'float': n * 1.0, str(n): 1, 'other': n + 1}\n")
    assert outcome == DONE and DIGITS not in left
    assert body["structuredContent"] == {"n": None, "neg": None, "float": None, MARK: 1, "other": int(DIGITS) + 1}


def test_forged_frames_hide_nothing(admind, gateway):
    """The tool writes frames itself: escapes of its own choice."""
    outcome, body, left = run(admind, gateway, '''
import os, mcpbox
def main():
    s = mcpbox.secrets['N']
    esc = "".join("\\\\u%04x" % ord(c) for c in s)
    body = '{"content":[{"type":"text","text":"%s"}],"structuredContent":{"%s":["%s"]}}' % (esc, esc, esc)
    data = body.encode()
    def frame(kind, payload):
        os.write(3, bytes([0, kind, 0, 0]) + len(payload).to_bytes(4, "big") + bytes(8) + payload)
    for i in range(0, len(data), 7):            # in small pieces
        piece = data[i:i + 7]
        frame(173, len(piece).to_bytes(4, "big") + piece)
    frame(174, len(data).to_bytes(4, "big"))
    os._exit(0)
''')
    assert outcome == DONE, left
    assert body["content"][0]["text"] == MARK and body["structuredContent"] == {MARK: [MARK]}
    assert DIGITS not in left and "\\u0039" not in left


@pytest.mark.parametrize("body, says", [
    ('{"content":[{"type":"text"}]}', "text is missing"),
    ('{"content":[{"type":"script","text":"x"}]}', "is no block of type"),
    ('{"content":[{"type":"image","data":"%","mimeType":"image/png"}]}', "data is no base64"),
    ('{"content":[{"type":"resource_link","uri":"no uri","name":"n"}]}', "uri is no URI"),
    ('{"content":[{"type":"text","text":"x","annotations":7}]}', "annotations is no object"),
    ('{"content":[],"structuredContent":[1]}', "structuredContent is no object")])
def test_a_forged_shape_is_a_typed_error(admind, gateway, body, says):
    outcome, got, _ = run(admind, gateway, FORGE.replace("BODY", repr(body)))
    assert outcome == FAILED and got["isError"] is True
    assert says in got["content"][0]["text"] and len(got["content"]) == 1


FORGE = '''
import os
def main():
    data = BODY.encode("utf-8", "surrogatepass")
    def frame(kind, payload):
        os.write(3, bytes([0, kind, 0, 0]) + len(payload).to_bytes(4, "big") + bytes(8) + payload)
    frame(173, len(data).to_bytes(4, "big") + data)
    frame(174, len(data).to_bytes(4, "big"))
    os._exit(0)
'''


@pytest.mark.parametrize("body", [
    '{"content":[],"structuredContent":{"a":NaN}}', '{"content":[],"structuredContent":{"a":1e400}}',
    '{"content":[],"structuredContent":{"a":1,"a":2}}', '{"content":[],"content":[]}',
    '{"content":[{"type":"text","text":"\\ud800"}]}', '{"content":[{"type":"text","text":"\udc00"}]}',
    '{"content":[],"structuredContent":{"a":' + "[" * 70 + "]" * 70 + "}}", "", "[]", "{}", "null",
    '{"content":[]} x'])
def test_what_is_no_json_of_ours_ends_the_call(admind, gateway, body):
    """One rule for each: json_scan's. Nothing of the text passes."""
    outcome, got, left = run(admind, gateway, FORGE.replace("BODY", repr(body)))
    assert outcome == KILLED and got["isError"] is True, got
    assert "structuredContent" not in got


def test_members_of_strangers_are_dropped(admind, gateway):
    body = {"content": [{"type": "text", "text": "t", "x": 1, "_meta": {"a": 1}}], "structuredContent": {"a": 1},
            "_meta": {"mcpbox/failure": {}}, "resultType": "x", "id": 7}
    outcome, got, _ = run(admind, gateway, FORGE.replace("BODY", repr(json.dumps(body))))
    assert outcome == DONE
    assert got == {"content": [{"type": "text", "text": "t"}], "structuredContent": {"a": 1}, "isError": False}
