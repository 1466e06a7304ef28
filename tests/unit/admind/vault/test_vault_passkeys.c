/* A passkey's answers: right ones, and wrong ones in every place. */
#include "passkey_device.h"
#include "unit.h"

#include "ids.h"

static const char origin[] = "http://localhost:8000";
static const int algs[] = {AUTHKEY_ES256, AUTHKEY_EDDSA};
static struct ceremony asked = {
    "localhost", "https://mcpbox.example,http://localhost:8000", {1, 2, 3}};

static struct ipc_bytes
all(const struct buf *b)
{
	assert_false(b->failed);
	return ipc_bytes(b->p, b->len);
}

/* ---- registration ---- */

static int
registers(const struct device *d, struct passkeys *set, struct err *err)
{
	struct buf auth, object, client;
	struct authdata got;
	int rc;

	buf_init(&auth, AUTHDATA_MAX);
	buf_init(&object, AUTHDATA_ATTESTATION_MAX);
	buf_init(&client, CLIENTDATA_MAX);
	device_auth(d, true, &auth);
	device_attest(all(&auth), &object);
	device_client(true, asked.challenge, origin, &client);
	rc = ceremony_register(&asked, all(&client), all(&object), &got, err);
	if (rc == 0)
		rc = passkeys_add(set, &got, err) == NULL ? -1 : 0;
	buf_free(&auth);
	buf_free(&object);
	buf_free(&client);
	return rc;
}

static void
good_ones(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct device d = device_new(algs[i]);
		struct passkeys set = {.handle = {{7}}};
		struct ceremony_answer a = {0};
		struct buf auth, client, sig;
		bool cloned = true;
		uint32_t count = 0;
		struct err err;

		assert_int_equal(registers(&d, &set, &err), 0);
		assert_int_equal(set.n, 1);
		assert_int_equal(set.row[0].key.alg, algs[i]);
		assert_int_equal(registers(&d, &set, &err), -1);
		assert_int_equal(err.failure, FAILURE_CONFLICT);
		d.count = 5;
		buf_init(&auth, AUTHDATA_MAX);
		buf_init(&client, CLIENTDATA_MAX);
		buf_init(&sig, 128);
		device_auth(&d, false, &auth);
		device_client(false, asked.challenge, origin, &client);
		device_sign(&d, all(&auth), all(&client), &sig);
		a.auth_data = all(&auth);
		a.client_data = all(&client);
		a.signature = all(&sig);
		assert_int_equal(ceremony_assert(&asked, &a, &set.row[0],
				     &set.handle, &count, &cloned, &err),
		    0);
		assert_int_equal(count, 5);
		assert_false(cloned);
		a.handle = ipc_bytes(set.handle.b, sizeof(set.handle.b));
		assert_int_equal(ceremony_assert(&asked, &a, &set.row[0],
				     &set.handle, &count, &cloned, &err),
		    0);
		buf_free(&auth);
		buf_free(&client);
		buf_free(&sig);
		device_free(&d);
	}
}

/* Each row changes the authenticator data of a registration: `cut` bytes at
 * `at` are replaced by `n` bytes of `with`. Offsets from 10000 on count within
 * the COSE key. */
enum { COSE = 10000, ID_LEN = 53, COSE_AT = 55 + 32 };
static const struct {
	const char *name;
	int alg; /* 0: both */
	size_t at, cut;
	const char *with;
	size_t n;
} bad_auth[] = {
    {"another RP id", 0, 0, 1, "\x00", 1},
    {"no user present", 0, 32, 1, "\x44", 1},
    {"no user verified", 0, 32, 1, "\x41", 1},
    {"no credential", 0, 32, 1, "\x05", 1},
    {"extensions said, none there", 0, 32, 1, "\xc5", 1},
    {"backed up, not eligible", 0, 32, 1, "\x55", 1},
    {"id of no bytes", 0, ID_LEN, 2, "\x00\x00", 2},
    {"id of 1024 bytes", 0, ID_LEN, 2, "\x04\x00", 2},
    {"id longer than the rest", 0, ID_LEN, 2, "\x03\xff", 2},
    {"id swallows the key", 0, ID_LEN, 2, "\x00\x60", 2},
    {"a byte too many", 0, COSE, 0, "\x00", 1},
    {"an empty key", 0, COSE, 1, "\xa0", 1},
    {"key of indefinite length", 0, COSE, 1, "\xbf", 1},
    {"key is an array", 0, COSE, 1, "\x85", 1},
    {"a member more", 0, COSE, 1, "\xa6", 1},
    {"a member less", 0, COSE, 1, "\xa3", 1},
    {"number of members too long", 0, COSE, 1, "\xb8\x05", 2},
    {"kty twice", 0, COSE + 3, 1, "\x01", 1},
    {"kty 3 (RSA)", 0, COSE + 2, 1, "\x03", 1},
    {"kty in two bytes", 0, COSE + 2, 1, "\x18\x02", 2},
    {"kty in a text", 0, COSE + 2, 1, "\x61\x32", 2},
    {"alg ES384", 0, COSE + 4, 1, "\x38\x22", 2},
    {"alg RS256", 0, COSE + 4, 1, "\x39\x01\x00", 3},
    {"alg of nothing", 0, COSE + 4, 1, "\x00", 1},
    {"crv P-384", 0, COSE + 6, 1, "\x02", 1},
    {"crv X25519", 0, COSE + 6, 1, "\x04", 1},
    {"an unknown label", 0, COSE + 5, 1, "\x23", 1},
    {"x of 31 bytes", 0, COSE + 9, 1, "\x1f", 1},
    {"x of 33 bytes", 0, COSE + 9, 1, "\x21", 1},
    {"x is a text", 0, COSE + 8, 1, "\x78", 1},
    {"x is a number", 0, COSE + 8, 1, "\x18", 1},
    {"length of x in eight bytes", 0, COSE + 8, 2,
	"\x5b\x00\x00\x00\x00\x00\x00\x00\x20", 9},
    {"length of x past all", 0, COSE + 8, 2,
	"\x5b\xff\xff\xff\xff\xff\xff\xff\xff", 9},
    {"ES256 with Ed25519's curve", AUTHKEY_ES256, COSE + 6, 1, "\x06", 1},
    {"ES256 with OKP", AUTHKEY_ES256, COSE + 2, 1, "\x01", 1},
    {"ES256 as EdDSA", AUTHKEY_ES256, COSE + 4, 1, "\x27", 1},
    {"y is a sign", AUTHKEY_ES256, COSE + 43, 34, "\xf5", 1},
    {"y is not there", AUTHKEY_ES256, COSE + 42, 35, "", 0},
    {"not on the curve", AUTHKEY_ES256, COSE + 45, 32,
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1", 32},
    {"EdDSA with EC2", AUTHKEY_EDDSA, COSE + 2, 1, "\x02", 1},
    {"EdDSA as ES256", AUTHKEY_EDDSA, COSE + 4, 1, "\x26", 1},
    {"EdDSA with P-256", AUTHKEY_EDDSA, COSE + 6, 1, "\x01", 1},
    {"EdDSA with the point 0", AUTHKEY_EDDSA, COSE + 10, 32,
	"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32},
    {"EdDSA with the point 1, the other sign", AUTHKEY_EDDSA, COSE + 10, 32,
	"\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x80",
	32},
};

static int
attested(struct ipc_bytes auth, struct err *err)
{
	struct buf object, client;
	struct authdata got;
	int rc;

	buf_init(&object, AUTHDATA_ATTESTATION_MAX);
	buf_init(&client, CLIENTDATA_MAX);
	device_attest(auth, &object);
	device_client(true, asked.challenge, origin, &client);
	rc = ceremony_register(&asked, all(&client), all(&object), &got, err);
	buf_free(&object);
	buf_free(&client);
	return rc;
}

static void
bad_registrations(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct device d = device_new(algs[i]);
		struct buf auth, b;
		struct err err;

		buf_init(&auth, AUTHDATA_MAX);
		device_auth(&d, true, &auth);
		assert_int_equal(attested(all(&auth), &err), 0);
		for (size_t k = 0; k < sizeof(bad_auth) / sizeof(bad_auth[0]);
		    k++) {
			size_t at = bad_auth[k].at;

			if (bad_auth[k].alg != 0 && bad_auth[k].alg != algs[i])
				continue;
			if (at >= COSE)
				at = at - COSE + COSE_AT;
			if (strcmp(bad_auth[k].name, "a byte too many") == 0)
				at = auth.len;
			buf_init(&b, AUTHDATA_MAX);
			buf_put(&b, auth.p, at);
			buf_put(&b, bad_auth[k].with, bad_auth[k].n);
			buf_put(&b, auth.p + at + bad_auth[k].cut,
			    auth.len - at - bad_auth[k].cut);
			err.failure = FAILURE_COUNT;
			if (attested(all(&b), &err) != -1)
				fail_msg("%s is accepted", bad_auth[k].name);
			assert_true(err.failure == FAILURE_INVALID_PARAMS ||
			    err.failure == FAILURE_PASSKEY_REFUSED);
			buf_free(&b);
		}
		/* each shorter text is refused, too */
		for (size_t n = 0; n < auth.len; n++)
			assert_int_equal(
			    attested(ipc_bytes(auth.p, n), &err), -1);
		buf_free(&auth);
		device_free(&d);
	}
}

/* Attestation objects around good authenticator data: %A is "authData" with
 * them. */
static void
bad_objects(void **state)
{
	static const struct {
		const char *name, *head, *tail;
		bool good;
	} rows[] = {
	    {"another format is not believed, but read",
		"\xa3\x63"
		"fmt\x66packed\x67"
		"attStmt\xa2\x63"
		"alg\x26\x63sig\x42xy",
		"", true},
	    {"another order",
		"\xa3\x67"
		"attStmt\xa0\x63"
		"fmt\x64none",
		"", true},
	    {"no statement",
		"\xa2\x63"
		"fmt\x64none",
		"", false},
	    {"format twice",
		"\xa3\x63"
		"fmt\x64none\x63"
		"fmt\x64none",
		"", false},
	    {"format is bytes",
		"\xa3\x63"
		"fmt\x44none\x67"
		"attStmt\xa0",
		"", false},
	    {"an unknown member",
		"\xa3\x63"
		"fmt\x64none\x67"
		"attStmX\xa0",
		"", false},
	    {"a byte at the end",
		"\xa3\x63"
		"fmt\x64none\x67"
		"attStmt\xa0",
		"x", false},
	    {"a statement cut off",
		"\xa3\x63"
		"fmt\x64none\x67"
		"attStmt\xbb\x7f\xff\xff\xff\xff\xff\xff"
		"\xff",
		"", false},
	    {"a statement of tags without end",
		"\xa3\x63"
		"fmt\x64none\x67"
		"attStmt\xc1\xc1\xc1",
		"", false},
	    {"an array",
		"\x83\x63"
		"fmt\x64none\x67"
		"attStmt\xa0",
		"", false},
	    {"of indefinite length",
		"\xbf\x63"
		"fmt\x64none\x67"
		"attStmt\xa0",
		"\xff", false},
	};
	struct device d = device_new(AUTHKEY_ES256);
	struct buf auth, b;
	struct authdata got;
	struct err err;

	(void)state;
	buf_init(&auth, AUTHDATA_MAX);
	device_auth(&d, true, &auth);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_init(&b, AUTHDATA_ATTESTATION_MAX);
		/* the heads have no NUL */
		buf_puts(&b, rows[i].head);
		buf_puts(&b,
		    "\x68"
		    "authData");
		device_blob(all(&auth), &b);
		buf_puts(&b, rows[i].tail);
		if ((authdata_attested(all(&b), &got, &err) == 0) !=
		    rows[i].good)
			fail_msg("%s: %s", rows[i].name,
			    rows[i].good ? err.text : "accepted");
		buf_free(&b);
	}
	buf_free(&auth);
	device_free(&d);
}

/* ---- client data ---- */

static void
client_data(void **state)
{
	static const struct {
		const char *head, *tail;
		bool good;
	} rows[] = {
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\"}", true},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"https://mcpbox.example\","
		"\"crossOrigin\":false,\"extra_keys_may_be_added_here\":\"x\"}",
		true},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\",\"tokenBinding\":1}",
		true},
	    {"{\"type\":\"webauthn.create\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\"}", false},
	    {"{\"type\":\"payment.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\"}", false},
	    {"{ \"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\"}", false},
	    {"{\"challenge\":\"",
		"\",\"type\":\"webauthn.get\",\"origin\":\"http://"
		"localhost:8000\"}",
		false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"A",
		"\",\"origin\":\"http://localhost:8000\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"=\",\"origin\":\"http://localhost:8000\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8001\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:80000\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"https://localhost:8000\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"HTTP://localhost:8000\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000/\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"https://mcpbox.example,http://"
		"localhost:8000\"}",
		false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"\"}", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://evil.example\",\"origin\":"
		"\"http://localhost:8000\"}",
		false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\",\"crossOrigin\":"
		"true}",
		false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\",\"crossOrigin\":"
		"false,\"topOrigin\":\"https://evil.example\"}",
		false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\",\"x\":1,"
		"\"crossOrigin\":true}",
		false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\",\"crossOrigin\":"
		"false",
		false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\"}x", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"",
		"\",\"origin\":\"http://localhost:8000\"", false},
	    {"{\"type\":\"webauthn.get\",\"challenge\":\"", "\"}", false},
	};
	char text[64];
	struct buf b;
	struct err err;

	(void)state;
	b64url_encode(asked.challenge, CLIENTDATA_CHALLENGE, text);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		buf_init(&b, CLIENTDATA_MAX);
		buf_putf(&b, "%s%s%s", rows[i].head, text, rows[i].tail);
		if ((clientdata_check(all(&b), false, asked.challenge,
			 asked.origins, &err) == 0) != rows[i].good)
			fail_msg("%.*s is wrongly judged", (int)b.len, b.p);
		for (size_t n = 0; rows[i].good && n < b.len; n++)
			assert_int_equal(
			    clientdata_check(ipc_bytes(b.p, n), false,
				asked.challenge, asked.origins, &err),
			    -1);
		buf_free(&b);
	}
	buf_init(&b, 2 * CLIENTDATA_MAX);
	buf_putf(&b, "%s%s%s,\"x\":\"%*d\"}", rows[0].head, text,
	    "\",\"origin\":\"http://localhost:8000\"", CLIENTDATA_MAX, 0);
	assert_int_equal(clientdata_check(all(&b), false, asked.challenge,
			     asked.origins, &err),
	    -1);
	assert_int_equal(err.failure, FAILURE_PASSKEY_REFUSED);
	buf_free(&b);
}

#define NINE(a) a "," a "," a "," a "," a "," a "," a "," a "," a
static void
origins(void **state)
{
	static const char *const good[] = {
	    "https://a,https://b", "https://[::1]"};
	static const char *const local[] = {
	    "https://a.example,http://localhost", "http://a.localhost:1"};
	static const char *const bad[] = {"", "localhost", "http://",
	    "https://a.example/", "https://A.example", "https://a b", "ftp://a",
	    "https://a,", ",https://a", "https://a,,https://b", "https://a\"",
	    NINE("https://a"), /* by http at no such name: */
	    "http://a.example", "http://[::1]:8000", "http://xlocalhost",
	    "http://localhost:1:localhost.example", "http://a:localhost"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(clientdata_origins_ok(good[i], false));
		assert_true(clientdata_origins_ok(local[i], true));
		assert_false(clientdata_origins_ok(local[i], false));
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (clientdata_origins_ok(bad[i], true))
			fail_msg("'%s' is accepted", bad[i]);
}

/* ---- assertions ---- */

enum wrong {
	OTHER_KEY,
	OTHER_ALG,
	NO_SIGNATURE,
	CUT_SIGNATURE,
	LONG_SIGNATURE,
	FLIPPED_SIGNATURE,
	PADDED_DER,
	RAW_SIGNATURE,
	OTHER_CLIENT,
	OTHER_AUTH,
	OTHER_CHALLENGE,
	OTHER_ORIGIN,
	OTHER_RP,
	OTHER_TYPE,
	NOT_PRESENT,
	NOT_VERIFIED,
	WITH_CREDENTIAL,
	OTHER_HANDLE,
	SHORT_HANDLE,
	NOW_ELIGIBLE,
	COUNTER_SAME,
	COUNTER_BACK,
	COUNTER_ZERO,
	WRONGS
};

static void
change_text(enum wrong w, struct buf *sig)
{
	switch (w) {
	case NO_SIGNATURE:
		sig->len = 0;
		break;
	case CUT_SIGNATURE:
		sig->len--;
		break;
	case LONG_SIGNATURE:
		buf_put_u8(sig, 0);
		break;
	case FLIPPED_SIGNATURE:
		sig->p[sig->len / 2] ^= 1;
		break;
	case PADDED_DER: /* the sequence's length in the long form */
		buf_put_u8(sig, 0);
		memmove(sig->p + 2, sig->p + 1, sig->len - 2);
		sig->p[1] = 0x81;
		break;
	case RAW_SIGNATURE: /* as JOSE writes ES256 */
		sig->len = 64;
		break;
	default:
		break;
	}
}

static int
asserts_wrongly(struct device *d, struct passkey *k, enum wrong w, bool *cloned,
    struct err *err)
{
	static const struct ipc_id handle = {{7}}, other = {{8}};
	static const uint8_t challenge[CLIENTDATA_CHALLENGE] = {9};
	struct device twin = device_new(
	    w == OTHER_ALG ? AUTHKEY_ES256 + AUTHKEY_EDDSA - d->alg : d->alg);
	struct ceremony_answer a = {0};
	struct device used = *d;
	struct buf auth, client, sig;
	uint32_t count;
	int rc;

	if (w == OTHER_KEY || w == OTHER_ALG) {
		used.key = twin.key;
		used.alg = twin.alg;
	}
	used.rp_id = w == OTHER_RP ? "evil.example" : d->rp_id;
	used.flags = w == NOT_PRESENT ? DEVICE_UV
	    : w == NOT_VERIFIED       ? DEVICE_UP
	    : w == NOW_ELIGIBLE       ? DEVICE_UP | DEVICE_UV | DEVICE_BE
				      : d->flags;
	used.count = w == COUNTER_SAME ? 10
	    : w == COUNTER_BACK        ? 9
	    : w == COUNTER_ZERO        ? 0
				       : 11;
	buf_init(&auth, AUTHDATA_MAX);
	buf_init(&client, CLIENTDATA_MAX);
	buf_init(&sig, 128);
	device_auth(&used, w == WITH_CREDENTIAL, &auth);
	device_client(w == OTHER_TYPE,
	    w == OTHER_CHALLENGE ? challenge : asked.challenge,
	    w == OTHER_ORIGIN ? "http://evil.example" : origin, &client);
	device_sign(&used, all(&auth), all(&client), &sig);
	change_text(w, &sig);
	if (w == OTHER_CLIENT)
		client.p[client.len - 2] ^= 1; /* of "false" */
	if (w == OTHER_AUTH)
		auth.p[36]++; /* the counter */
	a.auth_data = all(&auth);
	a.client_data = all(&client);
	a.signature = all(&sig);
	if (w == OTHER_HANDLE)
		a.handle = ipc_bytes(other.b, sizeof(other.b));
	if (w == SHORT_HANDLE)
		a.handle = ipc_bytes(handle.b, 1);
	rc = ceremony_assert(&asked, &a, k, &handle, &count, cloned, err);
	buf_free(&auth);
	buf_free(&client);
	buf_free(&sig);
	device_free(&twin);
	return rc;
}

static void
bad_assertions(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct device d = device_new(algs[i]);
		struct passkeys set = {.handle = {{7}}};
		struct err err;
		bool cloned;

		d.count = 10;
		assert_int_equal(registers(&d, &set, &err), 0);
		for (enum wrong w = 0; w < WRONGS; w++) {
			if (algs[i] == AUTHKEY_EDDSA &&
			    (w == PADDED_DER || w == RAW_SIGNATURE))
				continue;
			if (asserts_wrongly(
				&d, &set.row[0], w, &cloned, &err) != -1)
				fail_msg("wrong %d is accepted", (int)w);
			assert_int_equal(err.failure,
			    w == WITH_CREDENTIAL ? FAILURE_INVALID_PARAMS
						 : FAILURE_PASSKEY_REFUSED);
			assert_int_equal(cloned,
			    w == COUNTER_SAME || w == COUNTER_BACK ||
				w == COUNTER_ZERO);
		}
		device_free(&d);
	}
}

static void
libcrypto_is_tried(void **state)
{
	struct err err;

	(void)state;
	assert_int_equal(authkey_ready(&err), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good_ones),
	    cmocka_unit_test(bad_registrations),
	    cmocka_unit_test(bad_objects),
	    cmocka_unit_test(client_data),
	    cmocka_unit_test(origins),
	    cmocka_unit_test(bad_assertions),
	    cmocka_unit_test(libcrypto_is_tried),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
