/*
 * Logins that admind granted and that no browser has fetched yet
 * (docs/decisions/0105). No I/O; times are CLOCK_BOOTTIME and come from the
 * caller.
 *
 * A ticket is two halves of a browser, as a login is. Only its SHA-256 comes
 * here, and admind has no more. So admind can grant a login, and can't fetch
 * one.
 *
 * A basis is a hash of all that the access document says about an issuer's
 * administrators. admind tells which ones hold. A ticket or a login with
 * another basis is over.
 */
#ifndef TICKETS_H
#define TICKETS_H

#include "sessions.h"

enum {
	TICKETS_MAX = 64, /* people that come back from an issuer at once */
	/* A page fetches its login as soon as it is loaded. */
	TICKETS_MS = 2 * 60 * 1000,
	TICKETS_SUBJECT_MAX = 200, /* as JWT_SUB_MAX */
	TICKETS_EMAIL_MAX = 254,   /* RFC 5321 */
	TICKETS_BASES_MAX = 16     /* as ACCESS_ISSUERS_MAX */
};

struct ticket {
	struct ipc_hash ticket, basis;
	char username[SESSIONS_USER_MAX + 1];
	char role[SESSIONS_ROLE_MAX + 1];
	char issuer[SESSIONS_USER_MAX + 1];
	char subject[TICKETS_SUBJECT_MAX + 1], email[TICKETS_EMAIL_MAX + 1];
	uint64_t until_ms; /* 0: the row is free */
};

struct tickets {
	struct ticket row[TICKETS_MAX];
	struct ipc_hash basis[TICKETS_BASES_MAX];
	size_t nbases;
	uint64_t drops; /* counts tickets_drop() */
};

/* Tells whether this is NAME@ISSUER of this issuer. */
bool tickets_name_ok(struct ipc_bytes username, struct ipc_bytes issuer);
bool tickets_holds(const struct tickets *, const struct ipc_hash *basis);
/* Takes another list of bases: n of 32 bytes, at most TICKETS_BASES_MAX. */
void tickets_follow(struct tickets *, const struct ipc_hash *, size_t n);
/* Keeps a ticket, whose until_ms is set. 0, or -1 with err: BUSY, CONFLICT (the
 * basis does not hold). */
int tickets_add(
    struct tickets *, const struct ticket *, uint64_t boot_ms, struct err *);
/* Takes the ticket of this hash out: it serves once. False: it is not there. */
bool tickets_take(struct tickets *, const struct ipc_hash *, uint64_t boot_ms,
    struct ticket *out);
/* Drops the tickets of a name. */
void tickets_drop(struct tickets *, const char *username);

#endif
