"""admind/schema/migrations.py: the code of landed migrations does not change, and their
comments may (docs/decisions/0091-comments-of-landed-sql.md)."""
import hashlib
import importlib.util
import pathlib
import re
import subprocess
import sys

import pytest

SRC = pathlib.Path(__file__).resolve().parents[4]
SCRIPT = SRC / "admind/schema/migrations.py"
spec = importlib.util.spec_from_file_location("migrations", SCRIPT)
migrations = importlib.util.module_from_spec(spec)
spec.loader.exec_module(migrations)
NAMES = re.findall(r"'\.\./(sql/(?:schema/\w+|migrations/\d\w+)\.sql)'", (SRC / "admind/meson.build").read_text())
CHANGED = "code of a landed migration changed; write a new one"


@pytest.mark.parametrize("text, code", [
    (b"SELECT 1;", b"SELECT 1;"),
    (b"-- a\nSELECT\t\n 1; -- b", b"SELECT 1;"),
    (b"-- ends with \\\nx", b"x"),
    (b"-- a\rDROP", b"DROP"),                       # \r ends a line, as in PostgreSQL
    (b"-- it's \"a $$ /* \nx", b"x"),
    (b"a/* b */c", b"a c"),
    (b"/* a /* b */ DROP */ x", b"x"),
    (b"/*/* a */*/x", b"x"),
    (b"/* -- */x", b"x"),
    (b"/* ' \" $$ */x", b"x"),
    (b"-- /*\nx -- */", b"x"),
    (b"/***/x/* **/", b"x"),
    (b"1+--2\n3", b"1+ 3"),
    (b"@/*/*x*/*/y", b"@ y"),
    (b"'a''--b' -- c", b"'a''--b'"),
    (b"'/*' a '*/' --", b"'/*' a '*/'"),
    (b"'a  \n b'", b"'a  \n b'"),
    (b"'a\\' -- '", b"'a\\'"),                      # no E: the backslash is a letter
    (b"E'a\\'--' -- '", b"E'a\\'--'"),
    (b"e'\\\\' -- '", b"e'\\\\'"),
    (b"E'a''--\\'' -- '", b"E'a''--\\''"),
    (b"E --\n'a\\' --'", b"E 'a\\'"),               # a name, then a literal
    (b"me'a\\' -- '", b"me'a\\'"),
    (b"$e'a\\' -- '", b"$e'a\\' -- '"),           # $ alone is no name
    (b"\xc3\xa9e'a\\' -- '", b"\xc3\xa9e'a\\'"),
    (b"U&'\\' -- '", b"U&'\\'"),
    (b"'a'  \n 'b' -- c", b"'a'  \n 'b'"),
    (b"E'a'\n'\\'--' --'", b"E'a'\n'\\'--'"),       # the second part is one with backslashes, too
    (b"'a'\n'\\' --'", b"'a'\n'\\'"),
    (b'"a--b" -- c', b'"a--b"'),
    (b'"a""/*" /* " */ x', b'"a""/*" x'),
    (b"'\"' --\"\nx", b"'\"' x"),
    (b"$$ a -- b\n'$$ -- c", b"$$ a -- b\n'$$"),
    (b"$a$ $$ -- $b$ $A$ $a$ -- c", b"$a$ $$ -- $b$ $A$ $a$"),
    (b"$_1$ /* $_1$ /* $_1$ */", b"$_1$ /* $_1$"),
    (b"a$b$ -- $b$\nx", b"a$b$ x"),                 # a name with $ in it
    (b"$1$a$ -- $a$ -- b", b"$1$a$ -- $a$"),        # a parameter, then a body
    (b"$1 -- $\nx", b"$1 x"),
    (b"$\xc3\xa9$ -- $\xc3\xa9$ -- b", b"$\xc3\xa9$ -- $\xc3\xa9$"),
    (b"a\xc2\xa0b", b"a\xc2\xa0b"),                 # no white space for PostgreSQL
    (b"a \x0b b", b"a \x0b b"),
])
def test_comments_go_and_literals_stay(text, code):
    assert migrations.code(text) == code
    assert migrations.code(code) == code


@pytest.mark.parametrize("a, b", [
    (b"a/**/b", b"ab"), (b"'a  b'", b"'a b'"), (b"'a' 'b'", b"'a''b'"), (b"- - 1", b"-- 1"),
    (b'"a--b"', b'"a"'), (b"$$ -- a\n$$", b"$$ -- b\n$$"), (b"$$a$$", b"$b$a$b$"), (b"E'\\n'", b"E '\\n'"),
    (b"-- a\nDROP", b"-- a DROP"), (b"-- a\rDROP", b"-- a DROP"), (b"/* a */ DROP", b"/* a DROP */"),
    (b"/* /* */ DROP */", b"/* */ DROP /* */"), (b"SELECT 'a' --\n, 1", b"SELECT 'a --\n', 1"), (b"A", b"a"),
])
def test_code_that_differs_is_told_apart(a, b):
    def code(text):
        try:
            return migrations.code(text)
        except SystemExit as e:
            return str(e)
    assert code(a) != code(b)


@pytest.mark.parametrize("text, line", [
    (b"'a", 1), (b"\nE'a\\'", 2), (b"'a''", 1), (b'\n\n"a', 3), (b"/* /* */", 1), (b"\n$$ a $", 2), (b"$a$ $A$", 1),
    (b"'a' -- b\n'c'", 2), (b"E'a'-- b\n'\\' --'", 2), (b"'a'/* b */\n'c'", 2),
])
def test_text_that_could_be_read_in_two_ways_is_refused(text, line):
    with pytest.raises(SystemExit, match=f"^line {line}: "):
        migrations.code(text)


def test_our_files_have_their_landed_code_and_checksums(tmp_path):
    """As the build does it, with the files of this tree."""
    migrations.main(str(tmp_path / "migrations.c"), str(SRC / "sql/landed.txt"), *(str(SRC / n) for n in NAMES))
    landed = recorded(SRC)
    assert len(landed) >= 8 and checksums(tmp_path)[:len(landed)] == landed


SCHEMA = {
    "a.sql": "-- Makes a schema.\nCREATE SCHEMA x;\n",
    "b.sql": "CREATE FUNCTION x.f() RETURNS text LANGUAGE sql AS $$\n\tSELECT 'it''s' -- why\n$$;\n"
             "INSERT INTO x.t VALUES ('a -- b', \"c\");\t-- a row\n"}
LATER = {"0002_two.sql": "-- 0002\nDROP SCHEMA x;\n"}
FILES = ["sql/schema/a.sql", "sql/schema/b.sql", "sql/migrations/0002_two.sql"]


@pytest.fixture
def tree(tmp_path, capsys):
    """Two migrations that have landed."""
    for folder, texts in (("schema", SCHEMA), ("migrations", LATER)):
        (tmp_path / "sql" / folder).mkdir(parents=True)
        for name, text in texts.items():
            (tmp_path / "sql" / folder / name).write_text(text, encoding="ascii")
    rows = row(tmp_path, capsys, *FILES[:2]) + row(tmp_path, capsys, FILES[2])
    (tmp_path / "sql/landed.txt").write_text("# a comment\n\n" + rows, encoding="ascii")
    return tmp_path


def run(tree, files=FILES):
    """What the build step says; "": it succeeds."""
    try:
        migrations.main(str(tree / "migrations.c"), str(tree / "sql/landed.txt"), *(str(tree / n) for n in files))
    except SystemExit as e:
        return str(e)
    return ""


def row(tree, capsys, *names):
    migrations.main("--row", *(str(tree / n) for n in names))
    return capsys.readouterr().out


def checksums(tree):
    """The checksums of migrations.c, in the order of the numbers."""
    return [bytes(int(b) for b in c.split(", ")).hex()
            for c in re.findall(r'^\t\{ \d+, "\w+", \{ \{ ([0-9, ]+) \} \}, sql_\d+ \},$',
                                (tree / "migrations.c").read_text(encoding="ascii"), re.M)]


def recorded(tree):
    return re.findall(r"^\d+ ([0-9a-f]{64}) ", (tree / "sql/landed.txt").read_text(encoding="ascii"), re.M)


def edit(path, old, new):
    text = path.read_text(encoding="ascii")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="ascii")


def test_the_checksum_is_that_of_the_bytes_that_landed(tree):
    assert run(tree) == ""
    assert checksums(tree) == recorded(tree) == [hashlib.sha256(t.encode()).hexdigest()
                                                 for t in ("".join(SCHEMA.values()), *LATER.values())]


@pytest.mark.parametrize("name, old, new", [
    ("a.sql", "-- Makes a schema.\n", "-- Makes the schema.\n/* One /* for */ all. */\n"), ("a.sql", "-- Makes a schema.\n", ""),
    ("a.sql", "SCHEMA x", "SCHEMA\n\tx"), ("b.sql", "-- a row", "-- it's a row"), ("b.sql", "'a -- b', ", "'a -- b', -- why\n"),
])
def test_a_changed_comment_keeps_the_recorded_checksum(tree, name, old, new):
    before = recorded(tree)
    edit(tree / "sql/schema" / name, old, new)
    assert run(tree) == ""
    assert checksums(tree) == before
    embedded = ",".join(str(b) for b in (tree / "sql/schema" / name).read_bytes())
    assert embedded in (tree / "migrations.c").read_text(encoding="ascii")     # the text is that of today


@pytest.mark.parametrize("name, old, new, told", [
    ("schema/a.sql", "CREATE SCHEMA x", "CREATE SCHEMA y", "sql/schema"),
    ("schema/a.sql", "CREATE SCHEMA x;", "-- CREATE SCHEMA x;", "sql/schema"),
    ("schema/a.sql", "a schema.\n", "a schema.\rDROP SCHEMA y;\n", "sql/schema"),
    ("schema/b.sql", "'a -- b'", "'a -- c'", "sql/schema"),
    ("schema/b.sql", "-- why", "-- why not", "sql/schema"),     # in a body, which PostgreSQL stores
    ("schema/b.sql", "-- a row", "-- a row\n;", "sql/schema"),
    ("migrations/0002_two.sql", "DROP", "/* /* */ */ DROP SCHEMA y; DROP", "sql/migrations/0002_two.sql"),
    ("migrations/0002_two.sql", "-- 0002", "-- 0002 */ /*", ""),
])
def test_changed_code_of_a_landed_migration_is_no_build(tree, name, old, new, told):
    edit(tree / "sql" / name, old, new)
    said = run(tree)
    assert said.startswith(told) and (CHANGED in said) == (told != "")
    assert told != "" or said == ""


def test_the_build_step_ends_with_the_error(tree):
    edit(tree / "sql/schema/a.sql", "CREATE", "DROP")
    r = subprocess.run([sys.executable, "-B", SCRIPT, tree / "migrations.c", tree / "sql/landed.txt",
                        *(tree / n for n in FILES)], capture_output=True, text=True, check=False)
    assert r.returncode == 1 and CHANGED in r.stderr and not (tree / "migrations.c").exists()


def test_the_order_of_the_schema_is_code(tree):
    assert CHANGED in run(tree, [FILES[1], FILES[0], FILES[2]])


def test_a_file_that_can_not_be_read_in_one_way_is_named(tree):
    edit(tree / "sql/migrations/0002_two.sql", "-- 0002", "-- 0002\n/*")
    assert run(tree) == "sql/migrations/0002_two.sql: line 2: this comment does not end"


def test_a_migration_that_has_not_landed_has_its_own_checksum(tree, capsys):
    name = "sql/migrations/0003_next.sql"
    for text in ("SELECT 1; -- a\n", "SELECT 2; -- b\n"):
        (tree / name).write_text(text, encoding="ascii")
        assert run(tree, [*FILES, name]) == ""
        assert checksums(tree) == [*recorded(tree), hashlib.sha256(text.encode()).hexdigest()]
    with open(tree / "sql/landed.txt", "a", encoding="ascii") as f:
        f.write(row(tree, capsys, name))
    edit(tree / name, "-- b", "-- c")
    assert run(tree, [*FILES, name]) == ""
    assert checksums(tree)[2] == hashlib.sha256(b"SELECT 2; -- b\n").hexdigest()
    edit(tree / name, "SELECT 2", "SELECT 3")
    assert run(tree, [*FILES, name]).startswith(f"{name}: {CHANGED}")


@pytest.mark.parametrize("old, new, told", [
    ("\n2 ", "\n3 ", "expected the row of migration 2"), ("\n2 ", "\n2 0", "expected the row of migration 2"),
    ("\n1 ", "\n# 1 ", "expected the row of migration 1"), ("\n1 ", "\n1  ", "expected the row of migration 1"),
    ("\n2 ", "\n2 " + "0" * 64 + " " + "0" * 64 + "\n3 ", CHANGED),
])
def test_rows_that_are_none_are_refused(tree, old, new, told):
    edit(tree / "sql/landed.txt", old, new)
    assert told in run(tree)


def test_a_landed_migration_does_not_go(tree):
    assert run(tree, FILES[:2]) == "sql/landed.txt: there is no migration 2"
