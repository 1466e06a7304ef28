/*
 * The stream of a module's tree, from a runner that a hostile wheel may have
 * taken over: how it is cut does not matter, paths that are to be made are in
 * order and lead nowhere else, and no more is made than was allowed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tree.h"

enum { MOST_FILES = 40, MOST_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

struct made {
	char last[TREE_PATH_MAX + 1];
	unsigned entries;
	size_t bytes;
	bool open;
};

static int
path(struct made *m, const char *p)
{
	char c[TREE_PATH_MAX + 3];

	if (m->open || ++m->entries > MOST_FILES || strcmp(m->last, p) >= 0)
		abort();
	c[0] = '/';
	memcpy(c + 1, p, strlen(p) + 1);
	memcpy(c + strlen(c), "/", 2);
	if (strstr(c, "//") != NULL || strstr(c, "/./") != NULL ||
	    strstr(c, "/../") != NULL)
		abort();
	memcpy(m->last, p, strlen(p) + 1);
	return 0;
}

static int
directory(void *arg, const char *p, struct err *e)
{
	return path(arg, p);
}

static int
file(void *arg, const char *p, struct err *e)
{
	struct made *m = arg;
	int rc = path(m, p);

	m->open = true;
	return rc;
}

static int
data(void *arg, const void *p, size_t n, struct err *e)
{
	struct made *m = arg;

	m->bytes += n;
	if (!m->open || m->bytes > MOST_BYTES)
		abort();
	return 0;
}

static int
file_end(void *arg, struct err *e)
{
	struct made *m = arg;

	if (!m->open)
		abort();
	m->open = false;
	return 0;
}

static const struct tree_sink sink = {directory, file, data, file_end};

/* 1: it was whole. */
static int
run(const uint8_t *p, size_t n, size_t step, struct ipc_hash *digest)
{
	struct made m;
	struct tree *t;
	uint64_t files, bytes;
	size_t take;
	int rc = 0;

	memset(&m, 0, sizeof(m));
	if ((t = tree_new(MOST_FILES, MOST_BYTES, &sink, &m)) == NULL)
		return 0;
	for (; n > 0 && rc == 0; p += take, n -= take) {
		take = step < n ? step : n;
		rc = tree_feed(t, p, take, NULL);
	}
	if (rc == 0)
		rc = tree_end(t, digest, &files, &bytes, NULL);
	if (rc == 0 && (bytes != m.bytes || files > m.entries))
		abort();
	tree_free(t);
	return rc == 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct ipc_hash a, b;
	int whole = run(p, n, n + 1, &a);

	if (run(p, n, 3, &b) != whole ||
	    (whole && memcmp(&a, &b, sizeof(a)) != 0))
		abort();
	return 0;
}
