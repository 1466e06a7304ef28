/*
 * See credentials.h.
 */
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "credentials.h"
#include "ids.h"

enum { NONCE = 16, BLOCK = 32 };

void
credentials_key(const struct keys *k, const struct ipc_id *execution,
    const struct ipc_hash *version, struct ipc_bytes server,
    struct ipc_bytes secret, uint8_t out[KEY_LEN])
{
	uint8_t sub[KEY_LEN];
	struct ipc_hash key;
	struct buf b;

	hkdf_sha256(k->secrets, "credentials", sub);
	buf_init(&b, 64 + NAME_SERVER_MAX + 1 + KEY_NAME_MAX);
	buf_put(&b, execution->b, sizeof(execution->b));
	buf_put(&b, version->b, sizeof(version->b));
	buf_put(&b, server.p,
	    server.n <= NAME_SERVER_MAX ? server.n : NAME_SERVER_MAX);
	buf_putc(&b, '\0'); /* separates the names, which have no NUL */
	buf_put(
	    &b, secret.p, secret.n <= KEY_NAME_MAX ? secret.n : KEY_NAME_MAX);
	/* A key made from only a part of these fields must never be used. */
	if (b.failed)
		abort();
	hmac_sha256(sub, b.p, b.len, &key);
	memcpy(out, key.b, KEY_LEN);
	explicit_bzero(sub, sizeof(sub));
	explicit_bzero(&key, sizeof(key));
	buf_free(&b);
}

int
credentials_open(const uint8_t key[KEY_LEN], const uint8_t *sealed, size_t n,
    struct buf *out, struct err *err)
{
	struct ipc_hash enc, mac, tag, block;
	uint8_t counted[NONCE + 4];
	size_t len;

	if (n < CREDENTIAL_OVERHEAD ||
	    n - CREDENTIAL_OVERHEAD > SECRET_VALUE_MAX)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "a sealed credential has 48 to 10048 bytes");
	len = n - CREDENTIAL_OVERHEAD;
	hmac_sha256(key, "mac", 3, &mac);
	hmac_sha256(mac.b, sealed, NONCE + len, &tag);
	if (!ct_equal(tag.b, sealed + NONCE + len, sizeof(tag.b))) {
		explicit_bzero(&mac, sizeof(mac));
		return err_set(err, FAILURE_FORBIDDEN,
		    "the credential was not sealed by that run");
	}
	hmac_sha256(key, "enc", 3, &enc);
	memcpy(counted, sealed, NONCE);
	for (size_t at = 0; at < len; at += BLOCK) {
		for (int i = 0; i < 4; i++)
			counted[NONCE + i] =
			    (uint8_t)((at / BLOCK) >> (24 - 8 * i));
		hmac_sha256(enc.b, counted, sizeof(counted), &block);
		for (size_t i = 0; i < BLOCK && at + i < len; i++)
			block.b[i] ^= sealed[NONCE + at + i];
		buf_put(out, block.b, len - at < BLOCK ? len - at : BLOCK);
	}
	explicit_bzero(&enc, sizeof(enc));
	explicit_bzero(&mac, sizeof(mac));
	explicit_bzero(&block, sizeof(block));
	return out->failed ? err_set(err, FAILURE_BUSY, "out of memory") : 0;
}
