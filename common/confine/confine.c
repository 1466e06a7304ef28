#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <linux/securebits.h>

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <string.h>
#include <unistd.h>

#include "confine.h"
#include "confine_base.h"
#include "landlock.h"

/*
 * Sanitizers start threads, read /proc and trace themselves at exit. Builds
 * with sanitizers leave out the layers that forbid this and report them as
 * missing. Such builds are never installed.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum {
	/* Bytes of the largest filter: the kernel takes at most 4096
	 * instructions. */
	BPF_BYTES_MAX = 4096 * 8
};

int
confine_landlock_abi(void)
{
	return landlock_abi();
}

static void
layer(struct buf *layers, const char *name, const char *state)
{
	if (layers != NULL)
		buf_putf(layers, "%s=%s\n", name, state);
}

static bool
kept(const int *caps, int cap)
{
	for (; caps != NULL && *caps >= 0; caps++)
		if (*caps == cap)
			return true;
	return false;
}

/*
 * Limits the bounding set and the securebits. Both can be changed only with
 * CAP_SETPCAP, which most daemons never had. With no_new_privs no exec can gain
 * anything from the two. So it is not a hole if they stay as the service
 * manager left them, but it is reported.
 */
static void
limit_gains(const int *keep, struct buf *layers)
{
	const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
	    SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
	    SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	/* An ambient capability must be permitted first, so a process that
	 * keeps no capability can raise none, whatever the AMBIENT_RAISE bits
	 * say. Such a process does not need these bits, which setpriv(1) can't
	 * set. */
	const unsigned long needed = keep != NULL && keep[0] >= 0 ? bits
								  : bits &
		~(unsigned long)(SECBIT_NO_CAP_AMBIENT_RAISE |
		    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED);
	bool all = true;
	int now;

	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		if (kept(keep, cap))
			continue;
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			all = false;
	}
	layer(layers, "bounding_set", all ? "enforced" : "degraded");
	(void)prctl(PR_SET_SECUREBITS, bits, 0, 0, 0);
	now = prctl(PR_GET_SECUREBITS, 0, 0, 0, 0);
	layer(layers, "securebits",
	    now >= 0 && ((unsigned long)now & needed) == needed ? "enforced"
								: "degraded");
}

/*
 * Reduces the ambient, inheritable, effective and permitted sets to the kept
 * capabilities, and reads them back from the kernel. Kept capabilities are not
 * ambient: they stay with this process and don't pass to programs that it
 * executes.
 */
static int
limit_caps(const struct confine_spec *s, struct buf *layers, struct err *e)
{
	capng_results_t want;

	/* EINVAL: a kernel without ambient sets (before 4.3). */
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 &&
	    errno != EINVAL)
		return err_sys(e, FAILURE_INTERNAL, "ambient capabilities");
	limit_gains(s->keep_caps, layers);
	want = s->keep_caps != NULL && *s->keep_caps >= 0 ? CAPNG_PARTIAL
							  : CAPNG_NONE;
	/* If no capability is held and none is to be kept, capset is not
	 * called: a service manager's filter may refuse it
	 * (SystemCallFilter=~@privileged). */
	if (want == CAPNG_NONE && capng_get_caps_process() == 0 &&
	    capng_have_capabilities(CAPNG_SELECT_CAPS) == CAPNG_NONE) {
		layer(layers, "capabilities", "enforced");
		return 0;
	}
	capng_clear(CAPNG_SELECT_CAPS);
	for (const int *c = s->keep_caps; c != NULL && *c >= 0; c++)
		if (capng_update(CAPNG_ADD, CAPNG_EFFECTIVE, (unsigned)*c) !=
			0 ||
		    capng_update(CAPNG_ADD, CAPNG_PERMITTED, (unsigned)*c) != 0)
			return err_set(e, FAILURE_INTERNAL,
			    "capability %d is unknown", *c);
	if (capng_apply(CAPNG_SELECT_CAPS) != 0)
		return err_sys(e, FAILURE_INTERNAL,
		    "capset: does the service manager grant what %s needs?",
		    s->process);
	if (capng_get_caps_process() != 0 ||
	    capng_have_capabilities(CAPNG_SELECT_CAPS) != want)
		return err_set(
		    e, FAILURE_INTERNAL, "capabilities are not what was set");
	for (int c = 0; c <= CAP_LAST_CAP; c++)
		if (capng_have_capability(CAPNG_PERMITTED, (unsigned)c) &&
		    !kept(s->keep_caps, c))
			return err_set(e, FAILURE_INTERNAL,
			    "capability %d could not be dropped", c);
	layer(layers, "capabilities", "enforced");
	return 0;
}

static int
limit_landlock(const struct confine_spec *s, struct buf *layers, struct err *e)
{
	const struct landlock_rules rules = {
	    .scope_signals = s->landlock_signal_scope,
	    .connect_tcp = s->connect_tcp,
	    .read_file = s->read_file,
	    .ports = s->connect_ports,
	    .nports = s->nports,
	};
	struct landlock_state st = {0};

	if (!SANITIZED && landlock_enter(&rules, &st, e) < 0)
		return -1;
	/* Without Landlock the filter alone would let every file be read, so
	 * this is an error. */
	if (!SANITIZED && s->read_file != NULL && !st.fs)
		return err_set(e, FAILURE_INTERNAL,
		    "%s may read %s alone, which needs Landlock: start the "
		    "kernel with landlock in lsm= (5.13 or newer), or use a "
		    "database behind a unix socket",
		    s->process, s->read_file);
	layer(layers, "landlock_files", st.fs ? "enforced" : "missing");
	layer(layers, "landlock_tcp", st.net ? "enforced" : "missing");
	layer(layers, "landlock_scope", st.scope ? "enforced" : "missing");
	return 0;
}

/*
 * Adds one rule for a system call. The comparisons are EQ or MASKED_EQ, at most
 * one for each argument, because every version of libseccomp compiles such
 * rules in the same way (tests evaluate the result). Skips a call that this
 * architecture doesn't have.
 */
static int
add_rules(scmp_filter_ctx f, uint32_t action, int nr,
    const struct scmp_arg_cmp *cmp, unsigned n, struct err *e)
{
	int rc;

	if (nr < 0)
		return 0;
	rc = seccomp_rule_add_array(f, action, nr, n, cmp);
	if (rc < 0) {
		errno = -rc;
		return err_sys(
		    e, FAILURE_INTERNAL, "seccomp rule for system call %d", nr);
	}
	return 0;
}

/* Adds one rule with at most one comparison. arg < 0: no comparison. */
static int
add_rule(scmp_filter_ctx f, uint32_t action, int nr, int arg, uint64_t mask,
    uint64_t equals, struct err *e)
{
	struct scmp_arg_cmp cmp;

	if (arg < 0)
		return add_rules(f, action, nr, NULL, 0, e);
	cmp = mask == UINT64_MAX
	    ? SCMP_CMP64((unsigned)arg, SCMP_CMP_EQ, equals)
	    : SCMP_CMP64((unsigned)arg, SCMP_CMP_MASKED_EQ, mask, equals);
	return add_rules(f, action, nr, &cmp, 1, e);
}

/*
 * Allows sockets of TCP alone, because another protocol of stream sockets
 * (SCTP, MPTCP) would bypass Landlock's rules for ports. connect_unix allows
 * connect.
 */
static int
allow_inet(scmp_filter_ctx f, struct err *e)
{
	static const uint64_t families[] = {AF_INET, AF_INET6};
	const uint64_t type = ~(uint64_t)(SOCK_CLOEXEC | SOCK_NONBLOCK);

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const struct scmp_arg_cmp cmp[] = {
		    SCMP_A0_64(SCMP_CMP_EQ, families[i]),
		    SCMP_A1_64(SCMP_CMP_MASKED_EQ, type, SOCK_STREAM),
		    SCMP_A2_64(SCMP_CMP_EQ, 0)};

		if (add_rules(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), cmp,
			sizeof(cmp) / sizeof(cmp[0]), e) < 0)
			return -1;
	}
	return 0;
}

/*
 * Allows openat for reading. Such a call then reaches Landlock, which allows
 * only read_file. O_PATH is refused, since O_PATH would bypass Landlock. Every
 * other openat fails with EACCES, as in the base list, so a library that tries
 * one does not end the process. Each flag beyond reading has a rule that
 * compares it: a rule without comparison would replace the rule for reading.
 */
static int
allow_reading(scmp_filter_ctx f, struct err *e)
{
	static const uint64_t more[][2] = {{O_ACCMODE, O_WRONLY},
	    {O_ACCMODE, O_RDWR}, {O_ACCMODE, O_ACCMODE}, {O_CREAT, O_CREAT},
	    {O_TRUNC, O_TRUNC}, {O_PATH, O_PATH}};
	const uint64_t all = O_ACCMODE | O_CREAT | O_TRUNC | O_PATH;

	if (add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(openat), 2, all, O_RDONLY, e) <
	    0)
		return -1;
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		if (add_rule(f, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(openat), 2,
			more[i][0], more[i][1], e) < 0)
			return -1;
	return 0;
}

/* Tells whether the process has a rule of its own for this call. */
static bool
overridden(const struct confine_spec *s, int nr)
{
	for (size_t i = 0; i < s->nrules; i++)
		if (s->rules[i].syscall == nr)
			return true;
	return s->read_file != NULL && nr == SCMP_SYS(openat);
}

/*
 * Makes the filter: base list, the process's rules (which replace a base rule
 * for the same call), and unix sockets for processes that reconnect. A call
 * without a rule ends the process, and so does a call of a foreign architecture
 * (int 0x80, and x32, whose numbers have bit 30 set). The caller releases *out
 * with seccomp_release.
 */
static int
make_filter(const struct confine_spec *s, scmp_filter_ctx *out, struct err *e)
{
	const struct confine_base_rule *base;
	scmp_filter_ctx f;
	uint32_t action;
	size_t n;
	int rc = -1;

	if ((f = seccomp_init(SCMP_ACT_KILL_PROCESS)) == NULL)
		return err_set(e, FAILURE_INTERNAL, "seccomp_init");
	if (seccomp_attr_set(
		f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) != 0 ||
	    seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2) != 0) {
		err_set(e, FAILURE_INTERNAL, "seccomp_attr_set");
		goto out;
	}
	base = confine_base_rules(&n);
	for (size_t i = 0; i < n; i++) {
		if (overridden(s, base[i].syscall))
			continue;
		action = base[i].error != 0
		    ? SCMP_ACT_ERRNO((uint32_t)base[i].error)
		    : SCMP_ACT_ALLOW;
		if (base[i].arg == CONFINE_ARG0_SELF) {
			if (add_rule(f, action, base[i].syscall, 0, UINT64_MAX,
				(uint64_t)getpid(), e) < 0)
				goto out;
		} else if (add_rule(f, action, base[i].syscall, base[i].arg,
			       base[i].mask, base[i].equals, e) < 0)
			goto out;
	}
	for (size_t i = 0; i < s->nrules; i++)
		if (add_rule(f, SCMP_ACT_ALLOW, s->rules[i].syscall,
			s->rules[i].arg, s->rules[i].mask, s->rules[i].equals,
			e) < 0)
			goto out;
	if (s->connect_unix) {
		if (!overridden(s, SCMP_SYS(socket)) &&
		    add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 0, UINT64_MAX,
			AF_UNIX, e) < 0)
			goto out;
		if (!overridden(s, SCMP_SYS(connect)) &&
		    add_rule(
			f, SCMP_ACT_ALLOW, SCMP_SYS(connect), -1, 0, 0, e) < 0)
			goto out;
	}
	if ((s->connect_ports != NULL && allow_inet(f, e) < 0) ||
	    (s->read_file != NULL && allow_reading(f, e) < 0))
		goto out;
	*out = f;
	return 0;
out:
	seccomp_release(f);
	return rc;
}

static int
limit_syscalls(const struct confine_spec *s, struct buf *layers, struct err *e)
{
	scmp_filter_ctx f = NULL;
	int rc;

	if (make_filter(s, &f, e) < 0)
		return -1;
	if (SANITIZED) {
		seccomp_release(f);
		layer(layers, "seccomp", "missing");
		return 0;
	}
	rc = seccomp_load(f);
	seccomp_release(f);
	if (rc < 0) {
		errno = -rc;
		return err_sys(e, FAILURE_INTERNAL, "seccomp_load");
	}
	layer(layers, "seccomp", "enforced");
	return 0;
}

/*
 * The order of the layers matters: Landlock and seccomp need no_new_privs, and
 * the seccomp filter would forbid capset and prctl. Dumpable 0 keeps other
 * processes of the same user from tracing this one and from reading its memory
 * through /proc, and leaves no core with keys in it. Dumpable is set after the
 * capabilities, because their change may reset it.
 */
int
confine_self(const struct confine_spec *s, struct buf *layers, struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_sys(e, FAILURE_INTERNAL, "no_new_privs");
	layer(layers, "no_new_privs", "enforced");
	if (limit_caps(s, layers, e) < 0)
		return -1;
	if (!SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return err_sys(e, FAILURE_INTERNAL, "dumpable");
	layer(layers, "not_dumpable", SANITIZED ? "missing" : "enforced");
	if (s->landlock && limit_landlock(s, layers, e) < 0)
		return -1;
	if (s->seccomp && limit_syscalls(s, layers, e) < 0)
		return -1;
	return 0;
}

/*
 * Exports into a memfd and reads the memfd back, because libseccomp writes only
 * to descriptors.
 */
int
confine_export(const struct confine_spec *s, struct buf *out, struct err *e)
{
	static uint8_t bytes[BPF_BYTES_MAX];
	scmp_filter_ctx f = NULL;
	ssize_t n;
	int fd, rc = -1;

	if (make_filter(s, &f, e) < 0)
		return -1;
	if ((fd = memfd_create("bpf", MFD_CLOEXEC)) < 0) {
		err_sys(e, FAILURE_INTERNAL, "memfd_create");
		goto out;
	}
	if (seccomp_export_bpf(f, fd) != 0 ||
	    (n = pread(fd, bytes, sizeof(bytes), 0)) <= 0) {
		err_set(e, FAILURE_INTERNAL, "seccomp_export_bpf");
		goto out;
	}
	buf_put(out, bytes, (size_t)n);
	if (out->failed) {
		err_set(e, FAILURE_INTERNAL, "out of memory");
		goto out;
	}
	rc = 0;
out:
	if (fd >= 0)
		close(fd);
	seccomp_release(f);
	return rc;
}
