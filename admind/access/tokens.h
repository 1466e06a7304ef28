/*
 * API tokens: all live ones in memory, so that who a credential is costs no
 * question.
 *
 *	tokens.c	the tokens, their ends, what counts against each
 *	token_set.c	an administrator makes and revokes them
 *	permit.c	what one may
 */
#ifndef TOKENS_H
#define TOKENS_H

#include "op.h"
#include "token.h"

/* Reads all live tokens: at start, when the database is back, when one was
 * made. then may be NULL. */
void tokens_load(struct admind *, void (*then)(void *), void *arg);
/* The database is back: nothing that is known is believed until it is read. */
void tokens_db_up(struct admind *);
/* NOTIFY mcpbox_token. */
void tokens_notified(struct admind *, const char *payload);
/* Once a second: those whose time is over; when they were used. */
void tokens_tick(struct admind *);

/* Does this credential claim to be a token? */
bool tokens_like(struct ipc_bytes credential);
/*
 * The live token of this credential that is good at this listener. NULL with
 * err: UNAUTHENTICATED, the same for each reason; STORAGE_UNAVAILABLE: nobody
 * can say. Not referenced.
 */
struct token *tokens_find(
    struct admind *, enum listener, struct ipc_bytes credential, struct err *);
/* A live one whose permission set at this listener has this name, or NULL. */
struct token *tokens_of_set(
    struct admind *, enum listener, struct ipc_bytes set);

/* Scopes that count at this listener now. */
unsigned token_scopes(
    const struct admind *, const struct token *, enum listener);
/* May it call, get or read? 0, or -1 with the refusal. */
int token_may_call(
    const struct admind *, const struct token *, enum listener, struct err *);

/* Its end is known here: it is forgotten, what runs for it is cancelled. */
void tokens_end(struct admind *, struct token *, const char *why);
struct token *tokens_by_id(struct admind *, const struct ipc_id *);
/* Asks every connected gateway to drop what it holds for a credential. cb runs
 * once all have, or are late. */
struct token_told {
	unsigned gateways, late;
};
typedef void token_told_cb(void *arg, const struct token_told *);
void tokens_tell_ended(struct admind *, const struct ipc_hash *credential,
    const char *principal, token_told_cb *, void *arg);

#endif
