/* See share.h. */
#include <stdlib.h>
#include <string.h>

#include "name.h"
#include "share.h"
#include "table.h"

enum {
	PRINCIPALS = 256, /* usual principals with requests: table size */
	PART = 4 /* a principal has at most 1/PART, and all principals but
		  * `local` together leave 1/PART to `local` */
};

struct share {
	struct table_node node; /* by name */
	struct shares *all;
	unsigned refs, requests;
	size_t bytes, kept;
	bool whole; /* of `local` */
	char name[];
};

struct shares {
	struct table by_name;
	unsigned requests; /* of all but `local` */
	size_t bytes, kept;
};

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
share_get(struct shares *all, const char *principal)
{
	size_t n = strlen(principal);
	struct share *s = TABLE_OBJECT(
	    struct share, node, table_find(&all->by_name, principal, n));

	if (s != NULL)
		return share_ref(s);
	if ((s = calloc(1, sizeof(*s) + n + 1)) == NULL)
		return NULL;
	memcpy(s->name, principal, n + 1);
	s->all = all;
	s->refs = 1;
	s->whole = name_is_local(principal);
	table_add(&all->by_name, &s->node, s->name, n);
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
	table_del(&s->all->by_name, &s->node);
	free(s);
}

/* Returns a principal's part of `all`. `local` may have all, and an amount that
 * is less than PART is not divided. */
static size_t
part(const struct share *s, size_t all)
{
	return s->whole || all < PART ? all : all / PART;
}

/* True if `more` fits into the principal's part, where the principal has
 * `held`, and into the part of all principals but `local`, who have
 * `together`. */
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
