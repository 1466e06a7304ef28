#include "anchors.h"
#include "buf.h"
#include "ids.h"

int
anchors_sign(const struct keys *k, uint64_t seq, const struct ipc_hash *head,
    struct ipc_hash *signature)
{
	static const char label[] = "mcpbox audit 1"; /* with its NUL */
	struct buf b;
	int rc = -1;

	buf_init(&b, sizeof(label) + 8 + sizeof(head->b));
	buf_put(&b, label, sizeof(label));
	buf_put_u64(&b, seq);
	buf_put(&b, head->b, sizeof(head->b));
	if (!b.failed) {
		hmac_sha256(k->audit, b.p, b.len, signature);
		rc = 0;
	}
	buf_free(&b);
	return rc;
}

const struct keys *
anchors_check(const struct keys *k, uint64_t seq, const struct ipc_hash *head,
    const struct ipc_hash *signature)
{
	struct ipc_hash want;

	for (; k != NULL; k = k->also)
		if (anchors_sign(k, seq, head, &want) == 0 &&
		    ct_equal(want.b, signature->b, sizeof(want.b)))
			return k;
	return NULL;
}
