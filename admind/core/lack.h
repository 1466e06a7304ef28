/*
 * The refusal of a request whose token lacks a scope (docs/decisions/0100).
 *
 * If the token's own scopes narrow its permission set, another token of the
 * same issuer may have the scope. Then the client is told all scopes to ask
 * for, so that it has to ask only once (RFC 6750 section 3.1; MCP 2026-07-28,
 * scope challenges). In every other case no token that the client could get
 * helps, and it is told none.
 */
#ifndef LACK_H
#define LACK_H

#include "token.h"

struct lack {
	char text[160];                   /* a sentence for people */
	char scope[PERMIT_WORDS_MAX + 1]; /* words, or "": no token helps */
};

/* Says that a token lacks a scope. scope: one of enum permit_scope. has, may:
 * masks of the scopes that count at the request's listener, of the token and of
 * its permission set. */
void lack_say(struct lack *, const struct token *, unsigned has, unsigned may,
    unsigned scope);
/* Writes the scopes to ask for, or "" if the token has the scope, or if no
 * other token has it. */
void lack_scope(
    char out[PERMIT_WORDS_MAX + 1], unsigned has, unsigned may, unsigned scope);

#endif
