/* See setup.h. */
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <string.h>
#include <unistd.h>

#include "setup.h"

/* Writes a short text to a file of the proc mounted here. */
static int
put_file(const char *path, const char *text, struct err *e)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "open %s", path);
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text)) {
		(void)err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "write %s", path);
		close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

int
setup_namespaces(struct buf *layers, struct err *e)
{
	/*
	 * Mount events must not pass between host and pool. This namespace is a
	 * copy of the host's, so its mounts are slaves or shared peers of the
	 * host's mounts until they are private.
	 */
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		return err_sys(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "make all mounts private");
	/*
	 * Mount a proc of our own pid namespace over the host's, so that the
	 * zygote and the runners' set-up see the pool's processes only. It is a
	 * full proc, because the runners' subset=pid proc can be mounted only
	 * while a full one is visible.
	 */
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		NULL) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "mount /proc");
	/*
	 * No process in the pool may make another user namespace, whatever an
	 * attacker has taken over: most kernel holes of the last years could be
	 * used only from a new user namespace. The limit belongs to our user
	 * namespace and can be raised only with CAP_SYS_RESOURCE in it, which
	 * no runner has.
	 */
	if (put_file("/proc/sys/user/max_user_namespaces", "0", e) != 0)
		return -1;
	buf_puts(layers,
	    "pool_namespaces=enforced\n"
	    "pool_no_user_namespaces=enforced\n");
	return 0;
}

int
setup_drop(struct buf *layers, struct err *e)
{
	struct __user_cap_header_struct h = {
	    .version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {0};

	/*
	 * Runners have other uids, so signalling them needs CAP_KILL; nothing
	 * else that pool-init does from here on needs any capability.
	 */
	d[0].effective = d[0].permitted = 1U << CAP_KILL;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "no_new_privs");
	if (syscall(SYS_capset, &h, d) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "capset");
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "dumpable");
	buf_puts(layers, "pool_init_capabilities=enforced\n");
	return 0;
}
