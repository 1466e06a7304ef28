"""Runs clang-tidy over the given sources, two at a time, with the compile
commands of a build directory. Files that this build doesn't compile (fuzz
entry points of the other mode) are left out and named.

What was found clean is not looked at again: KEPT holds a file for each, named by
the SHA-256 of all that the answer depends on, which is clang-tidy's version, its
checks, this file, the arguments, the preprocessed text with file names (the header
filter reads them), and each of these files. Findings are never kept."""
import collections
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

SRC = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
KEPT_DAYS = 30	# what nobody has asked for so long is of sources that are gone


def said(*argv, **kw):
    return subprocess.run(argv, capture_output=True, check=False, **kw)


def digest(name):
    with open(name, "rb") as f:
        return hashlib.sha256(f.read()).digest()


def dependencies(build):
    """Source -> all files that its object was compiled from, as ninja noted them, by
    their paths in the work tree; GENERATED stands for what the build itself made."""
    out, current = collections.defaultdict(set), None
    for line in said("ninja", "-C", build, "-t", "deps", text=True).stdout.splitlines():
        if line.startswith("    "):
            name = os.path.realpath(os.path.join(build, line.strip()))
            if name.startswith(os.path.realpath(build) + os.sep):
                name = GENERATED
            elif name.startswith(SRC + os.sep):
                name = os.path.relpath(name, SRC)
            else:
                continue	# the system's
            if current is None:	# the first one is the source itself
                current = name
            out[current].add(name)
        else:
            current = None
    return out


GENERATED = "(generated)"


def affected(build, changed):
    """Sources whose findings may be others because these files changed. A program that
    writes headers may have written other ones; a meson.build may have changed the
    arguments of what is in its folder."""
    depends = dependencies(build)
    changed = set(changed)
    if any(f.endswith(".py") and not f.startswith("tests/") for f in changed):
        changed.add(GENERATED)
    folders = [os.path.dirname(f) for f in changed if os.path.basename(f) == "meson.build"]
    return sorted(s for s, of in depends.items() if s.endswith(".c") and (
        of & changed or any(f == "" or s.startswith(f + "/") for f in folders)))


class Tidy:
    def __init__(self, build, kept):
        self.build, self.kept = build, pathlib.Path(kept)
        self.kept.mkdir(parents=True, exist_ok=True)
        self.commands = collections.defaultdict(list)	# several targets may compile one file
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
            for c in json.load(f):
                self.commands[os.path.realpath(os.path.join(c["directory"], c["file"]))].append(c)
        self.common = said("clang-tidy-19", "--version").stdout
        for name in (os.path.realpath(__file__), os.path.join(SRC, ".clang-tidy"), os.path.join(SRC, "tests/.clang-tidy")):
            self.common += digest(name)
        for old in self.kept.iterdir():
            if old.stat().st_mtime < time.time() - KEPT_DAYS * 86400:
                old.unlink()

    def key(self, source):
        """None where the preprocessor fails: clang-tidy says why."""
        key = hashlib.sha256(self.common)
        for c in self.commands[os.path.realpath(source)]:
            argv = shlex.split(c["command"])[1:]
            o = argv.index("-o")
            argv = [a for n, a in enumerate(argv) if n not in (o, o + 1) and a != "-c"
                    and not a.startswith("-M") and not a.endswith((".o.d", ".o"))]
            r = said("clang-19", "-E", "-C", "-Wno-everything", *argv, cwd=c["directory"])
            if r.returncode != 0:
                return None
            # The same in another work tree, or with another build directory.
            here = os.path.relpath(SRC, c["directory"])
            places = re.compile("|".join(re.escape(p) for p in (os.path.realpath(c["directory"]), SRC, here)))
            marks = re.sub(rb'(?m)^# \d+ ".*$', lambda m: places.sub("@", m[0].decode()).encode(), r.stdout)
            for part in (places.sub("@", "\0".join(argv)).encode(), marks):
                key.update(hashlib.sha256(part).digest())
            # Two macros of one value are one text, and comments beside directives none.
            for name in sorted(set(re.findall(rb'(?m)^# \d+ "([^"<]+)"', r.stdout))):
                name = os.path.join(c["directory"], name.decode())
                if os.path.isfile(name):
                    key.update(digest(name))
        return key.hexdigest()

    def one(self, source):
        key = self.key(source)
        if key is not None and (self.kept / key).exists():
            os.utime(self.kept / key)
            return source, None
        r = said("clang-tidy-19", "-p", self.build, "--quiet", "--warnings-as-errors=*",
                 "--extra-arg=-Wno-unknown-warning-option", source, text=True)
        if r.returncode == 0 and key is not None:
            (self.kept / key).touch()
        return source, r


def main():
    build, kept, sources = sys.argv[1], sys.argv[2], sys.argv[3:]
    tidy = Tidy(build, kept)
    todo = [s for s in sources if os.path.realpath(s) in tidy.commands]
    for s in sorted(set(sources) - set(todo)):
        print(f"not compiled here: {s}")
    bad = before = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for source, r in pool.map(tidy.one, todo):
            if r is None:
                before += 1
            elif r.returncode != 0:
                bad += 1
                # What it found, without the path that led there.
                found = [line for line in r.stdout.splitlines() if " error: " in line]
                print(f"{source}:", *(found or [r.stdout, r.stderr]), sep="\n")
    print(f"{len(todo)} files, {bad} with findings, {before} known to be clean")
    return 1 if bad or not todo else 0


if __name__ == "__main__":
    sys.exit(main())
