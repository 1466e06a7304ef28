/*
 * The public keys of issuers, as they were fetched (docs/decisions/0097): how
 * long they serve, and when they are fetched again. In memory alone. No I/O and
 * no clock: callers give the time since boot in ms.
 *
 * The name of an issuer and its source name a set. If the source changes, its
 * keys are forgotten, since they were another server's.
 */
#ifndef KEYSETS_H
#define KEYSETS_H

#include <stdbool.h>
#include <stdint.h>

#include "access_fields.h"
#include "buf.h"
#include "bytes.h"

enum {
	/* Bounds of the age that a server says. Less would be a fetch for each
	 * call, more would keep a key that its issuer took away. */
	KEYSETS_FRESH_MIN_MS = 5 * 60 * 1000,
	KEYSETS_FRESH_MAX_MS = 24 * 60 * 60 * 1000,
	/* While an issuer is away its last keys serve so much longer. */
	KEYSETS_SERVE_MS = 24 * 60 * 60 * 1000,
	/* Strangers choose the `kid` of a token, so they could have a fetch
	 * made for each request. */
	KEYSETS_ASK_MS = 30 * 1000,
	KEYSETS_AGAIN_MS = 60 * 1000, /* after a failed fetch */
	KEYSETS_WHY_MAX = 320
};

struct keyset {
	char name[ACCESS_NAME_MAX + 1]; /* the issuer's, in the document */
	struct buf source;              /* fields ISSUER_URL, ISSUER_KEYS_URL,
					 * ISSUER_DISCOVERY, ISSUER_KEYS_HOST */
	struct buf keys; /* fields ISSUER_KEY; those of the last good fetch */
	/* Fields KEYS_SIGN_IN_URL and KEYS_SIGN_IN_ISS, or KEYS_SIGN_IN_FAULT,
	 * of the last good fetch. Empty: the metadata were not asked. */
	struct buf sign_in;
	unsigned nkeys;
	bool running; /* a fetch is under way */
	bool wanted;  /* a token names a key that is not there */
	bool tried;   /* there was a fetch: tried_ms is its beginning */
	bool read;    /* there was a good one: read_us is its end, Unix time */
	uint64_t tried_ms, read_us;
	uint64_t next_ms;          /* when the next fetch is due */
	uint64_t end_ms;           /* until when the keys serve */
	char why[KEYSETS_WHY_MAX]; /* the error of the last fetch, or "" */
};

struct keysets {
	struct keyset set[ACCESS_ISSUERS_MAX];
	unsigned n;
};

/* One issuer of a document whose keys are fetched. */
struct keysets_source {
	struct ipc_bytes name, source;
};

void keysets_free(struct keysets *);
/* Takes over the issuers of another document: at most ACCESS_ISSUERS_MAX. Sets
 * with the same name and source stay as they are. */
void keysets_follow(
    struct keysets *, const struct keysets_source *, unsigned n);
struct keyset *keysets_find(struct keysets *, struct ipc_bytes name);

/* Appends the keys that serve now, as fields ISSUER_KEY. */
void keysets_put(const struct keysets *, struct ipc_bytes name, uint64_t now_ms,
    struct buf *out);

enum keysets_verdict {
	KEYSETS_ABSENT, /* the issuer was just asked, and has no such key */
	KEYSETS_AWAIT   /* not known: its keys are to be fetched first */
};
/* Judges a token whose key is not in the set. May make a fetch due. */
enum keysets_verdict keysets_lacks(
    struct keysets *, struct ipc_bytes name, uint64_t now_ms);

enum keysets_refresh {
	KEYSETS_REFRESH_DUE,     /* a fetch is due now */
	KEYSETS_REFRESH_RUNNING, /* one is under way */
	KEYSETS_REFRESH_EARLY    /* the last one is too short a time ago */
};
/* Makes a fetch due because a person asks for it. It keeps the same distance
 * from the fetch before as one for an unknown key. *wait_ms: time until that
 * distance is kept; 0 unless EARLY. */
enum keysets_refresh keysets_refresh(
    struct keyset *, uint64_t now_ms, uint64_t *wait_ms);

/* Returns a set whose fetch is due, or NULL. */
struct keyset *keysets_due(struct keysets *, uint64_t now_ms);
/* Notes that a fetch begins. */
void keysets_begin(struct keyset *, uint64_t now_ms);
/* Notes the keys of a fetch, fields ISSUER_KEY. age_s: as the server says.
 * Returns whether a key is gone that was there. Without memory the fetch counts
 * as failed. */
bool keysets_good(
    struct keyset *, struct ipc_bytes keys, uint64_t age_s, uint64_t now_us);
/* Notes how people sign in, as such a fetch found it. */
void keysets_sign_in(struct keyset *, struct ipc_bytes fields);
/* Notes that a fetch failed; another is due after again_ms. */
void keysets_bad(
    struct keyset *, struct ipc_bytes why, uint64_t now_ms, uint64_t again_ms);

#endif
