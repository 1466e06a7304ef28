"""The master key as systemd would give it (decision 0058), where systemd is not
PID 1: real systemd-creds with a host key of the test's own, in a mount namespace
of its own, and the four credentials of the unit made before each start of the
vault, as LoadCredential=, LoadCredentialEncrypted= and SetCredential= do."""
import os
import shutil
import signal
import subprocess
import tempfile

PROGRAM = "/usr/bin/systemd-creds"

# What runs before the vault; $1 is the key's directory, $2 the credentials', $3 its uid.
GIVE = r"""#!/bin/bash
set -e
rm -rf "$2"
mkdir -m 0700 "$2"
for n in master.key master.key.next; do
	for c in '' .cred; do
		f=$1/$n$c
		if [ ! -e "$f" ]; then
			printf none >"$2/$n$c"
		elif [ -z "$c" ]; then
			cat "$f" >"$2/$n"
		else
			nsenter --mount=/proc/%d/ns/mnt systemd-creds decrypt "$f" - >"$2/$n$c" 2>/dev/null
		fi
		chmod 0440 "$2/$n$c"
		chgrp "$3" "$2/$n$c"
	done
done
chgrp "$3" "$2"
chmod 0750 "$2"
"""


class Sealed:
    """prefix: words before a command that is to see this machine."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="mcpcred")
        os.mkdir(self.path("systemd"), 0o755)
        # /run/systemd/system says that systemd runs here: sd_booted(3).
        self.proc = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "bash", "-ec",
             f"mount --bind {self.path('systemd')} /var/lib/systemd\n"
             "mount -t tmpfs -o mode=755 tmpfs /run\nmkdir -p /run/systemd/system\n"
             "echo ready\nexec sleep infinity"], stdout=subprocess.PIPE, text=True)
        assert self.proc.stdout.readline() == "ready\n"
        self.prefix = ["nsenter", f"--mount=/proc/{self.proc.pid}/ns/mnt", "--"]

    def path(self, *p):
        return os.path.join(self.dir, *p)

    def works(self):
        return subprocess.run([*self.prefix, PROGRAM, "encrypt", "--name=x", "-", "-"], input="x",
                              text=True, capture_output=True, check=False).returncode == 0

    def seal(self, path, name):
        with open(path, "rb") as f:
            return subprocess.run([*self.prefix, PROGRAM, "encrypt", f"--name={name}", "-", "-"],
                                  stdin=f, capture_output=True, check=True).stdout

    def open(self, path):
        return subprocess.run([*self.prefix, PROGRAM, "decrypt", path, "-"], capture_output=True,
                              check=True).stdout

    def serve(self, instance):
        """The instance's vault starts with credentials from now on, and its files are root's,
        as an installation's. mcpboxctl runs here too: what it says of a sealed key is of
        the machine that opens it."""
        instance.ctl_prefix = self.prefix
        give = self.path("give")
        with open(give, "w", encoding="ascii") as f:
            f.write(GIVE % self.proc.pid)
        os.chmod(give, 0o755)
        key = os.path.join(instance.state, "key")
        os.chown(key, 0, 0)
        for name in os.listdir(key):
            os.chown(os.path.join(key, name), 0, 0)
        run = os.path.join(instance.state, "service", "admind-vault", "run")
        with open(run, encoding="ascii") as f:
            text = f.read()
        given = self.path("given")
        text = text.replace("exec env -i ", f"{give} {key} {given} {instance.uid('vault')} || exit 1\n"
                            f"exec env -i CREDENTIALS_DIRECTORY={given} ")
        os.chmod(self.dir, 0o711)
        with open(run + ".new", "w", encoding="ascii") as f:
            f.write(text)
        os.chmod(run + ".new", 0o755)
        os.rename(run + ".new", run)

    def close(self):
        self.proc.send_signal(signal.SIGKILL)
        self.proc.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
