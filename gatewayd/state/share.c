/* See share.h. */
#include <sys/queue.h>

#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "share.h"

enum {
	CHAINS = 256,
	PART = 4 /* one principal has at most one of this many parts, and all
		  * but `local` together leave one part to it */
};

struct share {
	SLIST_ENTRY(share) chain;
	struct shares *all;
	unsigned at, refs, requests;
	size_t bytes, kept;
	bool whole; /* of `local` */
	char name[];
};

struct shares {
	SLIST_HEAD(, share) chains[CHAINS];
	unsigned requests; /* of all but `local` */
	size_t bytes, kept;
};

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
share_get(struct shares *all, const char *principal)
{
	const unsigned char *c = (const unsigned char *)principal;
	struct share *s;
	unsigned h = 2166136261u;
	size_t n;

	for (; *c != '\0'; c++)
		h = (h ^ *c) * 16777619u;
	h %= CHAINS;
	SLIST_FOREACH(s, &all->chains[h], chain)
		if (strcmp(s->name, principal) == 0)
			return share_ref(s);
	n = strlen(principal) + 1;
	if ((s = calloc(1, sizeof(*s) + n)) == NULL)
		return NULL;
	memcpy(s->name, principal, n);
	s->all = all;
	s->at = h;
	s->refs = 1;
	s->whole = name_is_local(principal);
	SLIST_INSERT_HEAD(&all->chains[h], s, chain);
	return s;
}

struct share *
share_ref(struct share *s)
{
	s->refs++;
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

/* Returns a principal's part of all. A part of few is at least one. */
static size_t
part(const struct share *s, size_t all)
{
	return s->whole || all < PART ? all : all / PART;
}

/* True if there is room for `more` beside the held amount, and beside the
 * amount of all limited principals together. */
static bool
room(const struct share *s, size_t more, size_t held, size_t together,
    size_t all)
{
	size_t others = all < PART ? all : all - all / PART;

	if (held > part(s, all) || more > part(s, all) - held)
		return false;
	return s->whole || (together <= others && more <= others - together);
}

bool
share_enter(struct share *s, size_t bytes, unsigned requests, size_t all_bytes)
{
	if (!room(s, 1, s->requests, s->all->requests, requests) ||
	    !room(s, bytes, s->bytes, s->all->bytes, all_bytes))
		return false;
	s->requests++;
	s->bytes += bytes;
	if (!s->whole) {
		s->all->requests++;
		s->all->bytes += bytes;
	}
	return true;
}

void
share_leave(struct share *s, size_t bytes)
{
	s->requests--;
	s->bytes -= bytes;
	if (!s->whole) {
		s->all->requests--;
		s->all->bytes -= bytes;
	}
}

bool
share_keep(struct share *s, size_t bytes, size_t all_bytes)
{
	if (!room(s, bytes, s->kept, s->all->kept, all_bytes))
		return false;
	s->kept += bytes;
	if (!s->whole)
		s->all->kept += bytes;
	return true;
}

void
share_drop(struct share *s, size_t bytes)
{
	s->kept -= bytes;
	if (!s->whole)
		s->all->kept -= bytes;
}
