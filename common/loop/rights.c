#include "rights.h"

#include <sys/socket.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* asm-generic/socket.h of Linux 6.16 */
#endif

static int closer = -1;
static bool owed; /* say_closed() failed and is due again */

/* Sockets that the closer's queue had no room for. They stay open and are
 * offered again at the next rights_close(). The queue holds more than a hundred
 * sockets, so it is full only while the closer is busy. Our limit of
 * descriptors bounds these sockets: when no descriptor is left, runners get no
 * channel, and calls are refused. */
static int *kept;
static size_t nkept, maxkept;

static int
refuse(int sock)
{
	const int off = 0;

	return setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

bool
rights_refusable(void)
{
	int pair[2], rc;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return false;
	rc = refuse(pair[0]);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return rc == 0;
}

void
rights_closer(int sock)
{
	closer = sock;
}

int
rights_guard(int sock)
{
	return closer == -1 ? refuse(sock) : 0;
}

/*
 * Looks at a packet without taking it, and without room for descriptors. The
 * kernel takes a second reference to each descriptor in the packet, drops that
 * reference, and says MSG_CTRUNC. The packet keeps the first reference, so no
 * drop is the last.
 */
static ssize_t
peek(int sock, void *p, size_t n, bool *truncated)
{
	struct iovec iov = {p, n};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t got = recvmsg(sock, &m, MSG_PEEK | MSG_DONTWAIT);

	*truncated = got >= 0 && (m.msg_flags & MSG_CTRUNC) != 0;
	return got;
}

bool
rights_come(int sock)
{
	bool come = false;
	char byte;

	if (closer != -1)
		(void)peek(sock, &byte, sizeof(byte), &come);
	return come;
}

/*
 * Receives bytes, never descriptors. peek() never goes past bytes that bring
 * descriptors. No more of a stream is read than peek() saw, because bytes that
 * came since may bring descriptors.
 */
ssize_t
rights_recv(int sock, void *p, size_t n, int flags)
{
	ssize_t got;
	bool come;

	if (closer != -1) {
		if ((got = peek(sock, p, n, &come)) == -1)
			return -1;
		if (come) {
			errno = EPROTO;
			return -1;
		}
		n = (size_t)got;
	}
	return recv(sock, p, n, flags | MSG_DONTWAIT);
}

/*
 * Tells whether a packet is unread. Called when nothing more can come. A packet
 * without bytes reads like the end of input. But SO_PASSCRED makes the kernel
 * add the sender's name, for which there is no room here. So each packet is
 * marked as truncated, and the end of input is not. (The end of a stream is
 * marked, too: then the socket is given to the closer for nothing.)
 */
static bool
unread(int sock)
{
	const int on = 1;
	bool truncated;
	char byte;

	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
		return true;
	return peek(sock, &byte, sizeof(byte), &truncated) > 0 || truncated;
}

/* Tells the closer that we have closed the socket that the closer holds. */
static void
say_closed(void)
{
	const char byte = 0;

	owed = send(closer, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == -1;
}

/* Gives a socket to the closer, which holds it until we have closed our
 * descriptor, so our close isn't the last. say_closed() tells the closer of our
 * close. If that fails, the closer learns of our close from the next socket. */
static bool
give(int sock)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	char byte = 0;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.buf,
	    .msg_controllen = sizeof(control.buf)};
	struct cmsghdr *c;

	memset(&control, 0, sizeof(control));
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &sock, sizeof(sock));
	if (sendmsg(closer, &m, MSG_DONTWAIT | MSG_NOSIGNAL) == -1) {
		if (errno == EPIPE || errno == ECONNRESET)
			log_fatal("closer",
			    "the process that closes runners' sockets is gone");
		return false;
	}
	(void)close(sock);
	say_closed();
	return true;
}

/* Keeps a socket for the next rights_close(). If there is no memory to remember
 * the socket, it stays open. */
static void
keep(int sock)
{
	const size_t n = maxkept == 0 ? 64 : 2 * maxkept;
	int *more;

	if (nkept == maxkept) {
		if ((more = reallocarray(kept, n, sizeof(*kept))) == NULL)
			return;
		kept = more;
		maxkept = n;
	}
	kept[nkept++] = sock;
}

void
rights_close(int sock)
{
	if (closer == -1) {
		(void)close(sock);
		return;
	}
	/* From now on a sender gets EPIPE, and the descriptors it wanted to
	 * send stay with it. */
	(void)shutdown(sock, SHUT_RDWR);
	while (nkept > 0 && give(kept[nkept - 1]))
		nkept--;
	if (owed)
		say_closed();
	if (!unread(sock))
		(void)close(sock);
	else if (!give(sock))
		keep(sock);
}
