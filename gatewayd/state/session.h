/*
 * Session tokens of the legacy revisions: made and read without I/O.
 *
 * A token conveys no authority: every request is authenticated by its own
 * credential, and a token of another principal or listener is unknown. It is
 * MACed so that any gatewayd of the listener can read what initialize agreed
 * without keeping state. Text: base64url of
 *	u8 format 2, u8 listener, u8 revision, u64be expiry (Unix ms),
 *	16 bytes random id, 32 bytes SHA-256 of the principal,
 *	u32be mask of enum client_capability, 32 bytes HMAC-SHA256
 * The MAC is also over the name of the endpoint where the session began, so at
 * another one the session is unknown.
 */
#ifndef SESSION_H
#define SESSION_H

#include "crypto.h"
#include "mcp_request.h"

enum {
	SESSION_PLAIN_LEN = 1 + 1 + 1 + 8 + 16 + 32 + 4,
	SESSION_LEN = SESSION_PLAIN_LEN + 32,
	SESSION_TEXT_LEN = (SESSION_LEN * 4 + 2) / 3 /* 127; limit 512 */
};

struct session {
	struct ipc_id id;
	uint8_t listener; /* enum listener */
	enum mcp_rev rev;
	uint64_t expires_ms; /* Unix time */
	struct ipc_hash principal;
	uint32_t declared; /* mask of enum client_capability, by initialize */
};

/* Fills a new session (random id) and writes its token. */
void session_make(const uint8_t key[KEY_LEN], uint8_t listener, enum mcp_rev,
    uint64_t expires_ms, const char *principal, const char *endpoint,
    uint32_t declared, struct session *, char text[SESSION_TEXT_LEN + 1]);
/* Reads a token. 0, or -1: it is forged, malformed, expired, or of another
 * listener, principal or endpoint ("": /mcp). These are all the same to the
 * client. */
int session_open(const uint8_t key[KEY_LEN], const char *text, uint64_t now_ms,
    uint8_t listener, const char *principal, const char *endpoint,
    struct session *);

/*
 * Sessions that were deleted before they expired. The set is bounded. If it is
 * full when a session is added, a session of the same hash chain is forgotten:
 * the one that expires first. The forgotten session then works again until its
 * expiry, but only for its own principal.
 */
enum { SESSION_ENDED_MAX = 65536 };

struct session_ended;

struct session_ended *session_ended_new(void);
void session_ended_free(struct session_ended *);
/* Adds a session. 0, or -1 without memory. */
int session_ended_add(struct session_ended *, const struct ipc_id *,
    uint64_t expires_ms, uint64_t now_ms);
bool session_ended_has(const struct session_ended *, const struct ipc_id *);

#endif
