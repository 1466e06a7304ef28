/* One login of an administrator, and its bounds (sessions.h). */
#ifndef SESSION_H
#define SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "err.h"
#include "ipc.h"
#include "bounds.h"

enum {
	SESSIONS_MAX = 256,     /* logins at once: some dozens of browsers */
	SESSIONS_PER_USER = 16, /* a further login ends the user's oldest */
	SESSIONS_TEXT = LOGIN_TEXT, /* characters of a token */
	SESSIONS_NAME_MAX = 50,     /* with a password:
				     * ^[a-zA-Z][a-zA-Z0-9_]{2,49}$ */
	SESSIONS_USER_MAX = 65,     /* or NAME@ISSUER, of 32 characters each */
	SESSIONS_BY_ISSUER_MAX = 128, /* admind may invent these: the others
				       * always find room */
	SESSIONS_ROLE_MAX = 16,
	SESSIONS_SOURCE_MAX = 64, /* an address; a longer text is cut */
	SESSIONS_AGENT_MAX = 128, /* a browser's name for itself; also cut */
	/* A proof is fresh for so long. It is time to read a request and to
	 * decide, and too short for most thieves of an open browser. */
	SESSIONS_PROOF_MS = 5 * 60 * 1000,
	/* A login whose second factor is still to come ends after so long. */
	SESSIONS_PENDING_MS = 5 * 60 * 1000,
	/* Such logins of one person; a further one ends the oldest. So a
	 * password alone ends no login that is complete. */
	SESSIONS_PENDING_PER_USER = 4
};

/* The way in which a login began. */
enum session_by {
	SESSION_BY_PASSWORD = 1, /* the vault saw the person's password */
	SESSION_BY_ISSUER = 2    /* admind says that an issuer vouches */
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
	/* CLOCK_BOOTTIME: the login's end, and its end if it stays unused */
	uint64_t deadline_ms, idle_deadline_ms;
	uint64_t serial; /* order of creation */
	enum session_by by;
	/* proven: the person has proved to be there, last at proof_boot_ms
	 * (CLOCK_BOOTTIME). Ask sessions_proven(). */
	bool proven;
	uint64_t proof_boot_ms;
	/* The password was right, and the passkey is still to come: the login
	 * may do nothing else (docs/decisions/0104). */
	bool pending;
	/* The role that the passkey of the last proof conveys at most; empty:
	 * no such limit. */
	char cap[SESSIONS_ROLE_MAX + 1];
	/* BY_ISSUER: names the words of the access document that the login
	 * comes from (tickets.h). */
	struct ipc_hash basis;
};

#endif
