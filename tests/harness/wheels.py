"""Wheels and a package index on the loopback, honest or not."""
import base64
import contextlib
import hashlib
import html
import http.server
import io
import json
import struct
import threading
import time
import zipfile


def urlsafe(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def wheel(name="demo", version="1.0", files=None, tag="py3-none-any", requires=(), extra=(),
          record=None, metadata=None, drop=(), compress=zipfile.ZIP_DEFLATED):
    """(file name, bytes). files: {path: bytes}; extra: [(ZipInfo, bytes)] behind
    all, without a line in RECORD; record: edits {path: line or None}; drop: parts
    of dist-info to be left out."""
    stem = name.replace("-", "_")
    info = f"{stem}-{version}.dist-info"
    contents = dict({f"{stem}/__init__.py": b"NAME = %r\n" % name.encode()} if files is None else files)
    contents[f"{info}/METADATA"] = metadata if metadata is not None else "".join(
        ["Metadata-Version: 2.1\n", f"Name: {name}\nVersion: {version}\n",
         "Summary: a wheel of the tests\nLicense: ISC\n"]
        + [f"Requires-Dist: {r}\n" for r in requires] + ["\nText.\n"]).encode()
    contents[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: {tag}\n").encode()
    rows = {p: f"{p},{urlsafe(c)},{len(c)}" for p, c in contents.items()}
    rows[f"{info}/RECORD"] = f"{info}/RECORD,,"
    for path, row in (record or {}).items():
        rows[path] = row
    contents[f"{info}/RECORD"] = "".join(r + "\n" for r in rows.values() if r is not None).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compress) as z:
        for path, c in contents.items():
            if path.rpartition("/")[2] not in drop:
                z.writestr(path, c)
        for i, c in extra:
            z.writestr(i, c)
    return f"{stem}-{version}-{tag}.whl", out.getvalue()


def link(path, target):
    """A member that is a symbolic link, for `extra`."""
    i = zipfile.ZipInfo(path)
    i.create_system, i.external_attr = 3, 0o120777 << 16
    return i, target.encode()


def entry_with_size(data, path, size):
    """The archive with another uncompressed size of one member in its
    directory and its local head."""
    data = bytearray(data)
    raw = path.encode()
    at = 0
    while (at := data.find(raw, at)) >= 0:
        if data[at - 46:at - 42] == b"PK\1\2":
            struct.pack_into("<I", data, at - 46 + 24, size)
        elif data[at - 30:at - 26] == b"PK\3\4":
            struct.pack_into("<I", data, at - 30 + 22, size)
        at += len(raw)
    return bytes(data)


class Index:
    """Serves /simple/NAME/ and /files/FILENAME; also an OSV feed at /v1/query.

    add() says what is there; `pages`, `hashes` and `bodies` override; `slow`
    seconds a kilobyte; `seen` has the paths that were asked for."""

    def __init__(self, address="127.0.0.1", port=0, form="json"):
        self.form, self.files, self.links = form, {}, {}
        self.pages, self.bodies, self.slow, self.slow_pages = {}, {}, 0, 0
        self.vulns, self.feed_status, self.status, self.seen = {}, 200, 200, []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, status, kind, body, slow=0):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(OSError):
                    if not slow:
                        self.wfile.write(body)
                    for i in range(0, len(body) if slow else 0, 1024):
                        self.wfile.write(body[i:i + 1024])
                        time.sleep(slow)

            def do_GET(self):
                outer.seen.append(self.path)
                parts = self.path.strip("/").split("/")
                if parts[0] == "simple" and len(parts) == 2:
                    page = outer.page(parts[1])
                    if outer.status != 200:
                        self.reply(outer.status, "text/plain", b"not now")
                    elif page is None:
                        self.reply(404, "text/plain", b"no such project")
                    else:
                        self.reply(200, *page, slow=outer.slow_pages)
                elif parts[0] == "files" and parts[1] in outer.files:
                    body = outer.bodies.get(parts[1], outer.files[parts[1]])
                    if callable(body):
                        body = body()
                    if isinstance(body, str):   # a redirect
                        self.send_response(302)
                        self.send_header("Location", body)
                        self.send_header("Content-Length", "0")
                        self.end_headers()
                        return
                    self.reply(200, "application/octet-stream", body, outer.slow)
                else:
                    self.reply(404, "text/plain", b"")

            def do_POST(self):
                outer.seen.append(self.path)
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                assert asked["package"]["ecosystem"] == "PyPI"
                key = (asked["package"]["name"], asked["version"])
                self.reply(outer.feed_status, "application/json",
                           json.dumps({"vulns": outer.vulns[key]} if key in outer.vulns
                                      else {}).encode())

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

        self.server = Server((address, port), Handler)
        self.port = self.server.server_address[1]
        self.address = f"{address}:{self.port}"
        self.url = f"http://{self.address}/simple/"
        self.feed = f"http://{self.address}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def add(self, made, name=None, sha256=None, python=None, yanked=False, url=None):
        """One wheel on its project's page. sha256: what the page says of it;
        "" says nothing."""
        filename, data = made
        project = name or filename.split("-")[0].replace("_", "-").lower()
        self.files[filename] = data
        self.links.setdefault(project, []).append({
            "filename": filename, "url": url or f"../../files/{filename}",
            "sha256": hashlib.sha256(data).hexdigest() if sha256 is None else sha256,
            "python": python, "yanked": yanked})
        return filename

    def page(self, project):
        if project in self.pages:
            return self.pages[project]
        links = self.links.get(project)
        if links is None:
            return None
        if self.form == "json":
            return "application/vnd.pypi.simple.v1+json", json.dumps({
                "meta": {"api-version": "1.0"}, "name": project, "files": [{
                    "filename": f["filename"], "url": f["url"],
                    "hashes": {"sha256": f["sha256"]} if f["sha256"] else {},
                    "requires-python": f["python"], "yanked": f["yanked"]} for f in links]}).encode()
        rows = "".join(
            f'<a href="{html.escape(f["url"])}' + (f'#sha256={f["sha256"]}' if f["sha256"] else "")
            + '"' + (f' data-requires-python="{html.escape(f["python"])}"' if f["python"] else "")
            + (' data-yanked=""' if f["yanked"] else "") + f'>{f["filename"]}</a><br>'
            for f in links)
        return "text/html", f"<!DOCTYPE html><html><body>{rows}</body></html>".encode()
