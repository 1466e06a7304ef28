/* See tree.h. */
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "tree.h"

static const char magic[] = "mcpbox tree 1";
static const char label[] = "mcpbox module 1"; /* of the digest */

enum state { MAGIC, HEAD, PATH, LENGTH, CONTENT };
enum { HEAD_LEN = 1 + 4, LENGTH_LEN = 8 };

struct tree {
	const struct tree_sink *sink;
	void *arg;
	uint64_t most_files, most_bytes;
	uint64_t entries, files, bytes;
	struct sha256_pieces *whole, *content;
	enum state state;
	size_t want, have; /* of the part being gathered */
	uint8_t part[TREE_PATH_MAX];
	uint8_t kind, head[HEAD_LEN];   /* of this entry, as it came */
	uint64_t left;                  /* of the file's content */
	char path[TREE_PATH_MAX + 1];   /* of this entry */
	char before[TREE_PATH_MAX + 1]; /* the path before; "" at first */
};

struct tree *
tree_new(uint64_t most_files, uint64_t most_bytes, const struct tree_sink *sink,
    void *arg)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	t->sink = sink;
	t->arg = arg;
	t->most_files = most_files;
	t->most_bytes = most_bytes;
	t->whole = sha256_begin();
	t->content = sha256_begin();
	if (t->whole == NULL || t->content == NULL) {
		tree_free(t);
		return NULL;
	}
	sha256_add(t->whole, label, sizeof(label));
	t->want = sizeof(magic);
	return t;
}

void
tree_free(struct tree *t)
{
	if (t == NULL)
		return;
	sha256_free(t->whole);
	sha256_free(t->content);
	free(t);
}

static int
bad(struct err *e, const char *what)
{
	return err_set(e, FAILURE_INVALID_PARAMS, "the tree: %s", what);
}

static void
gather(struct tree *t, enum state state, size_t want)
{
	t->state = state;
	t->want = want;
	t->have = 0;
}

/* Returns how many parts a path has; 0: a part is not allowed. A control
 * character in a name has no use but to deceive the reader of a list. */
static size_t
parts(const char *path, size_t n)
{
	const char *p = path, *end = path + n;
	size_t count = 0, len;

	for (size_t i = 0; i < n; i++)
		if ((uint8_t)path[i] < 0x20 || path[i] == 0x7f)
			return 0;
	while (p < end) {
		const char *slash = memchr(p, '/', (size_t)(end - p));

		len = slash != NULL ? (size_t)(slash - p) : (size_t)(end - p);
		if (len == 0 || len > TREE_NAME_MAX ||
		    (len == 1 && p[0] == '.') ||
		    (len == 2 && p[0] == '.' && p[1] == '.'))
			return 0;
		count++;
		p += len + 1;
		if (slash != NULL && p == end)
			return 0; /* ends in a slash */
	}
	return count;
}

/* Takes a whole path. Its form must be valid, and it must sort after the path
 * before it. */
static int
on_path(struct tree *t, struct err *e)
{
	size_t n;

	memcpy(t->path, t->part, t->have);
	t->path[t->have] = '\0';
	if (memchr(t->part, 0, t->have) != NULL ||
	    (n = parts(t->path, t->have)) == 0 || n > TREE_DEPTH_MAX)
		return bad(e, "a path is not in its form, or too deep");
	/* strcmp(3) compares as unsigned bytes, as module-add sorts. */
	if (strcmp(t->before, t->path) >= 0)
		return bad(e, "its paths are not in order, or one comes twice");
	memcpy(t->before, t->path, t->have + 1);
	sha256_add(t->whole, t->head, sizeof(t->head));
	sha256_add(t->whole, t->path, t->have);
	if (t->kind == TREE_FILE) {
		gather(t, LENGTH, LENGTH_LEN);
		return 0;
	}
	gather(t, HEAD, HEAD_LEN);
	return t->sink->directory(t->arg, t->path, e);
}

static int
on_head(struct tree *t, struct err *e)
{
	uint32_t n = get_be32(t->part + 1);

	t->kind = t->part[0];
	if (t->kind != TREE_DIRECTORY && t->kind != TREE_FILE)
		return bad(e, "an entry is neither file nor directory");
	if (n == 0 || n > TREE_PATH_MAX)
		return bad(e, "a path is empty or too long");
	if (++t->entries > t->most_files)
		return err_set(e, FAILURE_LIMIT,
		    "the module has more than %llu files and directories",
		    (unsigned long long)t->most_files);
	memcpy(t->head, t->part, HEAD_LEN);
	gather(t, PATH, n);
	return 0;
}

static int
content_end(struct tree *t, struct err *e)
{
	struct ipc_hash h;

	sha256_end(t->content, &h);
	sha256_add(t->whole, h.b, sizeof(h.b));
	gather(t, HEAD, HEAD_LEN);
	return t->sink->file_end(t->arg, e);
}

static int
on_length(struct tree *t, struct err *e)
{
	uint64_t n = get_be64(t->part);

	/* bytes is at most most_bytes, so this cannot wrap */
	if (n > t->most_bytes - t->bytes)
		return err_set(e, FAILURE_LIMIT,
		    "the module has more than %llu bytes, unpacked",
		    (unsigned long long)t->most_bytes);
	sha256_add(t->whole, t->part, LENGTH_LEN);
	t->bytes += n;
	t->files++;
	t->left = n;
	t->state = CONTENT;
	if (t->sink->file(t->arg, t->path, e) == -1)
		return -1;
	return n == 0 ? content_end(t, e) : 0;
}

static int
on_magic(struct tree *t, struct err *e)
{
	if (memcmp(t->part, magic, sizeof(magic)) != 0)
		return bad(e, "it begins otherwise");
	gather(t, HEAD, HEAD_LEN);
	return 0;
}

static int
on_content(struct tree *t, const uint8_t **p, size_t *n, struct err *e)
{
	size_t take = t->left < *n ? (size_t)t->left : *n;

	sha256_add(t->content, *p, take);
	if (t->sink->data(t->arg, *p, take, e) == -1)
		return -1;
	*p += take;
	*n -= take;
	t->left -= take;
	return t->left == 0 ? content_end(t, e) : 0;
}

int
tree_feed(struct tree *t, const void *data, size_t n, struct err *e)
{
	const uint8_t *p = data;
	size_t take;
	int rc = 0;

	while (n > 0 && rc == 0) {
		if (t->state == CONTENT) {
			rc = on_content(t, &p, &n, e);
			continue;
		}
		take = t->want - t->have < n ? t->want - t->have : n;
		memcpy(t->part + t->have, p, take);
		t->have += take;
		p += take;
		n -= take;
		if (t->have < t->want)
			break;
		rc = t->state == MAGIC ? on_magic(t, e)
		    : t->state == HEAD ? on_head(t, e)
		    : t->state == PATH ? on_path(t, e)
				       : on_length(t, e);
	}
	return rc;
}

int
tree_end(struct tree *t, struct ipc_hash *digest, uint64_t *files,
    uint64_t *bytes, struct err *e)
{
	if (t->state != HEAD || t->have != 0)
		return bad(e, "it is cut short");
	if (t->files == 0)
		return bad(e, "it has no file");
	sha256_end(t->whole, digest);
	*files = t->files;
	*bytes = t->bytes;
	return 0;
}
