/* Remembered rows of the lookup of calls, by exposed name. */
#ifndef SERVING_H
#define SERVING_H

#include <stddef.h>
#include <sys/queue.h>
#include "db.h"

struct serving_list {
	TAILQ_HEAD(serving_head, serving) list;
	unsigned n;
	size_t bytes;
};

const struct pg_result *serving_find(struct serving_list *, const char *tool);
/* Remembers a row. bytes: about the size of the row. If memory runs out, the
 * row is not remembered. */
void serving_add(struct serving_list *, const char *tool,
    const struct pg_result *row, size_t bytes);
void serving_drop(struct serving_list *, const char *tool);
void serving_clear(struct serving_list *);

#endif
