/* See table.h. */
#include <stdlib.h>
#include <string.h>

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
bucket_of(const struct table *t, const struct ipc_id *id)
{
	return &t->bucket[get_be64(id->b) & (t->nbuckets - 1)];
}

struct table_node *
table_find(const struct table *t, const struct ipc_id *id)
{
	struct table_node *n;

	for (n = *bucket_of(t, id); n != NULL; n = n->next)
		if (memcmp(&n->id, id, sizeof(*id)) == 0)
			return n;
	return NULL;
}

void
table_add(struct table *t, struct table_node *n)
{
	struct table_node **b = bucket_of(t, &n->id);

	n->next = *b;
	*b = n;
	t->count++;
}

void
table_del(struct table *t, struct table_node *n)
{
	struct table_node **p;

	for (p = bucket_of(t, &n->id); *p != NULL; p = &(*p)->next)
		if (*p == n) {
			*p = n->next;
			n->next = NULL;
			t->count--;
			return;
		}
}

void
table_each(struct table *t, void (*f)(struct table_node *, void *), void *arg)
{
	struct table_node *n, *next;

	for (size_t i = 0; i < t->nbuckets; i++)
		for (n = t->bucket[i]; n != NULL; n = next) {
			next = n->next;
			f(n, arg);
		}
}
