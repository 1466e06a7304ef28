#!/usr/bin/python3
"""Builds the panel: build.py SOURCE OPENAPI WORK DIST

SOURCE is this folder, OPENAPI docs/openapi.yaml. WORK keeps a copy of the
sources beside the packages of package-lock.json, so that SOURCE is only read
and `npm ci` runs only where the lock file changed. DIST gets index.html, the
files that it names, and their gzip forms.

The types of src/api/schema.d.ts are made from OPENAPI, so a route that the
panel uses and REST lacks is an error of this build.
"""
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys

#: A file below this size is not worth a second form: gzip's own head is 20 bytes.
GZIP_FROM = 512
#: What esbuild says of its files.
META = "meta.json"
NPM = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def run(work, *argv):
    """Runs a program in `work`. Ends this one where it fails; its output says why."""
    done = subprocess.run(argv, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"panel: {' '.join(argv)}\n{done.stdout}")


def packages(source, work):
    """Brings the packages of the lock file into `work`, unless they are there."""
    with open(os.path.join(source, "package-lock.json"), "rb") as f:
        want = hashlib.sha256(f.read()).hexdigest()
    mark = os.path.join(work, "node_modules", ".of-lock")
    if os.path.exists(mark):
        with open(mark, encoding="utf-8") as f:
            if f.read() == want:
                return
    for name in ("package.json", "package-lock.json"):
        shutil.copy(os.path.join(source, name), work)
    try:
        run(work, *NPM)
    except FileNotFoundError:
        sys.exit("panel: there is no npm; apt-get install npm, or configure with -Dpanel=disabled")
    with open(mark, "w", encoding="utf-8") as f:
        f.write(want)


def bundle(work, made):
    """Checks the types, then writes the bundle to `made`."""
    tool = os.path.join(work, "node_modules", ".bin")
    run(work, os.path.join(tool, "openapi-typescript"), "openapi.yaml", "-o", "src/api/schema.d.ts")
    run(work, os.path.join(tool, "tsc"), "-p", ".")
    run(work, os.path.join(tool, "esbuild"), "src/main.tsx", "--bundle", "--splitting", "--minify", "--format=esm",
        "--target=es2022", "--jsx=automatic", "--jsx-import-source=preact", "--legal-comments=eof",
        "--entry-names=[name]-[hash]", "--chunk-names=[name]-[hash]", "--asset-names=[name]-[hash]",
        "--loader:.svg=file", f"--outdir={made}", f"--metafile={os.path.join(work, META)}", "--log-level=warning")


def parts(work, main):
    """The files that main.js imports before it runs, and those that they import, as a browser would find them one after
    another."""
    with open(os.path.join(work, META), encoding="utf-8") as f:
        outputs = {os.path.basename(path): out for path, out in json.load(f)["outputs"].items()}
    found = [main]
    for name in found:
        found += [n for i in outputs[name]["imports"] if i["kind"] == "import-statement" and (n := os.path.basename(i["path"])) not in found]
    return found[1:]


def index(source, work, made):
    """Writes index.html, with the names of the bundle in the places of main.js and main.css. The parts of main.js are named,
    too: a browser fetches them beside it, not after it was read."""
    names = os.listdir(made)
    with open(os.path.join(source, "src", "index.html"), encoding="utf-8") as f:
        text = f.read()
    for ext in ("js", "css"):
        [name] = [n for n in names if n.startswith("main-") and n.endswith("." + ext)]
        assert text.count(f"main.{ext}") == 1
        text = text.replace(f"main.{ext}", f"/panel/{name}")
        if ext == "js":
            links = "".join(f'<link rel="modulepreload" href="/panel/{part}">\n' for part in parts(work, name))
            text = text.replace('<script type="module"', links + '<script type="module"')
    with open(os.path.join(made, "index.html"), "w", encoding="utf-8") as f:
        f.write(text)


def compress(made):
    """Writes FILE.gz beside each file that is worth it. The same bytes give the same form."""
    for name in sorted(os.listdir(made)):
        path = os.path.join(made, name)
        with open(path, "rb") as f:
            plain = f.read()
        if len(plain) >= GZIP_FROM:
            with open(path + ".gz", "wb") as f:
                f.write(gzip.compress(plain, 9, mtime=0))
        os.chmod(path, 0o644)


def main(source, openapi, work, dist):
    os.makedirs(work, exist_ok=True)
    packages(source, work)
    for name in ("src", "dist"):
        shutil.rmtree(os.path.join(work, name), ignore_errors=True)
    shutil.copytree(os.path.join(source, "src"), os.path.join(work, "src"))
    shutil.copy(os.path.join(source, "tsconfig.json"), work)
    shutil.copy(openapi, os.path.join(work, "openapi.yaml"))
    made = os.path.join(work, "dist")
    bundle(work, made)
    index(source, work, made)
    compress(made)
    shutil.rmtree(dist, ignore_errors=True)
    shutil.copytree(made, dist)


if __name__ == "__main__":
    main(*(os.path.abspath(a) for a in sys.argv[1:]))
