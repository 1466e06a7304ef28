#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "ids.h"
#include "signer.h"
#include "unit.h"

static EVP_PKEY *keys[SIGNER_KEYS];

void
signer_start(void)
{
	if (keys[SIGNER_RSA] != NULL)
		return;
	keys[SIGNER_RSA] = EVP_RSA_gen(2048);
	keys[SIGNER_RSA_PS] = EVP_RSA_gen(2048);
	keys[SIGNER_EC] = EVP_EC_gen("P-256");
	keys[SIGNER_OTHER] = EVP_EC_gen("P-256");
	keys[SIGNER_ED] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	for (int i = 0; i < SIGNER_KEYS; i++)
		assert_non_null(keys[i]);
}

void
signer_stop(void)
{
	for (int i = 0; i < SIGNER_KEYS; i++) {
		EVP_PKEY_free(keys[i]);
		keys[i] = NULL;
	}
}

EVP_PKEY *
signer_key(enum signer_key key)
{
	return keys[key];
}

void
signer_quote(const char *s, char *out, size_t max)
{
	size_t n = strlen(s);

	assert_true(n < max);
	for (size_t i = 0; i <= n; i++)
		out[i] = s[i] == '\'' ? '"' : s[i];
}

/* Writes a number of a key in base64url, at least `width` bytes. */
static void
number(EVP_PKEY *key, const char *name, int width, char *out)
{
	uint8_t raw[1024];
	BIGNUM *n = NULL;
	int len;

	assert_int_equal(EVP_PKEY_get_bn_param(key, name, &n), 1);
	len = BN_num_bytes(n) > width ? BN_num_bytes(n) : width;
	assert_int_equal(BN_bn2binpad(n, raw, len), len);
	b64url_encode(raw, (size_t)len, out);
	BN_free(n);
}

void
signer_jwk(EVP_PKEY *key, const char *more, char out[SIGNER_JWK_MAX])
{
	char a[1500], b[1500], rest[256];
	uint8_t raw[32];
	size_t n = sizeof(raw);

	signer_quote(more, rest, sizeof(rest));
	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA:
		number(key, OSSL_PKEY_PARAM_RSA_N, 0, a);
		number(key, OSSL_PKEY_PARAM_RSA_E, 0, b);
		snprintf(out, SIGNER_JWK_MAX,
		    "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"%s}", a, b,
		    rest);
		break;
	case EVP_PKEY_EC:
		number(key, OSSL_PKEY_PARAM_EC_PUB_X, 32, a);
		number(key, OSSL_PKEY_PARAM_EC_PUB_Y, 32, b);
		snprintf(out, SIGNER_JWK_MAX,
		    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":"
		    "\"%s\"%s}",
		    a, b, rest);
		break;
	default:
		assert_int_equal(EVP_PKEY_get_raw_public_key(key, raw, &n), 1);
		b64url_encode(raw, n, a);
		snprintf(out, SIGNER_JWK_MAX,
		    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\"%s}", a,
		    rest);
	}
}

/* Turns DER into r and s. */
static size_t
raw_ecdsa(const uint8_t *der, size_t n, uint8_t out[512])
{
	ECDSA_SIG *sig = d2i_ECDSA_SIG(NULL, &der, (long)n);

	assert_non_null(sig);
	assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_r(sig), out, 32), 32);
	assert_int_equal(BN_bn2binpad(ECDSA_SIG_get0_s(sig), out + 32, 32), 32);
	ECDSA_SIG_free(sig);
	return 64;
}

static size_t
hmac(EVP_PKEY *key, const char *text, size_t n, uint8_t out[512])
{
	uint8_t *der = NULL;
	size_t len = 512;
	int m = i2d_PUBKEY(key, &der);

	assert_true(m > 0);
	assert_non_null(EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, der,
	    (size_t)m, (const uint8_t *)text, n, out, 512, &len));
	OPENSSL_free(der);
	return len;
}

size_t
signer_sign(enum signer_way way, EVP_PKEY *key, const char *text, size_t n,
    uint8_t out[512])
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	EVP_PKEY_CTX *pc = NULL;
	uint8_t der[512];
	size_t len = 512;

	if (way == SIGN_HS256) {
		EVP_MD_CTX_free(c);
		return hmac(key, text, n, out);
	}
	assert_int_equal(
	    EVP_DigestSignInit_ex(c, &pc, way == SIGN_EDDSA ? NULL : "SHA256",
		NULL, NULL, key, NULL),
	    1);
	if (way == SIGN_PS256 || way == SIGN_PS256_SALT) {
		assert_int_equal(
		    EVP_PKEY_CTX_set_rsa_padding(pc, RSA_PKCS1_PSS_PADDING), 1);
		assert_int_equal(EVP_PKEY_CTX_set_rsa_pss_saltlen(
				     pc, way == SIGN_PS256 ? 32 : 20),
		    1);
	}
	if (way != SIGN_ES256) {
		assert_int_equal(
		    EVP_DigestSign(c, out, &len, (const uint8_t *)text, n), 1);
	} else {
		assert_int_equal(
		    EVP_DigestSign(c, der, &len, (const uint8_t *)text, n), 1);
		len = raw_ecdsa(der, len, out);
	}
	EVP_MD_CTX_free(c);
	return len;
}

void
signer_token(enum signer_way way, EVP_PKEY *key, const char *header,
    const char *claims, char out[SIGNER_TOKEN_MAX])
{
	static char quoted[SIGNER_TOKEN_MAX / 2];
	uint8_t signature[512];
	size_t n;

	signer_quote(header, quoted, sizeof(quoted));
	n = b64url_encode(quoted, strlen(quoted), out);
	out[n++] = '.';
	signer_quote(claims, quoted, sizeof(quoted));
	n += b64url_encode(quoted, strlen(quoted), out + n);
	assert_true(n < SIGNER_TOKEN_MAX - 1024);
	b64url_encode(
	    signature, signer_sign(way, key, out, n, signature), out + n + 1);
	out[n] = '.';
}
