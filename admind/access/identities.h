/*
 * People with signed tokens (docs/decisions/0090).
 *
 *  people.c             the remembered people and their rights
 *  identities.c         a token's owner; verdicts of admind-check
 *  identities_change.c  withdrawals, and people under a new document
 *  identities_runs.c    runs whose people are not remembered
 *  identities_seen.c    notes for administrators: each person's last use
 */
#ifndef IDENTITIES_H
#define IDENTITIES_H

#include "crypto.h"
#include "latest.h"
#include "op.h"
#include "people.h"

struct access_set;
struct bound_request; /* bound.h */
struct claims;
struct compiled;
struct issuer;
struct replay;

enum {
	/* Most rows of one issuer's people (sql: identities_prune). It is the
	 * number of people that may be withdrawn, so each withdrawal finds
	 * room. If all rows are of withdrawn people, no other comes in. */
	IDENTITIES_ISSUER_MAX = 16384
};

struct withdrawn; /* identities_change.c */
struct identities {
	struct people people;
	struct table withdrawn; /* principals that may not come in */
	bool ready; /* `withdrawn` was read since the database came */
	bool reading, again;
	/* Tokens that are bound to one request: those that were used, and the
	 * key of the tickets, which ends with this process. */
	struct replay *used;
	uint8_t ticket_key[KEY_LEN];

	/* Runs that an earlier process left were judged by the document that
	 * holds (identities_runs.c). Until then no signed token is accepted. */
	bool judged, judging;
	struct idset doomed; /* runs to cancel once the sandbox is there */

	struct latest latest; /* identities_now() */
};

int identities_start(struct admind *, struct err *);

/* ---- identities.c ---- */
/* Returns whether admind-check must judge this token before its owner is known.
 * False also where that is pointless: identities_find() will say why. */
bool identities_unknown(
    struct admind *, enum listener, uint8_t via, struct ipc_bytes credential);
/* Returns whether this token is remembered, its time is not over, and no key of
 * its issuer is gone. Then identities_find() takes its verdict, also one that
 * is to be checked again. */
bool identities_known(
    struct admind *, uint8_t via, struct ipc_bytes credential);
/*
 * Finds the rights of the owner of a token that was judged, if it is good at
 * this endpoint (empty: the whole). Adds no reference.
 * expires_us receives the end of the token. NULL with err: UNAUTHENTICATED, or
 * FORBIDDEN, with a sentence in ASCII; or the reason why no token can be judged
 * now.
 */
struct token *identities_find(struct admind *, enum listener, uint8_t via,
    struct ipc_bytes credential, struct ipc_bytes endpoint,
    uint64_t *expires_us, struct err *);
/*
 * Takes the claims of a token that admind-check found good. 0: it is remembered
 * now; -1 with err: its owner may not come in (FORBIDDEN), or as above.
 * principal (PRINCIPAL_MAX + 1 bytes) receives the owner, "" if not known.
 */
int identities_learn(struct admind *, enum listener, uint8_t via,
    const struct ipc_hash *, struct ipc_bytes fields, char *principal,
    struct err *);
/* Returns whether the claims are of an issuer whose tokens are bound to one
 * request. Then identities_learn() remembers nothing, and each request must be
 * admitted. */
bool identities_bound(struct admind *, struct ipc_bytes fields);
/*
 * Admits the one request that a token is bound to, after identities_learn()
 * took its claims. 0: the token is used up, and ticket (BOUND_TICKET_LEN + 1
 * bytes) is remembered in its place, with VIA_TICKET; -1 with err. A ticket of
 * a request to an endpoint is good there alone.
 */
int identities_admit(struct admind *, struct ipc_bytes fields,
    const struct bound_request *, struct ipc_bytes endpoint, char *ticket,
    struct err *);
/* Forgets a token that admind-check refused. Gateways end its streams and
 * waiting calls. A refusal at a listener that the token's issuer does not serve
 * says nothing about the token elsewhere, so the token stays. */
void identities_refused(
    struct admind *, enum listener, uint8_t via, const struct ipc_hash *);
/* Has each remembered token of an issuer verified again at its next use: a key
 * of the issuer is gone. */
void identities_stale(struct admind *, const char *issuer);
/* Finds the rights of a remembered person by the name of the permission set at
 * this listener, or NULL. */
struct token *identities_of_set(
    struct admind *, enum listener, struct ipc_bytes set);
/* Names all permission sets again, after remote_tool_editing changed. */
void identities_renamed(struct admind *);
/* Returns the time by which tokens are judged, Unix time in us. It never goes
 * back in this process, even if the wall clock does. */
uint64_t identities_now(struct admind *);
/* Called once a second. Ends tokens whose time is over. */
void identities_tick(struct admind *);

/* Finds or makes the rights that a set of the document gives to a person of
 * this issuer with these claims. Returns NULL without memory. */
struct rights *identities_rights(struct admind *, struct person *,
    const struct issuer *, const struct access_set *, const struct claims *);

/* ---- identities_change.c ---- */
/* Called when the database is back. No signed token is accepted until all
 * withdrawn identities were read again. */
void identities_db_up(struct admind *);
/* Called once a second. Reads them again if that failed. */
void identities_retry(struct admind *);
/* Handles "withdrawn PRINCIPAL" and "restored PRINCIPAL". */
void identities_notified(struct admind *, const char *payload);
bool identities_withdrawn(const struct admind *, const char *principal);
/* Judges all remembered people by a new document. Whoever's issuer record and
 * rights are the same goes on; everyone else ends. NULL: no document. */
void identities_judge_again(
    struct admind *, const struct compiled *from, const struct compiled *to);

/* ---- identities_runs.c ---- */
/* Judges open runs of people that are not remembered, after another document
 * came into force; the first time in this process, those that an earlier
 * process left. */
void identities_judge_runs(
    struct admind *, const struct compiled *from, const struct compiled *to);
/* Cancels a run here, also if the sandbox is not connected now. Returns 0, or
 * -1 if that can't be remembered for lack of memory. */
int identities_cancel(struct admind *, const struct ipc_id *);
/* Called once a second. */
void identities_runs_tick(struct admind *);

/* ---- identities_seen.c ---- */
void identities_seen_store(struct admind *);
void identities_tidy(struct admind *); /* frees people that nothing needs */

#endif
