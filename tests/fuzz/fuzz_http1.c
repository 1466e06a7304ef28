/*
 * The HTTP parser. The first byte chooses how the rest is cut into pieces;
 * fed whole and fed in pieces must end the same way, and what was accepted
 * must keep the promises of http1.h.
 */
#include <stdlib.h>
#include <string.h>

#include "http1.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
must(bool ok)
{
	if (!ok)
		abort();
}

/* What a request handler relies on. */
static void
promises(const struct http1_request *r)
{
	const char *s;
	unsigned n;
	size_t i;

	must(r->path != NULL && r->path[0] == '/');
	must(r->nfields <= HTTP1_FIELDS_MAX);
	for (i = 0; i < r->nfields; i++) {
		must(r->fields[i].name[0] != '\0');
		for (s = r->fields[i].name; *s != '\0'; s++)
			must(*s > ' ' && *s < 127 && *s != ':' &&
			    !(*s >= 'A' && *s <= 'Z'));
		for (s = r->fields[i].value; *s != '\0'; s++)
			must(*s == '\t' || (*s >= ' ' && *s < 127));
	}
	http1_field(r, "host", &n);
	must(n == 1);
	http1_field(r, "content-length", &n);
	must(n <= 1);
	http1_field(r, "mcp-session-id", &n);
	must(n <= 1);
	must(r->body != NULL && r->body_len <= 4096);
}

static enum http1_event
feed(struct http1 *h, const uint8_t *p, size_t n, size_t *total)
{
	enum http1_event ev;
	size_t used;

	do {
		ev = http1_feed(h, p, n, &used);
		must(used <= n);
		p += used;
		n -= used;
		*total += used;
	} while (ev == HTTP1_HEAD_DONE);
	return ev;
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	enum http1_event whole, ev = HTTP1_MORE;
	struct http1 *h;
	size_t step, k, used = 0, used2 = 0;

	if (n < 1)
		return 0;
	step = 1 + (size_t)p[0] % 61;
	p++;
	n--;
	h = http1_new(4096, 4096);
	if (h == NULL)
		return 0;
	whole = feed(h, p, n, &used);
	if (whole == HTTP1_DONE)
		promises(http1_request(h));
	http1_reset(h);
	while (used2 < n && ev == HTTP1_MORE) {
		k = n - used2 < step ? n - used2 : step;
		ev = feed(h, p + used2, k, &used2);
	}
	if (n > 0)
		must(ev == whole && used == used2);
	if (whole == HTTP1_DONE && used > 0)
		promises(http1_request(h));
	http1_free(h);
	return 0;
}
