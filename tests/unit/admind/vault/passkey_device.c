#include <string.h>

#include "ids.h"
#include "passkey_device.h"
#include "unit.h"

struct device
device_new(int alg)
{
	struct device d = {
	    .alg = alg, .flags = DEVICE_UP | DEVICE_UV, .rp_id = "localhost"};

	d.key = alg == AUTHKEY_ES256
	    ? EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256")
	    : EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	assert_non_null(d.key);
	random_bytes(d.id, sizeof(d.id));
	return d;
}

void
device_free(struct device *d)
{
	EVP_PKEY_free(d->key);
}

void
device_cose(const struct device *d, struct buf *b)
{
	static const uint8_t es256[] = {
	    0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32};
	static const uint8_t eddsa[] = {
	    0xa4, 1, 1, 3, 0x27, 0x20, 6, 0x21, 0x58, 32};
	uint8_t point[65];
	size_t n = sizeof(point);

	if (d->alg == AUTHKEY_EDDSA) {
		assert_int_equal(
		    EVP_PKEY_get_raw_public_key(d->key, point, &n), 1);
		buf_put(b, eddsa, sizeof(eddsa));
		buf_put(b, point, 32);
		return;
	}
	assert_int_equal(EVP_PKEY_get_octet_string_param(
			     d->key, "pub", point, sizeof(point), &n),
	    1);
	assert_int_equal(n, sizeof(point));
	buf_put(b, es256, sizeof(es256));
	buf_put(b, point + 1, 32);
	buf_put(b, "\x22\x58\x20", 3);
	buf_put(b, point + 33, 32);
}

void
device_auth(const struct device *d, bool registers, struct buf *b)
{
	struct ipc_hash rp;

	sha256(d->rp_id, strlen(d->rp_id), &rp);
	buf_put(b, rp.b, sizeof(rp.b));
	buf_put_u8(b, (uint8_t)(d->flags | (registers ? DEVICE_AT : 0)));
	buf_put_u32(b, d->count);
	if (!registers)
		return;
	buf_put(b, "0123456789abcdef", 16); /* AAGUID */
	buf_put_u16(b, sizeof(d->id));
	buf_put(b, d->id, sizeof(d->id));
	device_cose(d, b);
}

void
device_blob(struct ipc_bytes v, struct buf *b)
{
	if (v.n < 24) {
		buf_put_u8(b, (uint8_t)(0x40 + v.n));
	} else if (v.n < 256) {
		buf_put_u8(b, 0x58);
		buf_put_u8(b, (uint8_t)v.n);
	} else {
		buf_put_u8(b, 0x59);
		buf_put_u16(b, (uint16_t)v.n);
	}
	buf_put(b, v.p, v.n);
}

void
device_attest(struct ipc_bytes auth, struct buf *b)
{
	buf_puts(b,
	    "\xa3\x63"
	    "fmt\x64none\x67"
	    "attStmt\xa0\x68"
	    "authData");
	device_blob(auth, b);
}

void
device_client(
    bool registers, const uint8_t *challenge, const char *origin, struct buf *b)
{
	char text[64];

	b64url_encode(challenge, CLIENTDATA_CHALLENGE, text);
	buf_putf(b,
	    "{\"type\":\"webauthn.%s\",\"challenge\":\"%s\",\"origin\":\"%s\","
	    "\"crossOrigin\":false}",
	    registers ? "create" : "get", text, origin);
}

void
device_sign(const struct device *d, struct ipc_bytes auth,
    struct ipc_bytes client, struct buf *b)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	struct ipc_hash h;
	uint8_t sig[80];
	size_t n = sizeof(sig);
	struct buf text;

	sha256(client.p, client.n, &h);
	buf_init(&text, AUTHDATA_MAX + 32);
	buf_put(&text, auth.p, auth.n);
	buf_put(&text, h.b, sizeof(h.b));
	assert_int_equal(EVP_DigestSignInit_ex(c, NULL,
			     d->alg == AUTHKEY_EDDSA ? NULL : "SHA256", NULL,
			     NULL, d->key, NULL),
	    1);
	assert_int_equal(EVP_DigestSign(c, sig, &n, text.p, text.len), 1);
	buf_put(b, sig, n);
	buf_free(&text);
	EVP_MD_CTX_free(c);
}
