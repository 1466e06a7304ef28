#!/usr/bin/python3
"""contrib/completions against the program: bash completes what its usage says.
Arguments: mcpboxctl, the two files."""
import os
import shutil
import subprocess
import sys
import tempfile

ctl, bash, zsh = map(os.path.abspath, sys.argv[1:])
with tempfile.TemporaryDirectory() as d:
    os.symlink(ctl, os.path.join(d, "mcpboxctl"))
    env = {"PATH": d + ":/usr/bin:/bin", "LC_ALL": "C.UTF-8"}

    def complete(*words):
        script = (f'. {bash}; COMP_WORDS=({" ".join(words[:-1])} "{words[-1]}"); '
                  f'COMP_CWORD={len(words) - 1}; _mcpboxctl; printf "%s\\n" "${{COMPREPLY[@]}}"')
        r = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True, cwd=d)
        assert r.stderr == "", r.stderr
        return set(r.stdout.split())

    usage = subprocess.run([ctl], env=env, capture_output=True, text=True, check=False).stderr
    commands = {line.split()[1] for line in usage.splitlines() if line.startswith("       mcpboxctl ")}
    assert len(commands) > 15 and complete("mcpboxctl", "") == commands, (commands, complete("mcpboxctl", ""))
    for words, some in [
            (("a",), {"approvals", "audit", "administrators", "activity"}), (("approvals", ""), {"approve", "list", "show"}),
            (("--json", "approvals", "re"), {"reject", "revoke"}), (("tokens", "c"), {"create"}),
            (("settings", ""), {"set", "reset"}), (("key", ""), {"status", "rotate", "verify"}),
            (("call", "settings_"), {"settings_set", "settings_reset"}), (("--tr",), {"--transfer-key"}),
            (("executions", "--out"), {"--outcome"}), (("secret", "s"), {"set", "show"})]:
        got = complete("mcpboxctl", *words)
        assert some <= got, (words, got)
        assert all(w.startswith(words[-1]) for w in got), (words, got)
    assert complete("mcpboxctl", "approvals", "show", "") <= {""}
    open(os.path.join(d, "some.export"), "w").close()
    assert "some.export" in complete("mcpboxctl", "import", "some")
    assert "some.export" in complete("mcpboxctl", "openapi", "demo", "some")
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-n", zsh], check=True)
