/* Master key files that are taken and refused, and stored values. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "anchors.h"
#include "keys.h"
#include "macs.h"
#include "stored.h"
#include "unit.h"

static char dir[] = "/tmp/mcpkeysXXXXXX", path[64], other[64];

static void
put_bytes(const char *p, int byte, size_t n, mode_t mode)
{
	uint8_t bytes[64];
	int fd;

	(void)unlink(p);
	memset(bytes, byte, sizeof(bytes));
	fd = open(p, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd != -1);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void
put(const char *p, size_t n, mode_t mode)
{
	put_bytes(p, 0x5a, n, mode);
}

static int
set_up(void **state)
{
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/key", dir);
	snprintf(other, sizeof(other), "%s/master.key", dir);
	unsetenv("CREDENTIALS_DIRECTORY");
	return 0;
}

static int
tear_down(void **state)
{
	unlink(path);
	unlink(other);
	return rmdir(dir);
}

static struct keys *
load(const char *p, struct err *err)
{
	bool credential;

	return keys_load(p, NULL, &credential, err);
}

static void
taken(void **state)
{
	uint8_t master[KEY_LEN], zero[KEY_LEN] = {0};
	struct keys *k;
	struct keys want;
	struct err err;
	bool locked, credential;
	uintptr_t page;

	put(path, 32, 0400);
	k = keys_load(path, &locked, &credential, &err);
	assert_non_null(k);
	assert_false(credential);
	memset(master, 0x5a, sizeof(master));
	keys_derive(master, &want);
	assert_memory_equal(k, &want, sizeof(want));
	assert_memory_equal(master, zero, sizeof(zero));
	/* No other key, and behind them lay the master key: it is gone. */
	assert_null(k->also);
	page = (uintptr_t)k & ~(uintptr_t)4095;
	memset(master, 0x5a, sizeof(master));
	assert_null(memmem((const void *)page, 4096, master, sizeof(master)));
	/* Five purposes, five keys, none of them the master. */
	const uint8_t *subs[] = {
	    k->secrets, k->approvals, k->audit, k->mcp_session, k->verifiers};

	for (size_t i = 0; i < sizeof(subs) / sizeof(subs[0]); i++) {
		memset(master, 0x5a, sizeof(master));
		assert_memory_not_equal(subs[i], master, KEY_LEN);
		assert_memory_not_equal(subs[i], k->id, KEY_ID_LEN);
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(subs[i], subs[j], KEY_LEN);
	}
	keys_drop(k);
}

static void
refused(void **state)
{
	static const mode_t bad[] = {0600, 0440, 0404, 0500, 04400, 0444};
	struct err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put(path, 32, bad[i]);
		assert_null(load(path, &err));
		assert_non_null(strstr(err.text, path));
	}
	put(path, 31, 0400);
	assert_null(load(path, &err));
	put(path, 33, 0400);
	assert_null(load(path, &err));
	put(path, 0, 0400);
	assert_null(load(path, &err));
	assert_null(load(dir, &err));
	assert_null(load("/nonexistent/key", &err));
	put(other, 32, 0400);
	unlink(path);
	assert_int_equal(symlink(other, path), 0);
	assert_null(load(path, &err));
	unlink(path);
	assert_int_equal(mkfifo(path, 0400), 0);
	assert_null(load(path, &err));
	unlink(path);
	unlink(other);
}

/* A credential wins; a bad one is an error, never a fall-back. */
static void
credential(void **state)
{
	struct keys *a, *b;
	struct err err;

	put(path, 32, 0400);
	a = load(path, &err);
	setenv("CREDENTIALS_DIRECTORY", dir, 1);
	b = load(path, &err); /* none there: the file */
	assert_non_null(b);
	assert_memory_equal(a, b, sizeof(*a));
	put(other, 32, 0440); /* the ACL mask systemd shows */
	assert_non_null(load("/nonexistent/key", &err));
	put(other, 31, 0400);
	assert_null(load(path, &err));
	put(other, 32, 0444);
	assert_null(load(path, &err));
	unlink(other);
	unsetenv("CREDENTIALS_DIRECTORY");
	keys_drop(a);
	keys_drop(b);
}

/* The credential of that name in dir, from its bytes; NULL: none. */
static void
give(const char *name, const char *bytes, size_t n)
{
	char p[96];
	int fd;

	snprintf(p, sizeof(p), "%s/%s", dir, name);
	(void)unlink(p);
	if (bytes == NULL)
		return;
	fd = open(p, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, 0440), 0); /* as systemd makes it */
	close(fd);
}

/* All that a unit names: sealed before plain, a stand-in is nothing, and the
 * next key only from where the key came (decision 0058). */
static void
credential_forms(void **state)
{
	static const char one[] = "11111111111111111111111111111111";
	static const char two[] = "22222222222222222222222222222222";
	static const char *const names[] = {"master.key", "master.key.cred",
	    "master.key.next", "master.key.next.cred"};
	uint8_t id1[KEY_ID_LEN], id2[KEY_ID_LEN], other_id[KEY_ID_LEN];
	char beside[80];
	bool is_credential;
	struct keys *k;
	struct err err;

	master_key_id((const uint8_t *)one, id1);
	master_key_id((const uint8_t *)two, id2);
	put(path, 32, 0400);
	k = load(path, &err);
	memcpy(other_id, k->id, sizeof(other_id));
	keys_drop(k);
	snprintf(beside, sizeof(beside), "%s.next", path);
	put_bytes(beside, 0x77, 32, 0000); /* root's: we couldn't read it */
	setenv("CREDENTIALS_DIRECTORY", dir, 1);
	for (int i = 0; i < 4; i++)
		give(names[i], "none", 4);
	/* Stand-ins alone: the file, by its own rules. */
	unlink(beside);
	k = keys_load(path, NULL, &is_credential, &err);
	assert_non_null(k);
	assert_false(is_credential);
	assert_memory_equal(k->id, other_id, KEY_ID_LEN);
	assert_null(k->also);
	keys_drop(k);
	put_bytes(beside, 0x77, 32, 0444); /* wrong, and not looked at */
	give("master.key", one, 32);
	k = keys_load(path, NULL, &is_credential, &err);
	assert_non_null(k);
	assert_true(is_credential);
	assert_memory_equal(k->id, id1, KEY_ID_LEN);
	assert_null(k->also);
	keys_drop(k);
	/* A rotation in either form. */
	for (int i = 2; i < 4; i++) {
		give(names[i], two, 32);
		k = load(path, &err);
		assert_non_null(k);
		assert_memory_equal(k->id, id2, KEY_ID_LEN);
		assert_non_null(k->also);
		assert_memory_equal(k->also->id, id1, KEY_ID_LEN);
		keys_forget(k);
		keys_drop(k);
		give(names[i], "none", 4);
	}
	/* Sealed wins; what is neither a key nor the stand-in is an error. */
	give("master.key.cred", two, 32);
	k = load(path, &err);
	assert_non_null(k);
	assert_memory_equal(k->id, id2, KEY_ID_LEN);
	keys_drop(k);
	give("master.key.cred", "", 0);
	assert_null(load(path, &err));
	give("master.key.cred", "nonE", 4);
	assert_null(load(path, &err));
	give("master.key.cred", "none\n", 5);
	assert_null(load(path, &err));
	give("master.key.cred", two, 32);
	give("master.key.next.cred", "22", 2);
	assert_null(load(path, &err));
	for (int i = 0; i < 4; i++)
		give(names[i], NULL, 0);
	unlink(beside);
	unsetenv("CREDENTIALS_DIRECTORY");
}

/* A next key that has no plain file: only where the key is a credential, and
 * only if nobody can change it any more. */
static void
memory(void **state)
{
	const int all = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	struct keys *k;
	struct err err;
	int fd;

	fd = memfd_create("key", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(fd != -1);
	assert_int_equal(write(fd, "33333333333333333333333333333333", 32), 32);
	assert_int_equal(fchmod(fd, 0400), 0);
	assert_null(keys_read(fd, true, &err));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, all), 0);
	assert_null(keys_read(fd, true, &err));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL), 0);
	assert_null(keys_read(fd, false, &err));
	assert_int_equal(err.failure, FAILURE_INVALID_PARAMS);
	k = keys_read(fd, true, &err);
	assert_non_null(k);
	keys_drop(k);
	assert_int_equal(fchmod(fd, 0444), 0);
	assert_null(keys_read(fd, true, &err));
	close(fd);
	/* A file that was removed is no memory. */
	put(path, 32, 0400);
	fd = open(path, O_RDONLY);
	unlink(path);
	assert_null(keys_read(fd, true, &err));
	close(fd);
}

/* Two keys: the file beside is the head, and is held to the same rules. */
static void
next(void **state)
{
	static const uint8_t zero[KEY_ID_LEN];
	char beside[80];
	struct keys *k, *first;
	uint8_t id[KEY_ID_LEN];
	struct err err;
	int fd;

	snprintf(beside, sizeof(beside), "%s.next", path);
	put(path, 32, 0400);
	first = load(path, &err);
	memcpy(id, first->id, sizeof(id));
	put(beside, 32, 0400); /* the same key: no other */
	k = load(path, &err);
	assert_non_null(k);
	assert_null(k->also);
	keys_drop(k);
	put_bytes(beside, 0x77, 32, 0400);
	k = load(path, &err);
	assert_non_null(k);
	assert_non_null(k->also);
	assert_memory_equal(k->also->id, id, sizeof(id));
	assert_memory_not_equal(k->id, id, sizeof(id));
	assert_ptr_equal(keys_find(k, id), k->also);
	assert_null(keys_find(k, zero));
	/* A third is refused; the head again is nothing new. */
	put_bytes(beside, 0x33, 32, 0400);
	fd = open(beside, O_RDONLY);
	assert_int_equal(keys_push(&k, keys_read(fd, false, &err), &err), -1);
	assert_int_equal(err.failure, FAILURE_CONFLICT);
	assert_int_equal(
	    keys_push(&first, keys_read(fd, false, &err), &err), 0);
	assert_non_null(first->also);
	assert_int_equal(
	    keys_push(&first, keys_read(fd, false, &err), &err), 0);
	assert_memory_equal(first->also->id, id, sizeof(id));
	keys_forget(first);
	assert_null(first->also);
	assert_null(keys_find(first, id));
	/* On no disk any more; readable to others; too short. */
	unlink(beside);
	assert_null(keys_read(fd, false, &err));
	assert_int_equal(err.failure, FAILURE_INVALID_PARAMS);
	close(fd);
	put(beside, 32, 0440);
	assert_null(load(path, &err));
	put(beside, 31, 0400);
	assert_null(load(path, &err));
	unlink(beside);
	keys_drop(first);
	keys_forget(k);
	keys_drop(k);
}

/* Seals under two keys, and of the form before rotation existed. */
static void
two_macs(void **state)
{
	struct keys old = {.id = {1}, .approvals = {1}};
	struct keys new = {.id = {2}, .approvals = {2}, .also = &old};
	const uint8_t *body;
	struct buf s, again, b;
	struct ipc_hash m;
	size_t n;

	buf_init(&s, MACS_MAX);
	buf_init(&again, MACS_MAX);
	macs_open(&old, &s);
	buf_put(&s, "said", 4);
	assert_int_equal(macs_close(&old, MACS_GRANT, &s, NULL), 0);
	assert_int_equal(s.len, MACS_OVERHEAD + 4);
	for (int p = 0; p < MACS_COUNT; p++)
		assert_int_equal(
		    macs_check(&new, p, s.p, s.len, &body, &n, NULL),
		    p == MACS_GRANT ? 0 : -1);
	assert_int_equal(n, 4);
	assert_memory_equal(body, "said", 4);
	assert_int_equal(
	    macs_renew(&new, MACS_CALL, s.p, s.len, &again, NULL), -1);
	assert_int_equal(
	    macs_renew(&new, MACS_GRANT, s.p, s.len, &again, NULL), 0);
	new.also = NULL;
	assert_int_equal(
	    macs_check(&new, MACS_GRANT, s.p, s.len, &body, &n, NULL), -1);
	assert_int_equal(
	    macs_check(&new, MACS_GRANT, again.p, again.len, &body, &n, NULL),
	    0);
	assert_memory_equal(body, "said", 4);
	/* {1, body, MAC}: either key's. */
	buf_init(&b, 256);
	buf_put(&b, "mcpbox approval 1\0\1said", 18 + 1 + 4);
	hmac_sha256(old.approvals, b.p, b.len, &m);
	buf_clear(&s);
	buf_put(&s, "\1said", 5);
	buf_put(&s, m.b, sizeof(m.b));
	assert_int_equal(
	    macs_check(&new, MACS_VERSION, s.p, s.len, &body, &n, NULL), -1);
	new.also = &old;
	assert_int_equal(
	    macs_check(&new, MACS_VERSION, s.p, s.len, &body, &n, NULL), 0);
	assert_int_equal(n, 4);
	for (n = 0; n < s.len; n++)
		assert_int_equal(macs_check(&new, MACS_VERSION, s.p, n, &body,
				     &(size_t){0}, NULL),
		    -1);
	buf_free(&s);
	buf_free(&again);
	buf_free(&b);
}

static const struct keys keyring = {.id = {3}, .secrets = {3}};
static const struct keys *const key = &keyring;

static struct stored_place
place(const char *row, const char *column)
{
	struct stored_place at = {
	    STORED_SECRETS, ipc_str(row), ipc_str(column)};

	return at;
}

static void
stored(void **state)
{
	static const char canary[] = "CANARY";
	struct stored_place at = place("demo", "TOKEN"), bad;
	static const char *const places[][2] = {{"demo", "TOKEM"},
	    {"bank", "TOKEN"}, {"", "demo"}, {"demoT", "OKEN"},
	    {"TOKEN", "demo"}};
	struct buf s, again, out;
	struct keys key2 = {.id = {3}, .secrets = {4}}, key3 = {.id = {4}};

	buf_init(&s, 1024);
	buf_init(&again, 1024);
	buf_init(&out, 1024);
	assert_int_equal(stored_seal(key, &at, canary, 6, &s, NULL), 0);
	assert_int_equal(stored_seal(key, &at, canary, 6, &again, NULL), 0);
	assert_int_equal(s.len, STORED_OVERHEAD + 6);
	assert_null(memmem(s.p, s.len, canary, 6));
	assert_memory_not_equal(s.p + 9, again.p + 9, GCM_NONCE_LEN);
	assert_int_equal(stored_open(key, &at, s.p, s.len, &out, NULL), 0);
	assert_int_equal(out.len, 6);
	assert_memory_equal(out.p, canary, 6);
	buf_clear(&out);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		bad = place(places[i][0], places[i][1]);
		assert_int_equal(
		    stored_open(key, &bad, s.p, s.len, &out, NULL), -1);
	}
	bad = at;
	bad.table = STORED_VERIFIERS;
	assert_int_equal(stored_open(key, &bad, s.p, s.len, &out, NULL), -1);
	assert_int_equal(stored_open(&key2, &at, s.p, s.len, &out, NULL), -1);
	/* Of a key that is gone; of one that is valid meanwhile. */
	assert_int_equal(stored_open(&key3, &at, s.p, s.len, &out, NULL), -1);
	key3.also = (struct keys *)&keyring;
	assert_int_equal(stored_open(&key3, &at, s.p, s.len, &out, NULL), 0);
	buf_clear(&out);
	for (size_t n = 0; n < s.len; n++)
		assert_int_equal(stored_open(key, &at, s.p, n, &out, NULL), -1);
	for (size_t bit = 0; bit < s.len * 8; bit++) {
		s.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(
		    stored_open(key, &at, s.p, s.len, &out, NULL), -1);
		s.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	assert_int_equal(out.len, 0);
	/* Exactly as large as may be; one more. */
	buf_free(&out);
	buf_init(&out, 6);
	assert_int_equal(stored_open(key, &at, s.p, s.len, &out, NULL), 0);
	assert_int_equal(out.len, 6);
	buf_free(&out);
	buf_init(&out, 5);
	assert_int_equal(stored_open(key, &at, s.p, s.len, &out, NULL), -1);
	buf_free(&s);
	buf_free(&again);
	buf_free(&out);
}

/* {1, 1, nonce, ...}, as before rotation existed: whichever key opens it. */
static void
stored_first_form(void **state)
{
	static const uint8_t nonce[GCM_NONCE_LEN] = {9};
	static const char aad[] = "server_secrets\0demo\0TOKEN";
	struct keys old = {.id = {1}, .secrets = {1}};
	struct keys new = {.id = {2}, .secrets = {2}, .also = &old};
	struct stored_place at = place("demo", "TOKEN");
	uint8_t s[2 + GCM_NONCE_LEN + 6 + GCM_TAG_LEN] = {1, 1};
	struct buf out;

	memcpy(s + 2, nonce, sizeof(nonce));
	assert_int_equal(gcm_seal(old.secrets, nonce, aad, sizeof(aad) - 1,
			     "CANARY", 6, s + 2 + sizeof(nonce), NULL),
	    0);
	buf_init(&out, 64);
	assert_int_equal(stored_open(&new, &at, s, sizeof(s), &out, NULL), 0);
	assert_int_equal(out.len, 6);
	assert_memory_equal(out.p, "CANARY", 6);
	assert_int_equal(stored_open(&old, &at, s, sizeof(s), &out, NULL), 0);
	new.also = NULL;
	assert_int_equal(stored_open(&new, &at, s, sizeof(s), &out, NULL), -1);
	buf_free(&out);
}

static void
anchors(void **state)
{
	struct keys old = {.id = {1}, .audit = {1}};
	struct keys new = {.id = {2}, .audit = {2}, .also = &old};
	struct ipc_hash head = {{7}}, sig;

	assert_int_equal(anchors_sign(&old, 5, &head, &sig), 0);
	assert_ptr_equal(anchors_check(&new, 5, &head, &sig), &old);
	assert_null(anchors_check(&new, 6, &head, &sig));
	assert_int_equal(anchors_sign(&new, 5, &head, &sig), 0);
	assert_ptr_equal(anchors_check(&new, 5, &head, &sig), &new);
	assert_null(anchors_check(&old, 5, &head, &sig));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(taken),
	    cmocka_unit_test(refused),
	    cmocka_unit_test(credential),
	    cmocka_unit_test(credential_forms),
	    cmocka_unit_test(memory),
	    cmocka_unit_test(next),
	    cmocka_unit_test(stored),
	    cmocka_unit_test(stored_first_form),
	    cmocka_unit_test(two_macs),
	    cmocka_unit_test(anchors),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
