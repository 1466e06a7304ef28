/*
 * A runner's own mounts, on top of the template that it inherited with its
 * mount namespace (template.c): proc and /tmp. Everything else that the runner
 * sees is the zygote's read-only tree: pivot_root removes all other mounts.
 */
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "root.h"
#include "runner.h"
#include "steps_path.h"

#define TMPFS_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

int
mounts_restrict(const char *path, uint64_t attrs, bool recursive)
{
	struct mount_attr attr = {.attr_set = attrs};

	steps_path(path);
	return (int)syscall(SYS_mount_setattr, AT_FDCWD, path,
	    recursive ? AT_RECURSIVE : 0, &attr, sizeof(attr));
}

/* Returns the place of the runner's root before pivot_root. */
static const char *
base(const struct runner *r)
{
	return r->fork->kind == RUNNER_COMMAND ? TOOLBOX_BASE : RUNNER_BASE;
}

int
mounts_hostname(struct runner *r)
{
	static const char name[] = "sandbox";

	(void)r;
	if (sethostname(name, sizeof(name) - 1) == -1)
		return -1;
	return setdomainname("", 0);
}

/*
 * Mounts proc. subset=pid leaves out /proc/sys, kallsyms and all else that is
 * not a process; hidepid shows only the caller's own processes. The kernel
 * allows this mount only while a whole proc is visible, so it is made before
 * pivot_root.
 */
int
mounts_proc(struct runner *r)
{
	char path[RUNNER_PATH_MAX];

	steps_path("/proc");
	(void)snprintf(path, sizeof(path), "%s/proc", base(r));
	return mount("proc", path, "proc", TMPFS_FLAGS, "hidepid=2,subset=pid");
}

/*
 * Mounts /tmp. It belongs to the call's uid from the start, so no chown is
 * needed; tmpfs reads uid and gid in the mounter's user namespace. 0 bytes or
 * inodes would mean "no limit" to tmpfs, so they are refused.
 */
int
mounts_tmp(struct runner *r)
{
	const struct ipc_fork *f = r->fork;
	char options[128], path[RUNNER_PATH_MAX];

	steps_path("/tmp");
	if (f->tmp_bytes == 0 || f->tmp_inodes == 0) {
		errno = EINVAL;
		return -1;
	}
	(void)snprintf(options, sizeof(options),
	    "mode=0700,uid=%u,gid=%u,size=%llu,nr_inodes=%u", f->uid, f->uid,
	    (unsigned long long)f->tmp_bytes, f->tmp_inodes);
	(void)snprintf(path, sizeof(path), "%s/tmp", base(r));
	return mount("tmpfs", path, "tmpfs", TMPFS_FLAGS, options);
}

/*
 * Changes the root. If both arguments of pivot_root(2) are the same, it stacks
 * the old root on the new root. Detaching the old root takes every mount of the
 * host out of this namespace.
 */
int
mounts_pivot(struct runner *r)
{
	steps_path(base(r));
	if (chdir(base(r)) == -1)
		return -1;
	if (syscall(SYS_pivot_root, ".", ".") == -1)
		return -1;
	if (umount2(".", MNT_DETACH) == -1)
		return -1;
	return chdir("/");
}

int
mounts_cwd(struct runner *r)
{
	(void)r;
	steps_path("/tmp");
	return chdir("/tmp");
}
