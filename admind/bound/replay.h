/*
 * Remembers the tokens that were used, so that none is used again
 * (docs/decisions/0098). No I/O, and no clock but the caller's.
 *
 * A token is known by the SHA-256 of its issuer's name and its `jti`. It is
 * remembered until its time is over, and never for less: a full memory takes no
 * new token of that issuer.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include <stdint.h>

#include "bytes.h"

enum {
	/* Tokens of one issuer. They live 60 s and are remembered 5 s longer:
	 * 500 requests a second, or 250 of an issuer that gives two minutes.
	 * 96 bytes each, 3 MiB. */
	REPLAY_ISSUER_MAX = 32 * 1024,
	/* Issuers that have a token in the memory: twice the number of a
	 * document, so that a new document need not wait for the former. */
	REPLAY_ISSUERS_MAX = 32
};

enum replay_verdict {
	REPLAY_NEW,   /* it was not used; from now on it was */
	REPLAY_USED,  /* it was used */
	REPLAY_EARLY, /* it may have been used before the start */
	REPLAY_PAST,  /* it may have been used and forgotten: the clock went
		       * back */
	REPLAY_FULL   /* the issuer's room is used up, or memory is */
};

struct replay;

/* A token. Times are Unix time in us. */
struct replay_token {
	struct ipc_bytes issuer; /* its name in the document */
	struct ipc_bytes id;     /* jti */
	uint64_t iat_us;
	uint64_t leeway_us; /* of its issuer, for both ends */
	uint64_t until_us;  /* the last moment that it is accepted: exp and the
			     * leeway */
};

/* started_us: the time at which this memory begins. NULL without memory. */
struct replay *replay_new(uint64_t started_us);
void replay_free(struct replay *); /* NULL is harmless */
/* Uses a token. */
enum replay_verdict replay_use(
    struct replay *, const struct replay_token *, uint64_t now_us);
/* Forgets the tokens whose time is over. */
void replay_tick(struct replay *, uint64_t now_us);
unsigned replay_count(const struct replay *);

#endif
