"""Rooms (docs/decisions/0089-rooms.md): no folder of the product or of tests/ shows
more than 25 files, no header of the product is over 150 lines, no circle of calls has
more than 13 files. And foo.c exports foo_*: a name's first words say where it belongs.

What is over a bound today stands in a table here with its figure, which may only
shrink: a larger one is a breach, and so is a smaller one until its row says so.
The circle is read from the text: a file calls another of its process if it names
a function that the other exports. Pointers in tables count, so the figure is at
least what the linker sees; a call by a struct's member does not.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = ("admind", "common", "gatewayd", "sandboxd")
#: What counts as a file of a folder; in tests/ programs in Python too. Vectors and
#: corpora are data.
SHOWN, SHOWN_TESTS = (".c", ".h", "meson.build"), (".c", ".h", ".py", "meson.build")
#: Folders of admind and sandboxd that are processes of their own.
APART = {"admind": ("check", "ctl", "http", "vault"),
         "sandboxd": ("egress", "local", "pool", "runner", "spawn", "store")}
FILES_MAX, LINES_MAX, CIRCLE_MAX = 25, 150, 13

FOLDERS_OVER = {}
HEADERS_OVER = {
}
CIRCLES_OVER = {}


#: Names that begin otherwise than their file's: folder or file, what they look like
#: ({stem}: the file's name), and why.
FAMILIES = {
    "admind/check/": (r"check_{stem}", "the answer to CHECK_...: one a file"),
    "admind/core/op.c": (r"ask|answer_err", "the question to another process, and its failure"),
    "admind/ctl/": (r"\w+_command", "named after the command, by the table of commands"),
    "admind/http/": (r"\w+_(get|put|post|delete)", "named after the path, by routes.def"),
    "admind/steps/": (r"job_\w+|json_kv_message", "what the job of a management tool goes on with"),
    "admind/versions/trial_run.c": (r"manage_test_code", "a management tool, as manage_*.c has them"),
    "common/base/buf.c": (r"get_be(16|32|64)", "the other side of buf_put_u16 and so on"),
    "common/base/bytes.c": (r"ipc_(str|bytes|strdup|streq)", "of struct ipc_bytes"),
    "common/base/ids.c": (r"(random|uuid|hex|b64url|now|time|ct)_\w+", "small things, each named for what it makes"),
    "common/crypto/crypto.c": (r"(sha256|hmac|hkdf|gcm)(_\w+)?|master_key_id", "names of the field"),
}


def strip_c(text):
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.S)


def process(path):
    """The process (or common/) that a file belongs to."""
    parts = path.split("/")
    return "/".join(parts[:2]) if len(parts) > 2 and parts[1] in APART.get(parts[0], ()) else parts[0]


def exported(code):
    """Functions that a C file defines and exports, by KNF: the name begins a line,
    and its type, without `static`, is the line before."""
    return set(re.findall(r"^(?!static\b)[a-z][\w \t*]*\n(\w+)\(", code, re.M))


def belongs(path, name):
    """Does a name begin with the first words of its file's? One may be in the plural
    where the other is not: nets_new of net.c."""
    words = path.rpartition("/")[2][:-2].split("_")
    heads = {"_".join(words[:n]) for n in range(1, len(words) + 1)}
    heads |= {h + "s" for h in heads} | {h.removesuffix("s") for h in heads}
    return name == "main" or any(name == h or name.startswith(h + "_") for h in heads)


def misnamed(files, families):
    """Breaches of {path: text}: names that are neither their file's nor a family's, and
    families that no name needs any more."""
    out, used = [], set()
    for path, text in sorted(files.items()):
        for name in sorted(exported(strip_c(text))) if path.endswith(".c") else ():
            if belongs(path, name):
                continue
            stem = re.escape(path.rpartition("/")[2][:-2])
            family = [f for f, (like, _) in families.items() if path.startswith(f)
                      and re.fullmatch(like.replace("{stem}", stem), name)]
            used.update(family)
            if not family:
                out.append(f"{path}:1: exports {name}: make it static, or name it after its file")
    return out + [f"{f}:1: no name needs this row of tests/lint/rooms.py" for f in families if f not in used]


def calls(files):
    """{path: {path}} of {path: text}: who names what another exports."""
    codes = {p: strip_c(t) for p, t in files.items() if p.endswith(".c")}
    home = {name: p for p, code in codes.items() for name in exported(code)}
    return {p: {home[w] for w in set(re.findall(r"\w+", code)) if w in home} - {p}
            for p, code in codes.items()}


def circle(graph):
    """The largest set of files of which each calls each other, over others."""
    def reach(start, edges):
        seen, todo = set(), [start]
        while todo:
            for n in edges.get(todo.pop(), ()):
                if n not in seen:
                    seen.add(n)
                    todo.append(n)
        return seen
    back = {}
    for a, bs in graph.items():
        for b in bs:
            back.setdefault(b, set()).add(a)
    largest, left = set(), set(graph)
    while left:
        n = left.pop()
        own = reach(n, graph) & reach(n, back)
        left -= own
        if len(own) > len(largest):
            largest = own
    return sorted(largest)


def judge(what, figures, most, known):
    """Breaches of {name: figure}: over the bound and the table, or a row too many."""
    out = []
    for name, n in sorted(figures.items()):
        if n > known.get(name, most):
            out.append(f"{name}:1: {n} {what}, at most {known.get(name, most)}")
        elif name in known and n < known[name]:
            out.append(f"{name}:1: {n} {what}: the row of tests/lint/rooms.py says {known[name]}, shrink it")
    out += [f"{name}:1: is gone: so may be its row in tests/lint/rooms.py" for name in sorted(set(known) - set(figures))]
    return out


def self_test():
    a, b = "int\na_run(void)\n{\n\tb_run();\n}\n", "void\nb_run(void)\n{\n\ta_run();\n}\n"
    if circle(calls({"x/a.c": a, "x/b.c": b, "x/c.c": "static int\nc_run(void)\n{\n\ta_run();\n}\n"})) != ["x/a.c", "x/b.c"]:
        sys.exit("a circle is not found")
    if circle(calls({"x/a.c": "/* b_run() */" + a.replace("b_run()", "0"), "x/b.c": b})):
        sys.exit("a circle is found where there is none")
    if [bool(judge("x", {"a": n}, 2, {"a": 4} if known else {})) for n, known in
            ((3, False), (2, False), (4, True), (5, True), (3, True))] != [True, False, False, True, True]:
        sys.exit("a bound does not bind")


    one = {"x/a_b.c": "int\na_run(void)\n{\n}\nstatic int\nc_run(void)\n{\n}\n",
           "x/as.c": "int\na_run(void)\n{\n}\n", "y/d.c": "int\nget_d(void)\n{\n}\n"}
    if [len(misnamed(one, f)) for f in ({}, {"y/": ("get_{stem}", "")}, {"y/": ("put_d", "")},
                                        {"x/": ("get_d", ""), "y/d.c": (r"get_\w", "")})] != [1, 0, 2, 1]:
        sys.exit("a name that is not its file's is not found, or another one is")


def main():
    self_test()
    names = subprocess.check_output(["git", "-C", str(ROOT), "ls-files", "-z", "-co", "--exclude-standard", *PRODUCT, "tests"], text=True).split("\0")
    names = [f for f in names if f and (ROOT / f).is_file()]
    folders, headers, processes = {}, {}, {}
    for f in names:
        tests = f.startswith("tests/")
        if f.endswith(SHOWN_TESTS if tests else SHOWN):
            folders[f.rpartition("/")[0]] = folders.get(f.rpartition("/")[0], 0) + 1
        if f.endswith((".c", ".h")) and not tests:
            text = (ROOT / f).read_text(encoding="utf-8")
            processes.setdefault(process(f), {})[f] = text
            if f.endswith(".h"):
                headers[f] = text.count("\n")
    circles = {p: circle(calls(files)) for p, files in processes.items()}
    if "-v" in sys.argv:
        for p, c in sorted(circles.items()):
            print(p, len(c), *c)
    bad = judge("files in a folder", {d: n for d, n in folders.items() if n > FILES_MAX or d in FOLDERS_OVER},
                FILES_MAX, FOLDERS_OVER)
    bad += judge("lines of a header", {h: n for h, n in headers.items() if n > LINES_MAX or h in HEADERS_OVER},
                 LINES_MAX, HEADERS_OVER)
    bad += judge("files in one circle of calls", {p: len(c) for p, c in circles.items()
                 if len(c) > CIRCLE_MAX or p in CIRCLES_OVER}, CIRCLE_MAX, CIRCLES_OVER)
    bad += misnamed({f: text for files in processes.values() for f, text in files.items()}, FAMILIES)
    print(*bad, sep="\n", end="\n" if bad else "")
    return 1 if bad else 0


sys.exit(main())
