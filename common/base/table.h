/*
 * A hash table: objects by bytes that they hold themselves. It owns nothing and
 * allocates only its buckets, once; so its user bounds the number of objects.
 *
 * The hash (fnv.h) has no secret. If a stranger chooses the keys, all may
 * share a bucket, and a look-up then compares with every object. So a user has
 * few objects, or keys that a stranger can't choose.
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

/* Makes an empty table. expect: objects at most. 0, or -1 without memory. */
int table_init(struct table *, size_t expect);
void table_free(struct table *); /* the buckets; objects are the owner's */
/* Returns the node of this key, or NULL. */
struct table_node *table_find(const struct table *, const void *key, size_t n);
/* Adds an object whose key is not in the table yet. */
void table_add(struct table *, struct table_node *, const void *key, size_t n);
void table_del(struct table *, struct table_node *); /* must be in it */
/* Calls f for each node. f may remove the node it is given, and no other. */
void table_each(struct table *, void (*f)(struct table_node *, void *), void *);

/* The object whose member is this node; NULL for NULL. */
#define TABLE_OBJECT(type, member, node) \
	((type *)table_object((node), offsetof(type, member)))

static inline void *
table_object(struct table_node *node, size_t at)
{
	return node == NULL ? NULL : (char *)node - at;
}

#endif
