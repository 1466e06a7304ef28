/*
 * A signed token that is bound to one request (docs/decisions/0098): its
 * members that bind, the comparison with a request, and the ticket for the rest
 * of that request. Pure: bytes in, structs out.
 *
 *  bound.c   this
 *  replay.h  the tokens that were used
 */
#ifndef BOUND_H
#define BOUND_H

#include "access_fields.h"
#include "buf.h"
#include "bytes.h"
#include "crypto.h"
#include "err.h"

enum {
	/* A person's session ends at session_exp, and this many seconds after
	 * its last request at the latest. So nothing goes on for longer by the
	 * word of an issuer that is not heard any more. */
	BOUND_SESSION_MAX_S = 24 * 60 * 60,
	BOUND_TICKET_LEN = 43 /* SHA-256 in base64url */
};

/* The members of a token that bind it, borrowed from the fields. */
struct bound {
	struct ipc_bytes method, url, id;
	struct ipc_bytes body;   /* 32 bytes */
	uint64_t session_exp_us; /* 0: not in the token */
};

/* A request, as a gateway tells it. */
struct bound_request {
	struct ipc_bytes method; /* empty: the gateway told nothing */
	struct ipc_bytes target; /* path and query, as they came */
	const struct ipc_hash *body;
};

/* Reads a record of enum bound_field, which must outlive the struct. 0, or -1
 * with err (INTERNAL): admind-check does not make such a record. */
int bound_read(struct bound *, struct ipc_bytes record, struct err *);
/* Compares a token with a request. resource: our own URL, whose path is /mcp.
 * 0, or -1 with err: UNAUTHENTICATED, or BUSY if the gateway told nothing. */
int bound_compare(const struct bound *, struct ipc_bytes resource,
    const struct bound_request *, struct err *);
/* Writes the claims of the person's session: those of the token (enum
 * jwt_field), with end_us in the place of its times, and without the members
 * that bind. Two tokens of one session give the same bytes. 0 or -1. */
int bound_session(struct ipc_bytes fields, uint64_t end_us, struct buf *out);
/* Writes the ticket of a session. key: this process' own. */
void bound_ticket(const uint8_t key[KEY_LEN], struct ipc_bytes session,
    char out[BOUND_TICKET_LEN + 1]);

#endif
