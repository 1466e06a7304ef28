/*
 * API tokens. All live tokens are in memory, so that the owner of a credential
 * is found without a query.
 *
 *  tokens.c     the live tokens, their use and their ends
 *  ended.c      the end of work that is under way
 *  token_set.c  making and revoking tokens for an administrator
 *  permit.c     the rights of a token
 */
#ifndef TOKENS_H
#define TOKENS_H

#include "lack.h"
#include "op.h"
#include "token.h"

/* Reads all live tokens, then calls then(arg); then may be NULL. Called at
 * start, when the database is back, and when a token was made. */
void tokens_load(struct admind *, void (*then)(void *), void *arg);
/* Called when the database is back. No token is accepted until all were read
 * again. */
void tokens_db_up(struct admind *);
/* Handles NOTIFY mcpbox_token. */
void tokens_notified(struct admind *, const char *payload);
/* Called once a second. Ends tokens that expired, and stores when tokens were
 * used. */
void tokens_tick(struct admind *);

/* Returns whether this credential claims to be a token. */
bool tokens_like(struct ipc_bytes credential);
/*
 * Finds the live token of this credential, if it is valid at this listener.
 * Adds no reference. NULL with err: UNAUTHENTICATED, with the same text for
 * each reason; STORAGE_UNAVAILABLE if the live tokens are not known now.
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
/* Checks that the token may call tools, get prompts and read resources. A
 * client without a token (NULL) may do so. 0, or -1 with the refusal. */
int token_may_call(
    const struct admind *, const struct token *, enum listener, struct lack *);
/* Says that the token lacks this one of enum permit_scope. */
void tokens_lack(const struct admind *, const struct token *, enum listener,
    unsigned scope, struct lack *);
/* Fields of IDENTITY: a gateway refuses requests without a job by them. */
struct token_hints {
	uint8_t unread;
	char read_scope[PERMIT_WORDS_MAX + 1], call_scope[PERMIT_WORDS_MAX + 1];
};
void tokens_hint(const struct admind *, const struct token *, enum listener,
    struct token_hints *);

/* Ends a token: forgets it, cancels its calls and tells the gateways. why goes
 * to the log. */
void tokens_end(struct admind *, struct token *, const char *why);
struct token *tokens_by_id(struct admind *, const struct ipc_id *);
/* Gives API tokens of permission sets the rights that the sets have by the
 * document that holds now. Ends the work of a token that loses one. */
void tokens_judge_again(struct admind *);
/* Names a token's permission set at each listener, by its rights. */
void tokens_name_set(const struct admind *, struct token *);

#endif
