/*
 * API tokens: all live ones are in memory, so that finding a credential's owner
 * needs no question.
 *
 *  tokens.c     the tokens, their ends, what counts against each
 *  token_set.c  an administrator makes and revokes them
 *  permit.c     the rights of a token
 */
#ifndef TOKENS_H
#define TOKENS_H

#include <sys/queue.h>

#include "admind.h"
#include "permit.h"

enum {
	/* "mbt_" and 32 random bytes in base64url: a prefix that a search for
	 * leaked secrets finds. */
	TOKEN_TEXT_LEN = 4 + 43,
	TOKEN_NAME_MAX = 64,
	TOKEN_SET_LEN = 64, /* hex digits of a permission set's name */
	/* Shares of one token, so that its users starve neither the others nor
	 * local clients: an eighth of the jobs and of their bytes, and few
	 * other requests, which are one statement each. */
	TOKEN_JOBS_MAX = JOBS_MAX / 8,
	TOKEN_BYTES_MAX = JOBS_BYTES_MAX / 8,
	TOKEN_OPS_MAX = 32,
	/* All tokens together. */
	TOKENS_JOBS_MAX = JOBS_MAX / 2,
	TOKENS_BYTES_MAX = JOBS_BYTES_MAX / 2
};
#define TOKEN_PREFIX "mbt_"

struct token {
	LIST_ENTRY(token) chain;
	struct ipc_id id;
	struct ipc_hash digest;
	char principal[PRINCIPAL_MAX + 1]; /* token:NAME */
	unsigned listeners;                /* mask of 1 << enum listener */
	uint64_t expires_us;               /* 0: never */
	struct permit permit;              /* its texts are owned */
	char set[LISTENER_TUNNEL + 1][TOKEN_SET_LEN + 1]; /* by listener */
	uint64_t used_us; /* not yet told to the database; 0: nothing to tell */
	enum listener used_by;
	bool gone; /* revoked or expired: only references remain */
	bool seen; /* by the load under way */
	unsigned refs;
	unsigned jobs, ops; /* in work */
	size_t bytes;       /* of those jobs' arguments */
};

/* Reads all live tokens: at start, when the database is back, when a token was
 * made. then may be NULL. */
void tokens_load(struct admind *, void (*then)(void *), void *arg);
/* The database is back: no known token is believed until it was read again. */
void tokens_db_up(struct admind *);
/* NOTIFY mcpbox_token. */
void tokens_notified(struct admind *, const char *payload);
/* Once a second: ends tokens whose time is over; stores when they were used. */
void tokens_tick(struct admind *);

/* Returns whether this credential claims to be a token. */
bool tokens_like(struct ipc_bytes credential);
/*
 * Finds the live token of this credential that is valid at this listener. NULL
 * with err: UNAUTHENTICATED, the same for each reason; STORAGE_UNAVAILABLE: it
 * is unknown. Not referenced.
 */
struct token *tokens_find(
    struct admind *, enum listener, struct ipc_bytes credential, struct err *);
/* Finds a live token whose permission set at this listener has this name, or
 * NULL. */
struct token *tokens_of_set(
    struct admind *, enum listener, struct ipc_bytes set);
struct token *token_ref(struct token *);
void token_unref(struct token *); /* NULL is harmless */

/* Returns the scopes that count at this listener now. */
unsigned token_scopes(
    const struct admind *, const struct token *, enum listener);
/* Returns whether the token may use this object. No token (NULL) is a local
 * client, who may use everything. */
bool token_permits(const struct token *, const char *exposed,
    struct ipc_bytes server, struct ipc_bytes name);
/* Returns whether it may call, get or read: 0, or -1 with the refusal. */
int token_may_call(
    const struct admind *, const struct token *, enum listener, struct err *);
/* Adds two text parameters, for token_permits() and its like in SQL. */
void token_params(const struct token *, struct db_params *);

/* Forgets a token whose end is known here, and cancels its calls. */
void tokens_end(struct admind *, struct token *, const char *why);
struct token *tokens_by_id(struct admind *, const struct ipc_id *);
/* Asks every connected gateway to drop its cache of a credential. cb runs once
 * all have, or are late. */
struct token_told {
	unsigned gateways, late;
};
typedef void token_told_cb(void *arg, const struct token_told *);
void tokens_tell_ended(struct admind *, const struct ipc_hash *credential,
    const char *principal, token_told_cb *, void *arg);

/* token_set.c: TOKEN_CREATE, TOKEN_REVOKE */
int token_set_message(struct link *, struct ipc_frame *);

#endif
