/*
 * Targets of notifications, as the access document has them in the member
 * "notify": one text, words after one space each (docs/decisions/0112).
 *
 *	webhook URL secret=SERVER/NAME
 *	ntfy URL [secret=SERVER/NAME]
 *	matrix URL ROOM secret=SERVER/NAME
 *	smtp HOST[:PORT] FROM TO [secret=SERVER/NAME]
 *	smtps HOST[:PORT] FROM TO [secret=SERVER/NAME]
 *
 * It is one text, so that the vault, which does not parse JSON, can find a host
 * and its secret together in the sealed document.
 */
#ifndef TARGET_H
#define TARGET_H

#include <stdbool.h>

#include "bytes.h"

enum { TARGET_TEXT_MAX = 512 }; /* bytes; of all words together */

enum target_kind {
	TARGET_WEBHOOK,
	TARGET_NTFY,
	TARGET_MATRIX,
	TARGET_SMTP, /* STARTTLS */
	TARGET_SMTPS /* TLS from the first byte on */
};

/* A target in parts, borrowed from its text. */
struct target {
	enum target_kind kind;
	struct ipc_bytes words; /* the text without its secret */
	struct ipc_bytes url;   /* empty: it is mail */
	struct ipc_bytes host;  /* HOST or HOST:PORT; of the URL, too */
	const char *port;       /* if the host has no port */
	struct ipc_bytes server, secret; /* names; empty: it has no secret */
};

/* Reads a target's text. Returns NULL, or a sentence about the form that it
 * must have. http:// is for an address of this machine or of the local network
 * alone. Whether a run may reach the host is for others to say. Fuzzed. */
const char *target_read(struct ipc_bytes text, struct target *);
/* Tells whether HOST[:PORT], with an IPv6 address in brackets, is an address of
 * this machine or of a local network (RFC 1918, RFC 4193). A name never is one:
 * it could lead elsewhere tomorrow. */
bool target_is_local(struct ipc_bytes host);

#endif
