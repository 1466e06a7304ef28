#include <string.h>

#include "audit_row.h"
#include "crypto.h"

static const char magic[] = "mcpbox audit 1"; /* with its NUL */

static const uint8_t *
take(struct ipc_bytes *b, size_t n)
{
	const uint8_t *p = b->p;

	if (b->n < n)
		return NULL;
	b->p += n;
	b->n -= n;
	return p;
}

static int
take_number(struct ipc_bytes *b, size_t n, uint64_t *out)
{
	const uint8_t *p = take(b, n);
	uint64_t v = 0;

	if (p == NULL)
		return -1;
	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	*out = v;
	return 0;
}

static int
take_hash(struct ipc_bytes *b, struct ipc_hash *out)
{
	const uint8_t *p = take(b, sizeof(out->b));

	if (p == NULL)
		return -1;
	memcpy(out->b, p, sizeof(out->b));
	return 0;
}

static int
take_text(struct ipc_bytes *b, struct ipc_bytes *out)
{
	const uint8_t *p;
	uint64_t n;

	if (take_number(b, 4, &n) == -1 || (p = take(b, n)) == NULL)
		return -1;
	*out = ipc_bytes(p, n);
	return 0;
}

/* Takes the hashed fields. No byte may be left over, so that no two rows have
 * the same bytes. */
static int
take_fields(struct ipc_bytes b, struct audit_row *r)
{
	const uint8_t *p = take(&b, sizeof(magic));
	uint64_t seq;

	if (p == NULL || memcmp(p, magic, sizeof(magic)) != 0 ||
	    take_number(&b, 8, &seq) == -1 || seq != r->seq ||
	    take_number(&b, 8, &r->at_ms) == -1 ||
	    take_text(&b, &r->actor) == -1 || take_text(&b, &r->action) == -1 ||
	    take_text(&b, &r->subject) == -1 || take_text(&b, &r->detail) == -1)
		return -1;
	return b.n == 0 ? 0 : -1;
}

int
audit_row_next(struct ipc_bytes *rows, struct audit_row *out)
{
	struct audit_row r = {0};
	struct ipc_bytes body;
	uint64_t anchored;

	if (rows->n == 0)
		return 0;
	if (take_number(rows, 8, &r.seq) == -1 ||
	    take_hash(rows, &r.prev) == -1 || take_hash(rows, &r.hash) == -1 ||
	    take_text(rows, &body) == -1 || take_fields(body, &r) == -1 ||
	    take_number(rows, 1, &anchored) == -1 || anchored > 1)
		return -1;
	if (anchored == 1 &&
	    (take_hash(rows, &r.anchor_head) == -1 ||
		take_hash(rows, &r.anchor_signature) == -1))
		return -1;
	r.anchored = anchored == 1;
	sha256_2(r.prev.b, sizeof(r.prev.b), body.p, body.n, &r.computed);
	*out = r;
	return 1;
}
