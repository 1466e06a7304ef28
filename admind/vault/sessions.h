/*
 * Administrators' logins. A token is 32 random bytes, shown once as 43
 * characters of base64url; only the SHA-256 of those characters is kept, so a
 * read of this memory yields no usable token. Logins live here alone: the
 * vault's restart ends them all.
 *
 * Times come from the caller (CLOCK_BOOTTIME decides, so a set-back clock
 * cannot lengthen a login; Unix time is only shown).
 */
#ifndef SESSIONS_H
#define SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "ipc.h"
#include "bounds.h"

enum {
	SESSIONS_MAX = 256,     /* logins at once: some dozens of browsers */
	SESSIONS_PER_USER = 16, /* a further login ends the user's oldest */
	SESSIONS_TEXT = 43, /* characters of a token: 4/3 of 32, rounded up */
	SESSIONS_USER_MAX = 50, /* ^[a-zA-Z][a-zA-Z0-9_]{2,49}$ */
	SESSIONS_ROLE_MAX = 16
};

struct session {
	bool live;
	struct ipc_hash token; /* SHA-256 of the token's text */
	char csrf[SESSIONS_TEXT + 1];
	char username[SESSIONS_USER_MAX + 1];
	char role[SESSIONS_ROLE_MAX + 1];
	uint64_t expires_ms;  /* Unix time, for showing */
	uint64_t deadline_ms; /* CLOCK_BOOTTIME, decides */
	uint64_t serial;      /* order of creation */
};

struct sessions;

struct sessions *sessions_new(uint64_t ttl_ms); /* NULL without memory */
void sessions_free(struct sessions *);

/* A new login; token receives its text, which is kept nowhere. The result
 * lives until it ends. NULL: too many logins. */
const struct session *sessions_add(struct sessions *, const char *username,
    const char *role, uint64_t boot_ms, uint64_t unix_ms,
    char token[SESSIONS_TEXT + 1]);
/* By the token's SHA-256; NULL if unknown or over. */
const struct session *sessions_find(
    struct sessions *, const struct ipc_hash *, uint64_t boot_ms);
/* By the token's text, of any length; *hash (may be NULL) receives its
 * SHA-256. */
const struct session *sessions_find_text(struct sessions *, struct ipc_bytes,
    uint64_t boot_ms, struct ipc_hash *hash);
void sessions_end(struct sessions *, const struct ipc_hash *);
/* Ends the user's logins but the one with this hash (NULL: all). */
void sessions_end_user(
    struct sessions *, const char *username, const struct ipc_hash *keep);

#endif
