/* version.h against the golden vectors (argv[1]: their directory). */
#include "unit.h"

#include <dirent.h>
#include <openssl/evp.h>

#include "ids.h"
#include "version.h"

enum { VECTOR_MAX = 16384 };

static const char *dir;

struct vector {
	struct buf built, preimage;
	char sha256[HEX32_LEN + 1], error[256], json[VECTOR_MAX];
};

/* HEX or "-" into b. */
static void
put_hex(struct buf *b, const char *hex)
{
	uint8_t raw[VECTOR_MAX];
	size_t n = strlen(hex);

	if (strcmp(hex, "-") == 0)
		return;
	assert_true(n / 2 < sizeof(raw));
	assert_int_equal(hex_decode(hex, n, raw), 0);
	buf_put(b, raw, n / 2);
}

static unsigned
tag_of(const char *name)
{
	const char *n;

	for (unsigned t = 1; t <= VERSION_TAG_MAX; t++)
		if ((n = version_field(t, NULL)) != NULL &&
		    strcmp(n, name) == 0)
			return t;
	fail_msg("no field %s", name);
	return 0;
}

static void
load(const char *name, struct vector *v)
{
	char path[1024], line[VECTOR_MAX], field[64];
	struct buf value;
	FILE *f;

	memset(v, 0, sizeof(*v));
	buf_init(&v->built, VECTOR_MAX);
	buf_init(&v->preimage, VECTOR_MAX);
	version_begin(&v->built);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_non_null(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, "field ", 6) == 0) {
			size_t n = strcspn(line + 6, " ");

			assert_true(n < sizeof(field));
			memcpy(field, line + 6, n);
			field[n] = '\0';
			buf_init(&value, VECTOR_MAX);
			put_hex(&value, line + 6 + n + 1);
			tlv_put(&v->built, (uint8_t)tag_of(field), value.p,
			    value.len);
			buf_free(&value);
		} else if (strncmp(line, "preimage ", 9) == 0)
			put_hex(&v->preimage, line + 9);
		else if (strncmp(line, "sha256 ", 7) == 0)
			snprintf(
			    v->sha256, sizeof(v->sha256), "%.64s", line + 7);
		else if (strncmp(line, "error ", 6) == 0)
			snprintf(
			    v->error, sizeof(v->error), "%.255s", line + 6);
		else if (strncmp(line, "json ", 5) == 0)
			memcpy(v->json, line + 5, strlen(line + 5) + 1);
	}
	fclose(f);
	assert_false(v->built.failed || v->preimage.failed);
}

static void
good_vector(const char *name, struct vector *v)
{
	const uint8_t *fields;
	unsigned char md[32];
	char hex[HEX32_LEN + 1];
	struct buf json;
	struct err e;
	size_t n;

	if (v->built.len != v->preimage.len ||
	    memcmp(v->built.p, v->preimage.p, v->built.len) != 0)
		fail_msg("%s: another pre-image", name);
	if (version_check(v->preimage.p, v->preimage.len, &fields, &n, &e) < 0)
		fail_msg("%s: %s", name, e.text);
	assert_ptr_equal(fields, v->preimage.p + 17);
	assert_int_equal(n, v->preimage.len - 17);
	assert_int_equal(EVP_Digest(v->preimage.p, v->preimage.len, md, NULL,
			     EVP_sha256(), NULL),
	    1);
	hex_encode(md, sizeof(md), hex);
	assert_string_equal(hex, v->sha256);
	buf_init(&json, VECTOR_MAX);
	if (version_json(v->preimage.p, v->preimage.len, &json, &e) < 0)
		fail_msg("%s: %s", name, e.text);
	buf_putc(&json, '\0');
	assert_string_equal((char *)json.p, v->json);
	buf_free(&json);
}

static void
vectors(void **state)
{
	static struct vector v;
	struct dirent *d;
	const uint8_t *fields;
	unsigned good = 0, bad = 0;
	struct err e;
	size_t n;
	DIR *h;

	(void)state;
	assert_non_null(h = opendir(dir));
	while ((d = readdir(h)) != NULL) {
		if (strstr(d->d_name, ".txt") == NULL)
			continue;
		load(d->d_name, &v);
		if (strncmp(d->d_name, "bad-", 4) == 0) {
			if (version_check(v.preimage.p, v.preimage.len, &fields,
				&n, &e) == 0)
				fail_msg("%s: accepted", d->d_name);
			assert_string_equal(e.text, v.error);
			bad++;
		} else {
			good_vector(d->d_name, &v);
			good++;
		}
		buf_free(&v.built);
		buf_free(&v.preimage);
	}
	closedir(h);
	assert_in_range(good, 5, 1000);
	assert_in_range(bad, 20, 1000);
}

/*
 * A hostile admind's pre-image can't forge a member of the shown object: what
 * isn't one JSON value isn't embedded. The canary must not be shown as code.
 */
static void
forged(void **state)
{
	static const char *const values[] = {"{},\"code\":\"canary\"",
	    "1}{\"code\":\"canary\"", "\"", "{\"a\":\"b}", "", "[1,2", "nul"};
	struct buf b, json;
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		buf_init(&b, 1024);
		buf_init(&json, 4096);
		version_begin(&b);
		tlv_put_u64(&b, VERSION_FORMAT, 1);
		tlv_puts(&b, VERSION_INPUT_SCHEMA, values[i]);
		tlv_puts(&b, VERSION_CODE, "real");
		assert_int_equal(version_json(b.p, b.len, &json, &e), -1);
		assert_string_equal(
		    e.text, "version: input_schema is not JSON");
		assert_int_equal(json.len, 0);
		buf_free(&b);
		buf_free(&json);
	}
}

/* Every cut and every flipped bit of a vector is refused or is another
 * content; none crashes. */
static void
mutations(void **state)
{
	static struct vector v;
	const uint8_t *fields;
	uint8_t *copy;
	struct err e;
	size_t n;

	(void)state;
	load("every-field.txt", &v);
	assert_in_range(v.preimage.len, 100, VECTOR_MAX);
	for (size_t i = 0; i < v.preimage.len; i++) {
		assert_non_null(copy = malloc(i > 0 ? i : 1));
		memcpy(copy, v.preimage.p, i);
		/* A cut between fields is well-formed; within one it isn't. */
		if (version_check(copy, i, &fields, &n, &e) == 0)
			assert_true(v.preimage.p[i] <= VERSION_TAG_MAX);
		free(copy);
	}
	n = v.preimage.len > 0 ? v.preimage.len : 1;
	assert_non_null(copy = malloc(n));
	for (size_t i = 0; i < v.preimage.len * 8; i++) {
		memcpy(copy, v.preimage.p, v.preimage.len);
		copy[i / 8] ^= (uint8_t)(1u << i % 8);
		(void)version_check(copy, v.preimage.len, &fields, &n, &e);
	}
	free(copy);
	buf_free(&v.built);
	buf_free(&v.preimage);
}

/* Lock lines become digests: sorted, each once, or an error. */
static void
modules(void **state)
{
	static const char *const bad[] = {"", "six 1.0", "six 1.0 zz",
	    /* upper case, one digit short, no blank before it */
	    "a 1 "
	    "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
	    "a 1 "
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    "a "
	    "1-"
	    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    NULL};
	uint8_t digest[MODULES_PER_CALL_MAX][32];
	char line[128];
	struct buf list;
	size_t count = 77;

	(void)state;
	buf_init(&list, 1 << 16);
	assert_int_equal(version_modules(NULL, 0, digest, &count, NULL), 0);
	assert_int_equal(count, 0);
	/* Falling digests, each twice under two names, with a field between:
	 * the most that there may be. */
	for (int i = MODULES_PER_CALL_MAX - 1; i >= 0; i--)
		for (int twice = 0; twice < 2; twice++) {
			snprintf(line, sizeof(line), "m%d%d 1 %064x", i, twice,
			    (unsigned)i);
			tlv_puts(&list, VERSION_MODULE, line);
			tlv_puts(&list, VERSION_SECRET, line);
		}
	assert_int_equal(
	    version_modules(list.p, list.len, digest, &count, NULL), 0);
	assert_int_equal(count, MODULES_PER_CALL_MAX);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(digest[i][31], i);
		assert_int_equal(digest[i][0], 0);
	}
	/* One more is too many, wherever it would stand. */
	snprintf(line, sizeof(line), "over 1 %064x", 1000U);
	tlv_puts(&list, VERSION_MODULE, line);
	assert_int_equal(
	    version_modules(list.p, list.len, digest, &count, NULL), -1);
	for (int i = 0; bad[i] != NULL; i++) {
		buf_clear(&list);
		tlv_puts(&list, VERSION_MODULE, bad[i]);
		assert_int_equal(
		    version_modules(list.p, list.len, digest, &count, NULL),
		    -1);
	}
	buf_free(&list);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(modules),
	    cmocka_unit_test(vectors),
	    cmocka_unit_test(forged),
	    cmocka_unit_test(mutations),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 1;
	}
	dir = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
