/* See share.h. */
#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "share.h"
#include "table.h"

enum { PRINCIPALS = 64 }; /* that usually have calls at once */

struct share {
	struct table_node node; /* by name */
	struct shares *all;
	unsigned refs;
	bool whole; /* it is `local`, which may use everything */
	size_t has[SHARES];
	char name[];
};

struct shares {
	struct table by_name;
	size_t has[SHARES]; /* used by all principals but `local` */
};

/* The parts of each resource, in eighths: for one principal (`one`), and for
 * all principals but `local` together (`together`). */
static const struct {
	unsigned one, together;
} parts[SHARES] = {[SHARE_SLOTS] = {4, 6},
    [SHARE_QUEUE] = {2, 4},
    [SHARE_PARKED] = {2, 4},
    [SHARE_VERIFY] = {2, 4}};

struct shares *
share_new(void)
{
	struct shares *s = calloc(1, sizeof(*s));

	if (s != NULL && table_init(&s->by_name, PRINCIPALS) == -1) {
		free(s);
		return NULL;
	}
	return s;
}

void
share_free(struct shares *s)
{
	if (s == NULL)
		return;
	table_free(&s->by_name);
	free(s);
}

struct share *
share_get(struct shares *all, struct ipc_bytes principal)
{
	struct share *s = TABLE_OBJECT(struct share, node,
	    table_find(&all->by_name, principal.p, principal.n));

	if (s != NULL) {
		s->refs++;
		return s;
	}
	if ((s = calloc(1, sizeof(*s) + principal.n + 1)) == NULL)
		return NULL;
	if (principal.n > 0)
		memcpy(s->name, principal.p, principal.n);
	s->all = all;
	s->refs = 1;
	s->whole = name_is_local(s->name);
	table_add(&all->by_name, &s->node, s->name, principal.n);
	return s;
}

void
share_put(struct share *s)
{
	if (s == NULL || --s->refs > 0)
		return;
	table_del(&s->all->by_name, &s->node);
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
