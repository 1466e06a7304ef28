/*
 * Remembers by exposed name the facts that a call needs about the serving
 * version, as the database last told them.
 *
 * A remembered row does not decide that a call may run. The INSERT of the
 * intent row (call_open) checks again that this very version serves under these
 * very limits. If a remembered row is out of date, the INSERT makes no row;
 * then the remembered row is dropped and read again. So an old entry costs a
 * call one more lookup at worst. To make that rare, all entries are dropped
 * when the catalogue changes.
 */
#include <stdlib.h>
#include <string.h>

#include "admind.h"
#include "serving.h"

enum {
	SERVING_MAX = 256,
	/* Bytes of a row, mostly its pre-image. Larger rows are read each
	 * time. */
	SERVING_ROW_MAX = 256 * 1024,
	SERVING_BYTES_MAX = 16 * 1024 * 1024,
};

struct serving {
	TAILQ_ENTRY(serving) entry;
	char tool[EXPOSED_NAME_MAX + 1];
	struct pg_result *row;
	size_t bytes;
};

static void
forget(struct serving_list *l, struct serving *s)
{
	TAILQ_REMOVE(&l->list, s, entry);
	l->n--;
	l->bytes -= s->bytes;
	db_keep_free(s->row);
	free(s);
}

static struct serving *
find(struct serving_list *l, const char *tool)
{
	struct serving *s;

	TAILQ_FOREACH(s, &l->list, entry)
		if (strcmp(s->tool, tool) == 0)
			return s;
	return NULL;
}

/* Returns the remembered row, or NULL. Moves it to the front of the list, so
 * that busy tools are found at once. */
const struct pg_result *
serving_find(struct serving_list *l, const char *tool)
{
	struct serving *s = find(l, tool);

	if (s == NULL)
		return NULL;
	TAILQ_REMOVE(&l->list, s, entry);
	TAILQ_INSERT_HEAD(&l->list, s, entry);
	return s->row;
}

void
serving_add(struct serving_list *l, const char *tool,
    const struct pg_result *row, size_t bytes)
{
	struct serving *s;

	serving_drop(l, tool);
	if (bytes > SERVING_ROW_MAX || (s = calloc(1, sizeof(*s))) == NULL)
		return;
	if ((s->row = db_keep(row)) == NULL) {
		free(s);
		return;
	}
	memcpy(s->tool, tool, strlen(tool) + 1);
	s->bytes = bytes;
	TAILQ_INSERT_HEAD(&l->list, s, entry);
	l->n++;
	l->bytes += bytes;
	while (l->n > SERVING_MAX || l->bytes > SERVING_BYTES_MAX)
		forget(l, TAILQ_LAST(&l->list, serving_head));
}

void
serving_drop(struct serving_list *l, const char *tool)
{
	struct serving *s = find(l, tool);

	if (s != NULL)
		forget(l, s);
}

void
serving_clear(struct serving_list *l)
{
	struct serving *s;

	while ((s = TAILQ_FIRST(&l->list)) != NULL)
		forget(l, s);
}
