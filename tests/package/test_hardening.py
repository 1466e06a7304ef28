"""Each program as it is shipped has what hardens it; the same reader finds it
missing in a program that was built without."""
import re
import subprocess
import zlib

from . import elf

# What each command that compiles must say, and what may not stand behind it.
FLAGS = {"-D_FORTIFY_SOURCE=3": "-[DU]_FORTIFY_SOURCE", "-fstack-clash-protection":
         "-fno-stack-clash-protection", "-fcf-protection": "-fcf-protection=(none|branch|return)",
         "-fstack-protector-strong": "-fno-stack-protector", "-ftrivial-auto-var-init=zero":
         "-ftrivial-auto-var-init=(?!zero)", "-ffile-prefix-map=": "$^"}


def test_programs(package):
    found = {p.name: elf.weaknesses(p) for p in package.programs}
    assert len(found) == 15
    assert not any(found.values()), found


def test_a_program_without_is_found(tmp_path):
    source = tmp_path / "bare.c"
    source.write_text("""#include <stdio.h>
#include <string.h>
static int f(const char *s) { char b[64]; strcpy(b, s); return puts(b); }
int (*volatile table[])(const char *) = {f};
int main(int c, char **v) { return table[0](v[c - 1]); }
""")
    bare = tmp_path / "bare"
    subprocess.run(["gcc", "-O2", "-pie", "-fPIE", "-U_FORTIFY_SOURCE", "-fno-stack-protector",
                    "-fcf-protection=none", "-Wl,-z,norelro,-z,lazy,-z,execstack", "-o", bare,
                    source], check=True)
    assert set(elf.weaknesses(bare)) == {"RELRO", "NOW", "noexecstack", "stack protector",
                                         "FORTIFY", "SHSTK", "IBT"}
    fixed = tmp_path / "fixed"
    subprocess.run(["gcc", "-O2", "-no-pie", "-fno-pie", "-Wl,-rpath,/tmp", "-o", fixed, source],
                   check=True)
    assert {"PIE", "no RUNPATH"} <= set(elf.weaknesses(fixed))


def compile_lines(log):
    return [line for line in log.splitlines() if re.search(r"\bcc .* -c \S+\.c$", line)]


def missing(line):
    """The flags that a command lacks, or takes back later."""
    words = line.split()
    found = []
    for flag, undone in FLAGS.items():
        at = [i for i, w in enumerate(words) if w == flag or flag.endswith("=") and w.startswith(flag)]
        if not at or any(re.match(undone, w) for w in words[at[-1] + 1:]):
            found.append(flag)
    return found


def test_commands(package):
    lines = compile_lines(package.log)
    assert len(lines) > 200
    assert not [(missing(line), line) for line in lines if missing(line)]


def test_a_command_without_is_found(package):
    line = compile_lines(package.log)[0]
    assert missing(line.replace("-D_FORTIFY_SOURCE=3", "-D_FORTIFY_SOURCE=2")) == ["-D_FORTIFY_SOURCE=3"]
    assert missing(line + " -fno-stack-protector") == ["-fstack-protector-strong"]
    assert missing(line.replace("-fstack-clash-protection", "")) == ["-fstack-clash-protection"]


def section(path, name):
    """A section's bytes; gcc and dwz may compress them."""
    e = elf.Elf(path)
    if name not in e.sections:
        return b""
    flags, _, offset, length = e.sections[name]
    data = e.data[offset:offset + length]
    return zlib.decompress(data[24:]) if flags & 0x800 else data


def test_what_the_compiler_recorded(package):
    """gcc leaves its options in the debug information: what made the code that
    is shipped, not what somebody printed."""
    producers = set()
    for path in package.debug.rglob("*.debug"):
        for name in (".debug_str", ".debug_line_str"):
            producers |= set(re.findall(rb"GNU C\d* [^\0]*", section(path, name)))
    assert producers
    for text in producers:
        words = text.decode().split()
        for flag in ("-fstack-clash-protection", "-fcf-protection", "-fstack-protector-strong",
                     "-ftrivial-auto-var-init=zero", "-O2"):
            assert any(w == flag or w == flag + "=full" for w in words), text
