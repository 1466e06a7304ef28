/* callreq.h against the golden vectors (argv[1]: their directory). */
#include "unit.h"

#include <dirent.h>

#include "callreq.h"
#include "crypto.h"
#include "ids.h"

enum { VECTOR_MAX = 16384 };

static const char *dir;

struct vector {
	struct buf preimage;
	char sha256[HEX32_LEN + 1], error[256], json[VECTOR_MAX];
};

static void
load(const char *name, struct vector *v)
{
	char path[1024], line[VECTOR_MAX];
	uint8_t raw[VECTOR_MAX];
	FILE *f;

	memset(v, 0, sizeof(*v));
	buf_init(&v->preimage, VECTOR_MAX);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_non_null(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "preimage ", 9) == 0 &&
		    strcmp(line + 9, "-") != 0) {
			size_t n = strlen(line + 9);

			assert_int_equal(hex_decode(line + 9, n, raw), 0);
			buf_put(&v->preimage, raw, n / 2);
		} else if (strncmp(line, "sha256 ", 7) == 0)
			snprintf(
			    v->sha256, sizeof(v->sha256), "%.64s", line + 7);
		else if (strncmp(line, "error ", 6) == 0)
			snprintf(
			    v->error, sizeof(v->error), "%.255s", line + 6);
		else if (strncmp(line, "json ", 5) == 0)
			memcpy(v->json, line + 5, strlen(line + 5) + 1);
	}
	fclose(f);
	assert_false(v->preimage.failed);
}

static void
good_vector(const char *name, struct vector *v)
{
	char hex[HEX32_LEN + 1];
	struct buf made, json;
	struct ipc_hash hash;
	struct callreq r;
	struct err e;

	if (callreq_read(v->preimage.p, v->preimage.len, &r, &e) == -1)
		fail_msg("%s: %s", name, e.text);
	buf_init(&made, CALLREQ_MAX);
	assert_int_equal(callreq_write(&r, &made, &e), 0);
	assert_int_equal(made.len, v->preimage.len);
	assert_memory_equal(made.p, v->preimage.p, made.len);
	sha256(made.p, made.len, &hash);
	hex_encode(hash.b, sizeof(hash.b), hex);
	assert_string_equal(hex, v->sha256);
	buf_init(&json, VECTOR_MAX);
	assert_int_equal(callreq_json(made.p, made.len, &json, &e), 0);
	buf_putc(&json, '\0');
	assert_string_equal((char *)json.p, v->json);
	buf_free(&made);
	buf_free(&json);
}

static void
vectors(void **state)
{
	static struct vector v;
	unsigned good = 0, bad = 0;
	struct dirent *d;
	struct callreq r;
	struct err e;
	DIR *all;

	assert_non_null(all = opendir(dir));
	while ((d = readdir(all)) != NULL) {
		if (strstr(d->d_name, ".txt") == NULL)
			continue;
		load(d->d_name, &v);
		if (strncmp(d->d_name, "bad-", 4) == 0) {
			if (callreq_read(
				v.preimage.p, v.preimage.len, &r, &e) != -1)
				fail_msg("%s: was taken", d->d_name);
			assert_int_equal(e.failure, FAILURE_INVALID_PARAMS);
			assert_string_equal(e.text, v.error);
			bad++;
		} else {
			good_vector(d->d_name, &v);
			good++;
		}
		buf_free(&v.preimage);
	}
	closedir(all);
	assert_true(good >= 3 && bad >= 10);
}

static struct callreq
call(const char *arguments, size_t n)
{
	struct callreq r = {.tool = ipc_str("demo__wipe"),
	    .principal = ipc_str("local"),
	    .arguments = ipc_bytes(arguments, n),
	    .listener = LISTENER_TUNNEL,
	    .expires_ms = 1};

	return r;
}

/* What is no JSON can't be shown, so nobody can agree to it; and it can't forge
 * a member of what is shown. */
static void
no_json(void **state)
{
	static const char *const bad[] = {
	    "{", "{} {}", "{},\"tool\":\"x\"", "{\"a\":1,}", "nul", "\x7f"};
	struct buf pre, json;
	struct err e;

	buf_init(&pre, CALLREQ_MAX);
	buf_init(&json, VECTOR_MAX);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct callreq r = call(bad[i], strlen(bad[i]));

		assert_int_equal(callreq_write(&r, &pre, &e), 0);
		assert_int_equal(callreq_json(pre.p, pre.len, &json, &e), -1);
		assert_int_equal(json.len, 0);
	}
	buf_free(&pre);
	buf_free(&json);
}

static void
bounds(void **state)
{
	static char big[CALLREQ_ARGUMENTS_MAX + 1];
	struct callreq r;
	struct buf pre;
	struct err e;

	memset(big, ' ', sizeof(big));
	buf_init(&pre, CALLREQ_MAX);
	r = call(big, CALLREQ_ARGUMENTS_MAX);
	assert_int_equal(callreq_write(&r, &pre, &e), 0);
	r = call(big, sizeof(big));
	assert_int_equal(callreq_write(&r, &pre, &e), -1);
	memset(big, 'p', sizeof(big));
	r = call("{}", 2);
	r.principal = ipc_bytes(big, CALLREQ_PRINCIPAL_MAX);
	r.tool = ipc_bytes(big, CALLREQ_NAME_MAX);
	assert_int_equal(callreq_write(&r, &pre, &e), 0);
	r.principal.n++;
	assert_int_equal(callreq_write(&r, &pre, &e), -1);
	r.principal.n--;
	r.tool.n++;
	assert_int_equal(callreq_write(&r, &pre, &e), -1);
	buf_free(&pre);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(vectors),
	    cmocka_unit_test(no_json),
	    cmocka_unit_test(bounds),
	};

	if (argc != 2)
		return 2;
	dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
