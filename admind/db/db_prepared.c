#include <stdlib.h>
#include <string.h>

#include "db_prepared.h"

bool
db_prepared_has(const struct db_prepared *p, const struct db_stmt *s)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->list[i] == s)
			return true;
	return false;
}

int
db_prepared_add(struct db_prepared *p, const struct db_stmt *s)
{
	const struct db_stmt **list;
	size_t max = p->max != 0 ? p->max * 2 : 64;

	if (p->n == p->max) {
		list = realloc(p->list, max * sizeof(*list));
		if (list == NULL)
			return -1;
		p->list = list;
		p->max = max;
	}
	p->list[p->n++] = s;
	return 0;
}

void
db_prepared_drop(struct db_prepared *p, const struct db_stmt *s)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->list[i] == s) {
			p->list[i] = p->list[--p->n];
			return;
		}
}

void
db_prepared_free(struct db_prepared *p)
{
	free(p->list);
	memset(p, 0, sizeof(*p));
}
