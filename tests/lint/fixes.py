"""Each failure tells this case's next step: common/base/fix.def against the sources.

A row's message is one that somebody makes, in C or in the newest body of an SQL
function; and a message of the modes in WANTED, whose own sentence fits few cases, has
a row or is in FINE.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Modes whose own fix is right for hardly any case.
WANTED = ("conflict", "missing_grant", "not_confirmed", "stopped", "hash_mismatch", "unknown_method")
#: Messages for which the mode's own fix is right, or that no client is ever told.
FINE = {
    "If-Match is not one hash in quotes",
    # between processes of ours: neither people nor models are told
    "that epoch has ended", "this context was handed in before", "this call is held already",
    "this execution id was used", "this sandbox installs no modules", "the audit chain went back",
    "epoch", "another admind works for node *", "the anchor is not a row of the chain",
    "no rotation to this key is under way", "it is not under the next key",
    "nobody has confirmed this call", "the confirmation *", "confirmation",
    "what was reviewed is not what is asked for", "the content is not what was reviewed",
    # of `admind -m`, which says the command itself
    "the database has migration *", "migration *",
}
#: mcpboxctl's own errors are of its one reader, and name the command.
OWN = "ctl"
#: Rows whose message is put together from parts: stop_told() and stop_next() in SQL,
#: a report of mcpbox_errors.py.
PARTS = re.compile(r"was (stopped|disabled) by |^\* was \* by \*$|at line")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def unescape(text):
    return text.replace('\\"', '"').replace("\\\\", "\\")


def rows(text):
    """(mode's symbol, message, fix, line) of fix.def."""
    out = []
    for m in re.finditer(r"^X\((\w+), (.*)\)$", text, re.M):
        message, fix = (unescape(s) for s in LITERAL.findall(m.group(2)))
        out.append((m.group(1), message, fix, text.count("\n", 0, m.start()) + 1))
    return out


def modes(text):
    return dict(re.findall(r'^F\((\w+), "(\w+)"', text, re.M))


def c_literals(text):
    """Adjacent strings of C as one."""
    code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    for m in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', code):
        yield m.start(), unescape("".join(LITERAL.findall(m.group(0))))


def c_emitters(text):
    """(mode's symbol, message with * for what is put in)."""
    code = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    for m in re.finditer(r"FAILURE_([A-Z_]+)\s*,\s*(?:\d+\s*,\s*)?"
                         r'("(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*)', code):
        text = unescape("".join(LITERAL.findall(m.group(2))))
        yield m.group(1), re.sub(r"%[-0-9.*]*(?:l|ll|z)?[a-z]", "*", text)


def sql_bodies(files):
    """The newest body of each function."""
    found = {}
    for text in files:
        for m in re.finditer(r"CREATE (?:OR REPLACE )?FUNCTION\s+(?:mcpbox\.)?(\w+)\s*\(.*?"
                             r"\$(\w*)\$(.*?)\$\2\$", text, re.S):
            found[m.group(1)] = re.sub(r"--[^\n]*", "", m.group(3))
    return found.values()


def sql_literals(body):
    """Strings of SQL, those that are put together as one."""
    out, end = [], None
    for m in re.finditer(r"'((?:[^']|'')*)'", body):
        text = m.group(1).replace("''", "'")
        if end is not None and re.fullmatch(r"\s*(\|\|)?\s*", body[end:m.start()]):
            out[-1] += text
        else:
            out.append(text)
        end = m.end()
    return out


def sql_emitters(body):
    for m in re.finditer(r"fail\(\s*'(\w+)'\s*,\s*(.*?)\);", body, re.S):
        parts = re.split(r"('(?:[^']|'')*')", m.group(2))
        text = "".join(p[1:-1].replace("''", "'") if p.startswith("'")
                       else "" if re.fullmatch(r"\s*(\|\|)?\s*", p) else "*" for p in parts)
        text = re.sub(r"%s", "*", re.sub(r"\*+", "*", text))
        if "CASE" not in m.group(2) and text.strip("*"):
            yield m.group(1), text


def fits(form, text):
    return re.fullmatch(".*".join(map(re.escape, form.split("*"))), text, re.S) is not None


def breaches(fix_def, failure_def, c, sql, python=()):
    """c, sql: texts of the sources."""
    name = modes(failure_def)
    table = rows(fix_def)
    bodies = list(sql_bodies(sql))
    made = "\n".join([*(s for t in c for _, s in c_literals(t)), *python,
                      *(s for b in bodies for s in sql_literals(b))])
    out = []
    seen = []
    for symbol, message, fix, line in table:
        if symbol not in name:
            out.append((line, f"no failure is named {symbol}"))
        if any(s == symbol and fits(m, message) for s, m in seen):
            out.append((line, f"an earlier row takes {message!r}"))
        seen.append((symbol, message))
        if not fix.endswith(".") or not fix[:1].isupper():
            out.append((line, f"a fix is one sentence: {fix!r}"))
        for part in message.split("*"):
            # a format of C or SQL stands where a word does
            part = part.strip(" ,;:().")
            if len(part) > 3 and part not in made and not PARTS.search(message):
                out.append((line, f"nobody says {part!r}"))
    emitted = [(name.get(s, ""), m) for t in c for s, m in c_emitters(t)]
    emitted += [e for b in bodies for e in sql_emitters(b)]
    for mode, message in sorted(set(emitted)):
        told = message.removeprefix("Error: ")
        if mode in WANTED and told.strip("*: ") and not any(fits(f, told) for f in FINE) and not any(
                name.get(s) == mode and fits(m, told.replace("*", "x")) for s, m, *_ in table):
            out.append((0, f"{mode}: {message!r} has no row"))
    return out


def planted():
    """Each rule finds its breach."""
    failure_def = 'F(CONFLICT, "conflict", 0, 200, TOOL, "Fix.")\n'
    c = ['x(FAILURE_CONFLICT, "there is "\n\t"a thing named %s", n);']
    sql = ["CREATE FUNCTION f() RETURNS void AS $$ BEGIN PERFORM fail('conflict', 'it''s '\n|| n); END $$;"]
    good = 'X(CONFLICT, "there is a thing named *", "Take another.")\nX(CONFLICT, "it\'s *", "Wait.")\n'
    assert not breaches(good, failure_def, c, sql), breaches(good, failure_def, c, sql)
    for bad, word in ((good.replace("thing", "thong"), "nobody says"),
                      (good.split("\n")[0] + "\n", "has no row"),
                      (good.split("\n")[1] + "\n", "has no row"),
                      (good + 'X(CONFLICT, "it\'s mine", "Wait.")\n', "an earlier row"),
                      (good.replace("Wait.", "wait"), "one sentence"),
                      (good.replace("X(CONFLICT, \"it", "X(OTHER, \"it"), "no failure")):
        found = breaches(bad, failure_def, c, sql)
        assert any(word in text for _, text in found), (bad, word, found)


def main():
    planted()
    read = lambda p: p.read_text(encoding="utf-8")
    c = [read(p) for d in ("gatewayd", "admind", "sandboxd", "common") for p in sorted((ROOT / d).rglob("*.[ch]"))
         if OWN not in p.parts]
    python = [re.sub(r'"\s*f?"|"\s*\n\s*f?"', "", read(p))
              for p in sorted((ROOT / "sandboxd/runner").glob("[hs]*/*.py"))]
    sql = [read(p) for d in ("schema", "migrations") for p in sorted((ROOT / "sql" / d).glob("*.sql"))]
    found = breaches(read(ROOT / "common/base/fix.def"), read(ROOT / "common/base/failure.def"), c, sql, python)
    for line, text in found:
        print(f"common/base/fix.def:{line}: {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
