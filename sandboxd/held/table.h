/*
 * Objects by execution id: a hash table that owns nothing and allocates only
 * its buckets. Ids are random and chosen by admind, never by a gateway or a
 * tool, so their own bytes serve as the hash.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>

#include "ipc.h"

struct table_node {
	struct ipc_id id;
	struct table_node *next;
};

struct table {
	struct table_node **bucket;
	size_t nbuckets; /* a power of two */
	size_t count;
};

/* Makes an empty table. expect: objects at most. 0, or -1 without memory. */
int table_init(struct table *, size_t expect);
void table_free(struct table *); /* the buckets; objects are the owner's */
struct table_node *table_find(const struct table *, const struct ipc_id *);
void table_add(struct table *, struct table_node *); /* id set, not in it yet */
void table_del(struct table *, struct table_node *); /* must be in it */
/* Calls f for each node. f may remove the node it is given, and no other. */
void table_each(struct table *, void (*f)(struct table_node *, void *), void *);

#endif
