/* The panel's files: the two lists of a client, names, and directories that are
 * loaded or refused. */
#include "unit.h"

#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>

#include "bundle.h"
#include "negotiate.h"

static struct http1_request
request(const char *name, const char *value, const char *second)
{
	struct http1_request r = {.method = HTTP1_GET, .path = "/"};

	if (value != NULL)
		r.fields[r.nfields++] = (struct http1_field){name, value};
	if (second != NULL)
		r.fields[r.nfields++] = (struct http1_field){name, second};
	return r;
}

static void
codings(void **state)
{
	static const char *const yes[] = {"gzip", "GZIP", "x-gzip", "*",
	    "gzip, deflate, br, zstd", "br;q=1.0, gzip;q=0.8, *;q=0.1",
	    "gzip;q=0.001", "gzip ; q=1.000", "gzip;\tQ=1.", "deflate,gzip",
	    ",, gzip,", "identity;q=0.5, gzip", "identity;q=0, *",
	    "identity, gzip", "*;q=0, gzip", "gzip;q=0.5, identity;q=0.500"};
	static const char *const no[] = {"", "identity", "deflate", "br",
	    "gzip;q=0", "gzip;q=0.000", "gzip;q=0, *", "*;q=0",
	    "gzip;q=0.5, identity", "gzip, gzip;q=0", "x-gzip;q=0, gzip",
	    "gzipped", "gzi", "x gzip", "gzip;", "gzip;q",
	    "gzip;q=", "gzip;q=2", "gzip;q=1.001", "gzip;q=0.5.5",
	    "gzip;q=0.0001", "gzip;q=-1", "gzip;q=.5", "gzip;level=9",
	    "gzip;q=1;q=0", ";q=1, gzip", "gzip; q =1", "\"gzip\""};
	struct http1_request r;

	(void)state;
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		r = request("accept-encoding", yes[i], NULL);
		if (!negotiate_gzip(&r))
			fail_msg("does not take gzip: %s", yes[i]);
	}
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		r = request("accept-encoding", no[i], NULL);
		if (negotiate_gzip(&r))
			fail_msg("takes gzip: %s", no[i]);
	}
	r = request("accept-encoding", NULL, NULL);
	assert_false(negotiate_gzip(&r));
	r = request("te", "gzip", NULL);
	assert_false(negotiate_gzip(&r));
	/* a list may be in several fields (RFC 9110, 5.3) */
	r = request("accept-encoding", "br", "gzip");
	assert_true(negotiate_gzip(&r));
	r = request("accept-encoding", "gzip", "gzip;q=0");
	assert_false(negotiate_gzip(&r));
	r = request("accept-encoding", "gzip", ";");
	assert_false(negotiate_gzip(&r));
}

static void
tags(void **state)
{
	static const char *const known[] = {"\"a-1\"", "W/\"a-1\"", "*",
	    "\"b\", \"a-1\"", "\"b\",W/\"a-1\"", ",, \"a-1\"", "\"a-1\" ,",
	    "\"\", \"a-1\"", "\"x, y\", \"a-1\"", "\"a-1\", junk"};
	static const char *const unknown[] = {"", "a-1", "\"a-1", "a-1\"",
	    "\"a\"", "\"a-12\"", "\"A-1\"", "w/\"a-1\"", "W\"a-1\"",
	    "W/ \"a-1\"", "**", "*, \"a-1\"", "\"b\", *", "\"b\" \"a-1\"",
	    "junk, \"a-1\"", "\"\"", "W/", "W/W/\"a-1\"", "'a-1'",
	    "\"x, \"a-1\"\""};
	struct http1_request r;

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		r = request("if-none-match", known[i], NULL);
		if (!negotiate_known(&r, "\"a-1\""))
			fail_msg("not found: %s", known[i]);
	}
	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		r = request("if-none-match", unknown[i], NULL);
		if (negotiate_known(&r, "\"a-1\""))
			fail_msg("found: %s", unknown[i]);
	}
	r = request("if-none-match", NULL, NULL);
	assert_false(negotiate_known(&r, "\"a-1\""));
	r = request("if-match", "\"a-1\"", NULL);
	assert_false(negotiate_known(&r, "\"a-1\""));
	r = request("if-none-match", "\"b\"", "\"a-1\"");
	assert_true(negotiate_known(&r, "\"a-1\""));
}

static void
names(void **state)
{
	static const struct {
		const char *name, *type;
	} good[] = {{"index.html", "text/html; charset=utf-8"},
	    {"main-3K74SSMO.js", "text/javascript; charset=utf-8"},
	    {"main-0123abcdef.css", "text/css; charset=utf-8"},
	    {"uPlot.esm-ULJJVTMH.js", "text/javascript; charset=utf-8"},
	    {"a_b-c-3K74SSMO.svg", "image/svg+xml; charset=utf-8"}};
	static const char *const bad[] = {"", ".", "..", ".js", "index.htm",
	    "Index.html", "index.html.gz", "main.js", "main-3K74SSM.js",
	    "-3K74SSMO.js", "3K74SSMO.js", "main3K74SSMO.js",
	    "main-3K74SSMO.JS", "main-3K74SSMO.mjs", "main-3K74SSMO.js.map",
	    "main-3K74SSMO.html", "main-3K74SSMO", "main-3K74SSMO.",
	    "main-3K74SSMO.js ", "ma in-3K74SSMO.js", "../x-3K74SSMO.js",
	    "a/b-3K74SSMO.js", "m\xc3\xa4in-3K74SSMO.js", ".x-3K74SSMO.js",
	    "main-3K74SSMO.js~", "main-3K74-SMO.js", "..-3K74SSMO.js",
	    "main-3K74SSMO.js.gz", "-a-3K74SSMO.js"};
	char longest[BUNDLE_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_string_equal(bundle_type(good[i].name), good[i].type);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (bundle_type(bad[i]) != NULL)
			fail_msg("accepted: %s", bad[i]);
	memset(longest, 'a', sizeof(longest));
	longest[1] = '-';
	memcpy(longest + BUNDLE_NAME_MAX - 3, ".js", 4);
	assert_non_null(bundle_type(longest));
	memcpy(longest + BUNDLE_NAME_MAX - 3, "a.js", 5);
	assert_null(bundle_type(longest));
}

static char dir[64];

static void
put(const char *name, const void *p, size_t n)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	close(fd);
}

static void
drop(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(unlink(path), 0);
}

/* Loads the directory, which must be refused in words that contain both. */
static void
refused(const char *name, const char *why)
{
	struct bundle *b = NULL;
	struct err e = {0};

	assert_int_equal(bundle_load(dir, &b, &e), -1);
	assert_null(b);
	if (strstr(e.text, name) == NULL || strstr(e.text, why) == NULL)
		fail_msg("%s: %s, in: %s", name, why, e.text);
}

/* Root may write everything, so the check of this process's own user is for a
 * test that runs as another (tests/integration/admin/test_panel_files.py). */
static void
directories(void **state)
{
	static const char gz[] = "\x1f\x8b\x08 and so on";
	static uint8_t large[BUNDLE_FILE_MAX + 1];
	const struct bundle_file *f;
	struct bundle *b = NULL;
	char path[256], name[64];
	struct err e = {0};

	(void)state;
	if (geteuid() != 0)
		skip();
	snprintf(dir, sizeof(dir), "%s/mcpbox-panel.XXXXXX",
	    access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(path, sizeof(path), "%s/absent", dir);
	assert_int_equal(bundle_load(path, &b, &e), 1);
	refused(dir, "no index.html");
	put("index.html", "page", 4);
	put("main-12345678.js", "code", 4);
	put("main-12345678.js.gz", gz, sizeof(gz));
	assert_int_equal(bundle_load(dir, &b, &e), 0);
	assert_int_equal(b->n, 2);
	f = bundle_find(b, "index.html");
	assert_non_null(f);
	assert_memory_equal(f->plain.p, "page", 4);
	assert_int_equal(f->plain.n, 4);
	assert_null(f->gzip.p);
	f = bundle_find(b, "main-12345678.js");
	assert_non_null(f);
	assert_int_equal(f->gzip.n, sizeof(gz));
	assert_int_equal(strlen(f->plain.tag), HEX32_LEN + 2);
	/* two forms of the same file are two sets of bytes */
	assert_string_not_equal(f->plain.tag, f->gzip.tag);
	assert_null(bundle_find(b, "main-12345678.js.gz"));
	assert_null(bundle_find(b, ""));
	assert_null(bundle_find(NULL, "index.html"));
	bundle_free(b);
	b = NULL;

	put("main.js", "x", 1);
	refused("main.js", "not called so");
	drop("main.js");
	put("other-12345678.css.gz", gz, sizeof(gz));
	refused("other-12345678.css", "is not");
	put("other-12345678.css", "", 0);
	assert_int_equal(bundle_load(dir, &b, &e), 0);
	bundle_free(b);
	b = NULL;
	put("other-12345678.css.gz", "text", 4);
	refused("other-12345678.css.gz", "not gzip");
	drop("other-12345678.css.gz");
	put("other-12345678.css", large, sizeof(large));
	refused("other-12345678.css", "too large");
	put("other-12345678.css", large, sizeof(large) - 1);
	assert_int_equal(bundle_load(dir, &b, &e), 0);
	bundle_free(b);
	b = NULL;
	for (int i = 0; i < BUNDLE_BYTES_MAX / BUNDLE_FILE_MAX; i++) {
		snprintf(name, sizeof(name), "big-1234567%d.svg", i);
		put(name, large, sizeof(large) - 1);
	}
	refused("", "too large");
	for (int i = 0; i < BUNDLE_BYTES_MAX / BUNDLE_FILE_MAX; i++) {
		snprintf(name, sizeof(name), "big-1234567%d.svg", i);
		drop(name);
	}
	for (int i = 0; i < BUNDLE_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "n-1234567%d.js", i);
		put(name, "", 0);
	}
	refused("", "more than");
	for (int i = 0; i < BUNDLE_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "n-1234567%d.js", i);
		drop(name);
	}

	drop("other-12345678.css");
	snprintf(path, sizeof(path), "%s/other-12345678.css", dir);
	assert_int_equal(symlink("index.html", path), 0);
	refused("other-12345678.css", "a symbolic link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0755), 0);
	refused("other-12345678.css", "not a regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	refused("other-12345678.css", "not a regular file");
	assert_int_equal(unlink(path), 0);
	put("other-12345678.css", "", 0);
	assert_int_equal(chmod(path, 0646), 0);
	refused("other-12345678.css", "every user may write it");
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(chmod(dir, 0757), 0);
	refused(dir, "every user may write it");

	drop("other-12345678.css");
	drop("main-12345678.js");
	drop("main-12345678.js.gz");
	drop("index.html");
	assert_int_equal(rmdir(dir), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(codings),
	    cmocka_unit_test(tags),
	    cmocka_unit_test(names),
	    cmocka_unit_test(directories),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
