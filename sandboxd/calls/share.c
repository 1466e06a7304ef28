/* See share.h. */
#include <sys/queue.h>

#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "share.h"

enum { CHAINS = 64 };

struct share {
	SLIST_ENTRY(share) chain;
	struct shares *all;
	unsigned at, refs;
	bool whole; /* of `local` */
	size_t has[SHARES];
	size_t n;
	char name[];
};

struct shares {
	SLIST_HEAD(, share) chains[CHAINS];
	size_t has[SHARES]; /* of all that are not whole */
};

/* Eighths of each thing: for one principal, for all together. */
static const struct {
	unsigned one, together;
} parts[SHARES] = {[SHARE_SLOTS] = {4, 6},
    [SHARE_QUEUE] = {2, 4},
    [SHARE_PARKED] = {2, 4},
    [SHARE_VERIFY] = {2, 4}};

struct shares *
share_new(void)
{
	return calloc(1, sizeof(struct shares));
}

void
share_free(struct shares *s)
{
	free(s);
}

struct share *
share_get(struct shares *all, struct ipc_bytes principal)
{
	unsigned h = 2166136261u;
	struct share *s;

	for (size_t i = 0; i < principal.n; i++)
		h = (h ^ principal.p[i]) * 16777619u;
	h %= CHAINS;
	SLIST_FOREACH(s, &all->chains[h], chain)
		if (s->n == principal.n &&
		    (s->n == 0 || memcmp(s->name, principal.p, s->n) == 0)) {
			s->refs++;
			return s;
		}
	if ((s = calloc(1, sizeof(*s) + principal.n + 1)) == NULL)
		return NULL;
	if (principal.n > 0)
		memcpy(s->name, principal.p, principal.n);
	s->n = principal.n;
	s->all = all;
	s->at = h;
	s->refs = 1;
	s->whole = name_is_local(s->name);
	SLIST_INSERT_HEAD(&all->chains[h], s, chain);
	return s;
}

void
share_put(struct share *s)
{
	if (s == NULL || --s->refs > 0)
		return;
	SLIST_REMOVE(&s->all->chains[s->at], s, share, chain);
	free(s);
}

static size_t
part(size_t all, unsigned eighths)
{
	size_t n = all / 8 * eighths + all % 8 * eighths / 8;

	return n > 0 || all == 0 ? n : 1;
}

size_t
share_part(const struct share *s, enum share_of what, size_t all)
{
	return s->whole ? all : part(all, parts[what].one);
}

bool
share_fits(const struct share *s, enum share_of what, size_t n, size_t all)
{
	return s->whole ||
	    (s->has[what] + n <= part(all, parts[what].one) &&
		s->all->has[what] + n <= part(all, parts[what].together));
}

void
share_take(struct share *s, enum share_of what, size_t n)
{
	s->has[what] += n;
	if (!s->whole)
		s->all->has[what] += n;
}

void
share_leave(struct share *s, enum share_of what, size_t n)
{
	s->has[what] -= n;
	if (!s->whole)
		s->all->has[what] -= n;
}

size_t
share_has(const struct share *s, enum share_of what)
{
	return s->has[what];
}
