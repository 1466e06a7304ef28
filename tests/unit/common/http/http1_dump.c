/*
 * What the HTTP parser makes of bytes, for a comparison with another one
 * (tests/clients/test_http_parser.py). Input: cases, each a u32be length and
 * its bytes. Output: a line of JSON for each: the requests that were accepted,
 * and how it ended: "more" (the bytes ended first), "close" (the last request
 * ends the connection) or the status and rule of a refusal.
 */
#include <stdio.h>
#include <stdlib.h>

#include "http1.h"
#include "ids.h"
#include "jsonw.h"

enum { CASE_MAX = 1024 * 1024, HEAD_MAX = 32 * 1024, BODY_MAX = 64 * 1024 };

static void
request(struct jsonw *w, const struct http1_request *r)
{
	static char hex[2 * BODY_MAX + 1];

	jsonw_obj(w);
	jsonw_kv_str(w, "method", http1_method_name(r->method));
	jsonw_kv_str(w, "path", r->path);
	if (r->query != NULL)
		jsonw_kv_str(w, "query", r->query);
	jsonw_name(w, "fields");
	jsonw_arr(w);
	for (size_t i = 0; i < r->nfields; i++) {
		jsonw_arr(w);
		jsonw_str(w, r->fields[i].name);
		jsonw_str(w, r->fields[i].value);
		jsonw_arr_end(w);
	}
	jsonw_arr_end(w);
	hex_encode(r->body, r->body_len, hex);
	jsonw_kv_strn(w, "body", hex, 2 * r->body_len);
	jsonw_obj_end(w);
}

static void
one(const uint8_t *p, size_t n)
{
	struct http1 *h = http1_new(HEAD_MAX, BODY_MAX);
	enum http1_event ev = HTTP1_MORE;
	const char *end = "more", *why = "";
	bool open = true;
	struct jsonw w;
	struct buf b;
	size_t used;
	int status = 0;

	if (h == NULL)
		exit(1);
	buf_init(&b, 16 * CASE_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "requests");
	jsonw_arr(&w);
	while (open && (n > 0 || ev == HTTP1_HEAD_DONE)) {
		ev = http1_feed(h, p, n, &used);
		p += used;
		n -= used;
		if (ev == HTTP1_DONE) {
			request(&w, http1_request(h));
			open = http1_request(h)->keep_alive;
			end = open ? "more" : "close";
			http1_reset(h);
		} else if (ev == HTTP1_ERROR) {
			status = http1_error(h, &why);
			end = "refused";
			open = false;
		} else if (ev == HTTP1_MORE && used == 0) {
			break;
		}
	}
	jsonw_arr_end(&w);
	jsonw_kv_str(&w, "end", end);
	jsonw_kv_int(&w, "status", status);
	jsonw_kv_str(&w, "why", why);
	jsonw_obj_end(&w);
	if (b.failed)
		exit(1);
	fwrite(b.p, 1, b.len, stdout);
	putchar('\n');
	buf_free(&b);
	http1_free(h);
}

int
main(void)
{
	uint8_t head[4], *p = malloc(CASE_MAX);
	size_t n;

	if (p == NULL)
		return 1;
	while (fread(head, 1, 4, stdin) == 4) {
		n = get_be32(head);
		if (n > CASE_MAX || fread(p, 1, n, stdin) != n)
			return 1;
		one(p, n);
	}
	free(p);
	return 0;
}
