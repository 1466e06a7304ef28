"""/proc, /sys and /dev: what is there leads nowhere, and most is not there."""
import os
import subprocess

import pytest

from probes.conftest import not_run

PATHS = [
    "/proc/acpi", "/proc/buddyinfo", "/proc/bus", "/proc/cgroups",
    "/proc/cmdline", "/proc/config.gz", "/proc/consoles", "/proc/cpuinfo",
    "/proc/devices", "/proc/diskstats", "/proc/driver", "/proc/execdomains",
    "/proc/fb", "/proc/filesystems", "/proc/fs", "/proc/interrupts",
    "/proc/iomem", "/proc/ioports", "/proc/irq", "/proc/kallsyms",
    "/proc/kcore", "/proc/key-users", "/proc/keys", "/proc/kmsg",
    "/proc/kpagecount", "/proc/kpageflags", "/proc/loadavg", "/proc/locks",
    "/proc/misc", "/proc/modules", "/proc/mounts", "/proc/net",
    "/proc/pagetypeinfo", "/proc/partitions", "/proc/pressure",
    "/proc/sched_debug", "/proc/schedstat", "/proc/scsi", "/proc/slabinfo",
    "/proc/softirqs", "/proc/stat", "/proc/swaps", "/proc/sys",
    "/proc/sysrq-trigger", "/proc/sysvipc", "/proc/timer_list", "/proc/tty",
    "/proc/uptime", "/proc/vmallocinfo", "/proc/vmstat", "/proc/zoneinfo",
    "/sys/kernel", "/sys/fs/cgroup", "/sys/kernel/security",
    "/sys/kernel/debug", "/sys/fs/bpf", "/sys/class/net", "/sys/module",
    "/sys/devices/system/cpu/online", "/sys/kernel/uevent_helper",
    "/sys/firmware", "/sys/power/state",
    "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/vsock",
    "/dev/userfaultfd", "/dev/loop-control", "/dev/loop0", "/dev/vda",
    "/dev/sda", "/dev/tty0", "/dev/tty1", "/dev/ttyS0", "/dev/vcs",
    "/dev/kmsg", "/dev/mem", "/dev/port", "/dev/hwrng", "/dev/ptmx",
    "/dev/pts", "/dev/mqueue", "/dev/hugepages", "/dev/mapper",
    "/dev/cpu_dma_latency", "/dev/btrfs-control", "/dev/input", "/dev/dri",
    "/dev/snapshot", "/dev/uinput", "/dev/vhost-net", "/dev/fd",
    "/dev/stdin", "/run", "/var", "/home", "/root", "/boot", "/sys", "/mnt",
    "/media", "/opt", "/srv", "/sbin", "/bin", "/.dockerenv", "/nix",
]


@pytest.fixture(scope="module")
def there(sandbox):
    """(outside, inside): those of the paths that are there."""
    return sandbox.attack('''
def main(paths: list):
    return [p for p in paths if os.path.lexists(p)]
''', paths=PATHS)


@pytest.mark.parametrize("path", PATHS)
def test_is_not_there(there, path):
    outside, inside = there
    assert path not in inside
    if path not in outside:
        not_run(f"{path}: this machine has none")


WRITES = '''
def main():
    """What below /proc/self opens for writing."""
    out = []
    for top in ("/proc/self", "/proc/self/task/%d" % os.getpid(),
                "/proc/self/attr"):
        for name in sorted(os.listdir(top)):
            path = top + "/" + name
            if os.path.isfile(path) and attempt(
                    lambda: os.close(os.open(path, os.O_WRONLY))) is None:
                out.append(path)
    return out
'''


def test_nothing_below_proc_self_opens_for_writing(sandbox):
    outside, inside = sandbox.attack(WRITES)
    assert len(outside) > 10
    assert inside == []


LINKS = '''
def main():
    out = {}
    for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
        fd = os.open("/proc/self/ns/" + name, os.O_RDONLY)
        # its parent, its owner, the user namespace it belongs to, itself
        out[name] = [syscall(16, fd, request, 0) for request in
                     (0xb702, 0xb704, 0xb701)] + [syscall(308, fd, 0)]
    return out
'''


def test_handles_of_namespaces(sandbox):
    """It may open those it is in; they lead to no other, and nowhere."""
    outside, inside = sandbox.attack(LINKS)
    assert all(v[2] >= 0 or v[2] == -1 for v in outside.values())
    assert outside["mnt"][2] >= 0 and outside["net"][3] == 0
    assert {x for v in inside.values() for x in v} == {-1}, inside


def test_the_program_is_not_written_through_its_link(sandbox):
    """As runc was in 2019. The control only reads: Linux 6.11 lets root write to
    a program that runs, and this one is the machine's."""
    code = '''
def main(flags: list[int]):
    return [attempt(os.open, "/proc/self/exe", f) for f in flags]
'''
    assert sandbox.outside(code, flags=[os.O_RDONLY]) == [None]
    inside = sandbox.inside(code, flags=[
        os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC])
    assert set(inside) <= {"EACCES", "EPERM"}


def test_descriptors_open_again_with_no_more_rights(sandbox):
    """A file of the host that is open for reading, reopened by its link."""
    code = '''
def main():
    fd = os.open(os.__file__ if os.path.exists(os.__file__)
                 else "/etc/passwd", os.O_RDONLY)
    path = "/proc/self/fd/%d" % fd
    return [attempt(os.open, path, f) for f in
            (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC)] + [
            attempt(os.truncate, path, 0), attempt(os.chmod, path, 0o777),
            attempt(os.link, path, "/tmp/linked")]
'''
    inside = sandbox.inside(code)
    assert inside[0] is None
    assert None not in inside[1:], inside


def test_mounts_show_nothing_of_the_pool(sandbox):
    """Only the template, proc and /tmp; each is read-only but /tmp."""
    code = '''
def main():
    return [[line.split()[4], line.split()[5]]
            for line in open("/proc/self/mountinfo")]
'''
    outside, inside = sandbox.attack(code)
    assert any(path == "/" and "rw" in options for path, options in outside)
    for path, options in inside:
        assert path.split("/")[1] in ("", "usr", "lib", "lib64", "dev",
                                      "proc", "tmp", "etc", "modules"), path
        assert options.startswith("ro") or path in ("/tmp", "/proc"), path
        assert "nosuid" in options


def test_cgroup_tells_no_place(sandbox):
    """Its cgroup is the root of its cgroup namespace."""
    inside = sandbox.inside(
        "def main():\n    return open('/proc/self/cgroup').read()\n")
    for line in inside.splitlines():
        assert line.rsplit(":", 1)[1] == "/", inside


def test_other_processes_by_every_name(sandbox):
    """The host's pids, named outright; not those that every namespace has."""
    victims = [subprocess.Popen(["/bin/sleep", "60"])]
    while victims[-1].pid < 100:
        victims.append(subprocess.Popen(["/bin/sleep", "60"]))
    code = '''
def main(pids: list):
    names = ("root", "cwd", "exe", "fd", "environ", "mem", "maps", "ns/mnt",
             "map_files", "status", "task", "cmdline", "net", "attr/current")
    return [[p, n] for p in pids for n in names
            if os.path.lexists(f"/proc/{p}/{n}")]
'''
    try:
        outside, inside = sandbox.attack(code, pids=[victims[-1].pid])
    finally:
        for v in victims:
            v.kill()
            v.wait()
    assert len(outside) > 10
    assert inside == []
