/* See deny.h. */
#include <sys/socket.h>

#include <errno.h>
#include <seccomp.h>
#include <stddef.h>

#include "denied.h"
#include "deny.h"

/* The pool speaks through socketpairs alone. Runners that are granted hosts
 * make internet sockets in empty namespaces, and peek replaces these sockets
 * (runner/confine/filter_net.c). No process needs the families below. */
static const int families[] = {AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP};

/* spawn makes its one listener before it loads this list. From then on spawn
 * and its children need no other listener, and no raw internet sockets. */
static const int listening[] = {SCMP_SYS(bind), SCMP_SYS(listen)};
static const int internet[] = {AF_INET, AF_INET6};

int
deny_load(struct err *e)
{
	scmp_filter_ctx ctx;
	int rc = -1;

	if ((ctx = seccomp_init(SCMP_ACT_ALLOW)) == NULL)
		return err_set(e, FAILURE_INTERNAL, "no memory for seccomp");
	/* Our code, from spawn to the runners, makes none of these calls, and
	 * the runners' own list allows none. */
	if (denied_add(ctx) != 0 || denied_add_tracing(ctx) != 0)
		goto bad;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EAFNOSUPPORT),
			SCMP_SYS(socket), 1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff,
			    (scmp_datum_t)families[i])) != 0)
			goto bad;
	for (size_t i = 0; i < 2; i++)
		if (seccomp_rule_add(
			ctx, SCMP_ACT_ERRNO(EPERM), listening[i], 0) != 0 ||
		    seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM),
			SCMP_SYS(socket), 2,
			SCMP_A0(SCMP_CMP_MASKED_EQ, 0xffffffff,
			    (scmp_datum_t)internet[i]),
			SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_RAW)) != 0)
			goto bad;
	if (seccomp_load(ctx) == 0)
		rc = 0;
bad:
	seccomp_release(ctx);
	if (rc != 0)
		return err_set(
		    e, FAILURE_INTERNAL, "spawn's seccomp list does not load");
	return 0;
}
