#include "names.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 240, GROW = 16 };

void
names_free(struct names *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->name[i]);
	free(t->name);
	*t = (struct names){0};
}

static struct address
at(size_t i)
{
	uint32_t v = ((uint32_t)BLOCK << 24) + (uint32_t)i + 1;
	const uint8_t b[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16),
	    (uint8_t)(v >> 8), (uint8_t)v};

	return address_v4(b);
}

int
names_address(struct names *t, const char *name, struct address *out)
{
	char **grown;

	for (size_t i = 0; i < t->n; i++)
		if (strcmp(t->name[i], name) == 0) {
			*out = at(i);
			return 0;
		}
	if (t->n == NAMES_MAX || strlen(name) > NAMES_NAME_MAX)
		return -1;
	if (t->n == t->cap) {
		grown = realloc(t->name, (t->cap + GROW) * sizeof(*grown));
		if (grown == NULL)
			return -1;
		t->name = grown;
		t->cap += GROW;
	}
	if ((t->name[t->n] = strdup(name)) == NULL)
		return -1;
	*out = at(t->n++);
	return 0;
}

bool
names_synthetic(const struct address *a)
{
	return a->family == AF_INET && (a->b[0] & 0xf0) == BLOCK &&
	    get_be32(a->b) != UINT32_MAX;
}

const char *
names_of(const struct names *t, const struct address *a)
{
	uint32_t i;

	if (!names_synthetic(a))
		return NULL;
	i = get_be32(a->b) - ((uint32_t)BLOCK << 24);
	return i >= 1 && i <= t->n ? t->name[i - 1] : NULL;
}
