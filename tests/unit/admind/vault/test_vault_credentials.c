/*
 * Credentials that a run seals for the vault: a text that mcpbox_oauth.py
 * sealed opens here (tests/unit/sandboxd/runner/test_mcp_client.py makes the
 * very same text), and no other does.
 */
#include "bounds.h"
#include "credentials.h"
#include "ids.h"
#include "unit.h"

/* base64 of nonce 100..115, the text below, its tag; key 0..31 */
static const char sealed_hex[] =
    "6465666768696a6b6c6d6e6f70717273c8fb410bd3e352dbe393756714933a3d"
    "d40dde633e560a96f991676fb951d1e789a6758bafe1a77580f25f9422eb7313"
    "2e304e8f726c410d3d389cc3b2d2acd5558aeef22ecfd7cb51bab6e74fc05e29"
    "27a89e9a145f980842eb5d";
static const char text[] =
    "{\"access_token\":\"tttttttttttttttttttttttttttttttttttttttt\"}";

enum { SEALED = sizeof(sealed_hex) / 2 };

static void
golden(uint8_t key[KEY_LEN], uint8_t out[SEALED])
{
	for (unsigned i = 0; i < KEY_LEN; i++)
		key[i] = (uint8_t)i;
	assert_int_equal(hex_decode(sealed_hex, 2 * (size_t)SEALED, out), 0);
}

static void
opens_what_python_sealed(void **state)
{
	uint8_t key[KEY_LEN], in[SEALED];
	struct buf out;
	struct err e;

	(void)state;
	golden(key, in);
	buf_init(&out, SECRET_VALUE_MAX);
	assert_int_equal(credentials_open(key, in, SEALED, &out, &e), 0);
	assert_int_equal(out.len, strlen(text));
	assert_memory_equal(out.p, text, out.len);
	buf_free(&out);
}

static void
any_change_is_refused(void **state)
{
	uint8_t key[KEY_LEN], in[SEALED];
	struct buf out;
	struct err e;

	(void)state;
	golden(key, in);
	buf_init(&out, SECRET_VALUE_MAX);
	for (size_t i = 0; i < SEALED; i++)
		for (int bit = 0; bit < 8; bit++) {
			in[i] ^= (uint8_t)(1 << bit);
			assert_int_equal(
			    credentials_open(key, in, SEALED, &out, &e), -1);
			assert_int_equal(e.failure, FAILURE_FORBIDDEN);
			in[i] ^= (uint8_t)(1 << bit);
		}
	for (size_t n = 0; n < SEALED; n++)
		assert_int_equal(credentials_open(key, in, n, &out, &e), -1);
	key[5] ^= 1;
	assert_int_equal(credentials_open(key, in, SEALED, &out, &e), -1);
	assert_int_equal(out.len, 0);
	buf_free(&out);
}

static void
too_long_is_refused_before_it_is_opened(void **state)
{
	size_t n = SECRET_VALUE_MAX + CREDENTIAL_OVERHEAD + 1;
	uint8_t key[KEY_LEN] = {0}, *in = calloc(1, n);
	struct buf out;
	struct err e;

	(void)state;
	assert_non_null(in);
	buf_init(&out, SECRET_VALUE_MAX);
	assert_int_equal(credentials_open(key, in, n, &out, &e), -1);
	assert_int_equal(e.failure, FAILURE_INVALID_REQUEST);
	assert_int_equal(credentials_open(key, in, n - 1, &out, &e), -1);
	assert_int_equal(e.failure, FAILURE_FORBIDDEN);
	buf_free(&out);
	free(in);
}

/* Whatever admind names wrongly is another key. */
static void
a_key_is_one_run_of_one_version_for_one_secret(void **state)
{
	struct ipc_id execution = {{1}}, other_execution = {{2}};
	struct ipc_hash version = {{1}}, other_version = {{2}};
	const struct ipc_bytes a = ipc_str("a"), s = ipc_str("S");
	struct keys k = {0}, other_master = {0};
	uint8_t key[9][KEY_LEN];

	(void)state;
	other_master.secrets[0] = 1;
	credentials_key(&k, &execution, &version, a, s, key[0]);
	credentials_key(&k, &other_execution, &version, a, s, key[1]);
	credentials_key(&k, &execution, &other_version, a, s, key[2]);
	credentials_key(&k, &execution, &version, ipc_str("b"), s, key[3]);
	credentials_key(&other_master, &execution, &version, a, s, key[4]);
	credentials_key(&k, &execution, &version, ipc_str("aS"), s, key[5]);
	/* another secret of the same server: its tools send it elsewhere */
	credentials_key(&k, &execution, &version, a, ipc_str("T"), key[6]);
	credentials_key(&k, &execution, &version, a, ipc_str("SS"), key[7]);
	credentials_key(&k, &execution, &version, a, s, key[8]);
	for (int i = 0; i < 8; i++)
		for (int j = 0; j < i; j++)
			assert_memory_not_equal(key[i], key[j], KEY_LEN);
	assert_memory_equal(key[0], key[8], KEY_LEN);
	/* and none of them is the key that stored secrets are under */
	assert_memory_not_equal(key[0], k.secrets, KEY_LEN);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(opens_what_python_sealed),
	    cmocka_unit_test(any_change_is_refused),
	    cmocka_unit_test(too_long_is_refused_before_it_is_opened),
	    cmocka_unit_test(a_key_is_one_run_of_one_version_for_one_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
