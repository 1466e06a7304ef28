#include <sys/syscall.h>

#include <stdint.h>
#include <unistd.h>

#include "landlock.h"

/* The numbers are the same on all architectures (Linux 5.13). */
enum {
	NR_CREATE_RULESET = 444,
	NR_RESTRICT_SELF = 446,
	CREATE_RULESET_VERSION = 1
};

/* struct landlock_ruleset_attr as ABI 6 has it; older kernels take a shorter
 * one, and accept a longer one only if the rest is zero. */
struct ruleset_attr {
	uint64_t handled_fs;  /* ABI 1 */
	uint64_t handled_net; /* ABI 4 */
	uint64_t scoped;      /* ABI 6 */
};

enum {
	FS_ABI1 = (1 << 13) - 1, /* execute … make_sym */
	FS_REFER = 1 << 13,      /* ABI 2 */
	FS_TRUNCATE = 1 << 14,   /* ABI 3 */
	FS_IOCTL_DEV = 1 << 15,  /* ABI 5 */
	NET_BIND_TCP = 1 << 0,   /* ABI 4 */
	NET_CONNECT_TCP = 1 << 1,
	SCOPE_ABSTRACT_UNIX = 1 << 0, /* ABI 6 */
	SCOPE_SIGNAL = 1 << 1
};

int
landlock_abi(void)
{
	long abi = syscall(NR_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);

	return abi > 0 ? (int)abi : 0;
}

/*
 * Every right of the kernel's ABI is handled and none is granted. Rights of an
 * ABI later than 6 are not handled: they could forbid what a daemon must do
 * (ABI 7 adds only logging). A right that is unknown to the kernel would make
 * it refuse the ruleset, hence the steps.
 */
int
landlock_enter(bool scope_signals, bool connect_tcp, struct landlock_state *st,
    struct err *e)
{
	struct ruleset_attr a = {.handled_fs = FS_ABI1};
	int abi = landlock_abi(), fd;

	st->abi = abi;
	st->fs = st->net = st->scope = false;
	if (abi == 0)
		return 0;
	if (abi >= 2)
		a.handled_fs |= FS_REFER;
	if (abi >= 3)
		a.handled_fs |= FS_TRUNCATE;
	if (abi >= 4)
		a.handled_net =
		    NET_BIND_TCP | (connect_tcp ? 0 : NET_CONNECT_TCP);
	if (abi >= 5)
		a.handled_fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		a.scoped =
		    SCOPE_ABSTRACT_UNIX | (scope_signals ? SCOPE_SIGNAL : 0);
	fd = (int)syscall(NR_CREATE_RULESET, &a, sizeof(a), 0);
	if (fd < 0)
		return err_sys(e, FAILURE_INTERNAL,
		    "landlock_create_ruleset, ABI %d", abi);
	if (syscall(NR_RESTRICT_SELF, fd, 0) != 0) {
		err_sys(e, FAILURE_INTERNAL, "landlock_restrict_self");
		close(fd);
		return -1;
	}
	close(fd);
	st->fs = true;
	st->net = a.handled_net != 0;
	st->scope = a.scoped != 0;
	return 0;
}
