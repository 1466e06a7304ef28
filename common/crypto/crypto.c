#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "crypto.h"

enum { HASH_LEN = 32 };

/*
 * Digests and MACs. OpenSSL reports failure only when memory is out. A caller
 * could only stop then, so we stop here and no caller can forget to check.
 *
 * Algorithms are looked up once (crypto_init). Naming an algorithm in each call
 * makes OpenSSL search its providers each time, behind locks, which costs more
 * than hashing a frame. After crypto_init threads may call all of these
 * functions at once: the algorithms are only read, and each call has a context
 * of its own.
 */
static EVP_MD *md_sha256;
static EVP_CIPHER *cipher_gcm;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
crypto_init(void)
{
	md_sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	cipher_gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
	if (md_sha256 == NULL || cipher_gcm == NULL)
		abort();
}

static void
ready(void)
{
	if (pthread_once(&once, crypto_init) != 0)
		abort();
}

void
sha256(const void *p, size_t n, struct ipc_hash *out)
{
	ready();
	if (EVP_Digest(n == 0 ? "" : p, n, out->b, NULL, md_sha256, NULL) != 1)
		abort();
}

struct sha256_pieces {
	EVP_MD_CTX *c;
};

struct sha256_pieces *
sha256_begin(void)
{
	struct sha256_pieces *s = calloc(1, sizeof(*s));

	ready();
	if (s == NULL)
		return NULL;
	if ((s->c = EVP_MD_CTX_new()) == NULL) {
		free(s);
		return NULL;
	}
	if (EVP_DigestInit_ex2(s->c, md_sha256, NULL) != 1)
		abort();
	return s;
}

void
sha256_add(struct sha256_pieces *s, const void *p, size_t n)
{
	if (n > 0 && EVP_DigestUpdate(s->c, p, n) != 1)
		abort();
}

void
sha256_end(struct sha256_pieces *s, struct ipc_hash *out)
{
	if (EVP_DigestFinal_ex(s->c, out->b, NULL) != 1 ||
	    EVP_DigestInit_ex2(s->c, md_sha256, NULL) != 1)
		abort();
}

void
sha256_free(struct sha256_pieces *s)
{
	if (s == NULL)
		return;
	EVP_MD_CTX_free(s->c);
	free(s);
}

void
sha256_2(
    const void *a, size_t an, const void *b, size_t bn, struct ipc_hash *out)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();

	ready();
	if (c == NULL || EVP_DigestInit_ex2(c, md_sha256, NULL) != 1 ||
	    (an != 0 && EVP_DigestUpdate(c, a, an) != 1) ||
	    (bn != 0 && EVP_DigestUpdate(c, b, bn) != 1) ||
	    EVP_DigestFinal_ex(c, out->b, NULL) != 1)
		abort();
	EVP_MD_CTX_free(c);
}

/*
 * Computes HMAC (RFC 2104) with one digest context. OpenSSL's HMAC objects
 * would copy three contexts twice for each HMAC, which costs more than hashing
 * the data here.
 */
static void
hmac(const void *key, size_t keylen, const void *p, size_t n,
    uint8_t out[HASH_LEN])
{
	enum { BLOCK = 64, INNER = 0x36, OUTER = 0x5c };
	uint8_t k[BLOCK] = {0}, inner[HASH_LEN];
	struct ipc_hash h;
	EVP_MD_CTX *c;
	size_t i;

	ready();
	if (keylen > BLOCK) {
		sha256(key, keylen, &h);
		memcpy(k, h.b, HASH_LEN);
	} else if (keylen > 0) {
		memcpy(k, key, keylen);
	}
	for (i = 0; i < BLOCK; i++)
		k[i] ^= INNER;
	c = EVP_MD_CTX_new();
	if (c == NULL || EVP_DigestInit_ex2(c, md_sha256, NULL) != 1 ||
	    EVP_DigestUpdate(c, k, BLOCK) != 1 ||
	    (n != 0 && EVP_DigestUpdate(c, p, n) != 1) ||
	    EVP_DigestFinal_ex(c, inner, NULL) != 1)
		abort();
	for (i = 0; i < BLOCK; i++)
		k[i] ^= INNER ^ OUTER;
	if (EVP_DigestInit_ex2(c, NULL, NULL) != 1 ||
	    EVP_DigestUpdate(c, k, BLOCK) != 1 ||
	    EVP_DigestUpdate(c, inner, HASH_LEN) != 1 ||
	    EVP_DigestFinal_ex(c, out, NULL) != 1)
		abort();
	EVP_MD_CTX_free(c);
	OPENSSL_cleanse(k, sizeof(k));
	OPENSSL_cleanse(inner, sizeof(inner));
}

void
hmac_sha256(
    const uint8_t key[KEY_LEN], const void *p, size_t n, struct ipc_hash *out)
{
	hmac(key, KEY_LEN, p, n, out->b);
}

/*
 * RFC 5869. Extract: PRK = HMAC(salt, IKM). An absent salt means 32 zero bytes;
 * HMAC pads an empty key with zeros anyway. Expand: T(i) = HMAC(PRK, T(i-1) |
 * info | i), T(0) empty, output the first out_len bytes of T(1) | T(2) ...
 * Written over HMAC rather than EVP_KDF so that it needs no provider fetch
 * after the process has closed its file system.
 */
void
hkdf_sha256_salted(const void *ikm, size_t ikm_len, const void *salt,
    size_t salt_len, const void *info, size_t info_len, uint8_t *out,
    size_t out_len)
{
	enum { INFO_MAX = 256 }; /* our labels and the RFC's vectors fit */
	uint8_t prk[HASH_LEN], t[HASH_LEN], block[HASH_LEN + INFO_MAX + 1];
	size_t tn = 0, take;
	unsigned i;

	if (out_len > 255 * (size_t)HASH_LEN || info_len > INFO_MAX)
		abort();
	hmac(salt, salt_len, ikm, ikm_len, prk);
	for (i = 1; out_len > 0; i++) {
		if (tn != 0)
			memcpy(block, t, tn);
		if (info_len != 0)
			memcpy(block + tn, info, info_len);
		block[tn + info_len] = (uint8_t)i;
		hmac(prk, sizeof(prk), block, tn + info_len + 1, t);
		tn = sizeof(t);
		take = out_len < tn ? out_len : tn;
		memcpy(out, t, take);
		out += take;
		out_len -= take;
	}
	OPENSSL_cleanse(prk, sizeof(prk));
	OPENSSL_cleanse(t, sizeof(t));
	OPENSSL_cleanse(block, sizeof(block));
}

void
hkdf_sha256(const uint8_t key[KEY_LEN], const char *label, uint8_t out[KEY_LEN])
{
	hkdf_sha256_salted(
	    key, KEY_LEN, NULL, 0, label, strlen(label), out, KEY_LEN);
}

/*
 * Starts AES-256-GCM over a whole value. EVP takes int lengths, so gcm_seal and
 * gcm_open refuse anything larger rather than truncate it.
 */
static int
gcm_start(EVP_CIPHER_CTX *c, int enc, const uint8_t *key, const uint8_t *nonce,
    const void *aad, size_t aadlen)
{
	int len;

	ready();
	if (EVP_CipherInit_ex2(c, cipher_gcm, key, nonce, enc, NULL) != 1)
		return -1;
	if (aadlen != 0 &&
	    EVP_CipherUpdate(c, NULL, &len, aad, (int)aadlen) != 1)
		return -1;
	return 0;
}

void
master_key_id(const uint8_t key[KEY_LEN], uint8_t id[KEY_ID_LEN])
{
	uint8_t out[KEY_LEN];

	hkdf_sha256(key, "key-id", out);
	memcpy(id, out, KEY_ID_LEN);
}

int
gcm_seal(const uint8_t key[KEY_LEN], const uint8_t nonce[GCM_NONCE_LEN],
    const void *aad, size_t aadlen, const void *in, size_t n, uint8_t *out,
    struct err *err)
{
	EVP_CIPHER_CTX *c = NULL;
	uint8_t none[EVP_MAX_BLOCK_LENGTH];
	int len, rc = -1;

	if (n > INT_MAX - GCM_TAG_LEN || aadlen > INT_MAX)
		return err_set(err, FAILURE_TOO_LARGE,
		    "cannot encrypt %zu bytes at once", n);
	if ((c = EVP_CIPHER_CTX_new()) == NULL ||
	    gcm_start(c, 1, key, nonce, aad, aadlen) == -1)
		goto fail;
	if (n != 0 && EVP_CipherUpdate(c, out, &len, in, (int)n) != 1)
		goto fail;
	if (EVP_CipherFinal_ex(c, none, &len) != 1 ||
	    EVP_CIPHER_CTX_ctrl(
		c, EVP_CTRL_AEAD_GET_TAG, GCM_TAG_LEN, out + n) != 1)
		goto fail;
	rc = 0;
	goto out;
fail:
	err_set(err, FAILURE_INTERNAL, "AES-256-GCM failed");
out:
	EVP_CIPHER_CTX_free(c);
	return rc;
}

/*
 * Decrypts into out before the tag is known to be right; so on any failure
 * out is wiped, and no unauthenticated byte outlives this function.
 */
int
gcm_open(const uint8_t key[KEY_LEN], const uint8_t nonce[GCM_NONCE_LEN],
    const void *aad, size_t aadlen, const void *in, size_t n, uint8_t *out,
    struct err *err)
{
	const uint8_t *p = in;
	EVP_CIPHER_CTX *c = NULL;
	uint8_t tag[GCM_TAG_LEN], none[EVP_MAX_BLOCK_LENGTH];
	size_t plain;
	int len, rc = -1;

	if (n < GCM_TAG_LEN)
		return err_set(err, FAILURE_FORBIDDEN,
		    "sealed value is shorter than its tag");
	if (n > INT_MAX || aadlen > INT_MAX)
		return err_set(err, FAILURE_TOO_LARGE,
		    "cannot decrypt %zu bytes at once", n);
	plain = n - GCM_TAG_LEN;
	memcpy(tag, p + plain, sizeof(tag));
	if ((c = EVP_CIPHER_CTX_new()) == NULL) {
		err_set(err, FAILURE_INTERNAL, "out of memory");
		goto out;
	}
	if (gcm_start(c, 0, key, nonce, aad, aadlen) == 0 &&
	    (plain == 0 ||
		EVP_CipherUpdate(c, out, &len, p, (int)plain) == 1) &&
	    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, sizeof(tag), tag) ==
		1 &&
	    EVP_CipherFinal_ex(c, none, &len) == 1)
		rc = 0;
	else
		err_set(err, FAILURE_FORBIDDEN, "sealed value does not verify");
out:
	if (rc != 0 && plain != 0)
		OPENSSL_cleanse(out, plain);
	EVP_CIPHER_CTX_free(c);
	return rc;
}
