/*
 * The system calls that the program is refused.
 *
 * The list names refused calls, not allowed ones: the program may be a
 * compiler, a shell, Node.js or an editor, and no list of allowed calls is true
 * of all (docs/decisions/0114). The namespaces and mounts bound the program;
 * this list takes ways to the kernel, and the calls that would build a second
 * sandbox with more rights: all mount calls, new namespaces.
 *
 * Tracing is allowed, since debuggers and sanitizers need it: it reaches the
 * program's own processes only. pid 1 is not dumpable, and the namespace has no
 * others.
 *
 * A call by another architecture's numbers (int 0x80, x32) kills. So a program
 * cannot get past the list by them.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>

#include "denied.h"
#include "inside.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Newer than Debian 12's libseccomp. */
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif

/* The mount calls. They need a capability that is gone, and each is a large
 * part of the kernel. */
static const int mounting[] = {SCMP_SYS(chroot), SCMP_SYS(fsconfig),
    SCMP_SYS(fsmount), SCMP_SYS(fsopen), SCMP_SYS(fspick), SCMP_SYS(mount),
    SCMP_SYS(mount_setattr), SCMP_SYS(move_mount), SCMP_SYS(open_tree),
    SCMP_SYS(pivot_root), SCMP_SYS(umount), SCMP_SYS(umount2)};

/* Their arguments are in memory, which a filter can't read. Libraries then use
 * the older call: clone for clone3, openat for openat2. */
static const int unreadable[] = {SCMP_SYS(clone3), SCMP_SYS(openat2)};

/* Requests for terminals. TIOCSTI and TIOCLINUX (paste) put input into the
 * terminal of another session. A line discipline is a driver that the kernel
 * loads on demand. The kernel compares 32 bits of a request. */
static const scmp_datum_t requests[] = {TIOCSTI, TIOCLINUX, TIOCSETD};

/* Socket families below AF_NETLINK that are refused; all above it are, too.
 * AF_VSOCK and AF_ALG are in no namespace, and the drivers of rare families are
 * loaded on demand. Left are unix, IPv4, IPv6 and netlink. */
static const int families[] = {AF_AX25, AF_IPX, AF_APPLETALK, AF_NETROM,
    AF_BRIDGE, AF_ATMPVC, AF_X25, AF_ROSE, AF_DECnet, AF_NETBEUI, AF_SECURITY,
    AF_KEY};

/*
 * Calls that set a file's mode, and the argument with the mode. A file with
 * set-user-ID that the program leaves in the folder would give each other user
 * of the machine the rights of this one.
 */
static const struct {
	int call;
	unsigned arg;
} modes[] = {
    {SCMP_SYS(chmod), 1},
    {SCMP_SYS(fchmod), 1},
    {SCMP_SYS(fchmodat), 2},
    {__NR_fchmodat2, 2},
    {SCMP_SYS(creat), 1},
    {SCMP_SYS(open), 2},
    {SCMP_SYS(openat), 3},
    {SCMP_SYS(mknod), 1},
    {SCMP_SYS(mknodat), 2},
};
static const scmp_datum_t mode_bits[] = {S_ISUID, S_ISGID};

static int
add_calls(scmp_filter_ctx c, const int *call, size_t n, int error)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = seccomp_rule_add(
		    c, SCMP_ACT_ERRNO((unsigned)error), call[i], 0);
	return rc;
}

/* Refuses a call if one of these bits is set in its argument. */
static int
add_bit(scmp_filter_ctx c, int call, unsigned arg, scmp_datum_t bit)
{
	return seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), call, 1,
	    SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bit, bit));
}

static int
add_namespaces(scmp_filter_ctx c)
{
	int rc = 0;

	for (unsigned bit = 0; bit < 32 && rc == 0; bit++) {
		if ((((unsigned)DENIED_NAMESPACES >> bit) & 1U) == 0)
			continue;
		rc = add_bit(c, SCMP_SYS(clone), 0, 1U << bit);
		if (rc == 0)
			rc = add_bit(c, SCMP_SYS(unshare), 0, 1U << bit);
	}
	if (rc == 0)
		rc = add_bit(c, SCMP_SYS(unshare), 0, CLONE_NEWTIME);
	return rc;
}

static int
add_judged(scmp_filter_ctx c)
{
	int rc = 0;

	for (size_t i = 0; i < LENGTH(requests) && rc == 0; i++)
		rc = seccomp_rule_add(c, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl),
		    1, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, requests[i]));
	for (size_t i = 0; i < LENGTH(families) && rc == 0; i++)
		rc = seccomp_rule_add(c, SCMP_ACT_ERRNO(EAFNOSUPPORT),
		    SCMP_SYS(socket), 1,
		    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)families[i]));
	if (rc == 0)
		rc = seccomp_rule_add(c, SCMP_ACT_ERRNO(EAFNOSUPPORT),
		    SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GT, AF_NETLINK));
	for (size_t i = 0; i < LENGTH(modes); i++)
		for (size_t b = 0; b < LENGTH(mode_bits) && rc == 0; b++)
			rc = add_bit(
			    c, modes[i].call, modes[i].arg, mode_bits[b]);
	return rc;
}

int
filter_load(struct err *e)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
	int rc = c == NULL ? -ENOSYS : 0;

	if (rc == 0 && denied_add(c) != 0)
		rc = -EINVAL;
	if (rc == 0)
		rc = add_calls(c, mounting, LENGTH(mounting), EPERM);
	if (rc == 0)
		rc = add_calls(c, unreadable, LENGTH(unreadable), ENOSYS);
	if (rc == 0)
		rc = add_namespaces(c);
	if (rc == 0)
		rc = add_judged(c);
	/* A binary search: the list has some hundred rows. */
	if (rc == 0)
		rc = seccomp_attr_set(c, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (rc == 0)
		rc = seccomp_load(c);
	if (c != NULL)
		seccomp_release(c);
	if (rc == 0)
		return 0;
	errno = -rc;
	return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
	    "the list of system calls (the kernel needs seccomp)");
}
