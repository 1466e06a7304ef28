/* The set of deleted sessions: chains by the first byte of the random id.
 * Expired sessions are dropped whenever a session is added to their chain. */
#include <sys/queue.h>

#include <stdlib.h>
#include <string.h>

#include "session.h"

enum { CHAINS = 256 };

struct entry {
	SLIST_ENTRY(entry) next;
	struct ipc_id id;
	uint64_t expires_ms;
};

SLIST_HEAD(chain, entry);

struct session_ended {
	struct chain chains[CHAINS];
	unsigned count;
};

struct session_ended *
session_ended_new(void)
{
	struct session_ended *e;
	int i;

	e = calloc(1, sizeof(*e));
	for (i = 0; e != NULL && i < CHAINS; i++)
		SLIST_INIT(&e->chains[i]);
	return e;
}

void
session_ended_free(struct session_ended *e)
{
	struct entry *x;
	int i;

	if (e == NULL)
		return;
	for (i = 0; i < CHAINS; i++)
		while ((x = SLIST_FIRST(&e->chains[i])) != NULL) {
			SLIST_REMOVE_HEAD(&e->chains[i], next);
			free(x);
		}
	free(e);
}

bool
session_ended_has(const struct session_ended *e, const struct ipc_id *id)
{
	const struct entry *x;

	SLIST_FOREACH(x, &e->chains[id->b[0]], next)
		if (memcmp(x->id.b, id->b, sizeof(id->b)) == 0)
			return true;
	return false;
}

int
session_ended_add(struct session_ended *e, const struct ipc_id *id,
    uint64_t expires_ms, uint64_t now_ms)
{
	struct chain *c = &e->chains[id->b[0]];
	struct entry *x, *next, *first = NULL;

	if (session_ended_has(e, id))
		return 0;
	for (x = SLIST_FIRST(c); x != NULL; x = next) {
		next = SLIST_NEXT(x, next);
		if (x->expires_ms <= now_ms) {
			SLIST_REMOVE(c, x, entry, next);
			free(x);
			e->count--;
		} else if (first == NULL || x->expires_ms < first->expires_ms) {
			first = x;
		}
	}
	/* If the set is full, the session to forget comes from this chain, so
	 * that it is found fast. */
	if (e->count >= SESSION_ENDED_MAX && first != NULL) {
		SLIST_REMOVE(c, first, entry, next);
		free(first);
		e->count--;
	}
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return -1;
	x->id = *id;
	x->expires_ms = expires_ms;
	SLIST_INSERT_HEAD(c, x, next);
	e->count++;
	return 0;
}
