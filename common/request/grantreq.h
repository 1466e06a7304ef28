/*
 * Grants: the pre-image that a person approves in the queues of modules and of
 * network access. The pre-image is the text "mcpbox grant 1" and a NUL, then a
 * TLV list of the fields below in this order. SHA-256 over the whole pre-image
 * names the request. The vault seals that hash; admind-http and mcpboxctl show
 * the pre-image and compute the hash themselves, as for versions (version.h).
 * docs/decisions/0037.
 *
 * One content has one pre-image. A host has one spelling (grantreq_host), so
 * the host shown is the host opened. AFFECTED are the serving versions that
 * this grant touches. When these versions change, the pre-image is that of
 * another request.
 */
#ifndef GRANTREQ_H
#define GRANTREQ_H

#include <stdbool.h>

#include "buf.h"
#include "bytes.h"
#include "err.h"

enum {
	GRANTREQ_HOST_MAX = 253, /* RFC 1035: of a name in text */
	GRANTREQ_NAME_MAX = 128, /* of a module, a server, a tool */
	GRANTREQ_VERSION_MAX = 64,
	/* Versions that one grant may touch: more than a server serves well. */
	GRANTREQ_AFFECTED_MAX = 4096,
	GRANTREQ_MAX = GRANTREQ_AFFECTED_MAX * 37 + 2048
};

enum grant_kind { GRANT_MODULE = 1, GRANT_NETWORK = 2 };

enum grantreq_tag {
	GRANTREQ_KIND = 1,        /* u64 enum grant_kind */
	GRANTREQ_REQUEST = 2,     /* uuid of the request */
	GRANTREQ_SERVER_ID = 3,   /* uuid */
	GRANTREQ_SERVER_NAME = 4, /* text */
	/* of a module; the last four only if the module is in the store */
	GRANTREQ_TOOL_ID = 5,   /* uuid */
	GRANTREQ_TOOL_NAME = 6, /* text */
	GRANTREQ_NAME = 7,      /* text, as PyPI normalises it */
	GRANTREQ_VERSION = 8,   /* text */
	GRANTREQ_DIGEST = 9,    /* 32 bytes: of the entry in the store */
	GRANTREQ_FILES = 10,    /* u64 */
	GRANTREQ_SIZE = 11,     /* u64 bytes */
	/* of network access */
	GRANTREQ_PROTO = 12, /* text: tcp, udp */
	GRANTREQ_HOST = 13,  /* text: see grantreq_host */
	GRANTREQ_PORT = 14,  /* u64, 1 to 65535; 0: 80 and 443 (of tcp) */
	/* of both: version hashes, ascending, any number */
	GRANTREQ_AFFECTED = 15
};

struct grantreq {
	enum grant_kind kind;
	struct ipc_id request, server, tool;
	struct ipc_bytes server_name, tool_name, name, version; /* borrowed */
	struct ipc_bytes proto, host;
	bool recorded; /* the module is in the store, so it can be approved */
	struct ipc_hash digest;
	uint64_t files, size, port;
	size_t naffected;
	const uint8_t *affected; /* first field; see grantreq_affected */
};

/* Reads a pre-image. This is the only reader; it is strict and fuzzed. 0, or -1
 * with FAILURE_INVALID_PARAMS. */
int grantreq_read(
    const void *preimage, size_t n, struct grantreq *, struct err *);
/* Returns the i-th version hash, 32 bytes. */
const uint8_t *grantreq_affected(const struct grantreq *, size_t i);
/* Tells whether these bytes begin like the pre-image of a grant. */
bool grantreq_is(const void *preimage, size_t n);
/* Writes a pre-image as a JSON object for people and REST, in ASCII as
 * version_json does. */
int grantreq_json(
    const void *preimage, size_t n, struct buf *out, struct err *);

/* Writes the target of a network grant as people read and write it: host,
 * host:port, udp:host:port, [IPv6]:port. */
void grantreq_host_text(const struct grantreq *, struct buf *out);

/* Kinds of a host. */
enum grant_host {
	GRANT_HOST_BAD = 0,
	GRANT_HOST_NAME = 1, /* example.org */
	GRANT_HOST_LOCAL =
	    2, /* one label, or below a domain of local networks */
	GRANT_HOST_WILD = 3, /* *.example.org */
	GRANT_HOST_IP = 4,   /* 192.0.2.1, 2001:db8::1 */
	GRANT_HOST_ANY = 5   /* *: every host whose address is public */
};
/*
 * Returns the kind of a host. A host is BAD unless it has its only valid
 * spelling: lower-case letters, digits and dashes in labels of 1 to 63, no
 * final dot, no digit at the beginning of the last label; *. before two labels
 * at least; * alone; or an address as inet_ntop(3) writes it. localhost,
 * link-local, multicast and IPv4 in IPv6 are BAD, too: no one may grant them.
 * (A loopback or private address is covered only by a grant of exactly that
 * address and port: netgrant.h.)
 */
enum grant_host grantreq_host(struct ipc_bytes);

/*
 * Appends to line an entry that an author wrote in `requires`, in the spelling
 * of netgrant.h. The entry is host, host:port, *.domain, *, udp:host:port or
 * [IPv6]:port, in any case, with or without a final dot. SQL's need_parts()
 * does the same. 0, or -1 with FAILURE_INVALID_PARAMS; line is then unchanged.
 * Fuzzed.
 */
int grantreq_need(struct ipc_bytes text, struct buf *line, struct err *);

#endif
