/*
 * Security argument.
 *
 * A stranger chooses text and signature; the key comes from the access document
 * that an administrator set. The stranger wants one of these:
 *
 * - An algorithm of his choice. The caller gives the algorithm, and it must be
 *   one of four and fit the kind of the key. `none` and HS256 have no number
 *   here, so no public key can become a secret of an HMAC.
 * - A weak key. Keys are made here: RSA has 2048 to 4096 bits and an odd
 *   exponent from 3, a point of P-256 is on the curve, and Ed25519's eight
 *   points of small order, for which everybody can sign, are refused.
 * - A signature that verifies for any text. ES256 demands r and s from 1 to
 *   the order less 1, before libcrypto sees them. PS256 has one salt length.
 *   Each length is compared first, so nothing can follow a signature.
 * - Code of his choice in this process. libcrypto reads no configuration file
 *   and loads no module (jwt_key_ready), and after confinement it could not.
 *
 * libcrypto's parsers of ASN.1 see only bytes that this file made: keys of a
 * fixed frame, and the two numbers of an ECDSA signature.
 */
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "jwt_key.h"

enum {
	DER_INTEGER = 0x02,
	DER_BITS = 0x03,
	DER_SEQUENCE = 0x30,
	DER_ECDSA_MAX = 72, /* bytes of an ECDSA signature over P-256 */
	SIGNATURE_64 = 64   /* bytes of one of ES256 or EdDSA */
};

/* The frames of RFC 5480 and RFC 8410, up to the key's own bytes. */
static const uint8_t p256_frame[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};
static const uint8_t ed25519_frame[] = {
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00};
/* AlgorithmIdentifier rsaEncryption (RFC 8017 A.1). */
static const uint8_t rsa_algorithm[] = {0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86,
    0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00};

/* The order of P-256's base point (SEC 2, section 2.4.2). */
static const uint8_t p256_order[JWT_COORDINATE] = {0xff, 0xff, 0xff, 0xff, 0x00,
    0x00, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc,
    0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc,
    0x63, 0x25, 0x51};

/*
 * The y coordinates of Ed25519's points of small order, little endian, and two
 * spellings that are not reduced. The sign bit of x is left out.
 */
static const uint8_t small_order[][JWT_COORDINATE] = {
    {0},
    {1},
    {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89,
	0xf2, 0xef, 0x98, 0xf0, 0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39,
	0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
    {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76,
	0x0d, 0x10, 0x67, 0x0f, 0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6,
	0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    {0xed, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
    {0xee, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
};

/* ---- algorithms ---- */

/* Ed25519 is RFC 9864's name for EdDSA with this curve. */
static const struct {
	const char *name;
	unsigned algorithm;
	enum jwt_kind kind;
} algorithms[] = {{"RS256", JWT_RS256, JWT_KIND_RSA},
    {"PS256", JWT_PS256, JWT_KIND_RSA}, {"ES256", JWT_ES256, JWT_KIND_P256},
    {"EdDSA", JWT_EDDSA, JWT_KIND_ED25519},
    {"Ed25519", JWT_EDDSA, JWT_KIND_ED25519}};

enum { ALGORITHMS = sizeof(algorithms) / sizeof(algorithms[0]) };

unsigned
jwt_algorithm(struct ipc_bytes name)
{
	for (size_t i = 0; i < ALGORITHMS; i++)
		if (ipc_streq(name, algorithms[i].name))
			return algorithms[i].algorithm;
	return 0;
}

const char *
jwt_algorithm_name(unsigned algorithm)
{
	for (size_t i = 0; i < ALGORITHMS; i++)
		if (algorithms[i].algorithm == algorithm)
			return algorithms[i].name;
	return "";
}

enum jwt_kind
jwt_algorithm_kind(unsigned algorithm)
{
	for (size_t i = 0; i < ALGORITHMS; i++)
		if (algorithms[i].algorithm == algorithm)
			return algorithms[i].kind;
	return JWT_KIND_NONE;
}

/* ---- keys ---- */

/* Drops leading zeros. Some issuers send one before the modulus, although RFC
 * 7518 section 2 forbids it. */
static struct ipc_bytes
shortest(struct ipc_bytes v)
{
	while (v.n > 0 && v.p[0] == 0) {
		v.p++;
		v.n--;
	}
	return v;
}

static size_t
bits(struct ipc_bytes v)
{
	size_t n = v.n * 8;

	for (unsigned first = v.n > 0 ? v.p[0] : 0x80; (first & 0x80) == 0;
	    first <<= 1)
		n--;
	return n;
}

/* Puts tag and length in the shortest form (X.690 section 10.1). */
static void
der_head(struct buf *b, unsigned tag, size_t n)
{
	buf_put_u8(b, (uint8_t)tag);
	if (n >= 0x100) {
		buf_put_u8(b, 0x82);
		buf_put_u16(b, (uint16_t)n);
		return;
	}
	if (n >= 0x80)
		buf_put_u8(b, 0x81);
	buf_put_u8(b, (uint8_t)n);
}

/* Puts a positive number without leading zeros. A zero goes before a first bit
 * that is set, because the form is signed. */
static void
der_number(struct buf *b, struct ipc_bytes v)
{
	bool zero = v.n == 0 || (v.p[0] & 0x80) != 0;

	der_head(b, DER_INTEGER, v.n + zero);
	if (zero)
		buf_put_u8(b, 0);
	buf_put(b, v.p, v.n);
}

const char *
jwt_key_rsa(struct buf *spki, struct ipc_bytes n, struct ipc_bytes e)
{
	struct buf key, all;

	n = shortest(n);
	e = shortest(e);
	if (bits(n) < JWT_RSA_BITS_MIN || bits(n) > JWT_RSA_BITS_MAX)
		return "must have a modulus of 2048 to 4096 bits";
	if ((n.p[n.n - 1] & 1) == 0)
		return "must have an odd modulus";
	if (e.n == 0 || e.n > JWT_RSA_E_MAX || (e.p[e.n - 1] & 1) == 0 ||
	    (e.n == 1 && e.p[0] < 3))
		return "must have an odd exponent of 3 to 2^64 (most have "
		       "65537, AQAB)";
	buf_init(&key, JWT_SPKI_MAX);
	buf_init(&all, JWT_SPKI_MAX);
	der_number(&key, n);
	der_number(&key, e);
	/* The bit string holds the number of unused bits, 0, and a sequence
	 * whose head has 4 bytes, since a modulus has at least 256. */
	buf_put(&all, rsa_algorithm, sizeof(rsa_algorithm));
	der_head(&all, DER_BITS, 1 + 4 + key.len);
	buf_put_u8(&all, 0);
	der_head(&all, DER_SEQUENCE, key.len);
	buf_put(&all, key.p, key.len);
	if (key.failed || all.failed)
		spki->failed = true;
	der_head(spki, DER_SEQUENCE, all.len);
	buf_put(spki, all.p, all.len);
	buf_free(&key);
	buf_free(&all);
	return NULL;
}

/* Tells whether the point is on the curve. */
static bool
on_curve(struct ipc_bytes x, struct ipc_bytes y)
{
	uint8_t point[1 + 2 * JWT_COORDINATE];
	EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
	EC_POINT *p = group != NULL ? EC_POINT_new(group) : NULL;
	bool on;

	point[0] = POINT_CONVERSION_UNCOMPRESSED;
	memcpy(point + 1, x.p, JWT_COORDINATE);
	memcpy(point + 1 + JWT_COORDINATE, y.p, JWT_COORDINATE);
	on = p != NULL &&
	    EC_POINT_oct2point(group, p, point, sizeof(point), NULL) == 1;
	EC_POINT_free(p);
	EC_GROUP_free(group);
	ERR_clear_error();
	return on;
}

const char *
jwt_key_p256(struct buf *spki, struct ipc_bytes x, struct ipc_bytes y)
{
	if (x.n != JWT_COORDINATE || y.n != JWT_COORDINATE)
		return "must have x and y of 32 bytes each";
	if (!on_curve(x, y))
		return "must be a point of the curve P-256";
	buf_put(spki, p256_frame, sizeof(p256_frame));
	buf_put(spki, x.p, x.n);
	buf_put(spki, y.p, y.n);
	return NULL;
}

const char *
jwt_key_ed25519(struct buf *spki, struct ipc_bytes x)
{
	uint8_t y[JWT_COORDINATE];

	if (x.n != JWT_COORDINATE)
		return "must have x of 32 bytes";
	memcpy(y, x.p, sizeof(y));
	y[JWT_COORDINATE - 1] &= 0x7f;
	for (size_t i = 0; i < sizeof(small_order) / sizeof(small_order[0]);
	    i++)
		if (memcmp(y, small_order[i], sizeof(y)) == 0)
			return "is a point of small order, for which everybody "
			       "can sign";
	buf_put(spki, ed25519_frame, sizeof(ed25519_frame));
	buf_put(spki, x.p, x.n);
	return NULL;
}

static bool
framed(struct ipc_bytes spki, const uint8_t *frame, size_t n, size_t rest)
{
	return spki.n == n + rest && memcmp(spki.p, frame, n) == 0;
}

enum jwt_kind
jwt_key_kind(struct ipc_bytes spki)
{
	if (framed(spki, ed25519_frame, sizeof(ed25519_frame), JWT_COORDINATE))
		return JWT_KIND_ED25519;
	if (framed(spki, p256_frame, sizeof(p256_frame), 2 * JWT_COORDINATE))
		return JWT_KIND_P256;
	/* The head of an RSA key has 4 bytes, as in jwt_key_rsa(). */
	if (spki.n > 4 + sizeof(rsa_algorithm) && spki.p[0] == DER_SEQUENCE &&
	    spki.p[1] == 0x82 &&
	    memcmp(spki.p + 4, rsa_algorithm, sizeof(rsa_algorithm)) == 0)
		return JWT_KIND_RSA;
	return JWT_KIND_NONE;
}

/* ---- signatures ---- */

/* Turns r and s (RFC 7518 section 3.4) into the DER that libcrypto wants.
 * Returns false if r or s is 0, or not below the curve's order. */
static bool
ecdsa_der(struct ipc_bytes signature, struct buf *der)
{
	struct ipc_bytes half[2], v;
	struct buf both;
	bool good = true;

	buf_init(&both, DER_ECDSA_MAX);
	half[0] = ipc_bytes(signature.p, JWT_COORDINATE);
	half[1] = ipc_bytes(signature.p + JWT_COORDINATE, JWT_COORDINATE);
	for (int i = 0; i < 2; i++) {
		v = shortest(half[i]);
		if (v.n == 0 ||
		    memcmp(half[i].p, p256_order, JWT_COORDINATE) >= 0)
			good = false;
		der_number(&both, v);
	}
	der_head(der, DER_SEQUENCE, both.len);
	buf_put(der, both.p, both.len);
	if (both.failed)
		der->failed = true;
	buf_free(&both);
	return good;
}

/* Prepares PSS as RFC 7518 section 3.5 has it: MGF1 with SHA-256, and a salt as
 * long as the digest. */
static int
set_pss(EVP_PKEY_CTX *c)
{
	return EVP_PKEY_CTX_set_rsa_padding(c, RSA_PKCS1_PSS_PADDING) == 1 &&
		EVP_PKEY_CTX_set_rsa_pss_saltlen(c, RSA_PSS_SALTLEN_DIGEST) ==
		    1 &&
		EVP_PKEY_CTX_set_rsa_mgf1_md_name(c, "SHA256", NULL) == 1
	    ? 0
	    : -1;
}

static EVP_PKEY *
load(struct ipc_bytes spki, enum jwt_kind kind)
{
	const uint8_t *p = spki.p;
	EVP_PKEY *key;

	if (spki.n > JWT_SPKI_MAX || jwt_key_kind(spki) != kind)
		return NULL;
	if ((key = d2i_PUBKEY(NULL, &p, (long)spki.n)) == NULL)
		return NULL;
	if (p == spki.p + spki.n &&
	    (kind != JWT_KIND_RSA ||
		(EVP_PKEY_get_bits(key) >= JWT_RSA_BITS_MIN &&
		    EVP_PKEY_get_bits(key) <= JWT_RSA_BITS_MAX)))
		return key;
	EVP_PKEY_free(key);
	return NULL;
}

int
jwt_key_verify(unsigned algorithm, struct ipc_bytes spki, struct ipc_bytes text,
    struct ipc_bytes signature, struct err *e)
{
	enum jwt_kind kind = jwt_algorithm_kind(algorithm);
	EVP_PKEY *key = NULL;
	EVP_PKEY_CTX *pc = NULL; /* of c */
	EVP_MD_CTX *c = NULL;
	struct buf der;
	int rc = -1;

	buf_init(&der, DER_ECDSA_MAX);
	if (kind == JWT_KIND_NONE || (key = load(spki, kind)) == NULL) {
		err_set(e, FAILURE_INTERNAL,
		    "a key of the access document cannot be used");
		goto out;
	}
	rc = 0;
	if (signature.n !=
	    (kind == JWT_KIND_RSA ? (size_t)EVP_PKEY_get_size(key)
				  : SIGNATURE_64))
		goto out;
	if (kind == JWT_KIND_P256) {
		if (!ecdsa_der(signature, &der) || der.failed)
			goto out;
		signature = ipc_bytes(der.p, der.len);
	}
	/* Ed25519 hashes by itself. */
	if ((c = EVP_MD_CTX_new()) == NULL ||
	    EVP_DigestVerifyInit_ex(c, &pc,
		kind == JWT_KIND_ED25519 ? NULL : "SHA256", NULL, NULL, key,
		NULL) != 1 ||
	    (algorithm == JWT_PS256 && set_pss(pc) == -1)) {
		rc = err_set(e, FAILURE_INTERNAL,
		    "libcrypto cannot check a signature (%s)",
		    jwt_algorithm_name(algorithm));
		goto out;
	}
	rc = EVP_DigestVerify(c, signature.p, signature.n, text.p, text.n) == 1;
out:
	EVP_MD_CTX_free(c);
	EVP_PKEY_free(key);
	buf_free(&der);
	/* The queue of errors belongs to the thread and would keep texts about
	 * this token. */
	ERR_clear_error();
	return rc;
}

/* ---- the start ---- */

/* The base points of P-256 (SEC 2, section 2.4.2) and Ed25519 (RFC 8032 section
 * 5.1), as keys to try with. */
static const uint8_t p256_base[2 * JWT_COORDINATE] = {0x6b, 0x17, 0xd1, 0xf2,
    0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5, 0x63, 0xa4, 0x40, 0xf2,
    0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33, 0xa0, 0xf4, 0xa1, 0x39, 0x45,
    0xd8, 0x98, 0xc2, 0x96, 0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b,
    0x8e, 0xe7, 0xeb, 0x4a, 0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce, 0x33, 0x57,
    0x6b, 0x31, 0x5e, 0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5};
static const uint8_t ed25519_base[JWT_COORDINATE] = {
    [0] = 0x58, [1 ... JWT_COORDINATE - 1] = 0x66};

/*
 * Checks a wrong signature of each algorithm. The verdict must be that it is
 * wrong: a failure would mean that libcrypto lacks the algorithm. This also
 * loads all that libcrypto loads at first use, while files can still be opened.
 */
int
jwt_key_ready(struct err *e)
{
	static const uint8_t ones[JWT_RSA_BITS_MIN / 8] = {
	    [0 ... JWT_RSA_BITS_MIN / 8 - 1] = 0xff};
	/* 1 everywhere: a signature whose r and s are in range. */
	static const uint8_t wrong[JWT_RSA_BITS_MIN / 8] = {
	    [0 ... JWT_RSA_BITS_MIN / 8 - 1] = 1};
	static const uint8_t three[] = {3};
	const char *sentence = NULL;
	struct buf key;
	size_t n;
	int rc = -1;

	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
		return err_set(
		    e, FAILURE_INTERNAL, "libcrypto cannot be started");
	buf_init(&key, JWT_SPKI_MAX);
	for (unsigned a = JWT_RS256; a <= JWT_EDDSA; a++) {
		buf_clear(&key);
		n = SIGNATURE_64;
		switch (jwt_algorithm_kind(a)) {
		case JWT_KIND_RSA:
			n = sizeof(wrong);
			sentence =
			    jwt_key_rsa(&key, ipc_bytes(ones, sizeof(ones)),
				ipc_bytes(three, sizeof(three)));
			break;
		case JWT_KIND_P256:
			sentence = jwt_key_p256(&key,
			    ipc_bytes(p256_base, JWT_COORDINATE),
			    ipc_bytes(
				p256_base + JWT_COORDINATE, JWT_COORDINATE));
			break;
		default:
			sentence = jwt_key_ed25519(
			    &key, ipc_bytes(ed25519_base, JWT_COORDINATE));
		}
		if (sentence != NULL || key.failed) {
			err_set(e, FAILURE_INTERNAL,
			    "libcrypto refuses a key of %s: %s",
			    jwt_algorithm_name(a),
			    sentence != NULL ? sentence : "out of memory");
			goto out;
		}
		if ((rc = jwt_key_verify(a, ipc_bytes(key.p, key.len),
			 ipc_str("text"), ipc_bytes(wrong, n), e)) != 0) {
			if (rc == 1)
				err_set(e, FAILURE_INTERNAL,
				    "libcrypto takes a wrong signature (%s)",
				    jwt_algorithm_name(a));
			rc = -1;
			goto out;
		}
	}
out:
	buf_free(&key);
	return rc;
}
