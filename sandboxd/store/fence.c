/*
 * See fence.h. The Landlock domain has two rules. In the store, this process
 * may list and make directories, which includes a rename into the store. Below
 * .incoming it may also write and remove files. So an entry stays as it is,
 * whatever code runs in this process. Landlock would still let a directory be
 * made in an entry's directory, or moved into it. So deposit.c takes away the
 * write bits of these directories, and the filter lets no call give them back.
 *
 * ABI 2 (Linux 5.19) is the first that knows renames between directories. The
 * domain of confine_self() has no rule and would end all writing, so that
 * domain is not asked for. The domain's protection of other things than files
 * comes from the filter instead, which lets no socket be made.
 */
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/landlock.h>
#include <stdint.h>
#include <unistd.h>

#include "fence.h"
#include "landlock.h"

static int
allow(int ruleset, int dir, uint64_t rights)
{
	struct landlock_path_beneath_attr rule = {
	    .allowed_access = rights, .parent_fd = dir};

	return (int)syscall(SYS_landlock_add_rule, ruleset,
	    LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
}

bool
fence_enter(int store, int incoming)
{
	const uint64_t look = LANDLOCK_ACCESS_FS_READ_DIR;
	const uint64_t make =
	    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_REFER;
	const uint64_t write = LANDLOCK_ACCESS_FS_WRITE_FILE |
	    LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE |
	    LANDLOCK_ACCESS_FS_REMOVE_DIR;
	/* All rights of ABI 2. */
	struct {
		uint64_t fs;
	} attr = {(LANDLOCK_ACCESS_FS_REFER << 1) - 1};
	bool done;
	int fd;

	if (landlock_abi() < 2)
		return false;
	fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
	if (fd == -1)
		return false;
	done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    allow(fd, store, look | make) == 0 &&
	    allow(fd, incoming, look | make | write) == 0 &&
	    syscall(SYS_landlock_restrict_self, fd, 0) == 0;
	close(fd);
	return done;
}
