/*
 * A hash table: finds objects by bytes that the objects hold themselves. The
 * table owns no object and allocates only its buckets, once. So its user bounds
 * the number of objects.
 *
 * The hash (fnv.h) has no secret. If a stranger chooses the keys, all may share
 * a bucket, and a look-up then compares with every object. So every
 * user of a table has few objects, or keys that a stranger can't choose.
 */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>

/* A member of each object. The table fills it in. */
struct table_node {
	struct table_node *next;
	const void *key; /* in the object, unchanged while it is in the table */
	size_t n;
};

struct table {
	struct table_node **bucket;
	size_t nbuckets; /* a power of two */
	size_t count;
};

/* Makes an empty table. expect: number of objects expected. 0, or -1 without
 * memory. */
int table_init(struct table *, size_t expect);
void table_free(struct table *); /* frees the buckets, no objects */
/* Returns the node of this key, or NULL. */
struct table_node *table_find(const struct table *, const void *key, size_t n);
/* Adds an object whose key is not in the table yet. */
void table_add(struct table *, struct table_node *, const void *key, size_t n);
/* Removes a node, which must be in the table. */
void table_del(struct table *, struct table_node *);
/* Calls f for each node. f may remove the node it is given, and no other. */
void table_each(struct table *, void (*f)(struct table_node *, void *), void *);

/* Returns the object whose member is this node; NULL if node is NULL. */
#define TABLE_OBJECT(type, member, node) \
	((type *)table_object((node), offsetof(type, member)))

static inline void *
table_object(struct table_node *node, size_t at)
{
	return node == NULL ? NULL : (char *)node - at;
}

#endif
