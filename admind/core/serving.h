/* Rows of the lookup of a call, by exposed name. */
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
/* bytes: about what the row takes. Without memory it is not remembered. */
void serving_add(struct serving_list *, const char *tool,
    const struct pg_result *row, size_t bytes);
void serving_drop(struct serving_list *, const char *tool);
void serving_clear(struct serving_list *);

#endif
