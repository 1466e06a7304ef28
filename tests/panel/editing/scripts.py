"""Parts of the panel that touch no page, run by node: the panel's own esbuild bundles a source file for it."""
import json
import os
import subprocess

from harness.place import BUILD, SRC

SOURCE = os.path.join(SRC, "admind", "panel", "src")
ESBUILD = os.path.join(BUILD, "admind", "panel", "work", "node_modules", ".bin", "esbuild")


def run(folder, source, script, given):
    """Runs `script`, whose `m` has what the files of `source` export (a name, or several with blanks between), and whose `given`
    is a value. Returns what the script returns."""
    bundle, entry = os.path.join(folder, "module.mjs"), os.path.join(folder, "entry.ts")
    with open(entry, "w", encoding="utf-8") as f:
        f.writelines(f"export * from {json.dumps(os.path.join(SOURCE, name))};\n" for name in source.split())
    subprocess.run([ESBUILD, entry, "--bundle", "--format=esm", "--platform=node", f"--outfile={bundle}",
                    "--log-level=warning"], check=True)
    main = os.path.join(folder, "main.mjs")
    with open(main, "w", encoding="utf-8") as f:
        f.write("import * as m from './module.mjs';\nimport {readFileSync} from 'node:fs';\n"
                "const given = JSON.parse(readFileSync(0, 'utf-8'));\n"
                f"const made = (() => {{ {script} }})();\nprocess.stdout.write(JSON.stringify(made));\n")
    done = subprocess.run(["node", main], input=json.dumps(given), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
