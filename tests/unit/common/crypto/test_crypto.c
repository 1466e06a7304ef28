/* Published vectors for common/crypto/crypto.c, and what must be refused. */
#include "credential_hash.h"
#include "crypto.h"
#include "unit.h"

static size_t
unhex(const char *s, uint8_t *out)
{
	unsigned v;
	size_t n = 0;

	for (; *s != '\0'; s += 2) {
		assert_int_equal(sscanf(s, "%2x", &v), 1);
		out[n++] = (uint8_t)v;
	}
	return n;
}

static void
assert_hex(const uint8_t *p, size_t n, const char *hex)
{
	uint8_t want[256];

	assert_int_equal(unhex(hex, want), n);
	assert_memory_equal(p, want, n);
}

/* FIPS 180-4 examples. */
static void
sha256_vectors(void **state)
{
	static const char two[] =
	    "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
	struct ipc_hash h;

	sha256("abc", 3, &h);
	assert_hex(h.b, 32,
	    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	sha256(NULL, 0, &h);
	assert_hex(h.b, 32,
	    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	sha256(two, strlen(two), &h);
	assert_hex(h.b, 32,
	    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
	for (size_t i = 0; i <= strlen(two); i++) {
		sha256_2(two, i, two + i, strlen(two) - i, &h);
		assert_hex(h.b, 32,
		    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419"
		    "db06c1");
	}
}

/* RFC 4231 cases 1 and 2; HMAC pads keys with zeros, so a shorter key is the
 * same as one padded to our fixed length. */
static void
hmac_vectors(void **state)
{
	uint8_t key[KEY_LEN] = {0};
	struct ipc_hash h;

	memset(key, 0x0b, 20);
	hmac_sha256(key, "Hi There", 8, &h);
	assert_hex(h.b, 32,
	    "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	memset(key, 0, sizeof(key));
	memcpy(key, "Jefe", 4);
	hmac_sha256(key, "what do ya want for nothing?", 28, &h);
	assert_hex(h.b, 32,
	    "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

/* RFC 5869 appendix A, cases 1 to 3. */
static void
hkdf_vectors(void **state)
{
	uint8_t ikm[80], salt[80], info[80], out[82];
	size_t i;

	memset(ikm, 0x0b, 22);
	for (i = 0; i < 13; i++)
		salt[i] = (uint8_t)i;
	for (i = 0; i < 10; i++)
		info[i] = (uint8_t)(0xf0 + i);
	hkdf_sha256_salted(ikm, 22, salt, 13, info, 10, out, 42);
	assert_hex(out, 42,
	    "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34"
	    "007208d5b887185865");
	for (i = 0; i < 80; i++) {
		ikm[i] = (uint8_t)i;
		salt[i] = (uint8_t)(0x60 + i);
		info[i] = (uint8_t)(0xb0 + i);
	}
	hkdf_sha256_salted(ikm, 80, salt, 80, info, 80, out, 82);
	assert_hex(out, 82,
	    "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59"
	    "045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30"
	    "c58179ec3e87c14c01d5c1f3434f1d87");
	memset(ikm, 0x0b, 22);
	hkdf_sha256_salted(ikm, 22, NULL, 0, NULL, 0, out, 42);
	assert_hex(out, 42,
	    "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d"
	    "201395faa4b61a96c8");
}

static void
hkdf_labels_differ(void **state)
{
	uint8_t key[KEY_LEN] = {1}, a[KEY_LEN], b[KEY_LEN], c[KEY_LEN];

	hkdf_sha256(key, "secrets", a);
	hkdf_sha256(key, "approvals", b);
	assert_memory_not_equal(a, b, KEY_LEN);
	assert_memory_not_equal(a, key, KEY_LEN);
	hkdf_sha256_salted(key, KEY_LEN, NULL, 0, "secrets", 7, c, KEY_LEN);
	assert_memory_equal(a, c, KEY_LEN);
	key[0] = 2;
	hkdf_sha256(key, "secrets", b);
	assert_memory_not_equal(a, b, KEY_LEN);
}

/* The GCM specification's cases 13, 14 and 16 (256-bit keys, 96-bit nonces,
 * as SP 800-38D takes them over), both ways. */
static void
gcm_vectors(void **state)
{
	static const struct {
		const char *key, *nonce, *aad, *plain, *sealed;
	} v[] = {
	    {"0000000000000000000000000000000000000000000000000000000000"
	     "000000",
		"000000000000000000000000", "", "",
		"530f8afbc74536b9a963b4f1c4cb738b"},
	    {"0000000000000000000000000000000000000000000000000000000000"
	     "000000",
		"000000000000000000000000", "",
		"00000000000000000000000000000000",
		"cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d4"
		"8ab919"},
	    {"feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467"
	     "308308",
		"cafebabefacedbaddecaf888",
		"feedfacedeadbeeffeedfacedeadbeefabaddad2",
		"d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a"
		"318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba63"
		"7b39",
		"522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd25"
		"55d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9"
		"f66276fc6ece0f4e1768cddf8853bb2d551b"},
	};
	uint8_t key[64], nonce[16], aad[64], plain[128], out[128], back[128];

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		size_t an, n;

		assert_int_equal(unhex(v[i].key, key), KEY_LEN);
		assert_int_equal(unhex(v[i].nonce, nonce), GCM_NONCE_LEN);
		an = unhex(v[i].aad, aad);
		n = unhex(v[i].plain, plain);
		assert_int_equal(
		    gcm_seal(key, nonce, aad, an, plain, n, out, NULL), 0);
		assert_hex(out, n + GCM_TAG_LEN, v[i].sealed);
		assert_int_equal(gcm_open(key, nonce, aad, an, out,
				     n + GCM_TAG_LEN, back, NULL),
		    0);
		assert_memory_equal(back, plain, n);
	}
}

/* Every single flipped bit of key, nonce, AAD, ciphertext or tag is refused,
 * and the output never holds what was decrypted. */
static void
gcm_refuses(void **state)
{
	static const char text[] = "CANARY plaintext";
	enum { N = sizeof(text) - 1 };
	uint8_t key[KEY_LEN] = {7}, nonce[GCM_NONCE_LEN] = {9};
	uint8_t aad[3] = {1, 2, 3}, ct[N + GCM_TAG_LEN], out[N];
	static const uint8_t zero[N];
	struct {
		uint8_t *p;
		size_t n;
	} part[] = {{key, sizeof(key)}, {nonce, sizeof(nonce)},
	    {aad, sizeof(aad)}, {ct, sizeof(ct)}};
	struct err err;

	assert_int_equal(
	    gcm_seal(key, nonce, aad, sizeof(aad), text, N, ct, NULL), 0);
	for (size_t i = 0; i < 4; i++)
		for (size_t bit = 0; bit < part[i].n * 8; bit++) {
			part[i].p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
			memset(out, 'x', sizeof(out));
			assert_int_equal(gcm_open(key, nonce, aad, sizeof(aad),
					     ct, sizeof(ct), out, &err),
			    -1);
			assert_int_equal(err.failure, FAILURE_FORBIDDEN);
			assert_memory_equal(out, zero, N);
			part[i].p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		}
	assert_int_equal(
	    gcm_open(key, nonce, aad, 2, ct, sizeof(ct), out, NULL), -1);
	for (size_t n = 0; n < sizeof(ct); n++)
		assert_int_equal(
		    gcm_open(key, nonce, aad, sizeof(aad), ct, n, out, NULL),
		    -1);
	assert_int_equal(
	    gcm_open(key, nonce, aad, sizeof(aad), ct, sizeof(ct), out, NULL),
	    0);
	assert_memory_equal(out, text, N);
}

/* The header is a part of the digest, but API tokens keep theirs. The second
 * vector is sha256sum(1) of the byte 1 and "abc". */
static void
credential_digests(void **state)
{
	struct ipc_hash h, plain;

	sha256("abc", 3, &plain);
	credential_hash(0, "abc", 3, &h);
	assert_memory_equal(&h, &plain, sizeof(h));
	credential_hash(1, "abc", 3, &h);
	assert_hex(h.b, 32,
	    "1e18834c426d00e57788444cb3ccd62c771b420c095bb0c4e040a8c122c4570d");
	credential_hash(1, "", 0, &plain);
	assert_memory_not_equal(&h, &plain, sizeof(h));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(sha256_vectors),
	    cmocka_unit_test(hmac_vectors),
	    cmocka_unit_test(hkdf_vectors),
	    cmocka_unit_test(hkdf_labels_differ),
	    cmocka_unit_test(credential_digests),
	    cmocka_unit_test(gcm_vectors),
	    cmocka_unit_test(gcm_refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
