/*
 * A set of execution ids: a hash table with open addressing that doubles. The
 * ids are random and made by us, so their bytes serve as the hash.
 */
#include <stdlib.h>
#include <string.h>

#include "idset.h"

enum { FREE, USED, DELETED, FIRST_SIZE = 256 };

/* Returns the slot of id, or (size_t)-1. */
static size_t
find(const struct idset *s, const struct ipc_id *id)
{
	size_t i;

	if (s->size == 0)
		return (size_t)-1;
	for (i = get_be64(id->b) & (s->size - 1); s->used[i] != FREE;
	    i = (i + 1) & (s->size - 1))
		if (s->used[i] == USED &&
		    memcmp(&s->slot[i], id, sizeof(*id)) == 0)
			return i;
	return (size_t)-1;
}

static void
place(struct idset *s, const struct ipc_id *id)
{
	size_t i = get_be64(id->b) & (s->size - 1);

	while (s->used[i] == USED)
		i = (i + 1) & (s->size - 1);
	if (s->used[i] == FREE)
		s->filled++;
	s->used[i] = USED;
	s->slot[i] = *id;
	s->count++;
}

/* Makes room for one more id, so that at least a quarter of the slots is always
 * free. */
static int
grow(struct idset *s)
{
	struct idset n = {0};

	if (s->size != 0 && (s->filled + 1) * 4 <= s->size * 3)
		return 0;
	for (n.size = FIRST_SIZE; n.size < s->count * 4; n.size *= 2)
		;
	n.slot = calloc(n.size, sizeof(*n.slot));
	n.used = calloc(n.size, 1);
	if (n.slot == NULL || n.used == NULL) {
		free(n.slot);
		free(n.used);
		return -1;
	}
	for (size_t i = 0; i < s->size; i++)
		if (s->used[i] == USED)
			place(&n, &s->slot[i]);
	free(s->slot);
	free(s->used);
	*s = n;
	return 0;
}

int
idset_add(struct idset *s, const struct ipc_id *id)
{
	if (find(s, id) != (size_t)-1)
		return 0;
	if (grow(s) == -1)
		return -1;
	place(s, id);
	return 0;
}

bool
idset_has(const struct idset *s, const struct ipc_id *id)
{
	return find(s, id) != (size_t)-1;
}

void
idset_del(struct idset *s, const struct ipc_id *id)
{
	size_t i = find(s, id);

	if (i == (size_t)-1)
		return;
	s->used[i] = DELETED;
	s->count--;
}

void
idset_clear(struct idset *s)
{
	free(s->slot);
	free(s->used);
	memset(s, 0, sizeof(*s));
}
