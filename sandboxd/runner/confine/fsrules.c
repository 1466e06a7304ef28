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
 */
#include <unistd.h>

#include "confinement.h"
#include "root.h"
#include "rules.h"
#include "runner.h"
#include "steps_path.h"

static const uint64_t read_rights =
    LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
/* No device nodes and no sockets can be made in /tmp. */
static const uint64_t tmp_rights = LANDLOCK_ACCESS_FS_READ_FILE |
    LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_WRITE_FILE |
    LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM |
    LANDLOCK_ACCESS_FS_REFER | RULES_TRUNCATE;

int
fsrules_abi(void)
{
	return rules_abi();
}

static int
allow(int ruleset, const char *path, uint64_t rights)
{
	steps_path(path);
	return rules_allow(ruleset, path, rights);
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
	const uint64_t known = rules_known(abi);
	int ruleset, rc = -1, i;

	if (abi == 0)
		return 0; /* reported as missing by the zygote */
	steps_path("");
	ruleset = rules_new(abi, true);
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
	rc = rules_enter(ruleset);
out:
	(void)close(ruleset);
	return rc;
}
