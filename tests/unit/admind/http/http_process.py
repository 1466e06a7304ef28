#!/usr/bin/python3
"""mcpbox-admind-http as a process: options, refusal of root, confinement read
back from /proc, work under load while confined, an orderly end.

Its two peers are absent on purpose: it must start and serve without them.
"""
import concurrent.futures
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(next(p for p in pathlib.Path(__file__).resolve().parents if p.name == "tests")))
from harness.patience import eventually  # noqa: E402 (the folder is known only now)

exe = sys.argv[1]
NOBODY = 65534
#: Meson's own limit is lower, and grows on a slow machine.
HANG_S = 600
#: Of a login that nobody made.
HALVES = {"Cookie": "mcpbox_session=" + "a" * 43, "X-CSRF-Token": "b" * 43}


def run(*args, **kw):
    return subprocess.run([exe, *args], capture_output=True, text=True, timeout=HANG_S, **kw)


def check(condition, what):
    if not condition:
        sys.exit(f"failed: {what}")


def options(d):
    good, bad = d / "good.conf", d / "bad.conf"
    good.write_text(f"run_dir {d}/run\nlisten 127.0.0.1:0\naddr_file {d}/state/addr\n")
    bad.write_text("# first\nlisten nowhere\n")
    r = run("-t", "-f", str(good))
    check((r.returncode, r.stdout) == (0, "OK\n"), f"-t: {r}")
    r = run("-t", "-f", str(bad))
    check(r.returncode == 1 and f"{bad}:2: listen: " in r.stderr, f"-t of a bad file: {r}")
    r = run("-T", "-f", str(good))
    check(r.returncode == 0 and f"\naddr_file {d}/state/addr\n" in r.stdout, f"-T: {r}")
    r = run("-V")
    check(r.returncode == 0 and r.stdout.startswith("mcpbox-admind-http "), f"-V: {r}")
    for args in ([], ["-f"], ["-x", "-f", str(good)], ["-f", str(good), "more"]):
        r = run(*args)
        check(r.returncode == 1 and "usage:" in r.stderr, f"{args}: {r}")
    r = run("-f", str(d / "absent"))
    check(r.returncode == 1 and "No such file" in r.stderr, f"absent file: {r}")
    os.chmod(good, 0o666)
    r = run("-t", "-f", str(good))
    check(r.returncode == 1 and "others may write it" in r.stderr, f"writable file: {r}")
    os.chmod(good, 0o644)
    if os.geteuid() == 0:
        r = run("-f", str(good))
        check(r.returncode == 1 and "refusing to run as uid 0" in r.stderr, f"root: {r}")
    return good


def get(port, path, field=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    c.request("GET", path, headers=field or {})
    r = c.getresponse()
    r.read()
    c.close()
    return r.status


def problem(port, path):
    """What an administrator reads."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=HANG_S)
    c.request("GET", path, headers=HALVES)
    r = c.getresponse()
    value = json.loads(r.read())
    c.close()
    check(r.status == 503 and r.getheader("Retry-After") == "1", f"{path}: {r.status}")
    return value


def away(port):
    """Each process that is away is named, and no other: PostgreSQL may be well."""
    for path, failure, name, other in (("/api/servers", "storage_unavailable", "admind", "PostgreSQL"),
                                       ("/api/logins", "vault_unavailable", "vault", "PostgreSQL")):
        p = problem(port, path)
        check(p["failure_mode"] == failure and name in p["detail"], f"{path}: {p}")
        check(name in p["fix"] and other not in p["fix"], f"{path}: the fix is of another process: {p}")


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def serving(d, conf):
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    (d / "state").mkdir()
    if user:
        os.chown(d / "state", NOBODY, NOBODY)
    log = open(d / "log", "w+")
    p = subprocess.Popen([exe, "-f", str(conf)], stderr=log, stdin=subprocess.DEVNULL, **user)
    try:
        addr = d / "state" / "addr"
        eventually(lambda: addr.exists() or p.poll() is not None, 10, 0.05)
        check(p.poll() is None and addr.exists(), "start: " + pathlib.Path(d / "log").read_text())
        port = int(addr.read_text().rsplit(":", 1)[1])
        check(get(port, "/health") == 503, "health without peers")
        away(port)
        s = status_of(p.pid)
        sanitized = "seccomp=missing" in pathlib.Path(d / "log").read_text()
        check(s["NoNewPrivs"] == "1", "no_new_privs")
        for c in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            check(int(s[c], 16) == 0, c)
        if not sanitized:
            check(s["Seccomp"] == "2", "seccomp")
            check(os.stat(f"/proc/{p.pid}/mem").st_uid == 0, "dumpable")
        check(s["Threads"] == "1", "one thread")

        def work(i):
            return get(port, ("/health", "/api/me", "/x" * 500, "/api/servers")[i % 4],
                       HALVES if i % 3 else None)
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            seen = set(pool.map(work, range(800)))
        check(seen == {401, 404, 503}, f"statuses {seen}")
        check(p.poll() is None, "alive after load")
        def fds():
            return len(os.listdir(f"/proc/{p.pid}/fd")) if os.geteuid() == 0 else 0
        # it may still be closing the last ones
        check(eventually(lambda: fds() < 20, 5, 0.05), f"{fds()} descriptors are open")
        p.send_signal(signal.SIGTERM)
        check(p.wait(HANG_S) == 0, "SIGTERM ends it with 0")
        check("stopping: SIGTERM" in pathlib.Path(d / "log").read_text(), "it says so")
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()
        log.close()


def main():
    d = pathlib.Path(tempfile.mkdtemp(prefix="mcpbox-http-"))
    os.chmod(d, 0o755)
    # The build directory may be closed to other users.
    global exe
    exe = shutil.copy(exe, d / "mcpbox-admind-http")
    os.chmod(exe, 0o755)
    try:
        serving(d, options(d))
    finally:
        shutil.rmtree(d)


main()
