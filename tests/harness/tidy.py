"""Runs clang-tidy over the given sources, two at a time, with the compile
commands of a build directory. Files that this build doesn't compile (fuzz
entry points of the other mode) are left out and named."""
import concurrent.futures
import json
import os
import subprocess
import sys


def main():
    build, sources = sys.argv[1], sys.argv[2:]
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        known = {os.path.realpath(os.path.join(c["directory"], c["file"])) for c in json.load(f)}
    todo = [s for s in sources if os.path.realpath(s) in known]
    for s in sorted(set(sources) - set(todo)):
        print(f"not compiled here: {s}")

    def one(source):
        return source, subprocess.run(
            ["clang-tidy-19", "-p", build, "--quiet", "--warnings-as-errors=*",
             "--extra-arg=-Wno-unknown-warning-option", source],
            capture_output=True, text=True, check=False)

    bad = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for source, r in pool.map(one, todo):
            if r.returncode != 0:
                bad += 1
                # What it found, without the path that led there.
                found = [line for line in r.stdout.splitlines() if " error: " in line]
                print(f"{source}:", *(found or [r.stdout, r.stderr]), sep="\n")
    print(f"{len(todo)} files, {bad} with findings")
    return 1 if bad or not todo else 0


sys.exit(main())
