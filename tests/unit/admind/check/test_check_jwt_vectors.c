/*
 * Signatures: the examples of RFC 7515 and RFC 8037, libcrypto's own, and keys
 * for which everybody can sign.
 */
#include <openssl/x509.h>

#include "ids.h"
#include "jwt_key.h"
#include "signer.h"
#include "unit.h"

enum { RAW_MAX = 512 };

struct raw {
	uint8_t b[RAW_MAX];
	size_t n;
};

static struct ipc_bytes
bytes(const struct raw *r)
{
	return ipc_bytes(r->b, r->n);
}

static struct raw
decoded(const char *s)
{
	struct raw r;
	long n = b64url_decode(s, strlen(s), r.b);

	assert_true(n > 0);
	r.n = (size_t)n;
	return r;
}

static int
begin(void **state)
{
	struct err err;

	if (jwt_key_ready(&err) == -1)
		fail_msg("%s", err.text);
	/* A second call does no harm. */
	assert_int_equal(jwt_key_ready(&err), 0);
	signer_start();
	return 0;
}

static int
end(void **state)
{
	signer_stop();
	return 0;
}

/* Verifies, and sees that no other text or signature does. */
static void
verifies(unsigned algorithm, const struct buf *key, const char *text,
    struct ipc_bytes signature)
{
	struct ipc_bytes spki = ipc_bytes(key->p, key->len);
	uint8_t other[RAW_MAX];
	struct err e;

	assert_int_equal(
	    jwt_key_verify(algorithm, spki, ipc_str(text), signature, &e), 1);
	assert_int_equal(
	    jwt_key_verify(algorithm, spki, ipc_str(text + 1), signature, &e),
	    0);
	for (size_t i = 0; i < signature.n; i += 7) {
		memcpy(other, signature.p, signature.n);
		other[i] ^= 0x10;
		assert_int_equal(jwt_key_verify(algorithm, spki, ipc_str(text),
				     ipc_bytes(other, signature.n), &e),
		    0);
	}
	assert_int_equal(jwt_key_verify(algorithm, spki, ipc_str(text),
			     ipc_bytes(signature.p, signature.n - 1), &e),
	    0);
}

/* RFC 7515 A.2: RS256. */
static void
rfc7515_a2(void **state)
{
	struct raw n = decoded(
	    "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-"
	    "Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6"
	    "b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-"
	    "KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I"
	    "5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb"
	    "54h4FRWyuXpoQ");
	struct raw e = decoded("AQAB");
	struct raw signature = decoded(
	    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5R"
	    "Zmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQ"
	    "jbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQB"
	    "MHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqt"
	    "FZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rq"
	    "Vt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw");
	struct buf key;

	buf_init(&key, JWT_SPKI_MAX);
	assert_null(jwt_key_rsa(&key, bytes(&n), bytes(&e)));
	verifies(JWT_RS256, &key,
	    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAs"
	    "DQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
	    bytes(&signature));
	buf_free(&key);
}

/* RFC 7515 A.3: ES256. */
static void
rfc7515_a3(void **state)
{
	struct raw x = decoded("f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU");
	struct raw y = decoded("x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0");
	struct raw signature =
	    decoded("DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa"
		    "8ISlSApmWQxfKTUJqPP3-Kg6NU1Q");
	struct buf key;

	buf_init(&key, JWT_SPKI_MAX);
	assert_null(jwt_key_p256(&key, bytes(&x), bytes(&y)));
	verifies(JWT_ES256, &key,
	    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAs"
	    "DQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ",
	    bytes(&signature));
	buf_free(&key);
}

/* RFC 8037 A.4: EdDSA with Ed25519. */
static void
rfc8037_a4(void **state)
{
	struct raw x = decoded("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
	struct raw signature =
	    decoded("hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iy"
		    "lGjg5BhVsPt9g7sVvpAr_MuM0KAg");
	struct buf key;

	buf_init(&key, JWT_SPKI_MAX);
	assert_null(jwt_key_ed25519(&key, bytes(&x)));
	verifies(JWT_EDDSA, &key,
	    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc",
	    bytes(&signature));
	buf_free(&key);
}

/* A key from its numbers is, byte by byte, the one that libcrypto writes. */
static void
keys_are_libcryptos(void **state)
{
	static const enum signer_key all[] = {SIGNER_RSA, SIGNER_EC, SIGNER_ED};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		char jwk[SIGNER_JWK_MAX], *n, *e;
		uint8_t *der = NULL;
		struct raw a, b = {.n = 0};
		struct buf key;
		int len = i2d_PUBKEY(signer_key(all[i]), &der);

		signer_jwk(signer_key(all[i]), "", jwk);
		n = strstr(jwk, all[i] == SIGNER_RSA ? "\"n\":\"" : "\"x\":\"");
		assert_non_null(n);
		n += 5;
		e = strchr(n, '"');
		*e = '\0';
		a = decoded(n);
		if (all[i] != SIGNER_ED) {
			n = strchr(e + 3, ':') + 2;
			*strchr(n, '"') = '\0';
			b = decoded(n);
		}
		buf_init(&key, JWT_SPKI_MAX);
		assert_null(all[i] == SIGNER_RSA
			? jwt_key_rsa(&key, bytes(&a), bytes(&b))
			: all[i] == SIGNER_EC
			? jwt_key_p256(&key, bytes(&a), bytes(&b))
			: jwt_key_ed25519(&key, bytes(&a)));
		assert_int_equal(key.len, len);
		assert_memory_equal(key.p, der, key.len);
		buf_free(&key);
		OPENSSL_free(der);
	}
}

/* Says whether an RSA key of these bits and this exponent is taken. The modulus
 * need be no product for that. */
static bool
takes_rsa(unsigned bits, bool odd, const char *e, size_t n)
{
	uint8_t modulus[1 + (JWT_RSA_BITS_MAX + 8) / 8] = {0};
	struct buf key;
	size_t len = (bits + 7) / 8;
	const char *fault;

	/* A zero comes first, as some issuers have it. */
	modulus[1] = (uint8_t)(1u << (bits + 7) % 8);
	modulus[len] |= odd;
	buf_init(&key, JWT_SPKI_MAX);
	fault = jwt_key_rsa(&key, ipc_bytes(modulus, len + 1), ipc_bytes(e, n));
	assert_false(key.failed);
	assert_int_equal(key.len > 0, fault == NULL);
	if (fault == NULL)
		assert_int_equal(
		    jwt_key_kind(ipc_bytes(key.p, key.len)), JWT_KIND_RSA);
	buf_free(&key);
	return fault == NULL;
}

static void
weak_rsa(void **state)
{
	static const char good[] = "\1\0\1", three[] = "\3";

	assert_true(takes_rsa(2048, true, good, 3));
	assert_true(takes_rsa(2048, true, "\0\1\0\1", 4));
	assert_true(takes_rsa(2048, true, three, 1));
	assert_true(takes_rsa(2049, true, good, 3));
	assert_true(takes_rsa(4096, true, good, 3));
	assert_true(takes_rsa(4096, true, "\x80\0\0\0\0\0\0\1", 8));
	assert_false(takes_rsa(1024, true, good, 3));
	assert_false(takes_rsa(2047, true, good, 3));
	assert_false(takes_rsa(4097, true, good, 3));
	assert_false(takes_rsa(2048, false, good, 3));
	assert_false(takes_rsa(2048, true, "\0", 1));
	assert_false(takes_rsa(2048, true, "\1", 1));
	assert_false(takes_rsa(2048, true, "\2", 1));
	assert_false(takes_rsa(2048, true, "\1\0\2", 3));
	assert_false(takes_rsa(2048, true, "\1\0\0\0\0\0\0\0\1", 9));
	assert_false(takes_rsa(2048, true, "", 0));
}

/* For these keys everybody can sign: R is the neutral point and S is 0. Our
 * list is complete if libcrypto takes such a signature for each listed point,
 * and if each is refused here. */
static void
small_orders(void **state)
{
	static const char *const y[] = {
	    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	    "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	    "JuiVj8KyJ7BFw_SJ8u-Y8NXfrAXTxjM5sTgCiG1T_AU",
	    "xxdqcD1N2E-6PAt2DRBnDyogU_osOczGTsf9d5KsA3o",
	    "7P_______________________________________38",
	    "7f_______________________________________38",
	    "7v_______________________________________38"};
	uint8_t signature[64] = {1}, text[1];
	struct raw x;
	struct buf key;

	for (size_t i = 0; i < 2 * sizeof(y) / sizeof(y[0]); i++) {
		EVP_PKEY *p;
		bool forged = false;

		x = decoded(y[i / 2]);
		assert_int_equal(x.n, 32);
		x.b[31] |= (uint8_t)(i % 2 << 7);
		p = EVP_PKEY_new_raw_public_key(
		    EVP_PKEY_ED25519, NULL, x.b, x.n);
		assert_non_null(p);
		for (int t = 0; t < 256 && !forged; t++) {
			EVP_MD_CTX *c = EVP_MD_CTX_new();

			text[0] = (uint8_t)t;
			assert_int_equal(
			    EVP_DigestVerifyInit(c, NULL, NULL, NULL, p), 1);
			forged = EVP_DigestVerify(c, signature,
				     sizeof(signature), text, 1) == 1;
			EVP_MD_CTX_free(c);
		}
		/* If x is 0, no point has the sign bit set (RFC 8032
		 * section 5.1.3), but not all libraries know. */
		if (i % 2 == 0)
			assert_true(forged);
		EVP_PKEY_free(p);
		buf_init(&key, JWT_SPKI_MAX);
		assert_non_null(jwt_key_ed25519(&key, bytes(&x)));
		assert_int_equal(key.len, 0);
		buf_free(&key);
	}
}

/* A record that holds no key of ours is not given to libcrypto. */
static void
strange_keys(void **state)
{
	struct raw x = decoded("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
	uint8_t signature[64] = {1};
	struct buf key;
	struct err e;

	buf_init(&key, JWT_SPKI_MAX);
	assert_null(jwt_key_ed25519(&key, bytes(&x)));
	for (unsigned a = 0; a <= 5; a++)
		assert_int_equal(
		    jwt_key_verify(a, ipc_bytes(key.p, key.len), ipc_str("t"),
			ipc_bytes(signature, sizeof(signature)), &e),
		    a == JWT_EDDSA ? 0 : -1);
	for (size_t n = 0; n < key.len; n++)
		assert_int_equal(
		    jwt_key_verify(JWT_EDDSA, ipc_bytes(key.p, n), ipc_str("t"),
			ipc_bytes(signature, sizeof(signature)), &e),
		    -1);
	key.p[8] ^= 1; /* the OID of another curve */
	assert_int_equal(
	    jwt_key_kind(ipc_bytes(key.p, key.len)), JWT_KIND_NONE);
	buf_free(&key);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rfc7515_a2),
	    cmocka_unit_test(rfc7515_a3),
	    cmocka_unit_test(rfc8037_a4),
	    cmocka_unit_test(keys_are_libcryptos),
	    cmocka_unit_test(weak_rsa),
	    cmocka_unit_test(small_orders),
	    cmocka_unit_test(strange_keys),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
