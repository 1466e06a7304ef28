/*
 * Copies a connect(2) from its notification, so that nothing can change the
 * copy.
 *
 * The caller is hostile. While we look, other threads and processes of its call
 * may rewrite the address, put another socket under the same descriptor number
 * with dup2, close the number, or end the caller. So:
 *
 *  - The address is copied once, 128 bytes at most, and egress judges the copy
 *    and connects to it. The kernel never reads the address in the runner: the
 *    connect(2) is answered, never continued (seccomp_unotify(2) says why).
 *  - A thread id may be given to another thread while we use it. After the
 *    process was opened and the address copied, NOTIF_ID_VALID says whether the
 *    caller is still in its connect(2). If so, id, process and memory were the
 *    caller's all the time. If not, the copy is thrown away.
 *  - The number may name another socket at each look. That decides nothing: the
 *    socket's family and options shape the answer that this same runner gets,
 *    and egress' socket goes into the runner's own table of descriptors.
 *
 * So by such changes a runner gets only a connection that it could have asked
 * for without them, or none.
 *
 * A thread may have a descriptor table of its own (clone without CLONE_FILES).
 * Since Linux 6.9 the descriptor is found by the thread's id. On older kernels
 * it is looked for in the table of the thread's process. There the number may
 * name another socket, which decides nothing, as said above.
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "peek_look.h"

/* Linux 6.9. */
#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL
#endif

enum {
	/* Bytes for a structure of the kernel. The kernel tells the sizes,
	 * which may grow. */
	NOTIF_MAX = 512,
	/* connect(2) accepts an IPv6 address as short as this (RFC 2133). */
	IN6_LEN_MIN = 24
};

/* The options that are carried over to egress' socket. SO_LINGER is left out,
 * because a runner can't set it (filter_net.c), and so are options that mean
 * nothing for a connected socket. */
static const struct {
	int level, option;
} carried[] = {
    {SOL_SOCKET, SO_RCVTIMEO},
    {SOL_SOCKET, SO_SNDTIMEO},
    {SOL_SOCKET, SO_KEEPALIVE},
    {IPPROTO_TCP, TCP_NODELAY},
    {IPPROTO_TCP, TCP_CORK},
    {IPPROTO_TCP, TCP_KEEPIDLE},
    {IPPROTO_TCP, TCP_KEEPINTVL},
    {IPPROTO_TCP, TCP_KEEPCNT},
    {IPPROTO_TCP, TCP_USER_TIMEOUT},
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
peek_look_start(struct err *e)
{
	struct seccomp_notif_sizes sizes;

	_Static_assert(sizeof(carried) / sizeof(carried[0]) <= PEEK_OPTIONS_MAX,
	    "room for what is carried over");
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

void
peek_look_answer(int listener, uint64_t id, int error)
{
	memset(resp.room, 0, resp_size);
	resp.r.id = id;
	resp.r.error = -error;
	/* SECCOMP_USER_NOTIF_FLAG_CONTINUE is never set: the kernel would read
	 * the address again, and connect in the runner's own namespace. */
	(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &resp.r);
}

static bool
valid(int listener, uint64_t id)
{
	return ioctl(listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

/* Reads the number after this key in a file of proc; -1 if there is none. */
static long
number(const char *path, const char *key, int base)
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

/* Returns a pidfd of the thread, or of its process. -1 with errno. */
static int
open_process(uint32_t tid)
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
	tgid = number(path, "\nTgid:", 10);
	if (tgid <= 0) {
		errno = ESRCH;
		return -1;
	}
	return (int)syscall(SYS_pidfd_open, (int)tgid, 0);
}

/*
 * Reads whether the socket is non-blocking and close-on-exec. Close-on-exec
 * belongs to the descriptor's number, not to the socket, so only /proc has it.
 * If /proc lacks the number, the descriptor was closed since the call.
 *
 * Call this for sockets only. For an epoll set the kernel writes down all
 * watched descriptors before we can read the first line. A call can make sets
 * with a million entries, and each read of such a set takes a second of our
 * time. A runner may still replace its socket by such a set just before the
 * read; peek.c then makes that runner wait.
 */
static int
read_flags(struct peek_connect *c)
{
	char path[64];
	long flags;

	(void)snprintf(path, sizeof(path), "/proc/%u/fdinfo/%d", c->tid, c->fd);
	flags = number(path, "flags:", 8);
	if (flags < 0)
		return EBADF;
	c->nonblocking = (flags & O_NONBLOCK) != 0;
	c->cloexec = (flags & O_CLOEXEC) != 0;
	return 0;
}

/* Reads all options of `carried`, changed by the runner or not: peek_put.c
 * finds out which of their values differ at egress' socket. */
static void
read_options(int sock, struct peek_connect *c)
{
	struct peek_option *o;
	socklen_t n;

	c->noptions = 0;
	for (size_t i = 0; i < sizeof(carried) / sizeof(carried[0]); i++) {
		o = &c->option[c->noptions];
		n = sizeof(o->value);
		if (getsockopt(sock, carried[i].level, carried[i].option,
			o->value, &n) != 0)
			continue;
		o->level = carried[i].level;
		o->option = carried[i].option;
		o->n = (unsigned)n;
		c->noptions++;
	}
}

static int
int_option(int sock, int option)
{
	socklen_t n = sizeof(int);
	int value = -1;

	return getsockopt(sock, SOL_SOCKET, option, &value, &n) == 0 ? value
								     : -1;
}

/* Returns the errno that connect(2) would give for a TCP socket that is
 * connected already or connecting, or that failed to connect and whose error
 * was not read. 0: no error. */
static int
tcp_state(int sock)
{
	struct tcp_info info;
	socklen_t n = sizeof(info);
	int error;

	memset(&info, 0, sizeof(info));
	if (getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &n) != 0)
		return EINVAL;
	if (info.tcpi_state == TCP_SYN_SENT || info.tcpi_state == TCP_SYN_RECV)
		return EALREADY;
	if (info.tcpi_state != TCP_CLOSE)
		return EISCONN;
	error = int_option(sock, SO_ERROR);
	return error > 0 ? error : 0;
}

/*
 * Judges the kinds of the socket and of the address. 0 or an errno.
 *
 * A unix socket of type SEQPACKET that asks for an internet address is a UDP
 * relay put in place earlier: UDP sockets may connect again. (If a runner makes
 * such a socket itself, its grants for UDP decide, as for a UDP socket.) Other
 * unix sockets are the tool's own, which can't connect to such an address, or
 * the stream to the resolver.
 */
static int
judge(int sock, struct peek_connect *c)
{
	const int domain = int_option(sock, SO_DOMAIN);
	const int type = int_option(sock, SO_TYPE);
	const int protocol = int_option(sock, SO_PROTOCOL);
	sa_family_t wanted;

	if (domain < 0 || type < 0)
		return ENOTSOCK;
	if (c->naddress < sizeof(wanted))
		return EINVAL;
	memcpy(&wanted, c->address, sizeof(wanted));
	if (wanted == AF_UNIX)
		return EPERM;
	/* AF_UNSPEC would undo a connection, and leave the runner with an
	 * unconnected socket of the host's namespace. */
	if (wanted != AF_INET && wanted != AF_INET6)
		return EAFNOSUPPORT;
	if (c->naddress < (wanted == AF_INET ? sizeof(struct sockaddr_in)
					     : (size_t)IN6_LEN_MIN))
		return EINVAL;
	if (domain == AF_UNIX) {
		if (type != SOCK_SEQPACKET)
			return type == SOCK_STREAM ? EISCONN : EPROTOTYPE;
		c->family = wanted;
		c->type = SOCK_DGRAM;
		return 0;
	}
	if ((domain != AF_INET && domain != AF_INET6) ||
	    !((type == SOCK_STREAM && protocol == IPPROTO_TCP) ||
		(type == SOCK_DGRAM && protocol == IPPROTO_UDP)))
		return EPROTONOSUPPORT;
	/* UDP over IPv6 takes addresses of both families. */
	if (wanted != domain && !(type == SOCK_DGRAM && domain == AF_INET6))
		return EAFNOSUPPORT;
	c->family = (uint16_t)domain;
	c->type = (uint16_t)type;
	return type == SOCK_STREAM ? tcp_state(sock) : 0;
}

/* Copies the address, which is not read again. 0 or an errno. */
static int
read_address(uint64_t at, struct peek_connect *c)
{
	struct iovec here = {c->address, c->naddress};
	struct iovec there = {(void *)(uintptr_t)at, c->naddress};

	if (c->naddress == 0)
		return 0;
	return process_vm_readv((pid_t)c->tid, &here, 1, &there, 1, 0) ==
		(ssize_t)c->naddress
	    ? 0
	    : EFAULT;
}

/* Fills *c. 0; an errno to answer with; -1: the caller does not wait any
 * more. */
static int
look(int listener, const struct seccomp_notif *n, struct peek_connect *c)
{
	const int length = (int)n->data.args[2];
	int process, sock = -1, error;

	c->id = n->id;
	c->tid = n->pid;
	c->fd = (int)n->data.args[0];
	if (c->tid == 0)
		return EPERM; /* a process that we can't see */
	if (length < 0 || length > PEEK_ADDRESS_MAX)
		return EINVAL;
	c->naddress = (size_t)length;
	if ((process = open_process(c->tid)) < 0)
		return valid(listener, c->id) ? EBADF : -1;
	sock = (int)syscall(SYS_pidfd_getfd, process, c->fd, 0);
	if (sock < 0)
		error = EBADF;
	else if (int_option(sock, SO_DOMAIN) < 0)
		error = ENOTSOCK;
	else if ((error = read_flags(c)) == 0)
		error = read_address(n->data.args[1], c);
	if (!valid(listener, c->id))
		error = -1;
	else if (error == 0)
		error = judge(sock, c);
	if (error == 0)
		read_options(sock, c);
	if (sock >= 0)
		close(sock);
	close(process);
	return error;
}

int
peek_look(int listener, struct peek_connect *c, bool *answered)
{
	int error;

	*answered = false;
	memset(notif.room, 0, notif_size);
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &notif.n) != 0)
		/* ENOENT: the caller was killed before we looked. */
		return errno == ENOENT || errno == EINTR ? 0 : -1;
	error = look(listener, &notif.n, c);
	if (error == 0)
		return 1;
	*answered = true;
	if (error > 0)
		peek_look_answer(listener, c->id, error);
	return 0;
}

/*
 * Tries the reads on pid 1. Pid 1 has capabilities that peek gave up, so only
 * CAP_SYS_PTRACE allows the reads, as with a runner. There is nothing at these
 * addresses and numbers, and the kernel says so only to a process that may
 * look.
 */
int
peek_look_try(struct err *e)
{
	unsigned char byte;
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)8, 1};
	int process, rc = 0;

	if (process_vm_readv(1, &here, 1, &there, 1, 0) >= 0 || errno != EFAULT)
		return err_sys(
		    e, FAILURE_SANDBOX_UNAVAILABLE, "process_vm_readv");
	if ((process = (int)syscall(SYS_pidfd_open, 1, 0)) < 0)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "pidfd_open");
	if (syscall(SYS_pidfd_getfd, process, 1 << 20, 0) >= 0 ||
	    errno != EBADF)
		rc = err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "pidfd_getfd");
	close(process);
	if (rc == 0 && number("/proc/1/fdinfo/3", "flags:", 8) < 0)
		rc = err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "fdinfo");
	return rc;
}
