/*
 * The runner's seccomp program, evaluated without loading it: every row is a
 * call as the kernel would show it to the filter, and the verdict it must get.
 */
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>

#include "bpf_eval.h"
#include "filter.h"
#include "unit.h"

enum { X32 = 0x40000000 };

#define ALLOW  SECCOMP_RET_ALLOW
#define KILL   SECCOMP_RET_KILL_PROCESS
#define DENY   (SECCOMP_RET_ERRNO | EPERM)
#define NOSYS  (SECCOMP_RET_ERRNO | ENOSYS)
#define NOTSUP (SECCOMP_RET_ERRNO | EOPNOTSUPP)
#define HIGH   (1ULL << 32) /* beyond what the kernel looks at in an int */
#define ANY(n) n, {0}

struct row {
	const char *what;
	int nr;
	uint64_t args[6];
	uint32_t verdict;
};

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

/* Linux 6.6; Debian 12's headers have no name for it. */
#define SYS_FCHMODAT2 452

static const struct row rows[] = {
    /* what Python needs */
    {"read", ANY(SYS_read), ALLOW},
    {"openat", ANY(SYS_openat), ALLOW},
    {"mmap", SYS_mmap, {0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS}, ALLOW},
    {"futex", ANY(SYS_futex), ALLOW},
    {"getrandom", ANY(SYS_getrandom), ALLOW},
    {"exit_group", ANY(SYS_exit_group), ALLOW},
    {"epoll_wait", ANY(SYS_epoll_wait), ALLOW},
    {"sendmsg", SYS_sendmsg, {3, 0, MSG_NOSIGNAL}, ALLOW},
    {"thread", SYS_clone,
	{CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
	    CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
	    CLONE_CHILD_CLEARTID},
	ALLOW},
    {"fork by clone", SYS_clone,
	{CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | 17}, ALLOW},
    {"clone3", ANY(SYS_clone3), NOSYS},
    {"isatty", SYS_ioctl, {0, TCGETS}, ALLOW},
    {"set name", SYS_prctl, {PR_SET_NAME}, ALLOW},
    {"getfl", SYS_fcntl, {0, F_GETFL}, ALLOW},
    {"dupfd cloexec", SYS_fcntl, {0, F_DUPFD_CLOEXEC}, ALLOW},
    {"unix socket", SYS_socket, {AF_UNIX, SOCK_STREAM}, ALLOW},
    {"unix pair", SYS_socketpair, {AF_UNIX, SOCK_STREAM}, ALLOW},
    {"own limits", SYS_prlimit64, {0, 7}, ALLOW},
    {"send time-out", SYS_setsockopt, {0, SOL_SOCKET, SO_SNDTIMEO}, ALLOW},
    {"send buffer", SYS_setsockopt, {0, SOL_SOCKET, SO_SNDBUF}, DENY},
    {"receive buffer", SYS_setsockopt, {0, SOL_SOCKET, SO_RCVBUF}, DENY},

    /* namespaces and tracing by clone's flags */
    {"clone newuser", SYS_clone, {CLONE_NEWUSER | 17}, DENY},
    {"clone newns", SYS_clone, {CLONE_NEWNS | 17}, DENY},
    {"clone newnet", SYS_clone, {CLONE_NEWNET | 17}, DENY},
    {"clone newpid", SYS_clone, {CLONE_NEWPID | 17}, DENY},
    {"clone newipc", SYS_clone, {CLONE_NEWIPC | 17}, DENY},
    {"clone newuts", SYS_clone, {CLONE_NEWUTS | 17}, DENY},
    {"clone newcgroup", SYS_clone, {CLONE_NEWCGROUP | 17}, DENY},
    {"clone ptrace", SYS_clone, {CLONE_PTRACE | 17}, DENY},
    {"clone parent", SYS_clone, {CLONE_PARENT | 17}, DENY},
    {"clone all", SYS_clone, {UINT64_MAX}, DENY},
    {"unshare", SYS_unshare, {CLONE_NEWUSER}, DENY},
    {"setns", ANY(SYS_setns), DENY},

    /* other processes */
    {"ptrace", ANY(SYS_ptrace), DENY},
    {"process_vm_readv", ANY(SYS_process_vm_readv), DENY},
    {"process_vm_writev", ANY(SYS_process_vm_writev), DENY},
    {"kcmp", ANY(SYS_kcmp), DENY},
    {"pidfd_getfd", ANY(SYS_pidfd_getfd), DENY},
    {"process_madvise", ANY(SYS_process_madvise), DENY},
    {"prlimit of another", SYS_prlimit64, {2, 7}, DENY},

    /* programs */
    {"execve", ANY(SYS_execve), DENY},
    {"execveat", ANY(SYS_execveat), DENY},

    /* memory that no limit counts */
    {"memfd_create", ANY(SYS_memfd_create), DENY},
    {"memfd_secret", ANY(SYS_memfd_secret), DENY},
    {"shmget", ANY(SYS_shmget), DENY},
    {"shmat", ANY(SYS_shmat), DENY},
    {"semget", ANY(SYS_semget), DENY},
    {"msgget", ANY(SYS_msgget), DENY},
    {"mq_open", ANY(SYS_mq_open), DENY},
    {"mlock", ANY(SYS_mlock), DENY},
    {"mlockall", ANY(SYS_mlockall), DENY},
    {"hugetlb", SYS_mmap, {0, 4096, 3, MAP_PRIVATE | MAP_HUGETLB}, DENY},
    {"set pipe size", SYS_fcntl, {0, F_SETPIPE_SZ}, DENY},

    /* large kernel surfaces */
    {"io_uring_setup", ANY(SYS_io_uring_setup), DENY},
    {"io_uring_enter", ANY(SYS_io_uring_setup + 1), DENY},
    {"io_uring_register", ANY(SYS_io_uring_setup + 2), DENY},
    {"bpf", ANY(SYS_bpf), DENY},
    {"userfaultfd", ANY(SYS_userfaultfd), DENY},
    {"perf_event_open", ANY(SYS_perf_event_open), DENY},
    {"keyctl", ANY(SYS_keyctl), DENY},
    {"add_key", ANY(SYS_add_key), DENY},
    {"request_key", ANY(SYS_request_key), DENY},
    {"inotify_init", ANY(SYS_inotify_init), DENY},
    {"inotify_init1", ANY(SYS_inotify_init1), DENY},
    {"fanotify_init", ANY(SYS_fanotify_init), DENY},
    {"seccomp", ANY(SYS_seccomp), DENY},
    {"personality", ANY(SYS_personality), DENY},
    {"modify_ldt", ANY(SYS_modify_ldt), DENY},
    {"kexec_load", ANY(SYS_kexec_load), DENY},
    {"init_module", ANY(SYS_init_module), DENY},
    {"finit_module", ANY(SYS_finit_module), DENY},
    {"syslog", ANY(SYS_syslog), DENY},
    {"acct", ANY(SYS_acct), DENY},
    {"reboot", ANY(SYS_reboot), DENY},
    {"swapon", ANY(SYS_swapon), DENY},
    {"quotactl", ANY(SYS_quotactl), DENY},

    /* mounts, old and new */
    {"mount", ANY(SYS_mount), DENY},
    {"umount2", ANY(SYS_umount2), DENY},
    {"pivot_root", ANY(SYS_pivot_root), DENY},
    {"chroot", ANY(SYS_chroot), DENY},
    {"open_tree", ANY(SYS_open_tree), DENY},
    {"move_mount", ANY(SYS_move_mount), DENY},
    {"fsopen", ANY(SYS_fsopen), DENY},
    {"fsconfig", ANY(SYS_fsconfig), DENY},
    {"fsmount", ANY(SYS_fsmount), DENY},
    {"fspick", ANY(SYS_fspick), DENY},
    {"mount_setattr", ANY(SYS_mount_setattr), DENY},
    {"mknod", ANY(SYS_mknod), DENY},
    {"mknodat", ANY(SYS_mknodat), DENY},
    {"name_to_handle_at", ANY(SYS_name_to_handle_at), DENY},
    {"open_by_handle_at", ANY(SYS_open_by_handle_at), DENY},
    {"setxattr", ANY(SYS_setxattr), NOTSUP},
    {"sendfile", ANY(SYS_sendfile), DENY},
    {"splice", ANY(SYS_splice), DENY},
    {"tee", ANY(SYS_tee), DENY},
    {"vmsplice", ANY(SYS_vmsplice), DENY},

    /* identity and clocks */
    {"setuid", ANY(SYS_setuid), DENY},
    {"setresuid", ANY(SYS_setresuid), DENY},
    {"setgroups", ANY(SYS_setgroups), DENY},
    {"capset", ANY(SYS_capset), DENY},
    {"sethostname", ANY(SYS_sethostname), DENY},
    {"clock_settime", ANY(SYS_clock_settime), DENY},
    {"settimeofday", ANY(SYS_settimeofday), DENY},
    {"adjtimex", ANY(SYS_adjtimex), DENY},

    /* the network */
    {"inet", SYS_socket, {AF_INET, SOCK_STREAM}, DENY},
    {"inet6", SYS_socket, {AF_INET6, SOCK_STREAM}, DENY},
    {"netlink", SYS_socket, {AF_NETLINK, SOCK_RAW}, DENY},
    {"packet", SYS_socket, {AF_PACKET, SOCK_RAW}, DENY},
    {"vsock", SYS_socket, {AF_VSOCK, SOCK_STREAM}, DENY},
    {"alg", SYS_socket, {AF_ALG, SOCK_SEQPACKET}, DENY},
    {"unix, high bits", SYS_socket, {HIGH | AF_UNIX}, DENY},
    {"connect", ANY(SYS_connect), DENY},
    {"bind", ANY(SYS_bind), DENY},
    {"listen", ANY(SYS_listen), DENY},
    {"accept", ANY(SYS_accept), DENY},
    {"accept4", ANY(SYS_accept4), DENY},
    {"sendto fastopen", SYS_sendto, {0, 0, 0, MSG_FASTOPEN}, DENY},
    {"sendmsg fastopen", SYS_sendmsg, {0, 0, MSG_FASTOPEN}, DENY},
    {"sendmmsg fastopen", SYS_sendmmsg, {0, 0, 0, MSG_FASTOPEN}, DENY},
    {"attach filter", SYS_setsockopt, {0, SOL_SOCKET, SO_ATTACH_FILTER}, DENY},
    {"other level, good number", SYS_setsockopt, {0, 6, SO_SNDTIMEO}, DENY},

    /* arguments that must not pass */
    {"TIOCSTI", SYS_ioctl, {0, TIOCSTI}, DENY},
    {"TIOCSTI, high bits", SYS_ioctl, {0, HIGH | TIOCSTI}, DENY},
    {"TIOCLINUX", SYS_ioctl, {0, TIOCLINUX}, DENY},
    {"TCGETS, high bits", SYS_ioctl, {0, HIGH | TCGETS}, DENY},
    {"set dumpable", SYS_prctl, {PR_SET_DUMPABLE, 1}, DENY},
    {"set seccomp", SYS_prctl, {PR_SET_SECCOMP}, DENY},
    {"set ptracer", SYS_prctl, {0x59616d61}, DENY},
    {"raise ambient", SYS_prctl, {PR_CAP_AMBIENT}, DENY},
    {"set mm", SYS_prctl, {PR_SET_MM}, DENY},
    {"setown", SYS_fcntl, {0, F_SETOWN}, DENY},
    {"notify", SYS_fcntl, {0, F_NOTIFY}, DENY},
    {"setlease", SYS_fcntl, {0, F_SETLEASE}, DENY},
    {"unknown call", ANY(4000), DENY},
};

static uint32_t
verdict(const struct filter *f, uint32_t arch, int nr, const uint64_t *args)
{
	struct seccomp_data d = {.nr = nr, .arch = arch};
	size_t n;
	const void *p = filter_program(f, &n);

	for (int i = 0; i < 6; i++)
		d.args[i] = args[i];
	return bpf_eval(p, n / sizeof(struct sock_filter), &d);
}

/* The programs: of tools in Python, and of commands, without and with network.
 */
static struct filter *python, *command, *network, *command_network;

static void
table(const struct filter *f, const struct row *row, size_t n)
{
	const struct row *r;
	uint32_t v;

	for (size_t i = 0; i < n; i++) {
		r = &row[i];
		v = verdict(f, AUDIT_ARCH_X86_64, r->nr, r->args);
		if (v != r->verdict)
			fail_msg("%s: %#x, not %#x", r->what, v, r->verdict);
	}
}

static void
test_table(void **state)
{
	(void)state;
	table(python, rows, sizeof(rows) / sizeof(rows[0]));
}

/* What a command's program says otherwise; all the rest is the same. */
static const struct row command_rows[] = {
    {"execve", ANY(SYS_execve), ALLOW},
    {"execveat", ANY(SYS_execveat), DENY},
    {"memfd_create", ANY(SYS_memfd_create), DENY},
    {"connect", ANY(SYS_connect), DENY},
    {"internet socket", SYS_socket, {AF_INET, SOCK_STREAM}, DENY},
    {"personality", ANY(SYS_personality), DENY},
    {"thread pointer", SYS_arch_prctl, {0x1002}, ALLOW},
    {"gs base", SYS_arch_prctl, {0x1001}, DENY},
    {"shadow stack", SYS_arch_prctl, {0x5001}, DENY},
    {"fchmodat2", ANY(SYS_FCHMODAT2), NOSYS},
};

/* Differs the command's program in nothing else? Each call without arguments,
 * and each row of the other table. */
static void
test_command(void **state)
{
	static const int differ[] = {SYS_execve};
	static const uint64_t none[6];
	const size_t n = sizeof(differ) / sizeof(differ[0]);
	size_t i;

	(void)state;
	table(command, command_rows,
	    sizeof(command_rows) / sizeof(command_rows[0]));
	for (int nr = 0; nr < 2000; nr++) {
		for (i = 0; i < n && differ[i] != nr; i++)
			;
		if (i == n)
			assert_int_equal(
			    verdict(command, AUDIT_ARCH_X86_64, nr, none),
			    verdict(python, AUDIT_ARCH_X86_64, nr, none));
		else
			assert_int_not_equal(
			    verdict(command, AUDIT_ARCH_X86_64, nr, none),
			    verdict(python, AUDIT_ARCH_X86_64, nr, none));
	}
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].nr != SYS_execve)
			table(command, &rows[i], 1);
}

#define NOTIFY SECCOMP_RET_USER_NOTIF
#define DONE   (SECCOMP_RET_ERRNO | 0)
#define FLAGS  (SOCK_NONBLOCK | SOCK_CLOEXEC)

/* Newer than, or absent from, Debian 12's headers. */
#define MPTCP      262
#define UDPLITE    136
#define FASTOPEN   30 /* TCP_FASTOPEN_CONNECT */
#define REPAIR     19
#define ULP        31
#define MD5SIG     14
#define FASTOPEN_L 23 /* TCP_FASTOPEN */

/* What the network's programs say otherwise. */
static const struct row network_rows[] = {
    {"connect", ANY(SYS_connect), NOTIFY},
    {"tcp", SYS_socket, {AF_INET, SOCK_STREAM}, ALLOW},
    {"tcp, asyncio's", SYS_socket, {AF_INET, SOCK_STREAM | FLAGS, 6}, ALLOW},
    {"tcp6", SYS_socket, {AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 6}, ALLOW},
    {"udp", SYS_socket, {AF_INET, SOCK_DGRAM | FLAGS, 17}, ALLOW},
    {"udp6", SYS_socket, {AF_INET6, SOCK_DGRAM, 0}, ALLOW},
    {"unix", SYS_socket, {AF_UNIX, SOCK_STREAM}, ALLOW},
    {"mptcp", SYS_socket, {AF_INET, SOCK_STREAM, MPTCP}, DENY},
    {"sctp", SYS_socket, {AF_INET, SOCK_STREAM, 132}, DENY},
    {"dccp", SYS_socket, {AF_INET, 6, 33}, DENY},
    {"udplite", SYS_socket, {AF_INET, SOCK_DGRAM, UDPLITE}, DENY},
    {"ping", SYS_socket, {AF_INET, SOCK_DGRAM, 1}, DENY},
    {"ping6", SYS_socket, {AF_INET6, SOCK_DGRAM, 58}, DENY},
    {"raw", SYS_socket, {AF_INET, SOCK_RAW, 255}, DENY},
    {"raw tcp", SYS_socket, {AF_INET, SOCK_RAW, 6}, DENY},
    {"udp over stream", SYS_socket, {AF_INET, SOCK_STREAM, 17}, DENY},
    {"seqpacket", SYS_socket, {AF_INET, SOCK_SEQPACKET, 0}, DENY},
    {"netlink", SYS_socket, {AF_NETLINK, SOCK_RAW, 0}, DENY},
    {"packet", SYS_socket, {AF_PACKET, SOCK_DGRAM, 0}, DENY},
    {"vsock", SYS_socket, {40, SOCK_STREAM, 0}, DENY},
    {"smc", SYS_socket, {43, SOCK_STREAM, 0}, DENY},
    {"family, high bits", SYS_socket, {HIGH | AF_INET, SOCK_STREAM}, DENY},
    {"type, high bits", SYS_socket, {AF_INET, HIGH | SOCK_STREAM}, DENY},
    {"type, other flags", SYS_socket, {AF_INET, SOCK_STREAM | 16}, DENY},
    {"protocol, high bits", SYS_socket, {AF_INET, SOCK_STREAM, HIGH}, DENY},
    {"internet pair", SYS_socketpair, {AF_INET, SOCK_STREAM}, DENY},
    {"bind", ANY(SYS_bind), DENY},
    {"listen", ANY(SYS_listen), DENY},
    {"accept", ANY(SYS_accept), DENY},
    {"accept4", ANY(SYS_accept4), DENY},
    {"sendto fastopen", SYS_sendto, {0, 0, 0, MSG_FASTOPEN}, DENY},
    {"sendto both", SYS_sendto, {0, 0, 0, MSG_FASTOPEN | MSG_NOSIGNAL}, DENY},
    {"sendmsg fastopen", SYS_sendmsg, {0, 0, MSG_FASTOPEN}, DENY},
    {"sendmmsg fastopen", SYS_sendmmsg, {0, 0, 0, MSG_FASTOPEN}, DENY},
    {"fastopen, high bits", SYS_sendmsg, {0, 0, HIGH | MSG_FASTOPEN}, DENY},
    {"nodelay", SYS_setsockopt, {0, 6, 1}, ALLOW},
    {"keepidle", SYS_setsockopt, {0, 6, 4}, ALLOW},
    {"user timeout", SYS_setsockopt, {0, 6, 18}, ALLOW},
    {"v6only", SYS_setsockopt, {0, 41, 26}, ALLOW},
    {"linger", SYS_setsockopt, {0, SOL_SOCKET, SO_LINGER}, DONE},
    {"read linger", SYS_getsockopt, {0, SOL_SOCKET, SO_LINGER}, ALLOW},
    {"bind to device", SYS_setsockopt, {0, SOL_SOCKET, SO_BINDTODEVICE}, DENY},
    {"bind to index", SYS_setsockopt, {0, SOL_SOCKET, 62}, DENY},
    {"mark", SYS_setsockopt, {0, SOL_SOCKET, SO_MARK}, DENY},
    {"zerocopy", SYS_setsockopt, {0, SOL_SOCKET, 60}, DENY},
    {"fastopen connect", SYS_setsockopt, {0, 6, FASTOPEN}, DENY},
    {"fastopen listen", SYS_setsockopt, {0, 6, FASTOPEN_L}, DENY},
    {"repair", SYS_setsockopt, {0, 6, REPAIR}, DENY},
    {"ulp", SYS_setsockopt, {0, 6, ULP}, DENY},
    {"md5", SYS_setsockopt, {0, 6, MD5SIG}, DENY},
    {"tcp info", SYS_getsockopt, {0, 6, 11}, DENY},
    {"transparent", SYS_setsockopt, {0, 0, 19}, DENY},
    {"freebind", SYS_setsockopt, {0, 0, 15}, DENY},
    {"ip options", SYS_setsockopt, {0, 0, 4}, DENY},
    {"join group", SYS_setsockopt, {0, 0, 35}, DENY},
    {"netfilter", SYS_setsockopt, {0, 0, 64}, DENY},
    {"list interfaces", SYS_ioctl, {0, 0x8912}, DENY},
    {"interface address", SYS_ioctl, {0, 0x8915}, DENY},
    {"set route", SYS_ioctl, {0, 0x890b}, DENY},
    {"time of a packet", SYS_ioctl, {0, 0x8906}, DENY},
    {"bytes waiting", SYS_ioctl, {0, FIONREAD}, ALLOW},
    {"listener of its own", SYS_seccomp, {1, 8}, DENY},
    {"pidfd_getfd", ANY(SYS_pidfd_getfd), DENY},
    {"process_vm_readv", ANY(SYS_process_vm_readv), DENY},
};

static void
test_network(void **state)
{
	(void)state;
	table(network, network_rows,
	    sizeof(network_rows) / sizeof(network_rows[0]));
	table(command_network, network_rows,
	    sizeof(network_rows) / sizeof(network_rows[0]));
}

/* Every family, type and protocol: the eight and the unix ones pass. */
static void
test_network_sockets(void **state)
{
	static const unsigned flags[] = {0, SOCK_NONBLOCK, SOCK_CLOEXEC, FLAGS};
	uint64_t args[6] = {0};
	uint32_t want;
	bool inet;

	(void)state;
	for (args[0] = 0; args[0] < 50; args[0]++)
		for (unsigned type = 0; type < 16; type++)
			for (args[2] = 0; args[2] < 300; args[2]++) {
				inet =
				    args[0] == AF_INET || args[0] == AF_INET6;
				want = args[0] == AF_UNIX ||
					(inet && type == SOCK_STREAM &&
					    (args[2] == 0 || args[2] == 6)) ||
					(inet && type == SOCK_DGRAM &&
					    (args[2] == 0 || args[2] == 17))
				    ? ALLOW
				    : DENY;
				args[1] = type | flags[(args[2] + type) % 4];
				assert_int_equal(
				    verdict(network, AUDIT_ARCH_X86_64,
					SYS_socket, args),
				    want);
			}
}

/* The rest is as without network: each number, with no and with odd
 * arguments, but connect; and all that the other tables say of others. */
static void
test_network_else(void **state)
{
	static const uint64_t tried[][6] = {{0}, {1, 1, 1, 1, 1, 1},
	    {~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL}};

	(void)state;
	for (int nr = 0; nr < 2000; nr++)
		for (size_t i = 0; nr != SYS_connect && i < 3; i++) {
			assert_int_equal(
			    verdict(network, AUDIT_ARCH_X86_64, nr, tried[i]),
			    verdict(python, AUDIT_ARCH_X86_64, nr, tried[i]));
			assert_int_equal(verdict(command_network,
					     AUDIT_ARCH_X86_64, nr, tried[i]),
			    verdict(command, AUDIT_ARCH_X86_64, nr, tried[i]));
		}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].nr != SYS_connect && rows[i].nr != SYS_socket)
			table(network, &rows[i], 1);
}

/* Another architecture's numbers, for every number there is: i386 by int
 * 0x80, x32 by its bit, and what is no architecture of this machine. */
static void
foreign(const struct filter *f)
{
	static const uint64_t none[6];

	for (int nr = 0; nr < 600; nr++) {
		assert_int_equal(verdict(f, AUDIT_ARCH_I386, nr, none), KILL);
		assert_int_equal(
		    verdict(f, AUDIT_ARCH_AARCH64, nr, none), KILL);
		if (verdict(f, AUDIT_ARCH_X86_64, X32 | nr, none) == ALLOW)
			fail_msg("x32 call %d passes", nr);
		assert_int_equal(
		    verdict(f, AUDIT_ARCH_X86_64, X32 | nr, none), KILL);
	}
}

static void
test_foreign(void **state)
{
	(void)state;
	foreign(python);
	foreign(command);
	foreign(network);
	foreign(command_network);
}

/* Nothing that the table's makers never heard of passes. */
static void
test_newer_calls(void **state)
{
	static const uint64_t none[6];
	const struct filter *f = python;

	(void)state;
	for (int nr = 442; nr < 2000; nr++)
		assert_int_equal(verdict(f, AUDIT_ARCH_X86_64, nr, none),
		    nr == SYS_FCHMODAT2 ? NOSYS : DENY);
}

/* Each of the 64 bits of the flags alone. */
static void
test_clone_bits(void **state)
{
	static const uint64_t refused = CLONE_NEWNS | CLONE_NEWCGROUP |
	    CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
	    CLONE_NEWNET | CLONE_PTRACE | CLONE_PARENT;
	uint64_t args[6] = {0};

	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		args[0] = 1ULL << bit;
		assert_int_equal(
		    verdict(python, AUDIT_ARCH_X86_64, SYS_clone, args),
		    (refused >> bit) & 1 ? DENY : ALLOW);
		assert_int_equal(
		    verdict(command, AUDIT_ARCH_X86_64, SYS_clone, args),
		    (refused >> bit) & 1 ? DENY : ALLOW);
	}
}

static int
set_up(void **state)
{
	(void)state;
	python = filter_new(0, NULL);
	command = filter_new(FILTER_COMMAND, NULL);
	network = filter_new(FILTER_NETWORK, NULL);
	command_network = filter_new(FILTER_COMMAND | FILTER_NETWORK, NULL);
	return python == NULL || command == NULL || network == NULL ||
		command_network == NULL
	    ? -1
	    : 0;
}

static int
tear_down(void **state)
{
	(void)state;
	filter_free(python);
	filter_free(command);
	filter_free(network);
	filter_free(command_network);
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_table),
	    cmocka_unit_test(test_command),
	    cmocka_unit_test(test_network),
	    cmocka_unit_test(test_network_sockets),
	    cmocka_unit_test(test_network_else),
	    cmocka_unit_test(test_foreign),
	    cmocka_unit_test(test_newer_calls),
	    cmocka_unit_test(test_clone_bits),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
