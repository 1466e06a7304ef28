/*
 * The part of the filter for runners with network.
 *
 * A socket that such a runner makes is in the runner's own network namespace,
 * which is empty, so the socket reaches nothing. Only connect(2) leads out, and
 * the kernel does not carry out the runner's connect(2) but raises a
 * notification. peek then replaces the runner's socket by a socket that
 * sandboxd-egress has connected, if the grants and the address policy allow it
 * (sandboxd/pool/peek/peek.c).
 *
 * The new socket belongs to the host's network namespace. So the list here is
 * also all that a tool may do to a socket out there, and must not open a second
 * way out: no bind, listen or accept (a socket whose connection was shut down
 * can listen), no MSG_FASTOPEN and no TCP_FASTOPEN_CONNECT (they connect while
 * sending), no TCP_REPAIR (it connects without a packet), no TCP_ULP, no
 * SO_BINDTODEVICE and SO_MARK (they choose other routes), no IP_TRANSPARENT, no
 * SIOCG* (they list the host's interfaces). No rule names these, because a call
 * that isn't listed is refused.
 *
 * Family, type and protocol are judged together. So raw, MPTCP, SCTP, UDP-Lite
 * and ICMP sockets are refused: the table below has none of them.
 */
#include <sys/socket.h>
#include <sys/syscall.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>

#include "filter_net.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Flags that are or-ed to a socket's type; all other bits of the 64-bit
 * argument must be the type and nothing else. */
#define TYPE_FLAGS ((scmp_datum_t)(SOCK_NONBLOCK | SOCK_CLOEXEC))

static const struct {
	int family, type, protocol;
} sockets[] = {
    {AF_INET, SOCK_STREAM, 0},
    {AF_INET, SOCK_STREAM, IPPROTO_TCP},
    {AF_INET, SOCK_DGRAM, 0},
    {AF_INET, SOCK_DGRAM, IPPROTO_UDP},
    {AF_INET6, SOCK_STREAM, 0},
    {AF_INET6, SOCK_STREAM, IPPROTO_TCP},
    {AF_INET6, SOCK_DGRAM, 0},
    {AF_INET6, SOCK_DGRAM, IPPROTO_UDP},
};

/* Options that a tool may set and read: they keep the tool's own connection
 * alive or cut its data into packets. peek carries over the options that were
 * set before connect(2) (peek_look.c), except IPV6_V6ONLY, which means nothing
 * for a connected socket. */
static const struct {
	int level, option;
} options[] = {
    {IPPROTO_TCP, TCP_NODELAY},
    {IPPROTO_TCP, TCP_CORK},
    {IPPROTO_TCP, TCP_QUICKACK},
    {IPPROTO_TCP, TCP_KEEPIDLE},
    {IPPROTO_TCP, TCP_KEEPINTVL},
    {IPPROTO_TCP, TCP_KEEPCNT},
    {IPPROTO_TCP, TCP_USER_TIMEOUT},
    {IPPROTO_IPV6, IPV6_V6ONLY},
};

int
filter_net_rules(scmp_filter_ctx ctx)
{
	size_t i;
	int rc;

	rc = seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, SCMP_SYS(connect), 0);
	for (i = 0; i < LENGTH(sockets) && rc == 0; i++)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 3,
		    SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)sockets[i].family),
		    SCMP_A1(SCMP_CMP_MASKED_EQ, ~TYPE_FLAGS,
			(scmp_datum_t)sockets[i].type),
		    SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)sockets[i].protocol));
	for (i = 0; i < LENGTH(options) && rc == 0; i++) {
		const struct scmp_arg_cmp level =
		    SCMP_A1(SCMP_CMP_EQ, (scmp_datum_t)options[i].level);
		const struct scmp_arg_cmp option =
		    SCMP_A2(SCMP_CMP_EQ, (scmp_datum_t)options[i].option);

		rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(setsockopt),
		    2, level, option);
		if (rc == 0)
			rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW,
			    SCMP_SYS(getsockopt), 2, level, option);
	}
	/*
	 * SO_LINGER is answered with success but not set. With it, a process
	 * that closes the last copy of a socket waits. peek may close its copy
	 * after the tool has closed the tool's copy, so a tool could make peek
	 * wait, and with peek the connections of all other calls.
	 */
	if (rc == 0)
		rc = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(0),
		    SCMP_SYS(setsockopt), 2, SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
		    SCMP_A2(SCMP_CMP_EQ, SO_LINGER));
	return rc;
}
