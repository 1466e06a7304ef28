/*
 * Administrators' logins. A token is 64 random bytes, shown once as 86
 * characters of base64url; only the SHA-256 of those characters is kept, so a
 * read of this memory yields no usable token. admind-http cuts the token in two
 * for a browser, a cookie and a header (docs/decisions/0067). Here the token is
 * whole: half of it is worth nothing and can't ask the vault anything. Logins
 * live here alone: the vault's restart ends them all.
 *
 * A login ends a fixed time after it began, and sooner when it is not used.
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
	SESSIONS_TEXT = LOGIN_TEXT, /* characters of a token */
	SESSIONS_USER_MAX = 50,     /* ^[a-zA-Z][a-zA-Z0-9_]{2,49}$ */
	SESSIONS_ROLE_MAX = 16,
	SESSIONS_SOURCE_MAX = 64, /* an address; longer is cut */
	SESSIONS_AGENT_MAX = 128  /* a browser's name for itself; cut as well */
};

/* The origin of a login, as it is shown; UTF-8, or empty. */
struct session_origin {
	char source[SESSIONS_SOURCE_MAX + 1];
	char agent[SESSIONS_AGENT_MAX + 1];
};

struct session {
	bool live;
	struct ipc_hash token; /* SHA-256 of the token's text */
	char username[SESSIONS_USER_MAX + 1];
	char role[SESSIONS_ROLE_MAX + 1];
	/* random; names the login in lists and for ending it */
	struct ipc_id id;
	struct session_origin from;
	/* Unix time, for showing */
	uint64_t created_ms, seen_ms, expires_ms, idle_ms;
	/* CLOCK_BOOTTIME, decides: its end, and its end unless it is used */
	uint64_t deadline_ms, idle_deadline_ms;
	uint64_t serial; /* order of creation */
};

struct sessions;

/* ttl_ms: life of a login; idle_ms: an unused login ends after this time. NULL
 * without memory. */
struct sessions *sessions_new(uint64_t ttl_ms, uint64_t idle_ms);
void sessions_free(struct sessions *);

/* Adds a login; token receives its text, which is kept nowhere. The result
 * lives until the login ends. NULL: too many logins. */
const struct session *sessions_add(struct sessions *, const char *username,
    const char *role, const struct session_origin *, uint64_t boot_ms,
    uint64_t unix_ms, char token[SESSIONS_TEXT + 1]);
/* The login was used: its idle time begins again. Takes a result of
 * sessions_find. */
void sessions_touch(struct sessions *, const struct session *, uint64_t boot_ms,
    uint64_t unix_ms);
/* Finds a login by the token's SHA-256; NULL if unknown or over. */
const struct session *sessions_find(
    struct sessions *, const struct ipc_hash *, uint64_t boot_ms);
/* Finds a login by the token's text, of any length; *hash (may be NULL)
 * receives its SHA-256. */
const struct session *sessions_find_text(struct sessions *, struct ipc_bytes,
    uint64_t boot_ms, struct ipc_hash *hash);
void sessions_end(struct sessions *, const struct ipc_hash *);
/* Ends the user's logins except the one with this hash (NULL: all). Returns how
 * many. */
size_t sessions_end_user(
    struct sessions *, const char *username, const struct ipc_hash *keep);
/* Finds a login by its id; NULL if unknown or over. */
const struct session *sessions_by_id(
    struct sessions *, const struct ipc_id *, uint64_t boot_ms);
/* Returns the live login number *at or the next one (0 begins), and sets *at to
 * the number after it; NULL after the last. */
const struct session *sessions_next(
    struct sessions *, size_t *at, uint64_t boot_ms);

#endif
