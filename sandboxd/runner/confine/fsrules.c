/*
 * Landlock (landlock(7)): a runner may read everything in its root, write only
 * to /tmp and the few device nodes, and execute nothing. A command may execute
 * the programs of the toolbox and their loaders, each named by its path, and
 * nothing else.
 *
 * The mounts enforce the same, so a mistake in one of the two does not open a
 * file. From ABI 6 on Landlock also cuts off abstract unix sockets and signals
 * outside the runner. Landlock's TCP rules are set, but they are not counted as
 * a layer, because MPTCP and TCP Fast Open get past them.
 *
 * The numbers are the kernel's ABI (include/uapi/linux/landlock.h); Debian 12's
 * header ends at ABI 2, so the newer ones are defined here.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <unistd.h>

#include "confinement.h"
#include "root.h"
#include "runner.h"
#include "steps_path.h"

#define FS_TRUNCATE     (1ULL << 14) /* ABI 3 */
#define FS_IOCTL_DEV    (1ULL << 15) /* ABI 5 */
#define NET_BIND_TCP    (1ULL << 0)  /* ABI 4 */
#define NET_CONNECT_TCP (1ULL << 1)
#define SCOPE_ABSTRACT  (1ULL << 0) /* ABI 6 */
#define SCOPE_SIGNAL    (1ULL << 1)

struct ruleset {
	uint64_t fs;
	uint64_t net;   /* ABI 4 */
	uint64_t scope; /* ABI 6 */
};

static const uint64_t read_rights =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
/* No device nodes and no sockets can be made in /tmp. */
static const uint64_t tmp_rights = LANDLOCK_ACCESS_FS_READ_FILE |
    LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |
    LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |
    LANDLOCK_ACCESS_FS_REFER | FS_TRUNCATE;

int
fsrules_abi(void)
{
	long abi;

	abi = syscall(SYS_landlock_create_ruleset, NULL, 0,
	    LANDLOCK_CREATE_RULESET_VERSION);
	return abi < 1 ? 0 : (int)abi;
}

/* Returns all file rights that this ABI knows. */
static uint64_t
known_rights(int abi)
{
	uint64_t all = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1; /* ABI 1 */

	if (abi >= 2)
		all |= LANDLOCK_ACCESS_FS_REFER;
	if (abi >= 3)
		all |= FS_TRUNCATE;
	if (abi >= 5)
		all |= FS_IOCTL_DEV;
	return all;
}

static int
allow(int ruleset, const char *path, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {.allowed_access = rights};
	int rc;

	steps_path(path);
	rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd == -1)
		return -1;
	rc = (int)syscall(SYS_landlock_add_rule, ruleset,
	    LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
	(void)close(rule.parent_fd);
	return rc;
}

/* Allows the programs that a command may execute. */
static int
allow_programs(const struct zygote *z, int ruleset)
{
	const struct toolbox_file *f;
	size_t i;

	for (i = 0; (f = toolbox_file(z, i)) != NULL; i++)
		if (allow(ruleset, f->path,
			LANDLOCK_ACCESS_FS_EXECUTE |
			    LANDLOCK_ACCESS_FS_READ_FILE) == -1)
			return -1;
	return 0;
}

int
fsrules_apply(struct runner *r)
{
	static const char *const devices[] = {
	    "/dev/null", "/dev/zero", "/dev/full", NULL};
	const int abi = r->zygote->landlock_abi;
	struct ruleset attr = {0};
	size_t size = sizeof(attr.fs);
	uint64_t known = known_rights(abi);
	int ruleset, rc = -1, i;

	if (abi == 0)
		return 0; /* reported as missing by the zygote */
	attr.fs = known;
	if (abi >= 4) {
		attr.net = NET_BIND_TCP | NET_CONNECT_TCP;
		size = sizeof(attr.fs) + sizeof(attr.net);
	}
	if (abi >= 6) {
		attr.scope = SCOPE_ABSTRACT | SCOPE_SIGNAL;
		size = sizeof(attr);
	}
	steps_path("");
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, size, 0);
	if (ruleset == -1)
		return -1;
	if (allow(ruleset, "/", read_rights) == -1 ||
	    allow(ruleset, "/tmp", tmp_rights & known) == -1)
		goto out;
	for (i = 0; devices[i] != NULL; i++) {
		if (allow(ruleset, devices[i],
			LANDLOCK_ACCESS_FS_READ_FILE |
			    LANDLOCK_ACCESS_FS_WRITE_FILE) == -1)
			goto out;
	}
	if (r->fork->kind == RUNNER_COMMAND &&
	    allow_programs(r->zygote, ruleset) == -1)
		goto out;
	steps_path("");
	rc = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
out:
	(void)close(ruleset);
	return rc;
}
