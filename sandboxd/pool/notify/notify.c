/* See notify.h. */
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "notify.h"

/* Linux 6.9. */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

enum {
	/* Bytes for a structure of the kernel. The kernel tells the sizes,
	 * which may grow. */
	NOTIF_MAX = 512
};

static union {
	struct seccomp_notif n;
	unsigned char room[NOTIF_MAX];
} notif;
static union {
	struct seccomp_notif_resp r;
	unsigned char room[NOTIF_MAX];
} resp;
static size_t notif_size, resp_size;

int
notify_start(struct err *e)
{
	struct seccomp_notif_sizes sizes;

	if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &sizes) != 0)
		return err_sys(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "seccomp notifications");
	if (sizes.seccomp_notif > NOTIF_MAX ||
	    sizes.seccomp_notif_resp > NOTIF_MAX)
		return err_set(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "a seccomp notification has %u bytes",
		    (unsigned)sizes.seccomp_notif);
	notif_size = sizes.seccomp_notif;
	resp_size = sizes.seccomp_notif_resp;
	return 0;
}

int
notify_take(int listener, const struct seccomp_notif **out)
{
	memset(notif.room, 0, notif_size);
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notif.n) != 0)
		/* ENOENT: the caller was killed before we looked. */
		return errno == ENOENT || errno == EINTR ? 0 : -1;
	*out = &notif.n;
	return 1;
}

static void
send_answer(int listener, uint64_t id, int error, uint32_t flags)
{
	memset(resp.room, 0, resp_size);
	resp.r.id = id;
	resp.r.error = -error;
	resp.r.flags = flags;
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp.r);
}

void
notify_answer(int listener, uint64_t id, int error)
{
	send_answer(listener, id, error, 0);
}

void
notify_continue(int listener, uint64_t id)
{
	send_answer(listener, id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

bool
notify_valid(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

long
notify_number(const char *path, const char *key, int base)
{
	char text[2048];
	const char *at;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return -1;
	text[n] = '\0';
	at = strstr(text, key);
	return at == NULL ? -1 : strtol(at + strlen(key), NULL, base);
}

int
notify_process(uint32_t tid)
{
	char path[64];
	long tgid;
	int fd = (int)syscall(SYS_pidfd_open, tid, PIDFD_THREAD);

	if (fd >= 0 || errno != EINVAL)
		return fd;
	fd = (int)syscall(SYS_pidfd_open, tid, 0);
	if (fd >= 0 || (errno != EINVAL && errno != ENOENT))
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/%u/status", tid);
	tgid = notify_number(path, "\nTgid:", 10);
	if (tgid <= 0) {
		errno = ESRCH;
		return -1;
	}
	return (int)syscall(SYS_pidfd_open, (int)tgid, 0);
}

int
notify_descriptor(int process, int fd)
{
	return (int)syscall(SYS_pidfd_getfd, process, fd, 0);
}

int
notify_read(uint32_t tid, uint64_t at, void *out, size_t n)
{
	struct iovec here = {out, n};
	struct iovec there = {(void *)(uintptr_t)at, n};

	if (n == 0)
		return 0;
	return process_vm_readv((pid_t)tid, &here, 1, &there, 1, 0) ==
		(ssize_t)n
	    ? 0
	    : EFAULT;
}
