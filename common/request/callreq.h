/*
 * Per-call approval: the pre-image of one call, which is what a person says yes
 * to. The text "mcpbox call 1" and a NUL, then a TLV list of the fields below:
 * each once, in this order. SHA-256 over all of it names the request; the vault
 * seals that, admind-http and mcpboxctl show it and compute the hash
 * themselves, as for versions (version.h).
 *
 * One content has one pre-image, and it is bound to who calls, to what is
 * called (the version's hash, so not to what a later version makes of the same
 * name), to every byte of the arguments and to a time. Two equal calls differ
 * by the request's id: a yes is to one call.
 */
#ifndef CALLREQ_H
#define CALLREQ_H

#include "bounds.h"
#include "buf.h"
#include "err.h"
#include "ipc.h"

enum {
	/* Of a call that a person has to read. */
	CALLREQ_ARGUMENTS_MAX = 64 * 1024,
	CALLREQ_NAME_MAX = 64,       /* exposed name */
	CALLREQ_PRINCIPAL_MAX = 254, /* an e-mail address, RFC 5321 */
	CALLREQ_MAX = CALLREQ_ARGUMENTS_MAX + 1024,
	/* Time for which a yes may be asked for and used: nobody means a call
	 * of the day before yesterday. In ms. */
	CALLREQ_LIFE_MAX_MS = 24 * 60 * 60 * 1000
};

enum callreq_tag {
	CALLREQ_VERSION_HASH = 1, /* 32 bytes */
	CALLREQ_TOOL = 2,         /* text: exposed name */
	CALLREQ_PRINCIPAL = 3,    /* text: who calls */
	CALLREQ_LISTENER = 4,     /* u64 enum listener: by which way */
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

/* Writes the pre-image into b (initialised, of at least CALLREQ_MAX). 0; -1: a
 * field is not what callreq_read takes. */
int callreq_write(const struct callreq *, struct buf *b, struct err *);
/* The one strict reader. 0, or -1 with FAILURE_INVALID_PARAMS. Fuzzed. Whether
 * the arguments are JSON only callreq_json asks. */
int callreq_read(
    const void *preimage, size_t n, struct callreq *out, struct err *);
/* Do these bytes begin as such a pre-image does? */
bool callreq_is(const void *preimage, size_t n);
/* As a JSON object for people and REST. ASCII, as version_json's. Needs
 * only jsonw. */
int callreq_json(const void *preimage, size_t n, struct buf *out, struct err *);

#endif
