/*
 * See fence.h. A domain with two rules: in the store, look and make directories
 * (which includes a rename into it); below .incoming, files too, and their
 * removal. So an entry stays as it is, whatever code runs in this process. A
 * directory could still be made in an entry's, or moved into it, if that could
 * be written: deposit.c takes their write bits, and the filter gives none back.
 *
 * ABI 2 (Linux 5.19) is the first that knows renames between directories. The
 * domain of confine_self, which has no rule, would end all writing, so it is
 * not asked for; its protection beside files is the filter's, which lets no
 * socket be made.
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
