"""common/unite.py: which files of a program are compiled together."""
import importlib.util
import os
import pathlib

import pytest

SRC = pathlib.Path(__file__).resolve().parents[3]
spec = importlib.util.spec_from_file_location("unite", SRC / "common/unite.py")
unite = importlib.util.module_from_spec(spec)
spec.loader.exec_module(unite)

FUNCTION = "static int\nfind(const char *s)\n{\n\tint rows = 0;\n\treturn rows;\n}\n"


@pytest.mark.parametrize("a, b", [
    (FUNCTION, "static bool\nfind(struct x *x)\n{\n}\n"),
    (FUNCTION, "static const char *find;\n"),
    ("static const struct row table[] = {\n    {1},\n};\n", "static int table[3];\n"),
    ("enum { ROWS = 3, LINES };\n", "enum {\n\tLINES = 4 /* why */\n};\n"),
    ("static const struct {\n\tint x;\n} names[] = {\n};\n", "static int names;\n"),
    ("#define PAGE 3\n", "static int\nput(void)\n{\n\treturn PAGE;\n}\n"),
    ("int x(int PAGE);\n", "#define PAGE 3\n"),
    ("struct walk {\n\tint n;\n};\n", "static int\nput(void)\n{\n\tstruct walk w; /* a header's */\n}\n"),
])
def test_what_would_meet_is_kept_apart(a, b):
    assert unite.groups([("a.c", a), ("b.c", b)]) == [["a.c"], ["b.c"]]
    assert unite.groups([("b.c", b), ("a.c", a)]) == [["b.c"], ["a.c"]]


@pytest.mark.parametrize("b", [
    "static int\nother(void)\n{\n\tint find = 3; /* hides it */\n}\n",
    "static int\nother(void)\n{\n\tputs(\"find rows\"); /* find() is not ours */\n}\n"])
def test_what_does_not_meet_goes_together(b):
    assert unite.groups([("a.c", FUNCTION), ("b.c", b)]) == [["a.c", "b.c"]]


def test_a_group_has_its_bound_and_every_file_is_in_one():
    files = [(f"{i}.c", f"static int f{i};\n") for i in range(3 * unite.FILES_MAX + 1)]
    found = unite.groups(files)
    assert [len(g) for g in found] == [unite.FILES_MAX] * 3 + [1]
    assert sorted(p for g in found for p in g) == sorted(p for p, _ in files)


def program(folder, inner):
    """Its files: those of folders that are programs of their own, with a meson.build, are not."""
    return [*sorted(folder.glob("*.c")), *(f for d in sorted(folder.iterdir()) if d.is_dir()
                                           and (inner or not (d / "meson.build").exists()) for f in program(d, inner))]


@pytest.mark.parametrize("folder", ["common", "admind", "admind/ctl", "admind/vault", "admind/http", "admind/check",
                                    "gatewayd", "sandboxd", "sandboxd/egress"])
def test_most_of_our_files_share_a_group(folder):
    """Else it would not be worth its lines: at most one compilation where there were three."""
    files = program(SRC / folder, folder == "common")
    assert len(files) > 15
    assert len(unite.groups([(str(p), p.read_text(encoding="utf-8")) for p in files])) * 3 <= len(files)


def test_it_writes_what_the_compiler_reads(tmp_path, capsys):
    for name, text in (("a.c", "static int x;\n"), ("b.c", "static int y;\n"), ("c.c", "static int x;\n")):
        (tmp_path / name).write_text(text, encoding="ascii")
    unite.main(str(tmp_path / "out"), "lib", *(str(tmp_path / n) for n in ("a.c", "b.c", "c.c")))
    first, second = capsys.readouterr().out.splitlines()
    assert pathlib.Path(first).read_text(encoding="ascii") == f'#include "{tmp_path}/a.c"\n#include "{tmp_path}/b.c"\n'
    assert pathlib.Path(second).read_text(encoding="ascii") == f'#include "{tmp_path}/c.c"\n'


def test_an_edit_leaves_the_other_groups_as_they_are(tmp_path):
    """Else each edit would compile everything again."""
    files = [str(tmp_path / n) for n in ("a.c", "b.c", "c.c")]
    for f, text in zip(files, ("static int x;\n", "static int x;\nstatic int y;\n", "static int x;\n")):
        pathlib.Path(f).write_text(text, encoding="ascii")

    def run():
        unite.main(str(tmp_path / "out"), "lib", *files)
        return {p.name: (p.stat().st_mtime_ns, p.read_text(encoding="ascii"))
                for p in (tmp_path / "out/lib").iterdir()}
    before = run()
    os.utime(tmp_path / "out/lib/0.c", ns=(1, 1))
    before["0.c"] = (1, before["0.c"][1])
    assert run() == before
    pathlib.Path(files[1]).write_text("static int y;\n", encoding="ascii")     # now it goes with a.c
    after = run()
    assert after["0.c"][1].count("#include") == 2 and after["0.c"][0] != 1
