/*
 * http1.c against tests/golden/http1: each file is one request whose name
 * begins with the status it must get (200: accepted). Each is fed whole, byte
 * by byte, and in random cuts, and must end the same way every time.
 */
#include <dirent.h>

#include "http1.h"
#include "unit.h"

enum { HEAD_MAX = 32 * 1024, BODY_MAX = 4 * 1024 * 1024, CUTS = 50 };

static const char *golden; /* the directory */

struct outcome {
	int status; /* 200: HTTP1_DONE; 0: wants more */
	size_t used;
	unsigned heads; /* HTTP1_HEAD_DONE seen */
};

/* Feeds p in pieces: step > 0 of that size, 0 whole, -1 random. The pieces
 * are exact heap copies, so that a sanitizer sees any read past them. */
static struct outcome
run(struct http1 *h, const uint8_t *p, size_t n, int step)
{
	struct outcome o = {0, 0, 0};
	enum http1_event ev = HTTP1_MORE;
	uint8_t *piece;
	size_t k, at, used;

	while (o.used < n) {
		k = n - o.used;
		if (step > 0 && k > (size_t)step)
			k = (size_t)step;
		else if (step < 0)
			k = 1 + (size_t)rand() % (k < 40 ? k : 40);
		piece = malloc(k);
		assert_non_null(piece);
		memcpy(piece, p + o.used, k);
		for (at = 0;;) {
			ev = http1_feed(h, piece + at, k - at, &used);
			assert_true(used <= k - at);
			at += used;
			if (ev == HTTP1_HEAD_DONE)
				o.heads++;
			else
				break;
		}
		o.used += at;
		free(piece);
		if (ev != HTTP1_MORE)
			break;
		assert_int_equal(at, k); /* MORE means: all was taken */
	}
	if (ev == HTTP1_DONE)
		o.status = 200;
	else if (ev == HTTP1_ERROR)
		o.status = http1_error(h, NULL);
	return o;
}

static uint8_t *
slurp(const char *name, size_t *n)
{
	char path[4096];
	uint8_t *p;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", golden, name);
	f = fopen(path, "rb");
	assert_non_null(f);
	p = malloc(64 * 1024);
	assert_non_null(p);
	*n = fread(p, 1, 64 * 1024, f);
	fclose(f);
	return p;
}

static void
one_file(const char *name)
{
	struct http1 *h;
	struct outcome whole, o;
	const char *why;
	uint8_t *p;
	size_t n;
	int i, want = (int)strtol(name, NULL, 10);

	p = slurp(name, &n);
	h = http1_new(HEAD_MAX, BODY_MAX);
	assert_non_null(h);
	whole = run(h, p, n, 0);
	if (whole.status != want)
		fail_msg("%s: got %d", name, whole.status);
	if (want == 200) {
		assert_int_equal(whole.used, n);
		assert_int_equal(whole.heads, 1);
		assert_non_null(http1_request(h)->path);
	} else {
		http1_error(h, &why);
		assert_true(why[0] != '\0');
	}
	for (i = -CUTS; i <= 3; i++) {
		if (i == 0)
			continue;
		http1_reset(h);
		o = run(h, p, n, i < 0 ? -1 : i);
		if (o.status != whole.status || o.used != whole.used ||
		    o.heads != whole.heads)
			fail_msg("%s: cut %d ends otherwise", name, i);
	}
	http1_free(h);
	free(p);
}

static void
test_golden(void **state)
{
	struct dirent *e;
	unsigned refused = 0, accepted = 0;
	DIR *d;

	(void)state;
	d = opendir(golden);
	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		one_file(e->d_name);
		if (strncmp(e->d_name, "200", 3) == 0)
			accepted++;
		else
			refused++;
	}
	closedir(d);
	/* The battery of 28 and as many again; controls that must pass. */
	assert_true(refused >= 56);
	assert_true(accepted >= 20);
}

static struct http1 *
parse(const char *text)
{
	struct http1 *h = http1_new(HEAD_MAX, BODY_MAX);

	assert_non_null(h);
	assert_int_equal(
	    run(h, (const uint8_t *)text, strlen(text), 0).status, 200);
	return h;
}

static void
test_fields(void **state)
{
	struct http1 *h;
	const struct http1_request *r;
	unsigned n;

	(void)state;
	h = parse("POST /mcp?x=1?2 HTTP/1.1\r\nHost: localhost:8002\r\n"
		  "ACCEPT:a\r\nAccept: \t b \t\r\nX-Empty:\r\n"
		  "Connection: foo ,\tClose\r\nExpect: 100-continue\r\n"
		  "Transfer-Encoding: chunked\r\n\r\n"
		  "3\r\nabc\r\n00000A\r\n0123456789\r\n0\r\n\r\n");
	r = http1_request(h);
	assert_int_equal(r->method, HTTP1_POST);
	assert_string_equal(r->path, "/mcp");
	assert_string_equal(r->query, "x=1?2");
	assert_int_equal(r->nfields, 7);
	assert_string_equal(http1_field(r, "host", &n), "localhost:8002");
	assert_int_equal(n, 1);
	assert_string_equal(http1_field(r, "accept", &n), "a");
	assert_int_equal(n, 2);
	assert_string_equal(r->fields[2].value, "b");
	assert_string_equal(http1_field(r, "x-empty", NULL), "");
	assert_null(http1_field(r, "x-none", &n));
	assert_int_equal(n, 0);
	assert_false(r->keep_alive);
	assert_true(r->expect_continue);
	assert_int_equal(r->body_len, 13);
	assert_memory_equal(r->body, "abc0123456789", 13);
	http1_free(h);

	h = parse("GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n");
	r = http1_request(h);
	assert_true(r->keep_alive);
	assert_false(r->expect_continue); /* no body to wait for */
	assert_null(r->query);
	assert_int_equal(r->body_len, 0);
	assert_non_null(r->body);
	http1_free(h);
}

/* Two requests in one buffer: the second is untouched until the reset. */
static void
test_pipelined(void **state)
{
	static const char text[] = "POST /a HTTP/1.1\r\nHost: a\r\n"
				   "Content-Length: 2\r\n\r\nhi"
				   "GET /b HTTP/1.1\r\nHost: b\r\n\r\n";
	struct http1 *h = http1_new(HEAD_MAX, BODY_MAX);
	struct outcome o;
	size_t n = sizeof(text) - 1, used;

	(void)state;
	o = run(h, (const uint8_t *)text, n, 0);
	assert_int_equal(o.status, 200);
	assert_string_equal(http1_request(h)->path, "/a");
	/* Done is done: nothing more is taken. */
	assert_int_equal(
	    http1_feed(h, (const uint8_t *)text + o.used, 1, &used),
	    HTTP1_DONE);
	assert_int_equal(used, 0);
	http1_reset(h);
	o = run(h, (const uint8_t *)text + o.used, n - o.used, 1);
	assert_int_equal(o.status, 200);
	assert_string_equal(http1_request(h)->path, "/b");
	http1_free(h);
}

/* The limits, exactly: at the limit passes, one beyond does not. */
static void
test_limits(void **state)
{
	static const char head[] = "POST / HTTP/1.1\r\nHost: a\r\n"
				   "Content-Length: %d\r\n\r\n";
	char text[128];
	struct http1 *h;
	int n;

	(void)state;
	for (n = 9; n <= 11; n++) {
		h = http1_new(64, 10);
		snprintf(text, sizeof(text), head, n);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
		    "%.*s", n, "abcdefghijkl");
		assert_int_equal(
		    run(h, (uint8_t *)text, strlen(text), 0).status,
		    n <= 10 ? 200 : 413);
		http1_free(h);
	}
	for (n = 9; n <= 11; n++) {
		h = http1_new(128, 10);
		snprintf(text, sizeof(text),
		    "POST / HTTP/1.1\r\nHost: a\r\n"
		    "Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"
		    "%d\r\n%.*s\r\n0\r\n\r\n",
		    n - 5, n - 5, "abcdefghijkl");
		assert_int_equal(
		    run(h, (uint8_t *)text, strlen(text), 0).status,
		    n <= 10 ? 200 : 413);
		http1_free(h);
	}
	/* head_max counts every byte of the head */
	snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	for (n = -1; n <= 1; n++) {
		h = http1_new(strlen(text) + (size_t)n, 10);
		assert_int_equal(
		    run(h, (uint8_t *)text, strlen(text), 0).status,
		    n < 0 ? 431 : 200);
		http1_free(h);
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_golden),
	    cmocka_unit_test(test_fields),
	    cmocka_unit_test(test_pipelined),
	    cmocka_unit_test(test_limits),
	};

	if (argc != 2)
		return 2;
	golden = argv[1];
	srand(20261121); /* the same cuts every time */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
