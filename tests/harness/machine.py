"""An installed system of a test's own: namespaces of mounts, processes and the
network, in which /etc is a copy, /run, /var/lib and /var/log are empty, and the
distribution's own tools made its users, its directories and its PostgreSQL.
Nothing of it is seen outside, and all of it ends with its first process.

Its service manager is played: `systemctl` writes down what it was asked, and
starts the processes that `mcpboxctl setup` waits for as the units would."""
import fcntl
import json
import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import time

from harness.instance import BUILD, SRC, take_block
from harness.patience import patience, until

USERS = {"mcpbox-gw-local": 1, "mcpbox-gw-tunnel": 2, "mcpbox-admin": 3, "mcpbox-adminweb": 4,
         "mcpbox-check": 5, "mcpbox-vault": 6, "mcpbox-sandbox": 7, "mcpbox-pool": 8,
         "mcpbox-egress": 9, "mcpbox-owner": 10, "mcpbox-store": 13}

PROGRAMS = ("admind/mcpbox-admind", "admind/check/mcpbox-admind-check", "admind/vault/mcpbox-admind-vault",
            "admind/ctl/mcpboxctl", "admind/http/mcpbox-admind-http", "gatewayd/mcpbox-gatewayd", "sandboxd/mcpbox-sandboxd",
            "sandboxd/spawn/mcpbox-sandboxd-spawn", "sandboxd/egress/mcpbox-sandboxd-egress",
            "sandboxd/store/mcpbox-sandboxd-store")

# The first process: it makes the namespaces' own machine, then sleeps.
BOOT = r"""set -e
mount --make-rprivate /
mount --bind "$1/etc" /etc
for d in /run /var/lib /var/log; do mount -t tmpfs -o mode=755 tmpfs $d; done
mkdir -p /var/log/postgresql /var/lib/postgresql /run/postgresql
chown postgres:postgres /var/log/postgresql /var/lib/postgresql /run/postgresql
mount --bind "$1/systemctl" /usr/bin/systemctl
/usr/bin/python3 -c 'import fcntl, socket, struct
s = socket.socket()
# SIOCSIFFLAGS (netdevice(7)): IFF_UP | IFF_RUNNING
fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x41))'
touch "$1/booted"
exec sleep infinity
"""

SYSTEMCTL = """#!/bin/bash
echo "$*" >>/run/systemctl.asked
[ ! -e /run/systemctl.fails ] || { cat /run/systemctl.fails >&2; exit 1; }
# What a unit's drop-ins have the manager read for it. UNIT USER
credentials() {
	rm -rf "/run/credentials/$1"
	mkdir -p "/run/credentials/$1"
	if [ "$1" = mcpbox-admind-vault.service ]; then
		cp /etc/mcpbox/master.key "/run/credentials/$1/master.key"
	fi
	cat "/etc/systemd/system/$1.d/"*.conf 2>/dev/null | sed -n 's/^LoadCredential=//p' |
	    while IFS=: read -r name path; do cp "$path" "/run/credentials/$1/$name"; done
	chown -R "$2" "/run/credentials/$1"
	chmod 0400 "/run/credentials/$1/"* 2>/dev/null
}
case "$*" in
*show*) cat /run/systemctl.show 2>/dev/null; exit 0 ;;
*'start mcpbox-migrate.service')
	# Active from its first success on: start does nothing then.
	case "$*" in *restart*) ;; *) [ ! -e /run/migrated ] || exit 0 ;; esac
	credentials mcpbox-migrate.service mcpbox-owner
	setpriv --reuid mcpbox-owner --regid mcpbox-owner --clear-groups \\
	    env -i CREDENTIALS_DIRECTORY=/run/credentials/mcpbox-migrate.service \\
	    LIBEXEC/mcpbox-admind -m -b /var/lib/mcpbox/backups -f /etc/mcpbox/admind.conf >>/var/log/mcpbox 2>&1 ||
	    exit
	touch /run/migrated
	exit
	;;
*'restart mcpbox.target')
	for p in /proc/[0-9]*; do
		case $(readlink $p/exe) in LIBEXEC/*) kill -9 "${p#/proc/}" ;; esac
	done
	;;
*'start mcpbox.target') ;;
*) exit 0 ;;
esac
[ -e /var/lib/mcpbox/setup ] || exit 0
# USER GROUPS PROGRAM
begin() {
	credentials "$3.service" "$1"
	groups=(--clear-groups)
	[ -z "$2" ] || groups=(--groups "$2")
	setsid setpriv --reuid "$1" --regid "$1" "${groups[@]}" --no-new-privs \\
	    env -i CREDENTIALS_DIRECTORY="/run/credentials/$3.service" LIBEXEC/"$3" -f /etc/mcpbox/"${3#mcpbox-}.conf" \\
	    </dev/null >>/var/log/mcpbox 2>&1 &
}
begin mcpbox-check '' mcpbox-admind-check
begin mcpbox-vault '' mcpbox-admind-vault
begin mcpbox-admin mcpbox-check,mcpbox-vault,mcpbox-sandbox mcpbox-admind
"""


class Machine:
    """start() is part of making it; close() ends all."""

    def __init__(self, cluster=True, boots_systemd=True):
        self.base, self.lock = take_block()
        self.dir = tempfile.mkdtemp(prefix="mcmachine.")
        self.proc = None
        os.chmod(self.dir, 0o755)
        etc = os.path.join(self.dir, "etc")
        # lckpwdf(3): useradd, which another test may run, waits; else the copy would have
        # its locks, or miss them while it looks.
        with open("/etc/.pwd.lock", "a", encoding="ascii") as f:
            fcntl.lockf(f, fcntl.LOCK_EX)
            subprocess.run(["cp", "-a", "/etc", etc], check=True)
        for n in ("postgresql", "mcpbox"):
            shutil.rmtree(os.path.join(etc, n), ignore_errors=True)
        self.libexec = os.path.join(self.dir, "libexec")
        os.mkdir(self.libexec)
        for p in PROGRAMS:
            shutil.copy(os.path.join(BUILD, p), self.libexec)
        self.write_outside("systemctl", SYSTEMCTL.replace("LIBEXEC", self.libexec), 0o755)
        self.boot()
        self.users()
        self.configuration()
        if boots_systemd:
            self.sh("mkdir -p /run/systemd/system")
        if cluster:
            self.cluster()

    def write_outside(self, name, text, mode=0o644):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)

    def boot(self):
        self.proc = subprocess.Popen(
            ["unshare", "-m", "-n", "-p", "--fork", "--kill-child", "--mount-proc",
             "bash", "-c", BOOT, "boot", self.dir], stdout=subprocess.DEVNULL, start_new_session=True)
        until(lambda: os.path.exists(os.path.join(self.dir, "booted")) or self.proc.poll() is not None, 20)
        assert self.proc.poll() is None, "the machine does not start"
        with open(f"/proc/{self.proc.pid}/task/{self.proc.pid}/children", encoding="ascii") as f:
            self.init = f.read().split()[0]

    def run(self, *argv, check=True, env=None, stdin=subprocess.DEVNULL, timeout=patience(120), **kw):
        r = subprocess.run(["nsenter", "-t", self.init, "-m", "-n", "-p", "--wd=/", "--", *argv],
                           capture_output=True, text=True, check=False, stdin=stdin, timeout=timeout,
                           env=env or {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}, **kw)
        assert not check or r.returncode == 0, (argv, r.returncode, r.stdout, r.stderr)
        return r

    def sh(self, script, check=True):
        return self.run("bash", "-c", script, check=check).stdout

    def read(self, path):
        return self.sh(f"cat {path}")

    def write(self, path, text, mode="0644"):
        self.run("bash", "-c", f'printf %s "$0" >{path}; chmod {mode} {path}', text)

    def users(self):
        """As contrib/systemd/sysusers.d says, with the numbers of our block."""
        lines = [f"u {u} {self.base + n}\n" for u, n in USERS.items()]
        self.sh("sed -i '/^mcpbox-/d' /etc/passwd /etc/group /etc/shadow /etc/gshadow; "
                "printf 'nobodys:1500000000:65536\\n' >/etc/subuid; : >/etc/subgid")
        self.write("/etc/mcpbox.sysusers", "".join(lines))
        self.run("systemd-sysusers", "/etc/mcpbox.sysusers")
        self.sh("mkdir -p /etc/mcpbox")
        self.run("systemd-tmpfiles", "--create", os.path.join(SRC, "contrib/systemd/tmpfiles.d/mcpbox.conf"))

    def configuration(self, extra=""):
        for name, text in {"admind": extra, "admind-check": "", "admind-vault": "",
                           "admind-http": "addr_file /run/mcpbox/admind-http/addr\n",
                           "gatewayd-local": "addr_file /run/mcpbox/gatewayd-local/addr\n",
                           "gatewayd-tunnel": "listener tunnel\naddr_file /run/mcpbox/gatewayd-tunnel/addr\n",
                           "sandboxd": "", "sandboxd-store": "", "egress": "",
                           "sandboxd-spawn": f"runner_uid_base {self.base + 1024}\n",
                           "mcpboxctl": f"roles_file {SRC}/sql/roles.sql\nlibexec_dir {self.libexec}\n"}.items():
            self.write(f"/etc/mcpbox/{name}.conf", text)

    def cluster(self, *options):
        """The distribution's, as `apt install postgresql` leaves it."""
        self.make_cluster("main", "", *options)

    def make_cluster(self, name, settings, *options):
        version = self.sh("ls /usr/lib/postgresql | sort -n | tail -n 1").strip()
        self.run("pg_createcluster", version, name, *options, "--", "--no-sync")
        self.pgdir = f"/etc/postgresql/{version}/{name}"
        self.write(f"{self.pgdir}/conf.d/test.conf",
                   "fsync = off\nshared_buffers = 16MB\nmax_connections = 30\n" + settings)
        self.version, self.name = version, name
        self.pg("start")

    def pg(self, what):
        self.run("pg_ctlcluster", "--skip-systemctl-redirect", self.version, self.name, what)

    def sql(self, query, dbname="mcpbox", check=True, socket="/run/postgresql"):
        r = self.run("setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups",
                     "psql", "-h", socket, "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", dbname, "-c", query, check=check)
        return r.stdout.strip() if check else r

    def ctl(self, *args, **kw):
        return self.run(os.path.join(BUILD, "admind/ctl/mcpboxctl"), *args, **kw)

    def setup(self, *args, **kw):
        """The steps by name: (state, detail); the exit status; the whole answer."""
        r = self.ctl("--json", "setup", *args, check=False, **kw)
        assert r.stdout, r.stderr
        o = json.loads(r.stdout)
        assert o["ok"] == (r.returncode == 0), r
        return {s["step"]: (s["state"], s["detail"]) for s in o["steps"]}, r.returncode, o

    def stop_daemons(self):
        """What systemctl began; their sockets stay, as after a crash."""
        self.sh(f"for p in /proc/[0-9]*; do case $(readlink $p/exe) in {self.libexec}/*) kill -9 ${{p#/proc/}} ;; "
                "esac; done; sleep 0.1")

    def terminal(self, *args, answers=(), timeout=patience(60)):
        """mcpboxctl at a terminal of its own, with a line for each prompt. (exit status, what it showed)"""
        master, slave = pty.openpty()
        p = subprocess.Popen(["nsenter", "-t", self.init, "-m", "-n", "-p", "--wd=/", "--",
                              os.path.join(BUILD, "admind/ctl/mcpboxctl"), *args], stdin=slave, stdout=slave,
                             stderr=slave, start_new_session=True)
        os.close(slave)
        shown, answers, end = b"", list(answers), time.monotonic() + timeout
        while time.monotonic() < end:
            ready, _, _ = select.select([master], [], [], 0.2)
            try:
                more = os.read(master, 65536) if ready else b""
            except OSError:     # its last descriptor is closed
                break
            shown += more
            if answers and shown.endswith(answers[0][0].encode() + b": "):
                os.write(master, answers.pop(0)[1].encode() + b"\n")
        os.close(master)
        return p.wait(patience(10)), shown.decode()

    def logs(self):
        return self.sh("cat /var/log/mcpbox 2>/dev/null || true; cat /var/log/postgresql/* 2>/dev/null | tail -n 20")

    def close(self):
        if self.proc is not None:
            # its first process's end ends all others of its namespace
            os.killpg(self.proc.pid, signal.SIGKILL)
            self.proc.wait(patience(20))
        shutil.rmtree(self.dir, ignore_errors=True)
        self.lock.close()
