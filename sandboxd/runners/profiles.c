/* See profiles.h. */
#include <stdlib.h>
#include <string.h>

#include "profiles.h"

void
profiles_init(struct profiles *ps)
{
	TAILQ_INIT(&ps->list);
	ps->idle = 0;
}

static void
forget(struct profiles *ps, struct profile *p)
{
	TAILQ_REMOVE(&ps->list, p, link);
	free((void *)(uintptr_t)p->is.modules.p);
	free(p);
}

void
profiles_clear(struct profiles *ps)
{
	struct profile *p;

	while ((p = TAILQ_FIRST(&ps->list)) != NULL)
		forget(ps, p);
}

static bool
same(const struct pool_profile *a, const struct pool_profile *b)
{
	return a->kind == b->kind && a->network == b->network &&
	    a->tmp_bytes == b->tmp_bytes && a->tmp_inodes == b->tmp_inodes &&
	    a->modules.n == b->modules.n &&
	    (a->modules.n == 0 ||
		memcmp(a->modules.p, b->modules.p, a->modules.n) == 0);
}

static struct profile *
make(const struct pool_profile *is)
{
	struct profile *p = calloc(1, sizeof(*p));
	uint8_t *modules = NULL;

	if (p == NULL)
		return NULL;
	if (is->modules.n > 0) {
		if ((modules = malloc(is->modules.n)) == NULL) {
			free(p);
			return NULL;
		}
		memcpy(modules, is->modules.p, is->modules.n);
	}
	p->is = *is;
	p->is.modules = ipc_bytes(modules, is->modules.n);
	TAILQ_INIT(&p->waiting);
	return p;
}

struct profile *
profiles_get(struct profiles *ps, const struct pool_profile *is)
{
	struct profile *p;

	TAILQ_FOREACH(p, &ps->list, link)
		if (same(&p->is, is))
			break;
	if (p == NULL) {
		if ((p = make(is)) == NULL)
			return NULL;
	} else {
		if (p->refs == 0)
			ps->idle--;
		TAILQ_REMOVE(&ps->list, p, link);
	}
	TAILQ_INSERT_HEAD(&ps->list, p, link);
	p->refs++;
	return p;
}

void
profiles_put(struct profiles *ps, struct profile *p)
{
	struct profile *last;

	if (--p->refs > 0)
		return;
	if (++ps->idle <= PROFILES_KEPT)
		return;
	TAILQ_FOREACH_REVERSE(last, &ps->list, profile_list, link)
		if (last->refs == 0)
			break;
	ps->idle--;
	forget(ps, last);
}
