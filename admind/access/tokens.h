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

#include "op.h"
#include "token.h"

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

/* Returns the scopes that count at this listener now. */
unsigned token_scopes(
    const struct admind *, const struct token *, enum listener);
/* Returns whether it may call, get or read: 0, or -1 with the refusal. */
int token_may_call(
    const struct admind *, const struct token *, enum listener, struct err *);

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

#endif
