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
#include <string.h>
#include <unistd.h>

#include "notify.h"
#include "peek_look.h"

enum {
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

int
peek_look_start(struct err *e)
{
	_Static_assert(sizeof(carried) / sizeof(carried[0]) <= PEEK_OPTIONS_MAX,
	    "room for what is carried over");
	return notify_start(e);
}

/* notify_continue is never called: the kernel would read the address again, and
 * connect in the runner's own namespace. */
void
peek_look_answer(int listener, uint64_t id, int error)
{
	notify_answer(listener, id, error);
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
	flags = notify_number(path, "flags:", 8);
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
	if ((process = notify_process(c->tid)) < 0)
		return notify_valid(listener, c->id) ? EBADF : -1;
	sock = notify_descriptor(process, c->fd);
	if (sock < 0)
		error = EBADF;
	else if (int_option(sock, SO_DOMAIN) < 0)
		error = ENOTSOCK;
	else if ((error = read_flags(c)) == 0)
		error = notify_read(c->tid, n->data.args[1], c->address,
		    c->naddress); /* not read again */
	if (!notify_valid(listener, c->id))
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
	const struct seccomp_notif *n;
	int error, rc;

	*answered = false;
	if ((rc = notify_take(listener, &n)) != 1)
		return rc;
	error = look(listener, n, c);
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
	if (rc == 0 && notify_number("/proc/1/fdinfo/3", "flags:", 8) < 0)
		rc = err_sys(e, FAILURE_SANDBOX_UNAVAILABLE, "fdinfo");
	return rc;
}
