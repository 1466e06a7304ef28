/* See needles.h. */
#include <stdlib.h>
#include <string.h>

#include "needles.h"

/*
 * A trie of all needles: a node is a prefix of at least one needle. A node's
 * children are a list. The root's children are a table, because most steps of a
 * scan start at the root. `fail` is the node of the longest proper suffix of
 * this prefix that is a node, too.
 */
struct node {
	uint32_t child, sibling, fail; /* indices; 0: none, the root */
	uint16_t out; /* length of the longest needle that ends here, or 0 */
	uint8_t c;
};

struct needles {
	struct node *node; /* [0] is the root */
	uint32_t count, cap;
	uint32_t first[256]; /* the root's children */
};

enum { NODES_FIRST = 128 };

struct needles *
needles_new(void)
{
	struct needles *nd;

	if ((nd = calloc(1, sizeof(*nd))) == NULL)
		return NULL;
	if ((nd->node = calloc(NODES_FIRST, sizeof(nd->node[0]))) == NULL) {
		free(nd);
		return NULL;
	}
	nd->cap = NODES_FIRST;
	nd->count = 1;
	return nd;
}

void
needles_free(struct needles *nd)
{
	if (nd == NULL)
		return;
	explicit_bzero(nd->node, nd->cap * sizeof(nd->node[0]));
	free(nd->node);
	free(nd);
}

/* Doubles the room, but not by realloc, which may leave a copy of secrets in
 * freed memory. */
static int
grow(struct needles *nd)
{
	uint32_t cap = nd->cap * 2;
	struct node *node = calloc(cap, sizeof(*node));

	if (node == NULL)
		return -1;
	memcpy(node, nd->node, nd->count * sizeof(*node));
	explicit_bzero(nd->node, nd->count * sizeof(*node));
	free(nd->node);
	nd->node = node;
	nd->cap = cap;
	return 0;
}

/* Returns the child of a node by the byte c, or 0. */
static uint32_t
child(const struct needles *nd, uint32_t at, uint8_t c)
{
	uint32_t i;

	if (at == 0)
		return nd->first[c];
	for (i = nd->node[at].child; i != 0 && nd->node[i].c != c;)
		i = nd->node[i].sibling;
	return i;
}

int
needles_add(struct needles *nd, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint32_t at = 0, next;

	for (size_t i = 0; i < n; i++, at = next) {
		if ((next = child(nd, at, p[i])) != 0)
			continue;
		if (nd->count == nd->cap && grow(nd) != 0)
			return -1;
		next = nd->count++;
		nd->node[next].c = p[i];
		if (at == 0)
			nd->first[p[i]] = next;
		else {
			nd->node[next].sibling = nd->node[at].child;
			nd->node[at].child = next;
		}
	}
	nd->node[at].out = (uint16_t)n;
	return 0;
}

/* Returns the node to which the byte c leads from `at`. */
static uint32_t
step(const struct needles *nd, uint32_t at, uint8_t c)
{
	uint32_t next;

	while (at != 0) {
		if ((next = child(nd, at, c)) != 0)
			return next;
		at = nd->node[at].fail;
	}
	return nd->first[c];
}

/* Computes `fail` of each node, breadth first, because the `fail` of a prefix
 * depends on those of shorter prefixes. */
int
needles_ready(struct needles *nd)
{
	uint32_t *order, head = 0, tail = 0;

	if ((order = calloc(nd->count, sizeof(*order))) == NULL)
		return -1;
	for (unsigned c = 0; c < 256; c++)
		if (nd->first[c] != 0)
			order[tail++] = nd->first[c];
	while (head < tail) {
		uint32_t at = order[head++];
		struct node *n = &nd->node[at];

		if (n->out == 0)
			n->out = nd->node[n->fail].out;
		for (uint32_t i = n->child; i != 0; i = nd->node[i].sibling) {
			nd->node[i].fail = step(nd, n->fail, nd->node[i].c);
			order[tail++] = i;
		}
	}
	free(order);
	return 0;
}

void
needles_scan(const struct needles *nd, const uint8_t *text, size_t n,
    needles_hit *hit, void *arg)
{
	uint32_t at = 0;
	size_t i = 0;

	while (i < n) {
		if (at == 0) {
			while (i < n && nd->first[text[i]] == 0)
				i++;
			if (i == n)
				break;
		}
		at = step(nd, at, text[i++]);
		if (nd->node[at].out != 0 && !hit(arg, i - nd->node[at].out, i))
			return;
	}
}
