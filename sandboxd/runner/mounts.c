/*
 * A runner's own mounts, on top of the template that it inherited with its
 * mount namespace (template.c): proc, /tmp and /etc. Everything else it sees
 * is the zygote's read-only tree, and after pivot_root nothing else is there.
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

#include "runner.h"

#define TMPFS_FLAGS (MS_NOSUID | MS_NODEV | MS_NOEXEC)

int
mounts_restrict(const char *path, uint64_t attrs, bool recursive)
{
	struct mount_attr attr = {.attr_set = attrs};

	steps_path(path);
	return (int)syscall(SYS_mount_setattr, AT_FDCWD, path,
	    recursive ? AT_RECURSIVE : 0, &attr, sizeof(attr));
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
 * subset=pid leaves out /proc/sys, kallsyms and all else that is not a
 * process; hidepid shows none but the caller's. The kernel allows this mount
 * only while a whole proc is visible, hence before pivot_root.
 */
int
mounts_proc(struct runner *r)
{
	(void)r;
	steps_path("/proc");
	return mount("proc", RUNNER_BASE "/proc", "proc", TMPFS_FLAGS,
	    "hidepid=2,subset=pid");
}

/* The size of /tmp is the call's; until then it holds nothing. */
int
mounts_tmp(struct runner *r)
{
	(void)r;
	steps_path("/tmp");
	return mount("tmpfs", RUNNER_BASE "/tmp", "tmpfs", TMPFS_FLAGS,
	    "mode=0700,size=4k,nr_inodes=2");
}

int
mounts_etc(struct runner *r)
{
	(void)r;
	steps_path("/etc");
	return mount("tmpfs", RUNNER_BASE "/etc", "tmpfs", TMPFS_FLAGS,
	    "mode=0755,size=64k,nr_inodes=16");
}

/*
 * pivot_root(2) with both arguments the same stacks the old root on the new
 * one; detaching it takes every mount of the host out of this namespace.
 */
int
mounts_pivot(struct runner *r)
{
	(void)r;
	steps_path(RUNNER_BASE);
	if (chdir(RUNNER_BASE) == -1)
		return -1;
	if (syscall(SYS_pivot_root, ".", ".") == -1)
		return -1;
	if (umount2(".", MNT_DETACH) == -1)
		return -1;
	return chdir("/");
}

static int
write_file(const char *path, const char *text)
{
	const size_t n = strlen(text);
	int fd, rc = -1;

	steps_path(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd == -1)
		return -1;
	if (write(fd, text, n) == (ssize_t)n && fchmod(fd, 0444) == 0)
		rc = 0;
	(void)close(fd);
	return rc;
}

/* Names for this one uid, and answers for the resolver that need no network.
 * Nothing of the host's /etc is in here. */
int
mounts_etc_files(struct runner *r)
{
	char passwd[128], group[128];
	const unsigned uid = r->header.uid;

	(void)snprintf(passwd, sizeof(passwd),
	    "tool:x:%u:%u:tool:/tmp:/nonexistent\n", uid, uid);
	(void)snprintf(group, sizeof(group), "tool:x:%u:\n", uid);
	if (write_file("/etc/passwd", passwd) == -1 ||
	    write_file("/etc/group", group) == -1 ||
	    write_file("/etc/hosts",
		"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 sandbox\n") ==
		-1 ||
	    write_file("/etc/nsswitch.conf",
		"passwd: files\ngroup: files\nhosts: files\n") == -1 ||
	    write_file("/etc/host.conf", "multi on\n") == -1)
		return -1;
	return mounts_restrict("/etc", MOUNT_ATTR_RDONLY, false);
}

/* The directory goes to the call's uid while CAP_CHOWN is still here. */
int
mounts_tmp_limits(struct runner *r)
{
	const struct ipc_runner_header *h = &r->header;
	char options[96];

	steps_path("/tmp");
	if (h->tmp_bytes == 0 || h->tmp_inodes == 0) {
		/* tmpfs reads 0 as "no limit" */
		errno = EINVAL;
		return -1;
	}
	(void)snprintf(options, sizeof(options), "size=%llu,nr_inodes=%u",
	    (unsigned long long)h->tmp_bytes, h->tmp_inodes);
	if (mount(NULL, "/tmp", NULL, MS_REMOUNT | TMPFS_FLAGS, options) == -1)
		return -1;
	return chown("/tmp", h->uid, h->uid);
}

int
mounts_cwd(struct runner *r)
{
	(void)r;
	steps_path("/tmp");
	return chdir("/tmp");
}
