"""System calls by number, old and new: outside each is reached as root,
inside the filter answers before the kernel looks at anything.

The arguments are such that root changes nothing with them outside: the answer
there is any error but EPERM (which could be the filter's own) and ENOSYS (this
kernel does not have the call; then the probe is named as not run).
"""
import errno

import pytest

from probes.conftest import not_run

#: One call for the whole table, one process for each row of it: what a row
#: changes is gone with it.
CALLS = '''
import struct
def main(rows: dict):
    out = {}
    for name, (nr, args) in rows.items():
        r, w = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.write(w, struct.pack("q", syscall(nr, *args)))
            os._exit(0)
        os.close(w)
        got = os.read(r, 8)
        os.close(r)
        os.waitpid(pid, 0)
        out[name] = struct.unpack("q", got)[0] if got else "it ended"
    return out
'''
ONES = -1

#: Namespaces and mounts.
MOUNTS = {
    "umount": (166, [0, 8]),
    "fsopen by name": (430, [0, 1]),
    "fsconfig": (431, [ONES, 99, 0, 0, 0]),
    "open_tree clone": (428, [ONES, 0, 0x80001]),
    "open_tree_attr": (467, [ONES, 0, 0, 0, 99]),
    "mount_setattr idmap": (442, [ONES, 0, 0x1000, 0, 32]),
    "statmount": (457, [0, 0, 0, 99]),
    "listmount": (458, [0, 0, 0, 99]),
    "setns to an own descriptor": (308, [0, 0x10000000]),
    "unshare cgroup": (272, [0x02000000]),
    "unshare uts": (272, [0x04000000]),
    "unshare ipc": (272, [0x08000000]),
    "unshare pid": (272, [0x20000000]),
    "unshare time": (272, [0x80]),
    "unshare files": (272, [0x400]),
    "sysfs": (139, [99, 0, 0]),
    "ustat": (136, [0, 0]),
    "quotactl_fd": (443, [ONES, 0, 0, 0]),
}
#: Other processes, their memory and their files.
OTHERS = {
    "process_mrelease": (448, [ONES, 0]),
    "ptrace traceme": (101, [99, 0, 0, 0]),
    "kcmp of two": (312, [1, 1, 99, 0, 0]),
    "rt_sigqueueinfo": (129, [1, 99, 1]),
    "rt_tgsigqueueinfo": (297, [1, 1, 99, 1]),
    "openat2": (437, [ONES, 0, 0, 0]),
    "file_getattr": (468, [ONES, 0, 0, 0, 99]),
    "file_setattr": (469, [ONES, 0, 0, 0, 99]),
    "mknodat": (259, [ONES, 0, 0o020666, 0x103]),
    "chown": (92, [0, 0, 0]),
    "fchown": (93, [ONES, 0, 0]),
    "lchown": (94, [0, 0, 0]),
    "fchownat": (260, [ONES, 0, 0, 0, 0]),
    "inotify_init": (253, []),
    "inotify_add_watch": (254, [ONES, 0, 0]),
    "fanotify_mark": (301, [ONES, 0, 0, 0, 0]),
    "setxattrat": (463, [ONES, 0, 0, 0, 0, 99]),
    "getxattrat": (464, [ONES, 0, 0, 0, 0, 99]),
    "removexattr": (197, [0, 0]),
    "splice": (275, [ONES, 0, ONES, 0, 1, 0]),
    "tee": (276, [ONES, ONES, 1, 0]),
    "vmsplice": (278, [ONES, 0, 1, 0]),
    "sendfile": (40, [ONES, ONES, 0, 1]),
}
#: Memory that no limit counts, and memory of kinds that few kernels got right.
MEMORY = {
    "memfd_create huge": (319, [0, 4]),
    "mlock": (149, [0, 0]),
    "mlock2": (325, [0, 0, 0]),
    "munlockall": (152, []),
    "remap_file_pages": (216, [0, 0, 1, 0, 0]),
    "mbind": (237, [0, 0, 99, 0, 0, 0]),
    "set_mempolicy": (238, [99, 0, 0]),
    "get_mempolicy": (239, [0, 0, 0, 0, 99]),
    "set_mempolicy_home_node": (450, [0, 0, 0, 99]),
    "pkey_alloc": (330, [ONES, 0]),
    "pkey_mprotect": (329, [0, 0, 99, ONES]),
    "map_shadow_stack": (453, [0, 0, 99]),
    "mseal": (462, [1, 1, 99]),
    "cachestat": (451, [ONES, 0, 0, 99]),
    "shmat": (30, [ONES, 0, 0]),
    "shmctl": (31, [ONES, 99, 0]),
    "msgget": (68, [0, 0]),
    "msgsnd": (69, [ONES, 0, 0, 0]),
    "msgrcv": (70, [ONES, 0, 0, 0, 0]),
    "semop": (65, [ONES, 0, 0]),
    "semtimedop": (220, [ONES, 0, 0, 0]),
    "semctl": (66, [ONES, 0, 99, 0]),
    "mq_unlink": (241, [0]),
    "mq_timedsend": (242, [ONES, 0, 0, 0, 0]),
    "mq_notify": (244, [ONES, 0]),
    "timer_create": (222, [99, 0, 0]),
    "futex_wake": (454, [0, 0, 0, 99]),
    "futex_wait": (455, [0, 0, 0, 99, 0, 0]),
    "futex_requeue": (456, [0, 99, 0, 0]),
    "futex_waitv": (449, [0, 0, 99, 0, 0]),
    "io_uring_enter": (426, [ONES, 0, 0, 0, 0, 0]),
    "io_setup": (206, [0, 0]),
    "io_submit": (209, [0, 1, 0]),
    "io_destroy": (207, [0]),
}
#: The machine: its clock, its swap, its name, its processors.
MACHINE = {
    "settimeofday": (164, [1, 1]),
    "adjtimex": (159, [1]),
    "clock_adjtime": (305, [99, 0]),
    "reboot": (169, [0, 0, 0, 0]),
    "swapon": (167, [0, 0]),
    "swapoff": (168, [0]),
    "acct": (163, [1]),
    "sethostname": (170, [0, ONES]),
    "setdomainname": (171, [0, ONES]),
    "kexec_file_load": (320, [ONES, ONES, 0, 0, ONES]),
    "finit_module": (313, [ONES, 0, 0]),
    "delete_module": (176, [0, 0]),
    "syslog read": (103, [3, 0, ONES]),
    "iopl": (172, [0]),
    "sync": (162, []),
    "syncfs": (306, [ONES]),
    "sync_file_range": (277, [ONES, 0, 0, 0]),
    "readahead": (187, [ONES, 0, 0]),
    "setpriority": (141, [99, 0, 0]),
    "ioprio_set": (251, [99, 0, 0]),
    "ioprio_get": (252, [99, 0]),
    "sched_setscheduler": (144, [ONES, 0, 0]),
    "sched_setparam": (142, [ONES, 0]),
    "sched_setattr": (314, [ONES, 0, 0]),
    "sched_getattr": (315, [ONES, 0, 0, 0]),
    "arch_prctl": (158, [0, 0]),
    "bpf with a large attribute": (321, [99, 0, 4096]),
    "perf_event_open of all": (298, [0, ONES, 0, ONES, 0]),
    "userfaultfd user mode": (323, [0xfff]),
    "pidfd_getfd": (438, [ONES, 0, 0]),
}
#: Identity, and rules of its own making.
IDENTITY = {
    "setgid": (106, [0]),
    "setreuid": (113, [ONES, ONES]),
    "setregid": (114, [ONES, ONES]),
    "setresuid": (117, [ONES, ONES, ONES]),
    "setresgid": (119, [ONES, ONES, ONES]),
    "setgroups": (116, [ONES, 0]),
    "setfsuid": (122, [0]),
    "setfsgid": (123, [0]),
    "execveat": (322, [ONES, 0, 0, 0, 0]),
    "seccomp notify": (317, [3, 0, 1]),
    "landlock_create_ruleset": (444, [0, 0, 0xff]),
    "landlock_add_rule": (445, [ONES, 0, 0, 0xff]),
    "landlock_restrict_self": (446, [ONES, 0x8000]),
    "lsm_get_self_attr": (459, [0, 0, 0, 99]),
    "lsm_set_self_attr": (460, [0, 0, 0, 99]),
    "lsm_list_modules": (461, [0, 0, 99]),
    "bind": (49, [ONES, 0, 0]),
    "connect": (42, [ONES, 0, 0]),
    "listen": (50, [ONES, 0]),
    "accept": (43, [ONES, 0, 0]),
    "accept4": (288, [ONES, 0, 0, 0]),
}
ALL = {**MOUNTS, **OTHERS, **MEMORY, **MACHINE, **IDENTITY}


@pytest.fixture(scope="module")
def answers(sandbox):
    """(outside, inside), by name."""
    rows = {name: row[:2] for name, row in {**ALL, **JUDGED}.items()}
    return sandbox.attack(CALLS, rows=rows)


@pytest.mark.parametrize("name", ALL)
def test_refused(answers, name):
    got, inside = (a[name] for a in answers)
    assert inside == -1
    if got in (-errno.ENOSYS, -errno.EOPNOTSUPP):
        not_run(f"{name}: this kernel has no system call {ALL[name][0]}")
    if got == -errno.EPERM:
        not_run(f"{name}: root of this machine may not either")


#: Calls that pass for some argument: what of them is shut.
JUDGED = {
    "madvise mergeable": (28, [0, 0, 12], 0),
    "madvise pageout": (28, [0, 0, 21], 0),
    "madvise hwpoison": (28, [0, 0, 100], 0),
    "madvise collapse": (28, [1, 0, 25], -22),
    "membarrier global": (324, [1, 0, 0], 0),
    "membarrier register global": (324, [4, 0, 0], 0),
    "futex wake_op, shared": (202, [0, 5, 0, 0, 0, 0], None),
    "futex requeue, shared": (202, [0, 3, 0, 0, 0, 0], None),
    "futex cmp_requeue_pi, shared": (202, [0, 12, 0, 0, 0, 0], None),
    "futex lock_pi, shared": (202, [0, 6, 0, 0, 0, 0], None),
    "futex fd": (202, [0, 2, 0, 0, 0, 0], None),
    "prctl set_dumpable": (157, [4, 0, 0, 0, 0], 0),
    "prctl set_mm": (157, [35, 99, 0, 0, 0], -22),
    "prctl set_seccomp": (157, [22, 99, 0, 0, 0], -22),
    "prctl set_securebits": (157, [28, 0, 0, 0, 0], 0),
    "prctl ambient": (157, [47, 99, 0, 0, 0], -22),
    "prctl capbset_drop": (157, [24, 4095, 0, 0, 0], -22),
    "prctl set_child_subreaper": (157, [36, 0, 0, 0, 0], 0),
    "prctl set_tsc": (157, [26, 99, 0, 0, 0], -22),
    "prctl set_speculation": (157, [53, 99, 0, 0, 0], None),
    "prctl memory_merge": (157, [67, 0, 0, 0, 0], 0),
    "prctl sched_core": (157, [62, 99, 0, 0, 0], None),
    "prctl syscall_user_dispatch": (157, [59, 99, 0, 0, 0], -22),
    "prctl get_tid_address": (157, [40, 1, 0, 0, 0], None),
    "prctl set_io_flusher": (157, [57, 99, 0, 0, 0], None),
    "prctl mce_kill": (157, [33, 99, 0, 0, 0], -22),
    "prctl timerslack": (157, [29, 50000, 0, 0, 0], 0),
    "fcntl setown": (72, [0, 8, 0], 0),
    "fcntl setsig": (72, [0, 10, 0], 0),
    "fcntl setlease": (72, [0, 1024, 2], None),
    "fcntl notify": (72, [0, 1026, 0], None),
    "fcntl setpipe_sz": (72, [0, 1031, 4096], None),
    "fcntl add_seals": (72, [0, 1033, 0], None),
    "fcntl set_rw_hint": (72, [0, 1036, 1], None),
    "fcntl dupfd_query": (72, [0, 1027, 0], None),
    "prlimit of pid 1": (302, [1, 7, 0, 0], 0),
    "open O_DIRECT": (257, [-100, 0, 0o40000, 0], -14),
    "mmap hugetlb": (9, [0, 0, 3, 0x40022, -1, 0], -22),
    "mmap locked": (9, [0, 4096, 3, 0x2022, -1, 0], None),
    "preadv2 nowait": (327, [-1, 0, 0, 0, 0, 8], -9),
    "preadv2 dontcache": (327, [-1, 0, 0, 0, 0, 0x80], -9),
    "fadvise dontneed": (221, [-1, 0, 0, 4], -9),
    "socket with high bits": (41, [(1 << 32) | 1, 1, 0], None),
    "ioctl tiocsti with high bits": (16, [0, (1 << 32) | 0x5412, 0], None),
    "ioctl fionclex with high bits": (16, [0, (1 << 32) | 0x5450, 0], None),
    "ioctl ns_get_userns": (16, [0, 0xb701, 0], -25),
    "ioctl random add entropy": (16, [0, 0x40085203, 0], None),
    "ioctl fs_ioc_setflags": (16, [0, 0x40086602, 0], None),
    "ioctl ficlone": (16, [0, 0x40049409, -1], None),
}


@pytest.mark.parametrize("name", JUDGED)
def test_refused_argument(answers, name):
    reached, got = (a[name] for a in answers)
    wanted = JUDGED[name][2]
    if name == "mmap locked":   # the limit's word, RLIMIT_MEMLOCK is 0
        assert got in (-errno.EPERM, -errno.EAGAIN)
    else:
        assert got == -errno.EPERM
    if reached == -errno.ENOSYS or (wanted is not None and reached < 0
                                    and reached != wanted):
        not_run(f"{name}: outside it answers "
                f"{errno.errorcode.get(-reached, reached)}")
    if reached == -errno.EPERM:
        not_run(f"{name}: root of this machine may not either")
