/*
 * Network grants as one line of text: a version's declarations (`requires`) and
 * a server's grants, in one spelling, for vault, sandboxd and egress.
 *
 *	PROTO HOST PORT
 *
 * PROTO is tcp or udp. HOST is one that grantreq_host() accepts, or "*": any
 * host whose address is public. PORT is decimal without leading zeros. 0 means
 * 80 and 443 in a grant, and any port in a declaration. A LAN or loopback
 * address is covered only by a grant of exactly that address and port.
 * Lists are lines, a line feed after each.
 */
#ifndef NETGRANT_H
#define NETGRANT_H

#include <stdbool.h>
#include <stdint.h>

#include "bytes.h"
#include "err.h"
#include "grantreq.h"

enum netgrant_proto { NETGRANT_TCP = 6, NETGRANT_UDP = 17 }; /* IPPROTO_ */

enum { NETGRANT_LINE_MAX = 4 + GRANTREQ_HOST_MAX + 1 + 5 };

struct netgrant {
	enum netgrant_proto proto;
	bool any;              /* HOST is "*" */
	enum grant_host form;  /* the kind of the host, unless any */
	struct ipc_bytes host; /* borrowed from the line; WILD: with "*." */
	uint16_t port;         /* 0: see above */
};

/* Reads one line without its line feed. 0, or -1 with INVALID_PARAMS. Fuzzed.
 */
int netgrant_read(struct ipc_bytes line, struct netgrant *, struct err *);
/* Takes the next line off a list. Returns 1, 0 if the list is empty, or -1 if
 * the list does not begin with a valid line. */
int netgrant_next(struct ipc_bytes *list, struct netgrant *, struct err *);
/* Tells whether a grant (declared false) or a declaration (true) covers this
 * target. host: a name in lower case without a final dot, or an address as
 * inet_ntop(3) writes it (is_address). This does not judge whether an address
 * is public. */
bool netgrant_covers(const struct netgrant *, bool declared,
    enum netgrant_proto, struct ipc_bytes host, bool is_address, uint16_t port);
/* Tells whether this name may be resolved at all, because a line of the list
 * names it. */
bool netgrant_names(struct ipc_bytes list, struct ipc_bytes name);

#endif
