#include <sys/syscall.h>

#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "landlock.h"

/* System calls have these numbers on all architectures (Linux 5.13). */
enum {
	NR_CREATE_RULESET = 444,
	NR_ADD_RULE = 445,
	NR_RESTRICT_SELF = 446,
	CREATE_RULESET_VERSION = 1,
	RULE_PATH_BENEATH = 1,
	RULE_NET_PORT = 2 /* ABI 4 */
};

/* struct landlock_ruleset_attr as ABI 6 has it. Older kernels have a shorter
 * struct, and accept a longer one only if the rest is zero. */
struct ruleset_attr {
	uint64_t handled_fs;  /* ABI 1 */
	uint64_t handled_net; /* ABI 4 */
	uint64_t scoped;      /* ABI 6 */
};

struct path_beneath {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

struct net_port {
	uint64_t allowed, port;
};

enum {
	FS_READ_FILE = 1 << 2,   /* ABI 1 */
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

static int
allow_file(int ruleset, const char *path, struct err *e)
{
	struct path_beneath rule = {.allowed = FS_READ_FILE};
	int rc;

	if ((rule.parent_fd = open(path, O_PATH | O_CLOEXEC)) == -1)
		return err_sys(e, FAILURE_INTERNAL, "%s", path);
	rc = (int)syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &rule, 0);
	if (rc != 0)
		err_sys(e, FAILURE_INTERNAL, "landlock_add_rule for %s", path);
	close(rule.parent_fd);
	return rc;
}

static int
allow_port(int ruleset, uint16_t port, struct err *e)
{
	struct net_port rule = {.allowed = NET_CONNECT_TCP, .port = port};

	if (syscall(NR_ADD_RULE, ruleset, RULE_NET_PORT, &rule, 0) != 0)
		return err_sys(
		    e, FAILURE_INTERNAL, "landlock_add_rule for port %u", port);
	return 0;
}

/*
 * Every right of the kernel's ABI is handled, and only the rights that the
 * rules name are granted. Rights of an ABI later than 6 are not handled: they
 * could forbid something that a daemon must do (ABI 7 adds only logging). The
 * kernel refuses a ruleset with a right that it does not know, so each right is
 * added only from its ABI on.
 */
int
landlock_enter(
    const struct landlock_rules *r, struct landlock_state *st, struct err *e)
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
		    NET_BIND_TCP | (r->connect_tcp ? 0 : NET_CONNECT_TCP);
	if (abi >= 5)
		a.handled_fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		a.scoped =
		    SCOPE_ABSTRACT_UNIX | (r->scope_signals ? SCOPE_SIGNAL : 0);
	fd = (int)syscall(NR_CREATE_RULESET, &a, sizeof(a), 0);
	if (fd < 0)
		return err_sys(e, FAILURE_INTERNAL,
		    "landlock_create_ruleset, ABI %d", abi);
	if (r->read_file != NULL && allow_file(fd, r->read_file, e) != 0)
		goto out;
	for (size_t i = 0; abi >= 4 && i < r->nports; i++)
		if (allow_port(fd, r->ports[i], e) != 0)
			goto out;
	if (syscall(NR_RESTRICT_SELF, fd, 0) != 0) {
		err_sys(e, FAILURE_INTERNAL, "landlock_restrict_self");
		goto out;
	}
	close(fd);
	st->fs = true;
	st->net = a.handled_net != 0;
	st->scope = a.scoped != 0;
	return 0;
out:
	close(fd);
	return -1;
}
