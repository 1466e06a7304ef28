/*
 * Security argument.
 *
 * A stranger chooses signature, text and, when a passkey is registered, the
 * key. The stranger wants one of these:
 *
 * - An algorithm of another key. The key has its algorithm, from registration;
 *   no message names one later.
 * - A key for which everybody can sign. A point of P-256 is on the curve, which
 *   has no point of small order but infinity, and infinity has no coordinates.
 *   Ed25519's points of small order are refused by a list.
 * - Another signature that is also valid, to replay a challenge: challenges are
 *   used once, so it gains nothing. libcrypto takes an ECDSA signature only in
 *   the one DER form of its two numbers, both from 1 to the order less 1.
 * - Code in this process. libcrypto sees keys as numbers of a fixed length, and
 *   ASN.1 only in the signature of ES256, which has at most 72 bytes.
 */
#include <stdbool.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "authkey.h"
#include "cbor.h"

/* Labels and values of COSE_Key (RFC 9052 section 7.1, RFC 9053 section 7). */
enum {
	LABEL_KTY = 1,
	LABEL_ALG = 3,
	LABEL_CRV = -1,
	LABEL_X = -2,
	LABEL_Y = -3,
	KTY_OKP = 1,
	KTY_EC2 = 2,
	CRV_P256 = 1,
	CRV_ED25519 = 6,
	ED25519_SIGNATURE = 64
};

/*
 * The y coordinates of Ed25519's points of small order, little endian, and two
 * spellings that are not reduced. The sign bit of x is left out.
 */
static const uint8_t small_order[][AUTHKEY_COORDINATE] = {
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

/* ---- COSE_Key ---- */

/* Numbers of the members in `seen` below. */
enum { KTY, ALG, CRV, X, Y, MEMBERS };

struct cose {
	unsigned seen; /* a bit a member */
	int64_t number[CRV + 1];
	struct ipc_bytes x, y;
};

/* Reads one member. A member that is there twice, or that these keys do not
 * have, is refused. */
static int
member(struct cbor *c, struct cose *k)
{
	static const int labels[MEMBERS] = {
	    LABEL_KTY, LABEL_ALG, LABEL_CRV, LABEL_X, LABEL_Y};
	int64_t label;
	int i = 0;

	if (cbor_int(c, &label) == -1)
		return -1;
	while (i < MEMBERS && labels[i] != label)
		i++;
	if (i == MEMBERS || (k->seen & 1u << i) != 0)
		return -1;
	k->seen |= 1u << i;
	if (i <= CRV)
		return cbor_int(c, &k->number[i]);
	return cbor_blob(c, i == X ? &k->x : &k->y);
}

static bool
is_es256(const struct cose *k)
{
	return k->seen == (1u << MEMBERS) - 1 && k->number[KTY] == KTY_EC2 &&
	    k->number[ALG] == AUTHKEY_ES256 && k->number[CRV] == CRV_P256 &&
	    k->x.n == AUTHKEY_COORDINATE && k->y.n == AUTHKEY_COORDINATE;
}

static bool
is_eddsa(const struct cose *k)
{
	return k->seen == (1u << Y) - 1 && k->number[KTY] == KTY_OKP &&
	    k->number[ALG] == AUTHKEY_EDDSA && k->number[CRV] == CRV_ED25519 &&
	    k->x.n == AUTHKEY_COORDINATE;
}

int
authkey_read(struct ipc_bytes *cose, struct authkey *out, struct err *err)
{
	struct authkey key = {0};
	struct cose k = {0};
	uint64_t pairs;
	struct cbor c;

	cbor_open(&c, *cose);
	if (cbor_map(&c, &pairs) == -1 || pairs > MEMBERS)
		goto bad;
	while (pairs-- > 0)
		if (member(&c, &k) == -1)
			goto bad;
	if (!is_es256(&k) && !is_eddsa(&k))
		goto bad;
	key.alg = (int)k.number[ALG];
	memcpy(key.x, k.x.p, sizeof(key.x));
	if (key.alg == AUTHKEY_ES256)
		memcpy(key.y, k.y.p, sizeof(key.y));
	if (!authkey_good(&key))
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "the passkey's public key is not a point that its curve "
		    "can use");
	*cose = ipc_bytes(c.p, cbor_left(&c));
	*out = key;
	return 0;
bad:
	return err_set(err, FAILURE_INVALID_PARAMS,
	    "the passkey's public key is not one of ES256 (P-256) or EdDSA "
	    "(Ed25519)");
}

/* ---- libcrypto ---- */

static EVP_PKEY *
load_p256(const struct authkey *k)
{
	uint8_t point[1 + 2 * AUTHKEY_COORDINATE];
	char group[] = "P-256";
	OSSL_PARAM params[3];
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
	EVP_PKEY *key = NULL;

	point[0] = 4; /* both coordinates follow (SEC 1, section 2.3.3) */
	memcpy(point + 1, k->x, AUTHKEY_COORDINATE);
	memcpy(point + 1 + AUTHKEY_COORDINATE, k->y, AUTHKEY_COORDINATE);
	params[0] = OSSL_PARAM_construct_utf8_string(
	    OSSL_PKEY_PARAM_GROUP_NAME, group, 0);
	params[1] = OSSL_PARAM_construct_octet_string(
	    OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point));
	params[2] = OSSL_PARAM_construct_end();
	if (c == NULL || EVP_PKEY_fromdata_init(c) != 1 ||
	    EVP_PKEY_fromdata(c, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(c);
	return key;
}

static EVP_PKEY *
load_ed25519(const struct authkey *k)
{
	uint8_t y[AUTHKEY_COORDINATE];

	memcpy(y, k->x, sizeof(y));
	y[AUTHKEY_COORDINATE - 1] &= 0x7f;
	for (size_t i = 0; i < sizeof(small_order) / sizeof(small_order[0]);
	    i++)
		if (memcmp(y, small_order[i], sizeof(y)) == 0)
			return NULL;
	return EVP_PKEY_new_raw_public_key_ex(
	    NULL, "ED25519", NULL, k->x, sizeof(k->x));
}

static EVP_PKEY *
load(const struct authkey *k)
{
	EVP_PKEY *key = k->alg == AUTHKEY_ES256 ? load_p256(k)
	    : k->alg == AUTHKEY_EDDSA           ? load_ed25519(k)
						: NULL;

	/* The queue of errors is the thread's, and would grow. */
	ERR_clear_error();
	return key;
}

bool
authkey_good(const struct authkey *k)
{
	EVP_PKEY *key = load(k);

	EVP_PKEY_free(key);
	return key != NULL;
}

bool
authkey_verify(const struct authkey *k, struct ipc_bytes a,
    const struct ipc_hash *b, struct ipc_bytes signature)
{
	/* EdDSA wants the text in one piece (authdata.h: AUTHDATA_MAX). */
	uint8_t text[4096 + sizeof(b->b)];
	EVP_MD_CTX *c = NULL;
	EVP_PKEY *key;
	bool good = false;

	if (a.n > sizeof(text) - sizeof(b->b) ||
	    signature.n > AUTHKEY_SIGNATURE_MAX ||
	    (k->alg == AUTHKEY_EDDSA && signature.n != ED25519_SIGNATURE) ||
	    (key = load(k)) == NULL)
		return false;
	if (a.n > 0)
		memcpy(text, a.p, a.n);
	memcpy(text + a.n, b->b, sizeof(b->b));
	/* Ed25519 hashes by itself. */
	good = (c = EVP_MD_CTX_new()) != NULL &&
	    EVP_DigestVerifyInit_ex(c, NULL,
		k->alg == AUTHKEY_EDDSA ? NULL : "SHA256", NULL, NULL, key,
		NULL) == 1 &&
	    EVP_DigestVerify(
		c, signature.p, signature.n, text, a.n + sizeof(b->b)) == 1;
	EVP_MD_CTX_free(c);
	EVP_PKEY_free(key);
	ERR_clear_error();
	return good;
}

/* The base points of P-256 (SEC 2, section 2.4.2) and Ed25519 (RFC 8032 section
 * 5.1), as keys to try with. */
static const struct authkey bases[] = {
    {AUTHKEY_ES256,
	{0x6b, 0x17, 0xd1, 0xf2, 0xe1, 0x2c, 0x42, 0x47, 0xf8, 0xbc, 0xe6, 0xe5,
	    0x63, 0xa4, 0x40, 0xf2, 0x77, 0x03, 0x7d, 0x81, 0x2d, 0xeb, 0x33,
	    0xa0, 0xf4, 0xa1, 0x39, 0x45, 0xd8, 0x98, 0xc2, 0x96},
	{0x4f, 0xe3, 0x42, 0xe2, 0xfe, 0x1a, 0x7f, 0x9b, 0x8e, 0xe7, 0xeb, 0x4a,
	    0x7c, 0x0f, 0x9e, 0x16, 0x2b, 0xce, 0x33, 0x57, 0x6b, 0x31, 0x5e,
	    0xce, 0xcb, 0xb6, 0x40, 0x68, 0x37, 0xbf, 0x51, 0xf5}},
    {AUTHKEY_EDDSA,
	{0x58, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
	    0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
	    0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66},
	{0}},
};

/* Verifies a signature that is well formed and wrong with each key. The key
 * must load; the answer must be no. */
int
authkey_ready(struct err *err)
{
	static const uint8_t es256[] = {0x30, 6, 2, 1, 1, 2, 1, 1};
	static const uint8_t eddsa[ED25519_SIGNATURE] = {1};
	struct ipc_hash b = {{0}};

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++)
		if (!authkey_good(&bases[i]) ||
		    authkey_verify(&bases[i], ipc_str("try"), &b,
			bases[i].alg == AUTHKEY_ES256
			    ? ipc_bytes(es256, sizeof(es256))
			    : ipc_bytes(eddsa, sizeof(eddsa))))
			return err_set(err, FAILURE_INTERNAL,
			    "libcrypto has no %s",
			    i == 0 ? "ECDSA over P-256" : "Ed25519");
	return 0;
}
