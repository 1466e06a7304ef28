"""Each part as jobs: the commands that it is made of and what they need.

A job's limit ends a hang. It is some four times what the job takes on an ordinary
machine, and grows with the time that this machine takes to start a process.
"""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess

from runner import record, tidy
from runner.context import PYTHON, SRC, Stop, tail
from runner.graph import UNKNOWN_SECONDS, Job

SHARED, LONG, ALONE = 0, 1, 2	# stages
#: Seconds that a fuzz target looks for new inputs after its corpus; named: fuzz-long.
FUZZ_SECONDS, FUZZ_LONG_SECONDS = 10, 600
WIRE_SECONDS, WIRE_LONG_SECONDS = 60, 600
SUITES = {"bookworm": "deb12", "trixie": "deb13"}


def this_suite():
    with open("/etc/os-release", encoding="utf-8") as f:
        return re.search(r"^VERSION_CODENAME=(\w+)$", f.read(), re.M)[1]


def tracked(*patterns):
    names = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=SRC, check=True, capture_output=True,
                           text=True).stdout.split("\0")
    return [n for n in names if n and (SRC / n).is_file()]


# --- builds ---------------------------------------------------------------

#: Where clang's run-time libraries are: shared, they need not be linked into each of the
#: 150 programs.
CLANG_LIBRARIES = "/usr/lib/llvm-19/lib/clang/19/lib/linux"
RELEASE = ("release", "gcc", (), ["--buildtype=release"])
#: One sanitised build: the unit tests with AddressSanitizer and
#: UndefinedBehaviorSanitizer, and the libFuzzer targets. lld and lines alone of the
#: debugging information keep its 270 links short. gcc's warnings are errors in the
#: release build.
SANITISED = ("sanitised", "clang-19", (), [
    "--buildtype=debug", "-Ddebug=false", "-Doptimization=0", "-Dfuzz=true", "-Dwerror=false",
    "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dc_args=-fsanitize=fuzzer-no-link -gline-tables-only",
    f"-Dc_link_args=-fuse-ld=lld -shared-libsan -Wl,-rpath,{CLANG_LIBRARIES}"])


def build(name, compiler, targets, chosen_options):
    def do(ctx):
        d = ctx.paths.build / name
        # The panel is in one build, where there is npm: what is configured before npm came is configured again.
        panel = "enabled" if name == RELEASE[0] and shutil.which("npm") else "disabled"
        options = [*chosen_options, f"-Dpanel={panel}"]
        made_for = f"{SRC} {compiler} {options}"
        mark = d / ".made-for"
        # A directory that another work tree or other options made is no use.
        if not (d / "build.ninja").exists() or not mark.exists() or mark.read_text() != made_for:
            shutil.rmtree(d, ignore_errors=True)
            ctx.must(120, f"meson setup {name}", ["meson", "setup", d, SRC, *options],
                     env=ctx.environment(CC=compiler))
            mark.write_text(made_for)
        ctx.must(1800, f"build {name}", ["ninja", "-C", d, *targets])
    return do


def build_package(ctx):
    out = ctx.paths.build / "package"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    ctx.must(1800, "contrib/debian/build", ["contrib/debian/build", "--worktree", "--out", out])
    shutil.copy(ctx.paths.log(ctx.job.name), out / "build.log")


def build_guest_packages(suite):
    def do(ctx):
        deb = list((ctx.paths.build / "package").glob(f"mcpbox_*{SUITES[suite]}*_*.deb"))
        ctx.must(1800, f"the {suite} packages", ["tests/vm/packages", suite, ctx.paths.cache, *deb])
    return do


# --- what a machine does once --------------------------------------------

#: The Worker's packages are those that its README installs; all others are the tests' own.
WORKER = "contrib/cloudflare"


def npm(folder):
    """What the folder's package-lock.json names, in the cache. Node itself comes from
    npm, at one version; Debian's npm only fetches."""
    def do(ctx):
        here, there = SRC / (folder if folder == WORKER else f"tests/{folder}"), node_dir(ctx.paths, folder)
        lock = there / "package-lock.json"
        if lock.exists() and lock.read_bytes() == (here / "package-lock.json").read_bytes():
            return
        shutil.rmtree(there, ignore_errors=True)
        there.mkdir(parents=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(here / name, there)
        try:
            ctx.must(600, f"npm ci of {here.relative_to(SRC)}",
                     ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=there)
        except Stop:
            lock.unlink()
            raise
    return do


def node_dir(paths, folder):
    return paths.cache / folder.split("/")[-1]


def root(suite):
    return lambda ctx: ctx.must(1800, f"a root of {suite}",
                                ["contrib/debian/root", suite, ctx.paths.cache, "true"])


def machine(suite):
    return lambda ctx: ctx.must(1800, f"a machine of {suite}",
                                ["tests/systemd/machine", "build", suite, ctx.paths.cache])


def guest(suite):
    return lambda ctx: ctx.must(1800, f"a guest of {suite}", ["tests/vm/guest", "build", suite, ctx.paths.cache])


# --- the parts ------------------------------------------------------------

def lint_rules(ctx):
    for f in sorted((SRC / "tests/lint").glob("*.py")):
        ctx.step(300, f"lint: {f.name}", [PYTHON, f])
    ctx.step(120, "lint: clang-format",
             ["clang-format-19", "--dry-run", "-Werror", *tracked("*.c", "*.h")])
    scripts = [n for n in tracked("contrib", "tests", ".ci") if
               re.match(rb"#!/bin/(ba)?sh\b", (SRC / n).open("rb").readline())]
    ctx.step(180, "lint: shellcheck", ["shellcheck", *scripts])


def lint_cppcheck(ctx):
    multiarch = subprocess.run(["gcc", "-print-multiarch"], check=True, capture_output=True, text=True).stdout.strip()
    ctx.step(900, "lint: cppcheck", [
        "cppcheck", "--quiet", "--error-exitcode=1", "-j2", "--std=c11", "--enable=warning,portability",
        "--inline-suppr", "--suppress=missingInclude", "--suppress=unknownMacro",
        "--suppress=normalCheckLevelMaxBranches", "--suppressions-list=tests/lint/cppcheck.txt",
        f"--include=/usr/include/{multiarch}/sys/queue.h", "-D__linux__", "-D_GNU_SOURCE",
        *sorted({f"-I{pathlib.PurePath(n).parent}" for n in tracked("common/*.h")}),
        *(n for n in tracked("*.c") if not n.startswith("tests/"))])


#: Seconds for clang-tidy of every file: it takes 950 of a processor with nothing kept,
#: and has a small share of one beside all other jobs.
TIDY_SECONDS = 4500


def clang_tidy(ctx, sources, name):
    ctx.step(TIDY_SECONDS, name, [PYTHON, "-m", "runner.tidy", ctx.paths.release, ctx.paths.cache / "tidy", *sources],
             env=ctx.environment(PYTHONPATH=str(SRC / "tests")))


def lint_tidy(ctx):
    """Files that changed since clang-tidy found all clean, and those that include one."""
    files, since = record.changed_since_tidy()
    if files is None:
        print(f"clang-tidy of every file: {since}")
        sources = tracked("*.c")
    else:
        sources = tidy.affected(ctx.paths.release, files)
        print(f"clang-tidy of {len(sources)} files that changed since {since}, or include what did")
    if sources:
        clang_tidy(ctx, sources, "lint: clang-tidy of what changed")
    else:
        ctx.passed("lint: clang-tidy of what changed")


def fuzz(seconds):
    def do(ctx):
        """Two targets at once."""
        targets = sorted(p for p in (ctx.paths.build / "sanitised/tests/fuzz").glob("fuzz_*")
                         if p.is_file() and os.access(p, os.X_OK))
        if not targets:
            ctx.failed("fuzz", "there are no fuzz targets")
        env = ctx.environment(ASAN_OPTIONS="detect_leaks=1", UBSAN_OPTIONS="halt_on_error=1")
        running = []

        def finish(name, log, p):
            limit = (seconds + 120) * ctx.scale
            try:
                status = p.wait(limit)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()
                status = None
            if status == 0:
                ctx.passed(f"fuzz: {name}", seconds)
            else:
                ctx.failed(f"fuzz: {name}", "out of time" if status is None else f"status {status}", tail(log))

        for t in targets:
            if len(running) == 2:
                finish(*running.pop(0))
            log = ctx.paths.log(t.name)
            found = ctx.paths.out / "corpus" / t.name
            found.mkdir(parents=True, exist_ok=True)
            with open(log, "wb") as f:
                running.append((t.name, log, subprocess.Popen(
                    [t, f"-max_total_time={seconds}", f"-seed={ctx.seed % 2**32 or 1}", "-max_len=65536",
                     "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={ctx.paths.out}/", found,
                     f"tests/fuzz/corpus/{t.name.removeprefix('fuzz_')}"],
                    cwd=SRC, env=env, stdin=subprocess.DEVNULL, stdout=f, stderr=f)))
        for r in running:
            finish(*r)
    return do


def unit(name):
    return lambda ctx: ctx.meson(ctx.paths.build / name, 1200)


def folder(name, limit, workers=1, packages=None, *options, **environ):
    """pytest of tests/NAME, or only of those in it that are alone or not."""
    def do(ctx):
        env = {k: v(ctx) if callable(v) else v for k, v in environ.items()}
        if packages:
            env["MCPBOX_NODE_DIR"] = str(node_dir(ctx.paths, packages))
        ctx.pytest([f"tests/{name}"], limit, *options, workers=workers, environ=env)
    return do


def package_inside(ctx):
    """What is installed, in a root that is thrown away."""
    xml, log, tar = (ctx.paths.out / n for n in ("inside.xml", "inside.log", "inside.tar"))
    ctx.must(60, "the package as a tar", ["tar", "-cf", tar, "-C", ctx.paths.build, "package"])
    with open(tar, "rb") as i, open(xml, "wb") as o, open(log, "wb") as e:
        status = ctx.run(1200, ["contrib/debian/root", "--throw-away", this_suite(), ctx.paths.cache, "bash", "-euc", """
            cd /tmp
            tar -x
            rc=0
            python3 -m pytest -q -p no:cacheprovider --tb=short --rootdir=/src/tests/package/inside \
                --junitxml=/tmp/inside.xml /src/tests/package/inside >&2 || rc=$?
            cat /tmp/inside.xml
            exit $rc"""], stdin=i, stdout=o, stderr=e)
    tar.unlink()
    ctx.junit(xml, status, log)


def debian13(ctx):
    status = ctx.run(2400, ["tests/debian13", ctx.paths.cache])
    build = ctx.paths.cache / "trixie/build"
    ctx.meson_log(build / "meson-logs/testlog.json", build, status)


def systemd_machine(ctx):
    out = ctx.paths.out / "systemd"
    limit = int(300 * ctx.scale)
    log = ctx.paths.out / "systemd.log"
    with open(log, "wb") as f:
        status = ctx.run(limit + 60, ["tests/systemd/run", this_suite(), ctx.paths.release, ctx.paths.cache, out, limit],
                         stdout=f, stderr=f)
    ctx.junit(out / "junit.xml", status, out / "log" if (out / "log").exists() else log)


def vm(suite):
    """A guest that could not be made or gave no result has failed: what it should
    show is shown nowhere else."""
    def do(ctx):
        out = ctx.paths.out / f"vm.{suite}"
        limit = int(2400 * ctx.scale)
        status = ctx.run(limit + 120, ["tests/vm/run", suite, ctx.paths.cache, out, limit])
        log = next((p for p in (out / "log", out / "console") if p.exists()), ctx.paths.log(ctx.job.name))
        ctx.junit(out / "junit.xml", status, log)
    return do


def bench(ctx):
    """Its figures are the point, so they are shown whatever comes out."""
    out = ctx.paths.out / "bench.json"
    env = ctx.environment(MCPBOX_NODE_DIR=str(node_dir(ctx.paths, "bench")))
    status = ctx.run(3600, ["tests/bench/run", "--build", ctx.paths.release, "--check", "--json", out,
                            *(["--write"] if ctx.record else [])], env=env)
    ctx.goals(out, status)


#: Folders whose files go to several workers: (folder, workers, limit, npm packages).
SEVERAL = (("database", 2, 1500, None), ("integration", 3, 4000, None), ("defects", 2, 1500, None),
           ("egress", 2, 2000, "egress"), ("probes", 2, 1500, None), ("local", 2, 1500, None),
           ("kill", 2, 2000, None))


#: Seconds of what takes long, until docs/FULL-RUN.md has them: for the order and for
#: what a person is told.
GUESSED = {"build release": 150, "build sanitised": 200, "build package": 120, "lint clang-tidy": 450,
           "lint cppcheck": 60, "unit sanitised": 60, "fuzz": 150, "wire": 100, "database": 180,
           "database large": 150, "integration": 900, "integration alone": 100, "defects": 140,
           "egress": 160, "probes": 220, "local": 60, "kill": 300, "quickstart": 100,
           "tidy": 450, "reproducible": 100, "wire-long": 650, "debian13": 130, "systemd suites": 30,
           "systemd machine": 70, "build guest packages bookworm": 120, "build guest packages trixie": 250,
           "vm bookworm": 900, "vm trixie": 900, "guest bookworm": 120, "guest trixie": 120, "root trixie": 130,
           "machine bookworm": 80, "machine trixie": 80, "root here": 110, "remote": 240, "browser": 40, "panel": 300, "bench": 600, "soak": 3000,
           "fuzz-long": 7000}


def jobs():
    """All jobs of all parts. A part's jobs bring with them the jobs that they need."""
    out = []

    def add(name, part, do, **more):
        out.append(Job(name, part, do, seconds=GUESSED.get(name, UNKNOWN_SECONDS), **more))

    add("build release", "builds", build(*RELEASE), places=2, limit=2000)
    add("build sanitised", "builds", build(*SANITISED), places=2, limit=2000)
    add("build package", "builds", build_package, places=2, limit=2000, needs=("root here",))
    for name in ("clients", "conformance", "egress", "bench", "clients/hosts", "remote", "panel", WORKER):
        add(f"npm {name}", "installs", npm(name), limit=700)
    here = this_suite()
    add("root here", "installs", root(here), limit=2000)
    for s in SUITES:
        if s != here:
            add(f"root {s}", "installs", root(s), limit=2000)
        add(f"machine {s}", "installs", machine(s), limit=2000, needs=(root_of(s),))
        add(f"guest {s}", "installs", guest(s), limit=2000, needs=(root_of(s),))

    add("lint rules", "lint", lint_rules)
    add("lint cppcheck", "lint", lint_cppcheck, places=2, limit=1000)
    add("lint clang-tidy", "lint", lint_tidy, places=2, limit=TIDY_SECONDS + 100, needs=("build release",))
    add("unit release", "unit", unit("release"), places=2, limit=1300, needs=("build release",))
    add("unit sanitised", "unit", unit("sanitised"), places=2, limit=1300, needs=("build sanitised",))
    add("fuzz", "fuzz", fuzz(FUZZ_SECONDS), places=2, limit=1200, needs=("build sanitised",))
    released = ("build release",)
    add("wire", "wire", folder("wire", 900, 1, "conformance", MCPBOX_WIRE_SECONDS=str(WIRE_SECONDS)),
        places=2, limit=1000, needs=(*released, "npm conformance"))
    add("schema", "schema", folder("schema", 1200, 1, "clients"), limit=1300, needs=(*released, "npm clients"))
    for name, workers, limit, node in SEVERAL:
        needs = released + ((f"npm {node}",) if node else ())
        others = [m for m in ("alone", "bench", "large") if has_mark(name, m)]
        add(name, name, folder(name, limit, workers, node, *(("-m", " and ".join(f"not {m}" for m in others))
                                                             if others else ())),
            places=2, limit=limit + 60, needs=needs)   # as each other: no one of them waits for more
        if "bench" in others:
            add(f"{name} bench", "bench", folder(name, limit, 1, node, "-m", "bench"), alone=True, stage=ALONE,
                limit=limit + 60, needs=needs)
        if "large" in others:
            add(f"{name} large", "large", folder(name, limit, 1, node, "-m", "large"), stage=LONG, limit=limit + 60,
                needs=needs)
        if "alone" in others:
            add(f"{name} alone", name, folder(name, limit, 1, node, "-m", "alone and not bench"), alone=True, stage=ALONE,
                limit=limit + 60, needs=needs)
    add("clients", "clients", folder("clients", 600, 1, "clients", "--ignore=tests/clients/hosts"),
        limit=700, needs=(*released, "npm clients"))
    add("issuers", "issuers", folder("remote", 900, 1, "remote", "--ignore=tests/remote/worker"), limit=1000,
        needs=(*released, "npm remote"))
    add("conformance", "conformance", folder("conformance", 1200, 1, "conformance"), limit=1300,
        needs=(*released, "npm conformance"))
    add("quickstart", "quickstart", folder("quickstart", 1500), places=2, limit=1600, needs=released)
    package = {"MCPBOX_PACKAGE": lambda ctx: str(ctx.paths.build / "package")}
    add("package", "package", folder("package", 1200, 1, None, "--ignore=tests/package/inside",
                                     "--ignore=tests/package/test_reproducible.py", **package),
        stage=LONG, limit=1300, needs=("build package",))
    add("package inside", "package", package_inside, stage=LONG, limit=1300, needs=("build package",))
    add("runner", "runner", folder("runner", 600), limit=700)

    add("tidy", "tidy", lambda ctx: clang_tidy(ctx, tracked("*.c"), "tidy: clang-tidy of every file"),
        places=2, stage=LONG, limit=TIDY_SECONDS + 100, needs=released)
    add("reproducible", "reproducible", lambda ctx: ctx.pytest(
        ["tests/package/test_reproducible.py"], 2000,
        environ={"MCPBOX_PACKAGE": str(ctx.paths.build / "package")}),
        stage=LONG, limit=2100, needs=("build package",))
    add("wire-long", "wire-long", folder("wire", 2000, 1, "conformance", MCPBOX_WIRE_SECONDS=str(WIRE_LONG_SECONDS)),
        places=2, stage=LONG, limit=2100, needs=(*released, "npm conformance"))
    add("debian13", "debian13", debian13, places=2, stage=LONG, limit=2500, needs=(root_of("trixie"),))
    add("systemd suites", "systemd", folder("systemd", 600, 1, None, "--ignore=tests/systemd/inside"), stage=LONG,
        limit=700, needs=("machine bookworm", "machine trixie"))
    add("systemd machine", "systemd", systemd_machine, stage=LONG, places=2, limit=1000,
        needs=(*released, f"machine {here}"))
    for s in SUITES:
        add(f"build guest packages {s}", "builds", build_guest_packages(s), places=2, stage=LONG, limit=4000,
            needs=("build package", root_of(s)))
        add(f"vm {s}", "vm", vm(s), places=2, stage=LONG, limit=2700,
            needs=(f"build guest packages {s}", f"guest {s}"))

    # The way without the Worker comes first: `tests/run remote` is both.
    add("remote", "remote", folder("remote/worker", 1500, 1, "remote", MCPBOX_WORKER_DIR=lambda ctx: str(
        node_dir(ctx.paths, WORKER))), stage=LONG, limit=1600, needs=(*released, f"npm {WORKER}", "issuers"))
    add("browser", "browser", folder("browser", 600), stage=LONG, limit=700, needs=released)
    add("panel", "panel", folder("panel", 1500, 2, "panel"), places=2, stage=LONG, limit=1600, needs=(*released, "npm panel"))
    add("hosts", "hosts", folder("clients/hosts", 900, 1, "clients/hosts"), limit=1000, stage=ALONE,
        needs=(*released, "npm clients/hosts"))
    add("bench", "bench", bench, alone=True, stage=ALONE, limit=3700, needs=(*released, "npm bench"))
    add("soak", "soak", folder("soak", 12000, MCPBOX_WRITE=lambda ctx: "1" if ctx.record else "0"), alone=True, stage=ALONE, limit=12100, needs=released)
    add("fuzz-long", "fuzz-long", fuzz(FUZZ_LONG_SECONDS), places=2, stage=LONG, limit=20000,
        needs=("build sanitised",))
    return out


def root_of(suite):
    return "root here" if suite == this_suite() else f"root {suite}"


def has_mark(name, mark):
    return any(f"pytest.mark.{mark}" in p.read_text(encoding="utf-8") for p in (SRC / "tests" / name).rglob("*.py"))


def chosen(all_jobs, parts):
    """The jobs of these parts, and all that they need."""
    by_name = {j.name: j for j in all_jobs}
    wanted = {}

    def take(name):
        if name not in wanted:
            wanted[name] = by_name[name]
            for n in by_name[name].needs:
                take(n)
    for j in all_jobs:
        if j.part in parts:
            take(j.name)
    return list(wanted.values())


def several():
    """Each folder whose files several workers are given."""
    return ["tests/" + name for name, *_ in SEVERAL]


def part_of_path(path):
    """The part that runs the tests of a file, or None."""
    for pattern, part in (("tests/package/test_reproducible.py*", "reproducible"),
                          ("tests/clients/hosts/*", "hosts"), ("tests/remote/worker/*", "remote"),
                          ("tests/remote*", "issuers")):
        if fnmatch.fnmatchcase(path, pattern):
            return part
    m = re.match(r"tests/(\w+)(/|$)", path)
    names = ("wire", "schema", "database", "integration", "defects", "egress", "probes", "local", "kill", "clients",
             "conformance", "quickstart", "package", "runner", "systemd", "soak", "browser", "panel")
    return m[1] if m and m[1] in names else None
