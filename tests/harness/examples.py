"""The tools of contrib/tools: installed as a person would, called as their
NAME.json says, and what came back compared with it."""
import base64
import importlib.machinery
import importlib.util
import json
import os
import struct
import subprocess
import zlib

from harness.clients.mcp import META, text
from harness.patience import patience, until
from harness.place import SRC

FOLDER = os.path.join(SRC, "contrib", "tools")


def installer(folder=FOLDER):
    """contrib/tools/install as a module."""
    loader = importlib.machinery.SourceFileLoader("example_install", os.path.join(folder, "install"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("example_install", loader))
    loader.exec_module(module)
    return module


def names():
    """Read here: tests get their names from it."""
    return sorted(f.removesuffix(".json") for f in os.listdir(FOLDER) if f.endswith(".json"))


def table(name, folder=FOLDER):
    with open(os.path.join(folder, name + ".json"), encoding="utf-8") as f:
        return json.load(f)


def install(instance, name, *more, folder=FOLDER, said=""):
    return subprocess.run([os.path.join(folder, "install"), name, *more, "--url",
                           "http://{}:{}/mcp".format(*instance.address()),
                           "--ctl", os.path.join(instance.state, "bin", "mcpboxctl")],
                          capture_output=True, text=True, check=False, timeout=patience(120), input=said)


def approve_call(instance, arguments):
    """Says yes to the one call with these arguments that waits for it; its request."""
    def waiting():
        return [i for i in instance.ctl_json("approvals", "list", "--kind", "call")["items"]
                if json.loads(i["arguments"]) == arguments]
    found = until(waiting)
    assert len(found) == 1, found
    shown = instance.ctl_json("approvals", "show", found[0]["id"])
    instance.ctl("approvals", "approve", shown["id"], "--hash", shown["hash"])
    return shown


def call(instance, client, name, example):
    """The reply to an example's call, once the person has answered (by the client)
    and an administrator has confirmed it (by mcpboxctl), as often as they are asked."""
    answers = iter(example.get("answers", ()))
    capabilities = {"elicitation": {}} if "answers" in example else {}
    more = {}
    while True:
        r = client.request("tools/call", {"name": name, "arguments": example["arguments"], **more,
                                          "_meta": {META + "clientCapabilities": capabilities}})
        if r.result is None or r.result["resultType"] == "complete":
            return r
        asked = r.result.get("inputRequests")
        more = {"requestState": r.result["requestState"]}
        if asked:
            more["inputResponses"] = {key: next(answers) for key in asked}
        else:
            approve_call(instance, example["arguments"])


def picture(block):
    """Describes an image block by its bytes: each chunk of a PNG is whole, each line there."""
    data, at, chunks = base64.b64decode(block["data"]), 8, {}
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    while at < len(data):
        n, kind = struct.unpack_from(">I4s", data, at)
        body = data[at + 8:at + 8 + n]
        assert struct.unpack_from(">I", data, at + 8 + n) == (zlib.crc32(kind + body),), kind
        chunks[kind] = body
        at += n + 12
    width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
    assert (depth, colour) == (8, 3) and chunks[b"IEND"] == b"" and len(chunks[b"PLTE"]) % 3 == 0
    assert len(zlib.decompress(chunks[b"IDAT"])) == height * (width + 1)
    return {"mimeType": block["mimeType"], "width": width, "height": height}


def compare(r, example):
    """Compares what came back with what the example says."""
    assert r.result is not None, r
    assert bool(r.result.get("isError")) == ("error" in example), r
    if "error" in example:
        assert example["error"] in text(r), text(r)
    if "text" in example:
        assert text(r) == example["text"]
    if "structured" in example:
        got = r.result["structuredContent"]
        assert {k: got.get(k) for k in example["structured"]} == example["structured"], got
    if "image" in example:
        blocks = [b for b in r.result["content"] if b["type"] == "image"]
        assert [picture(b) for b in blocks] == [example["image"]]
