/*
 * Granted modules: directories of the module store, one for each digest, that
 * are mounted for one runner alone.
 *
 * Only the host's root (contrib/module-add) and the process of sandboxd/store
 * write to the store, and that process can't change an entry. The pool sees the
 * store through a mount of its own and has no id that owns anything in the
 * store. A runner gets its entries read-only and nothing else of the store. So
 * an entry still has the contents that its digest names, and is not hashed
 * again at each call. FORK has the digests of a runner's entries, which come
 * from the approved version.
 *
 * The zygote opens the store before its own mounts cover anything, and clones
 * the entries' mounts just before the fork (open_tree(2)). The child could not
 * bind a mount of the zygote's namespace. A path could be changed after a
 * check; a clone can't be. The clones are attached nowhere, so that no other
 * runner's fork copies them; the child attaches them. An entry's name is 64
 * hexadecimal digits, so it cannot lead anywhere else, and a link is not
 * followed.
 *
 * The mounts allow execution, because the loader maps extension modules
 * executable. Other layers deny execve (filter.c, fsrules.c). A library that an
 * extension module needs, and that the Python root lacks, must be in the entry
 * itself.
 */
#include <sys/mount.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bounds.h"
#include "ids.h"
#include "log.h"
#include "root.h"
#include "runner.h"
#include "steps_path.h"

/* Linux 5.2; older headers lack the names. */
#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif

enum { DIGEST = sizeof(struct ipc_hash), NAME = 2 * DIGEST + 1 };

/* The mounts for the fork being made: read by the child, closed by the
 * zygote. */
static struct {
	int fd[MODULES_PER_CALL_MAX]; /* or -1 */
	int error[MODULES_PER_CALL_MAX];
} trees;

static void
name_of(const struct ipc_fork *f, size_t i, char name[NAME])
{
	hex_encode(f->modules.p + i * DIGEST, DIGEST, name);
}

size_t
modules_count(const struct ipc_fork *f)
{
	size_t n = f->modules.n / DIGEST;

	return n < MODULES_PER_CALL_MAX ? n : MODULES_PER_CALL_MAX;
}

void
modules_store(struct zygote *z, const char *path)
{
	z->store = -1;
	if (path[0] == '\0')
		return;
	z->store = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (z->store == -1)
		log_event(LOG_LV_WARN, "module_store",
		    "%s: %s; tools with modules will fail", path,
		    strerror(errno));
}

int
modules_places(void)
{
	char path[64];
	unsigned i;

	if (mkdir(RUNNER_BASE RUNNER_MODULES, 0755) == -1)
		return -1;
	for (i = 0; i < MODULES_PER_CALL_MAX; i++) {
		(void)snprintf(path, sizeof(path), "%s%s/%u", RUNNER_BASE,
		    RUNNER_MODULES, i);
		if (mkdir(path, 0755) == -1)
			return -1;
	}
	return 0;
}

/* Clones one entry's mount, read-only, and attaches the clone nowhere. */
static int
clone_tree(const struct zygote *z, const char *name)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY |
		MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
	int fd;

	fd = (int)syscall(SYS_open_tree, z->store, name,
	    OPEN_TREE_CLONE | O_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (fd == -1)
		return -1;
	if (syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attr,
		sizeof(attr)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

void
modules_open(const struct zygote *z, const struct ipc_fork *f)
{
	char name[NAME];
	size_t i;

	for (i = 0; i < modules_count(f); i++) {
		name_of(f, i, name);
		errno = ENOENT;
		trees.fd[i] = z->store == -1 ? -1 : clone_tree(z, name);
		trees.error[i] = errno;
	}
}

void
modules_close(const struct ipc_fork *f)
{
	size_t i;

	for (i = 0; i < modules_count(f); i++)
		if (trees.fd[i] != -1)
			(void)close(trees.fd[i]);
}

int
modules_mount(struct runner *r)
{
	const size_t n = modules_count(r->fork);
	static char name[NAME];
	char path[64];
	size_t i;

	if (r->fork->modules.n == 0)
		return 0;
	if (r->fork->modules.n != n * DIGEST ||
	    r->fork->kind != RUNNER_PYTHON) {
		errno = EINVAL;
		return -1;
	}
	for (i = 0; i < n; i++) {
		name_of(r->fork, i, name);
		steps_path(name);
		if (trees.fd[i] == -1) {
			errno = trees.error[i];
			return -1;
		}
		(void)snprintf(path, sizeof(path), "%s%s/%zu", RUNNER_BASE,
		    RUNNER_MODULES, i);
		if (syscall(SYS_move_mount, trees.fd[i], "", AT_FDCWD, path,
			MOVE_MOUNT_F_EMPTY_PATH) == -1)
			return -1;
	}
	return 0;
}
