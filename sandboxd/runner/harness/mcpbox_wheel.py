"""The installer of modules: fetches one wheel, judges it and hands its files to
the module store (docs/decisions/0052). Runs as a driver, in a runner of its own
that may connect to the configured index alone.

    spec       {"index", "advisories", "wheel_bytes"}, from sandboxd.conf
    arguments  {"name", "version", "sha256"}; the last two may be empty

Nothing of the wheel is executed, compiled or imported here or anywhere before
somebody approved it. What this process says of the wheel is as good as the
process, which has read a stranger's archive: the store computes the digest
that is approved, and a person reads the rest."""

import hashlib
import io
import os
import re
import stat
import struct
import urllib.parse

import _mcpbox
import mcpbox_drivers
import mcpbox_http
import mcpbox_index
import mcpbox_versions as versions

#: Where the archive lies while it is read; it is gone with the runner.
WHEEL = "/tmp/wheel"
DOWNLOAD_S = 240
#: Members of the archive, and its directory at its end: some 60 bytes each and
#: the names.
MEMBERS_MAX = 20_000
DIRECTORY_MAX = 4 << 20
#: METADATA, WHEEL, RECORD: the longest known have some hundred kB.
TEXT_MAX = 4 << 20
#: A frame to sandboxd, less its head.
PIECE = 48 * 1024
PATH_MAX, PART_MAX, DEPTH_MAX = 1024, 255, 32
REQUIRES_MAX = 64
ADVISORIES_MAX = 50
ADVISORY_S = 30
TREE_MAGIC = b"mcpbox tree 1\0"


#: A wheel that is none, or not what it says.
Refused = mcpbox_index.Refused


def download(url, sha256, most):
    """Into WHEEL; its length. What comes is what the index named, or nothing."""
    digest, size = hashlib.sha256(), 0
    try:
        with mcpbox_http.stream("GET", url, timeout=DOWNLOAD_S, max_bytes=most,
                                redirects=3, decompress=False) as r:
            if r.status != 200:
                raise mcpbox_index.answered(r.status, url)
            with open(WHEEL, "wb") as f:
                for data in r.bytes():
                    digest.update(data)
                    size += len(data)
                    f.write(data)
    except mcpbox_http.TooLarge:
        raise mcpbox_drivers.Limit(
            f"the wheel is larger than module_wheel_size, {most} bytes"
            ) from None
    except mcpbox_http.Error as e:
        raise mcpbox_index.upstream(f"{e.url or url}: {e}") from None
    if digest.hexdigest() != sha256:
        raise mcpbox_drivers.UpstreamChanged(
            f"{url}: the file has the SHA-256 {digest.hexdigest()}, the index "
            f"or the request says {sha256}")
    return size


# ---- the archive ----

def _end_record(f, size):
    """Before zipfile reads the archive's directory as a whole: how long it
    says it is. ZIP64 is for what is larger than we take."""
    f.seek(max(0, size - 65557))
    tail = f.read()
    at = tail.rfind(b"PK\5\6")
    if at < 0 or len(tail) - at < 22:
        raise Refused("the wheel is no ZIP archive")
    disk, start, here, total, length, offset, comment = struct.unpack(
        "<HHHHIIH", tail[at + 4:at + 22])
    if (disk, start) != (0, 0) or here != total or 0xffff in (here, total) \
            or 0xffffffff in (length, offset) \
            or at + 22 + comment != len(tail):
        raise Refused("the wheel is a ZIP archive in parts, of ZIP64, or with "
                      "something behind its end")
    if total > MEMBERS_MAX or length > DIRECTORY_MAX:
        raise mcpbox_drivers.Limit(
            f"the wheel has more than {MEMBERS_MAX} members")
    if size - len(tail) + at != offset + length:
        raise Refused("the wheel has something before or in its archive that "
                      "does not belong to it")
    return total


def _check_path(path):
    parts = path.split("/")
    if (len(path.encode()) > PATH_MAX or len(parts) > DEPTH_MAX
            or any(p in ("", ".", "..") or len(p.encode()) > PART_MAX
                   for p in parts)
            or "\\" in path or ":" in parts[0]
            or re.search(r"[\x00-\x1f\x7f]", path)):
        raise Refused(f"the wheel has a member with the name {path[:100]!r}")


def members(archive):
    """{path: ZipInfo} of its files. Refuses what is no file, what is not where
    it says, and names that two members have."""
    found = {}
    for info in archive.infolist():
        path = info.filename
        try:
            path.encode()
        except UnicodeError:
            raise Refused("the wheel has a member without a name") from None
        if path != info.orig_filename:
            raise Refused("the wheel has a member with a NUL in its name")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if path.endswith("/"):
            _check_path(path[:-1])
            if info.file_size or kind not in (0, stat.S_IFDIR):
                raise Refused(f"the wheel's {path[:100]!r} is no directory")
            continue
        _check_path(path)
        if kind not in (0, stat.S_IFREG):
            raise Refused(f"the wheel's {path[:100]!r} is a link or a special "
                          "file")
        if info.flag_bits & 0x2041:
            raise Refused(f"the wheel's {path[:100]!r} is encrypted")
        if info.compress_type not in (0, 8):
            raise Refused(f"the wheel's {path[:100]!r} is packed in a way that "
                          "wheels do not have")
        if path in found:
            raise Refused(f"the wheel has two members {path[:100]!r}")
        found[path] = info
    return found


def read_text(archive, found, path):
    info = found.get(path)
    if info is None:
        raise Refused(f"the wheel has no {path}")
    if info.file_size > TEXT_MAX:
        raise mcpbox_drivers.Limit(f"the wheel's {path} is too long")
    with archive.open(info) as f:
        data = f.read(TEXT_MAX + 1)
    try:
        return data[:TEXT_MAX].decode("utf-8")
    except UnicodeError:
        raise Refused(f"the wheel's {path} is not UTF-8") from None


def dist_info(found, wheel):
    """The one directory X.dist-info at the top, which is of this package."""
    tops = {p.split("/")[0] for p in found}
    infos = sorted(t for t in tops if t.lower().endswith(".dist-info"))
    if len(infos) != 1:
        raise Refused(f"the wheel has {len(infos)} directories *.dist-info")
    stem, _, version = infos[0][:-len(".dist-info")].rpartition("-")
    try:
        good = (versions.name(stem) == wheel.name
                and versions.Version(version).key == wheel.version.key)
    except ValueError:
        good = False
    if not good:
        raise Refused(f"the wheel is called {wheel.filename} and has "
                      f"{infos[0][:100]!r}")
    return infos[0]


def record(archive, found, info):
    """{path: (SHA-256 as in RECORD, size)}: each file but RECORD itself and
    signatures of it is there, with both."""
    import csv

    own = {f"{info}/RECORD", f"{info}/RECORD.jws", f"{info}/RECORD.p7s"}
    rows = {}
    text = read_text(archive, found, f"{info}/RECORD")
    try:
        for row in csv.reader(io.StringIO(text), strict=True):
            if not row:
                continue
            path, said, size = row
            if path in rows:
                raise Refused(f"RECORD names {path[:100]!r} twice")
            rows[path] = (said, size)
    except (csv.Error, ValueError):
        raise Refused("the wheel's RECORD can't be read") from None
    for path in sorted(set(found) ^ set(rows)):
        if path in own:
            continue
        raise Refused(f"the wheel's RECORD and its files differ: {path[:100]!r}"
                      + (" is not listed" if path in found else " is missing"))
    for path, (said, size) in rows.items():
        if path in own:
            continue
        if not said.startswith("sha256=") or not size.isdecimal() \
                or int(size) != found[path].file_size:
            raise Refused(f"RECORD has no SHA-256 or another size of "
                          f"{path[:100]!r}")
    return {p: said for p, (said, _) in rows.items() if p not in own}


def metadata(archive, found, info, wheel):
    """METADATA's fields that matter here."""
    import email.parser

    parser = email.parser.HeaderParser()
    about = parser.parsestr(read_text(archive, found, f"{info}/WHEEL"))
    if (about.get("Wheel-Version") or "").split(".")[0] != "1":
        raise Refused("the wheel is of a Wheel-Version that is not known here")
    said = parser.parsestr(read_text(archive, found, f"{info}/METADATA"))
    try:
        good = (versions.name((said.get("Name") or "").strip()) == wheel.name
                and versions.Version(said.get("Version") or "").key
                == wheel.version.key)
        python = versions.Specifiers(said.get("Requires-Python") or "")
        here = versions.environment()["python_full_version"]
        fits = python.take(versions.Version(here))
    except ValueError:
        good = fits = False
    if not good:
        raise Refused("the wheel's METADATA names another package or version "
                      "than its file name")
    if not fits:
        raise Refused("the wheel needs another Python than this")

    def clean(name):
        text = re.sub(r"[^\x20-\x7e]+", " ", said.get(name) or "")
        return text.strip()[:300]

    return {"summary": clean("Summary"),
            "license": clean("License-Expression") or clean("License"),
            "requires_python": clean("Requires-Python"),
            "requires": [re.sub(r"[^\x21-\x7e]+", " ", r)
                         [:versions.REQUIREMENT_MAX]
                         for r in said.get_all("Requires-Dist") or []]}


def places(found, info):
    """{path in the store: path in the wheel}. What stands in X.data/purelib and
    platlib belongs to the top (PEP 427); scripts, headers and data have no use
    in a call and stay out. So does __pycache__: what is compiled in there runs
    in the place of the source that a reviewer reads, and need not be of it
    (PEP 552, unchecked)."""
    data = info[:-len(".dist-info")] + ".data/"
    out = {}
    for path in found:
        to = path
        if path.startswith(data):
            _, _, rest = path[len(data):].partition("/")
            if path[len(data):].split("/")[0] not in ("purelib", "platlib"):
                continue
            to = rest
            if not to:
                raise Refused("the wheel has a file in the place of a "
                              "directory")
        if "__pycache__" in to.split("/"):
            continue
        if to in out:
            raise Refused(f"the wheel has {to[:100]!r} twice")
        out[to] = path
    return out


# ---- to the store ----

class Sender:
    """The stream of sandboxd/store/tree.h, in pieces."""

    def __init__(self):
        self._parts, self._n = [TREE_MAGIC], len(TREE_MAGIC)

    def put(self, data):
        view = memoryview(data)
        while len(view) > PIECE - self._n:
            room = PIECE - self._n
            self._parts.append(bytes(view[:room]))
            self._send(False)
            view = view[room:]
        if len(view):
            self._parts.append(bytes(view))
            self._n += len(view)

    def _send(self, last):
        state, digest, files, size, text = _mcpbox.module_part(
            b"".join(self._parts), last)
        self._parts, self._n = [], 0
        if state == 2:
            raise mcpbox_drivers.Limit(f"the module store: {text}")
        return {"digest": digest.hex(), "files": files, "bytes": size}

    def end(self):
        """What the store says it holds now."""
        return self._send(True)


def _entries(out):
    """Paths of files and of the directories above them, as the stream orders
    them: (bytes, path in the wheel or None)."""
    entries = {}
    for to, path in out.items():
        parts = to.encode().split(b"/")
        for i in range(1, len(parts)):
            above = b"/".join(parts[:i])
            if entries.setdefault(above, None) is not None:
                raise Refused(f"the wheel has {above[:100]!r} as file and as "
                              "directory")
        key = to.encode()
        if key in entries:
            raise Refused(f"the wheel has {to[:100]!r} as file and as "
                          "directory")
        entries[key] = path
    return sorted(entries.items())


def store(archive, found, rows, out):
    """Unpacks into the stream, each file checked against RECORD as it goes: one
    that differs ends the run before the tree is whole."""
    import base64

    sender = Sender()
    for key, path in _entries(out):
        sender.put(struct.pack(">BI", 1 if path is None else 2, len(key)) + key)
        if path is None:
            continue
        info, digest, size = found[path], hashlib.sha256(), 0
        sender.put(struct.pack(">Q", info.file_size))
        with archive.open(info) as f:
            while data := f.read(256 * 1024):
                size += len(data)
                if size > info.file_size:
                    break
                digest.update(data)
                sender.put(data)
        if size != info.file_size:
            raise Refused(f"the wheel's {path[:100]!r} has another length than "
                          "the archive says")
        said = rows.get(path)
        if said is not None and said != "sha256=" + base64.urlsafe_b64encode(
                digest.digest()).rstrip(b"=").decode():
            raise Refused(f"the wheel's {path[:100]!r} is not what RECORD says")
    return sender.end()


def unpack(size, wheel):
    """Judges and stores what lies in WHEEL; (METADATA's fields, what the store
    said)."""
    import zipfile
    import zlib

    try:
        with open(WHEEL, "rb") as f:
            total = _end_record(f, size)
            with zipfile.ZipFile(f) as archive:
                if len(archive.infolist()) != total:
                    raise Refused("the wheel's archive has another number of "
                                  "members than it says")
                found = members(archive)
                info = dist_info(found, wheel)
                rows = record(archive, found, info)
                about = metadata(archive, found, info, wheel)
                return about, store(archive, found, rows, places(found, info))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError,
            struct.error, ValueError, OverflowError) as e:
        raise Refused(f"the wheel can't be unpacked: {type(e).__name__}: "
                      f"{str(e)[:200]}") from None


# ---- what else is said of it ----

def dependencies(index, requires):
    """What it needs here, each with the version that the index would give now.
    Extras, and what is needed for one, are only listed."""
    env, out = versions.environment(), []
    for text in requires[:REQUIRES_MAX]:
        try:
            r = versions.Requirement(text, env)
            if not r.wanted:
                continue
        except ValueError as e:
            out.append({"requirement": text[:300], "error": str(e)[:300]})
            continue
        one = {"requirement": r.text[:300], "name": r.name}
        try:
            one["version"] = str(index.choose(r.name, r.specifiers
                                              ).wheel.version)
        except mcpbox_drivers.Failure as e:
            one["error"] = str(e)[:300]
        out.append(one)
    return out


def advisories(feed, name, version):
    """What an OSV feed knows of this version: {"known": [...]} or {"error"}. It
    is told to the reviewer; nothing hangs on its being there."""
    import json

    if not feed:
        return None
    try:
        r = mcpbox_index.fetch(
            "POST", feed.rstrip("/") + "/v1/query",
            {"Content-Type": "application/json"},
            json.dumps({"version": version, "package": {
                "name": name, "ecosystem": "PyPI"}}).encode(),
            timeout=ADVISORY_S, max_bytes=TEXT_MAX)
        if r.status != 200:
            return {"error": f"the feed answered {r.status}"}
        vulns = json.loads(r.text()).get("vulns") or []

        def clean(value, most):
            return re.sub(r"[^\x20-\x7e]+", " ", str(value or ""))[:most]

        return {"known": [
            {"id": clean(v.get("id"), 60),
             "aliases": [clean(a, 60) for a in (v.get("aliases") or [])[:8]],
             "summary": clean(v.get("summary") or v.get("details"), 300)}
            for v in vulns[:ADVISORIES_MAX] if not v.get("withdrawn")],
            "more": max(0, len(vulns) - ADVISORIES_MAX)}
    except mcpbox_drivers.Failure as e:
        return {"error": str(e)[:300]}
    except (ValueError, TypeError, AttributeError, RecursionError):
        return {"error": "the feed's answer is no answer of OSV"}


def main(spec, arguments, secrets):
    try:
        name = versions.name(arguments["name"])
        version, sha256 = arguments["version"], arguments["sha256"]
        if version:
            versions.Version(version)
    except ValueError as e:
        raise mcpbox_drivers.InvalidArguments(str(e)) from None
    index = mcpbox_index.Index(spec["index"])
    f = index.choose(name, versions.Specifiers(), version, sha256)
    # A request for 1.0 is not one for 1.0.0: what was asked for by a person is
    # what is recorded, or nothing.
    if version and version != str(f.wheel.version):
        raise Refused(
            f"the index has {name} {version} as version {f.wheel.version}: "
            "ask for it by that")
    size = download(f.url, f.sha256, spec["wheel_bytes"])
    about, stored = unpack(size, f.wheel)
    os.unlink(WHEEL)
    return mcpbox_drivers.Body({"content": [], "structuredContent": {
        "name": name, "version": str(f.wheel.version),
        "filename": f.wheel.filename, "sha256": f.sha256,
        "url": urllib.parse.urlunsplit(urllib.parse.urlsplit(f.url)[:3]
                                       + ("", "")),
        "size": size, **about, **stored,
        "needs": dependencies(index, about["requires"]),
        "advisories": advisories(spec.get("advisories"), name,
                                 str(f.wheel.version)),
    }, "isError": False})
