"""Programs that people run."""
import shutil

from local.person import RUN


def test_a_compiler(person):
    person.write("project/hello.c", '#include <stdio.h>\nint main(void) { puts("hello"); return 3; }\n')
    r = person.sh("gcc -O1 -o hello hello.c && ./hello")
    assert r.out == "hello\n" and r.status == 3, r


def test_python_with_threads_processes_and_sqlite(person):
    r = person.python("""
import multiprocessing, sqlite3, subprocess, tempfile, concurrent.futures as f
with multiprocessing.Pool(2) as p: print(p.map(abs, [-1, -2]))
print(list(f.ThreadPoolExecutor(2).map(abs, [-3])))
d = sqlite3.connect('x.db'); d.execute('create table t (a)'); d.execute('insert into t values (1)'); d.commit()
print(d.execute('select * from t').fetchall(), subprocess.check_output(['echo', 'sub']), tempfile.gettempdir())
""")
    assert r.out == "[1, 2]\n[3]\n[(1,)] b'sub\\n' /tmp\n", r


def test_a_virtual_environment(person):
    r = person.sh("python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'")
    assert r.out == f"{person.project}/v\n", r


def test_node(person):
    r = person.run("node", "-e", "const os = require('os'), fs = require('fs'); fs.writeFileSync('made', 'x');"
                   "console.log(os.cpus().length > 0, os.homedir(), os.tmpdir())")
    assert r.out == f"true {person.home} /tmp\n" and (person.project / "made").exists(), r


def test_npm_runs_scripts_of_a_package_confined(person):
    """An install script, which is how a package attacks: it gets the project and no more."""
    person.write(".npmrc", "canary-of-the-token")
    person.write("project/package.json", '{"name": "p", "version": "1.0.0", "dependencies": {"d": "file:./d"}}')
    person.write("project/d/package.json", '{"name": "d", "version": "1.0.0", "scripts": '
                 '{"install": "cat ~/.npmrc > stolen; ls -A ~ > seen; id -u > uid"}}')
    r = person.sh("npm install --offline --no-audit --no-fund --install-links && cat node_modules/d/seen")
    assert r.status == 0 and "project" in r.out, r
    assert (person.project / "node_modules/d/stolen").read_text() == ""


def test_a_pipeline_and_a_here_document(person):
    r = person.run("bash", "-c", "cat <<X | tr a-z A-Z | tee >(wc -c >&2)\ntext\nX\nwait")
    assert r.out == "TEXT\n", r


def test_make_with_jobs(person):
    person.write("project/Makefile", ".PHONY: all\nall: a b c\n%:\n\t@sleep 0; touch $@.made\nMakefile: ;\n")
    r = person.run("make", "-j4")
    assert r.status == 0 and len(list(person.project.glob("[abc].made"))) == 3, r


def test_in_itself(person):
    """A run in a run: no new namespace, so it is refused with the reason, not run unconfined."""
    copy = person.project / "mcpbox-run"
    shutil.copy(RUN, copy)
    copy.chmod(0o755)
    r = person.run("./mcpbox-run", "touch", "made")
    assert r.status == 125 and "namespaces" in r.err and not (person.project / "made").exists(), r
