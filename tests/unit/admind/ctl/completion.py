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

    usage = subprocess.run([ctl, "--help"], env=env, capture_output=True, text=True, check=True).stdout
    commands = {line.split()[1] for line in usage.splitlines() if line.startswith("       mcpboxctl ")}
    assert len(commands) > 15 and complete("mcpboxctl", "") == commands, (commands, complete("mcpboxctl", ""))
    for words, some in [
            (("a",), {"approvals", "audit", "administrators", "activity"}), (("approvals", ""), {"approve", "list", "review", "show"}),
            (("--json", "approvals", "re"), {"reject", "revoke"}), (("tokens", "c"), {"create"}),
            (("settings", ""), {"set", "reset"}), (("key", ""), {"status", "rotate", "verify", "export", "import"}),
            (("setup", "--d"), {"--database"}), (("--v",), {"--version"}),
            (("call", "settings_"), {"settings_set", "settings_reset"}), (("--tr",), {"--transfer-key"}),
            (("executions", "--out"), {"--outcome"}), (("secret", "s"), {"set", "show"})]:
        got = complete("mcpboxctl", *words)
        assert some <= got, (words, got)
        assert all(w.startswith(words[-1]) for w in got), (words, got)
    assert complete("mcpboxctl", "approvals", "show", "") <= {""}
    # Alternatives within a command's own words are values, not words.
    assert complete("mcpboxctl", "tokens", "") == {"list", "show", "create", "revoke"}
    assert complete("mcpboxctl", "rates", "") == {"set", "remove"}
    assert complete("mcpboxctl", "remote", "") == {"list", "show", "add", "check", "remove"}
    assert complete("mcpboxctl", "remote", "add", "") == {"access", "oidc", "tailscale", "token", "worker"}
    assert complete("mcpboxctl", "remote", "add", "oidc", "home", "--is") == {"--issuer"}
    assert complete("mcpboxctl", "setup", "") <= {""}
    assert complete("mcpboxctl", "help", "") == commands and complete("mcpboxctl", "help", "setup", "") <= {""}
    # Each option once: getopt takes the first of two.
    for command in sorted(commands):
        page = subprocess.run([ctl, "help", command], env=env, capture_output=True, text=True, check=True).stdout
        options = [line.split()[0] for line in page.splitlines() if line.startswith("  --")]
        assert len(options) == len(set(options)) > 3, (command, options)
    # What an option wants is no command.
    assert complete("mcpboxctl", "--username", "") <= {""}
    for command in sorted(commands):
        words = complete("mcpboxctl", command, "") - {""}
        if command not in ("call", "help", "import", "restore", "backup", "transfer-key"):
            line = "\n".join(x for x in usage.splitlines() if x.startswith(f"       mcpboxctl {command}"))
            assert all(f" {w}" in line or f"[{w}" in line for w in words), (command, words)
    open(os.path.join(d, "some.export"), "w").close()
    assert "some.export" in complete("mcpboxctl", "import", "some")
    assert "some.export" in complete("mcpboxctl", "openapi", "demo", "some")
    assert "some.export" in complete("mcpboxctl", "key", "export", "some")
    assert "some.export" in complete("mcpboxctl", "access", "set", "--yes", "some")
    assert complete("mcpboxctl", "access", "") == {"show", "set", "refresh"}
    assert complete("mcpboxctl", "access", "refresh", "some") <= {""}
    assert "some.export" in complete("mcpboxctl", "remote", "check", "home", "--token", "some")
    if shell := shutil.which("zsh"):
        subprocess.run([shell, "-n", zsh], check=True)

        def zcomplete(*words):
            """What the function hands to zsh's own compadd and _files."""
            script = ('compadd() { shift; print -rl -- "$@" }; _files() { print -r -- FILES }; '
                      f'words=({" ".join(words[:-1])} "{words[-1]}"); CURRENT={len(words)}; . {zsh}')
            r = subprocess.run([shell, "-f", "-c", script], env=env, capture_output=True, text=True,
                               check=False, cwd=d)
            assert r.stderr == "", r.stderr
            return set(r.stdout.split())

        assert zcomplete("mcpboxctl", "") == commands
        assert zcomplete("mcpboxctl", "key", "export", "") == {"FILES"} == zcomplete("mcpboxctl", "restore", "")
        assert zcomplete("mcpboxctl", "tokens", "") == {"list", "show", "create", "revoke"}
        assert zcomplete("mcpboxctl", "setup", "--d") >= {"--database", "--version"}
        assert "settings_set" in zcomplete("mcpboxctl", "call", "")
        assert zcomplete("mcpboxctl", "--username", "") == set()
