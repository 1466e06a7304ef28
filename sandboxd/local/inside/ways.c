/*
 * The sockets inside by which the process of the network (../net/net.h) serves
 * the program, and the filter by which connect(2) waits for that process.
 */
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <unistd.h>

#include "inside.h"

enum { DNS_PORT = 53, IPV6_BIT = 1 << 16 };

/* Flags of seccomp(2): return a listener; only a fatal signal interrupts a call
 * that was read (Linux 5.19). */
enum { FILTER_LISTEN = 1 << 3, FILTER_WAIT_KILLABLE = 1 << 5 };

static socklen_t
loopback(int family, uint16_t port, struct sockaddr_storage *ss)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

	*ss = (struct sockaddr_storage){.ss_family = (sa_family_t)family};
	if (family == AF_INET) {
		in->sin_port = htons(port);
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*in);
	}
	in6->sin6_port = htons(port);
	in6->sin6_addr = in6addr_loopback;
	return sizeof(*in6);
}

/* Makes a bound socket and sends it outside. 0, or -1 with errno. */
static int
send_bound(const struct inside *in, int family, int type, uint16_t port,
    enum inside_kind kind, int value)
{
	struct sockaddr_storage ss;
	const socklen_t n = loopback(family, port, &ss);
	int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = -1;

	if (fd == -1)
		return -1;
	if (bind(fd, (struct sockaddr *)&ss, n) == 0 &&
	    (type != SOCK_STREAM || listen(fd, SOMAXCONN) == 0) &&
	    inside_send(in->channel, kind, value, "", fd) == 0)
		rc = 0;
	close(fd);
	return rc;
}

int
ways_open(const struct inside *in, struct err *e)
{
	if (send_bound(in, AF_INET, SOCK_DGRAM, DNS_PORT, INSIDE_DNS, 0) ==
		-1 ||
	    send_bound(in, AF_INET, SOCK_STREAM, 0, INSIDE_RELAY, 0) == -1)
		return err_sys(e, FAILURE_INTERNAL, "the program's network");
	/* A kernel without IPv6 has no ::1, and the program no IPv6 socket. */
	(void)send_bound(in, AF_INET6, SOCK_STREAM, 0, INSIDE_RELAY, 1);
	return 0;
}

/*
 * The process of the network may ask for any port inside: it serves the ports
 * that the user published, and a taken-over one gains connections to the
 * program that it serves anyway.
 */
bool
ways_dial(int dialer)
{
	struct inside_message m;
	struct sockaddr_storage ss;
	socklen_t n;
	int fd, family;

	if (inside_receive(dialer, &m, &fd) != 1)
		return false;
	if (fd != -1)
		close(fd);
	family = (m.value & IPV6_BIT) != 0 ? AF_INET6 : AF_INET;
	n = loopback(family, (uint16_t)(m.value & UINT16_MAX), &ss);
	fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd != -1 && connect(fd, (struct sockaddr *)&ss, n) == -1 &&
	    errno != EINPROGRESS) {
		close(fd);
		fd = -1;
	}
	(void)inside_send(dialer, INSIDE_DIALLED, 0, "", fd);
	if (fd != -1)
		close(fd);
	return true;
}

/*
 * The first filter kills calls by other numbers (x32, int 0x80), so this one
 * need not judge the architecture.
 */
int
ways_listen(const struct inside *in, struct err *e)
{
	struct sock_filter code[] = {
	    BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_connect, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {
	    .len = sizeof(code) / sizeof(code[0]), .filter = code};
	int fd, rc;

	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	    FILTER_LISTEN | FILTER_WAIT_KILLABLE, &program);
	if (fd == -1 && errno == EINVAL)
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		    FILTER_LISTEN, &program);
	if (fd == -1 && errno == EBUSY)
		return err_set(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "--net does not work in this container: its own filter "
		    "listens already");
	if (fd == -1)
		return err_sys(e, FAILURE_SANDBOX_UNAVAILABLE,
		    "the filter for --net (it needs Linux 5.9)");
	rc = inside_send(in->channel, INSIDE_LISTENER, 0, "", fd);
	close(fd);
	if (rc == -1)
		return err_sys(e, FAILURE_INTERNAL, "the program's network");
	return 0;
}
