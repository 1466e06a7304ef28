"""The shipped SPDX document beside what binutils, the loader and dpkg say."""
import hashlib
import json
import os
import pathlib
import re
import subprocess

import pytest

SRC = pathlib.Path(__file__).resolve().parents[2]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def sbom(package):
    return json.loads((package.root / "usr/share/doc/mcpbox/mcpbox.spdx.json").read_text())


def links(sbom, kind):
    found = {}
    for r in sbom["relationships"]:
        if r["relationshipType"] == kind:
            found.setdefault(r["spdxElementId"], set()).add(r["relatedSpdxElement"])
    return found


def test_document(sbom, package):
    assert sbom["spdxVersion"] == "SPDX-2.3" and sbom["dataLicense"] == "CC0-1.0"
    (own,) = (p for p in sbom["packages"] if p["SPDXID"] in sbom["documentDescribes"])
    assert (own["name"], own["versionInfo"]) == ("mcpbox", package.field("Version"))
    ids = [x["SPDXID"] for x in sbom["packages"] + sbom["files"]]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", i) for i in ids)
    for r in sbom["relationships"]:
        assert r["spdxElementId"] in ids and r["relatedSpdxElement"] in ids


def test_programs_and_what_they_name(sbom, package):
    """readelf's entries NEEDED are the direct links, ldd's list all of them."""
    files = {f["SPDXID"]: f for f in sbom["files"]}
    direct = links(sbom, "DYNAMIC_LINK")
    (own,) = sbom["documentDescribes"]
    programs = {files[i]["fileName"]: i for i in links(sbom, "CONTAINS")[own]}
    assert sorted(programs) == sorted("/" + str(p.relative_to(package.root)) for p in package.programs)
    for name, this in programs.items():
        path = package.root / name[1:]
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", path))
        assert sorted(os.path.basename(files[i]["fileName"]) for i in direct[this]) == sorted(needed)
        closure, todo = set(), {this}
        while todo:
            todo = {j for i in todo for j in direct.get(i, ())} - closure
            closure |= todo
        loaded = set(re.findall(r"(?:=> )?(/\S+) \(0x", output("ldd", path)))
        assert {os.path.realpath(files[i]["fileName"]) for i in closure} == \
            {os.path.realpath(p) for p in loaded}, name


def test_sums(sbom, package):
    for f in sbom["files"]:
        path = package.root / f["fileName"][1:]
        data = (path if path.exists() else type(path)(f["fileName"])).read_bytes()
        sums = {c["algorithm"]: c["checksumValue"] for c in f["checksums"]}
        assert sums == {"SHA1": hashlib.sha1(data).hexdigest(),
                        "SHA256": hashlib.sha256(data).hexdigest()}, f["fileName"]


def test_packages(sbom):
    """Version and source are dpkg's."""
    checked = 0
    for p in sbom["packages"]:
        if p["name"] == "mcpbox" or not p["filesAnalyzed"]:
            continue
        version, source, source_version = output(
            "dpkg-query", "-W", "-f", "${Version} ${source:Package} ${source:Version}",
            p["name"] + ":amd64").split()
        assert p["versionInfo"] == version
        assert p["sourceInfo"].endswith(f" {source} {source_version}")
        checked += 1
    assert checked > 10


def test_packages_of_npm(sbom):
    """Those whose code browsers get, of the lock file; none that only builds."""
    lock = json.loads((SRC / "admind/panel/package-lock.json").read_text())["packages"]
    wanted = {(place.rpartition("node_modules/")[2], entry["version"], entry["license"])
              for place, entry in lock.items() if place and not entry.get("dev") and not entry.get("optional")}
    assert {"preact", "uplot", "@lezer/python"} <= {name for name, _, _ in wanted}
    assert {license for _, _, license in wanted} == {"MIT"}
    there = {p["SPDXID"]: p for p in sbom["packages"] if not p["filesAnalyzed"]}
    assert {(p["name"], p["versionInfo"], p["licenseDeclared"]) for p in there.values()} == wanted
    (own,) = sbom["documentDescribes"]
    assert set(there) <= links(sbom, "DEPENDS_ON")[own]
    assert not [p for p in there.values() if not p["externalRefs"][0]["referenceLocator"].startswith("pkg:npm/")]
