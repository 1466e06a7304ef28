/*
 * Administrators' logins. A token is 64 random bytes, shown once as 86
 * characters of base64url; only the SHA-256 of those characters is kept, so a
 * read of this memory yields no usable token. admind-http cuts the token in two
 * for a browser, a cookie and a header (docs/decisions/0067). The vault takes
 * only whole tokens, so one part alone is worth nothing. Logins are kept in the
 * vault's memory alone, so a restart of the vault ends all of them.
 *
 * A login ends a fixed time after it began, and sooner when it is not used.
 * Times come from the caller. CLOCK_BOOTTIME decides, so a clock that is set
 * back can't lengthen a login; Unix time is only shown.
 *
 * A login remembers when its person last proved to be there (fresh.h,
 * docs/decisions/0103).
 */
#ifndef SESSIONS_H
#define SESSIONS_H

#include "session.h"

struct sessions;

/* ttl_ms: a login lasts at most so long; idle_ms: an unused login ends after
 * this time. NULL without memory. */
struct sessions *sessions_new(uint64_t ttl_ms, uint64_t idle_ms);
void sessions_free(struct sessions *);

/* Adds a login; token receives the text of the login's token, which is kept
 * nowhere. A login by password begins proven at boot_ms, a login by an issuer
 * unproven. The result lives until the login ends. NULL: too many logins. */
const struct session *sessions_add(struct sessions *, const char *username,
    const char *role, enum session_by, const struct session_origin *,
    uint64_t boot_ms, uint64_t unix_ms, char token[SESSIONS_TEXT + 1]);
/* Does the same, for a login by password that waits for its person's passkey:
 * no function below finds it but sessions_find_any() and those that end or list
 * logins. It ends after SESSIONS_PENDING_MS. */
const struct session *sessions_add_pending(struct sessions *,
    const char *username, const char *role, const struct session_origin *,
    uint64_t boot_ms, uint64_t unix_ms, char token[SESSIONS_TEXT + 1]);
/* Makes such a login a whole one, which begins now, and is proven. false: it
 * has ended, and nothing changed. */
bool sessions_complete(struct sessions *, const struct session *,
    uint64_t boot_ms, uint64_t unix_ms);
/* Notes the most that the proof just given conveys, and lowers the login's role
 * to `role`. */
void sessions_cap(struct sessions *, const struct session *, const char *cap,
    const char *role);
/* Notes the basis of a login BY_ISSUER. */
void sessions_based(
    struct sessions *, const struct session *, const struct ipc_hash *basis);
/* Ends all logins BY_ISSUER whose basis is not among these n. Returns the
 * number of logins that it ended. */
size_t sessions_keep(struct sessions *, const struct ipc_hash *bases, size_t n);
/* Counts the logins BY_ISSUER. */
size_t sessions_by_issuer(struct sessions *, uint64_t boot_ms);
/* Notes that the login's person has just proved to be there. Takes a result of
 * sessions_find. */
void sessions_prove(
    struct sessions *, const struct session *, uint64_t boot_ms);
/* Returns whether the login's last proof is at most SESSIONS_PROOF_MS old. */
bool sessions_proven(const struct session *, uint64_t boot_ms);
/* Notes that a login was used: its idle time begins again. Takes a result of
 * sessions_find. */
void sessions_touch(struct sessions *, const struct session *, uint64_t boot_ms,
    uint64_t unix_ms);
/* Finds a login by the token's SHA-256; NULL if there is none or it has ended.
 */
const struct session *sessions_find(
    struct sessions *, const struct ipc_hash *, uint64_t boot_ms);
/* Finds a login by the token's SHA-256, also one that is pending. */
const struct session *sessions_find_any(
    struct sessions *, const struct ipc_hash *, uint64_t boot_ms);
/* Finds a login by the token's text, of any length; *hash receives the SHA-256
 * of the text (hash may be NULL). */
const struct session *sessions_find_text(struct sessions *, struct ipc_bytes,
    uint64_t boot_ms, struct ipc_hash *hash);
/* Does the same, and finds also one that is pending. */
const struct session *sessions_find_text_any(struct sessions *,
    struct ipc_bytes, uint64_t boot_ms, struct ipc_hash *hash);
void sessions_end(struct sessions *, const struct ipc_hash *);
/* Ends the user's logins, except the one whose token has the hash *keep (NULL:
 * no exception). Returns the number of logins that it ended. */
size_t sessions_end_user(
    struct sessions *, const char *username, const struct ipc_hash *keep);
/* Finds a login by its id; NULL if there is none or it has ended. */
const struct session *sessions_by_id(
    struct sessions *, const struct ipc_id *, uint64_t boot_ms);
/* Returns the first live login from row *at on, and sets *at to the row after
 * it. *at is 0 at the first call. NULL: there is no further login. */
const struct session *sessions_next(
    struct sessions *, size_t *at, uint64_t boot_ms);

#endif
