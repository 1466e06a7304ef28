/*
 * Per-call approval: the pre-image of one call, to which a person says yes. The
 * pre-image is the text "mcpbox call 1" and a NUL, then a TLV list of the
 * fields below: each once, in this order. SHA-256 over the whole pre-image
 * names the request. The vault seals that hash; admind-http and mcpboxctl show
 * the pre-image and compute the hash themselves, as for versions (version.h).
 *
 * One content has one pre-image. The pre-image is bound to the caller, to the
 * version called (by its hash, so not to a later version of the same name), to
 * every byte of the arguments and to a time. Two equal calls differ by the
 * request's id, so a yes is for one call only.
 */
#ifndef CALLREQ_H
#define CALLREQ_H

#include "bounds.h"
#include "buf.h"
#include "err.h"
#include "ipc.h"

enum {
	/* Longest arguments of a call that a person has to read. */
	CALLREQ_ARGUMENTS_MAX = 64 * 1024,
	CALLREQ_NAME_MAX = 64,       /* exposed name */
	CALLREQ_PRINCIPAL_MAX = 254, /* an e-mail address, RFC 5321 */
	CALLREQ_MAX = CALLREQ_ARGUMENTS_MAX + 1024,
	/* Longest time, in ms, for which a yes may be asked for and used. A
	 * person's yes is not meant for a call of the day before yesterday. */
	CALLREQ_LIFE_MAX_MS = 24 * 60 * 60 * 1000
};

enum callreq_tag {
	CALLREQ_VERSION_HASH = 1, /* 32 bytes */
	CALLREQ_TOOL = 2,         /* text: exposed name */
	CALLREQ_PRINCIPAL = 3,    /* text: who calls */
	CALLREQ_LISTENER = 4,     /* u64 enum listener that the call came by */
	CALLREQ_ARGUMENTS = 5,    /* the JSON bytes as received */
	CALLREQ_REQUEST = 6,      /* 16 bytes: uuid of the request */
	CALLREQ_EXPIRES_MS = 7    /* u64 Unix time in ms */
};

struct callreq {
	struct ipc_hash version;
	struct ipc_bytes tool, principal, arguments; /* borrowed */
	struct ipc_id request;
	uint64_t listener;
	uint64_t expires_ms;
};

/* Writes the pre-image into b (initialised, of at least CALLREQ_MAX). 0, or -1
 * if callreq_read would refuse a field. */
int callreq_write(const struct callreq *, struct buf *b, struct err *);
/* Reads a pre-image. This is the only reader; it is strict and fuzzed. Only
 * callreq_json asks whether the arguments are JSON. 0, or -1 with
 * FAILURE_INVALID_PARAMS. */
int callreq_read(
    const void *preimage, size_t n, struct callreq *out, struct err *);
/* Tells whether these bytes begin like the pre-image of a call. */
bool callreq_is(const void *preimage, size_t n);
/* Writes a pre-image as a JSON object for people and REST, in ASCII as
 * version_json does. Needs only jsonw. */
int callreq_json(const void *preimage, size_t n, struct buf *out, struct err *);

#endif
