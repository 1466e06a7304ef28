"""What is on the disk."""
import os

# Others write here all the time: Debian's own records of packages, caches, logs,
# PostgreSQL's files; and the test itself.
OTHERS = ("/proc", "/sys", "/dev", "/run", "/tmp", "/payload", "/out", "/var/tmp", "/var/cache",
          "/var/log", "/var/lib/dpkg", "/var/lib/apt", "/var/lib/postgresql", "/lost+found")
# systemd's own key, which it makes when first asked to seal a credential, and
# which seals everybody's.
SYSTEMDS = "/var/lib/systemd/credential.secret"


def paths(*tops):
    """Every path on the root's file system that is not in one of OTHERS."""
    found = set()
    for top in tops or ("/",):
        for folder, folders, files in os.walk(top):
            folders[:] = [d for d in folders if os.path.join(folder, d) not in OTHERS
                          and d != "__pycache__"]
            found |= {os.path.join(folder, x) for x in folders + files}
    return found - {SYSTEMDS}


def owned(uids):
    """Paths, anywhere on this machine's disks, that belong to one of these users
    or groups: path -> (uid, gid)."""
    found = {}
    for folder, folders, files in os.walk("/"):
        folders[:] = [d for d in folders if os.path.join(folder, d) not in ("/proc", "/sys")]
        for x in folders + files:
            path = os.path.join(folder, x)
            try:
                s = os.lstat(path)
            except OSError:
                continue
            if s.st_uid in uids or s.st_gid in uids:
                found[path] = (s.st_uid, s.st_gid)
    return found
