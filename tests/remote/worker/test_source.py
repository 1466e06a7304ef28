"""The Worker's sources: types, and both of wrangler's files make a bundle that could be deployed."""
import os
import shutil
import subprocess

import pytest

from harness.patience import patience
from harness.place import SRC, readable_directory
from remote.play import NODE

SOURCE = os.path.join(SRC, "contrib/cloudflare")
PACKAGES = os.path.join(os.environ["MCPBOX_WORKER_DIR"], "node_modules")


@pytest.fixture(scope="module")
def copy():
    with readable_directory() as d:
        there = shutil.copytree(SOURCE, d / "worker", ignore=shutil.ignore_patterns("node_modules"))
        os.symlink(PACKAGES, there / "node_modules")
        yield there


def run(copy, *words):
    env = {**os.environ, "PATH": os.path.dirname(NODE) + ":/usr/bin:/bin", "HOME": str(copy.parent),
           "WRANGLER_SEND_METRICS": "false", "CI": "1"}
    r = subprocess.run([NODE, *words], cwd=copy, env=env, capture_output=True, text=True, timeout=patience(60),
                       check=False)
    return r.returncode, r.stdout + r.stderr


def test_types(copy):
    assert run(copy, "node_modules/typescript/bin/tsc", "--noEmit") == (0, "")
    (copy / "src/wrong.ts").write_text("export const n: number = 'text';\n")
    try:
        status, said = run(copy, "node_modules/typescript/bin/tsc", "--noEmit")
        assert status != 0 and "wrong.ts" in said
    finally:
        (copy / "src/wrong.ts").unlink()


@pytest.mark.parametrize("way", ["vpc", "hostname"])
def test_bundle(copy, way):
    status, said = run(copy, "node_modules/wrangler/bin/wrangler.js", "deploy", "--dry-run", "--outdir", f"dist-{way}",
                       "--config", f"wrangler.{way}.jsonc")
    assert status == 0, said
    assert "Unexpected fields" not in said, said
    assert "MCPBOX" in said and "OAUTH_KV" in said and "COUNTER" in said, said
    assert (copy / f"dist-{way}/index.js").stat().st_size > 10000
