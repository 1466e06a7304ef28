/*
 * Handlers of routes that only read, and of /metrics.
 */
#ifndef READS_H
#define READS_H

#include "web.h"

/* lists.c */
void list_get(struct call *);
/* Puts the request's filters into q and b (initialised; must outlive q). */
void lists_filters(const struct call *, struct ipc_admin_query *, struct buf *);
void object_get(struct call *);
void health_get(struct call *);

/* export.c */
void export_get(struct call *);

/* tail.c */
void tail_get(struct call *);
void tail_end_all(void); /* ends all open tails */

/* metrics.c */
int metrics_load(struct web *, const char *path, struct err *);
void metrics_get(struct call *);

#endif
