/* Master key files that are taken and refused, and stored values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keys.h"
#include "stored.h"

static char dir[] = "/tmp/mcpkeysXXXXXX", path[64], other[64];

static void
put(const char *p, size_t n, mode_t mode)
{
	uint8_t bytes[64];
	int fd;

	(void)unlink(p);
	memset(bytes, 0x5a, sizeof(bytes));
	fd = open(p, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd != -1);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
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

static const struct keys *
load(const char *p, struct err *err)
{
	return keys_load(p, NULL, err);
}

static void
taken(void **state)
{
	uint8_t master[KEY_LEN], zero[KEY_LEN] = {0};
	const struct keys *k;
	struct keys want;
	struct err err;
	bool locked;

	put(path, 32, 0400);
	k = keys_load(path, &locked, &err);
	assert_non_null(k);
	memset(master, 0x5a, sizeof(master));
	keys_derive(master, &want);
	assert_memory_equal(k, &want, sizeof(want));
	assert_memory_equal(master, zero, sizeof(zero));
	/* Behind the keys lay the master key: it is gone. */
	assert_memory_equal(
	    (const uint8_t *)k + sizeof(*k), zero, sizeof(zero));
	/* Five purposes, five keys, none of them the master. */
	for (size_t i = 0; i < sizeof(*k); i += KEY_LEN) {
		memset(master, 0x5a, sizeof(master));
		assert_memory_not_equal(
		    (const uint8_t *)k + i, master, KEY_LEN);
		for (size_t j = 0; j < i; j += KEY_LEN)
			assert_memory_not_equal((const uint8_t *)k + i,
			    (const uint8_t *)k + j, KEY_LEN);
	}
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
	const struct keys *a, *b;
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
}

static const uint8_t key[KEY_LEN] = {3};

static struct stored_place
place(const char *row, const char *column)
{
	struct stored_place at = {
	    "server_secrets", ipc_str(row), ipc_str(column)};

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
	uint8_t key2[KEY_LEN] = {4};

	buf_init(&s, 1024);
	buf_init(&again, 1024);
	buf_init(&out, 1024);
	assert_int_equal(stored_seal(key, &at, canary, 6, &s, NULL), 0);
	assert_int_equal(stored_seal(key, &at, canary, 6, &again, NULL), 0);
	assert_int_equal(s.len, STORED_OVERHEAD + 6);
	assert_null(memmem(s.p, s.len, canary, 6));
	assert_memory_not_equal(s.p + 2, again.p + 2, GCM_NONCE_LEN);
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
	bad.table = "administrators";
	assert_int_equal(stored_open(key, &bad, s.p, s.len, &out, NULL), -1);
	assert_int_equal(stored_open(key2, &at, s.p, s.len, &out, NULL), -1);
	for (size_t n = 0; n < s.len; n++)
		assert_int_equal(stored_open(key, &at, s.p, n, &out, NULL), -1);
	for (size_t bit = 0; bit < s.len * 8; bit++) {
		s.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
		assert_int_equal(
		    stored_open(key, &at, s.p, s.len, &out, NULL), -1);
		s.p[bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
	assert_int_equal(out.len, 0);
	buf_free(&s);
	buf_free(&again);
	buf_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(taken),
	    cmocka_unit_test(refused),
	    cmocka_unit_test(credential),
	    cmocka_unit_test(stored),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
