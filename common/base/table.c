/* See table.h. */
#include <stdlib.h>
#include <string.h>

#include "fnv.h"
#include "table.h"

int
table_init(struct table *t, size_t expect)
{
	t->nbuckets = 64;
	while (t->nbuckets < expect)
		t->nbuckets *= 2;
	t->count = 0;
	t->bucket = calloc(t->nbuckets, sizeof(struct table_node *));
	return t->bucket == NULL ? -1 : 0;
}

void
table_free(struct table *t)
{
	free(t->bucket);
	t->bucket = NULL;
}

static struct table_node **
bucket_of(const struct table *t, const void *key, size_t n)
{
	uint32_t h = fnv_bytes(FNV_START, key, n);

	return &t->bucket[(h ^ h >> 16) & (t->nbuckets - 1)];
}

struct table_node *
table_find(const struct table *t, const void *key, size_t n)
{
	struct table_node *x;

	for (x = *bucket_of(t, key, n); x != NULL; x = x->next)
		if (x->n == n && (n == 0 || memcmp(x->key, key, n) == 0))
			return x;
	return NULL;
}

void
table_add(struct table *t, struct table_node *x, const void *key, size_t n)
{
	struct table_node **b = bucket_of(t, key, n);

	x->key = key;
	x->n = n;
	x->next = *b;
	*b = x;
	t->count++;
}

void
table_del(struct table *t, struct table_node *x)
{
	struct table_node **p;

	for (p = bucket_of(t, x->key, x->n); *p != NULL; p = &(*p)->next)
		if (*p == x) {
			*p = x->next;
			x->next = NULL;
			t->count--;
			return;
		}
}

void
table_each(struct table *t, void (*f)(struct table_node *, void *), void *arg)
{
	struct table_node *x, *next;

	for (size_t i = 0; i < t->nbuckets; i++)
		for (x = t->bucket[i]; x != NULL; x = next) {
			next = x->next;
			f(x, arg);
		}
}
