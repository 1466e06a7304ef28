/*
 * Tokens narrowed to endpoints (docs/decisions/0102): the rights of a client
 * that came to an endpoint, as a token of its own. So every place that judges
 * by a token judges by the endpoint, too, and a forgotten place can't open
 * more than the token itself does.
 *
 * Narrowed tokens are kept here, so that a gateway's list of a permission set
 * can be found by the set's name. They are made again where they were pushed
 * out. Another document drops all, and so does another name for sets.
 *
 * Records name no endpoint. So the last runs of endpoints are noted here, and
 * end when their endpoint loses something.
 */
#ifndef NARROW_H
#define NARROW_H

#include "token.h"

enum {
	/* Kept at a time: some people at a few endpoints. A text of patterns
	 * may have 64 KiB, mostly it has some 100 bytes. */
	NARROWED_MAX = 512,
	/* Runs that are noted. Only those go on that have more than so many
	 * later ones and are not over. */
	NARROWED_RUNS_MAX = 8192
};

struct narrowed;

struct narrowed *narrow_init(void); /* NULL without memory */

/* Finds or makes the rights of a token at an endpoint. base NULL: a local
 * client, which may do everything. scopes, allow, deny: the endpoint's set, as
 * endpoint_narrow() has them. *made: it is new, and its sets have no names yet.
 * Returns it without a reference, or NULL without memory. */
struct token *narrow_token(struct narrowed *, struct token *base,
    struct endpoint *, unsigned scopes, const char *allow, const char *deny,
    bool *made);
/* Returns a narrowed token that has this set at this listener, or NULL. *base:
 * the token that it was made of, or NULL of a local client. */
struct token *narrow_of_set(const struct narrowed *, unsigned listener,
    struct ipc_bytes set, struct token **base);
void narrow_drop(struct narrowed *); /* forgets all tokens */
/* Forgets the tokens whose base nothing but these has. Such a base has ended,
 * or its credentials were pushed out, and its share would keep its person
 * (people_tidy()). A narrowed token that has work stays with the work. NULL is
 * harmless. */
void narrow_tidy(struct narrowed *);

/* Notes a run of an endpoint's client. */
void narrow_ran(
    struct narrowed *, const struct ipc_id *, const struct endpoint *);
/* Calls f with each noted run of this endpoint's clients, and forgets it. */
void narrow_runs(struct narrowed *, struct ipc_bytes endpoint,
    void (*f)(void *, const struct ipc_id *), void *arg);

#endif
