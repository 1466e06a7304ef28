/*
 * A template and a URI, apart by a newline: what matches must be what the
 * template's text and the values spell; what is short enough is compared with
 * a search that tries everything.
 */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "uri_template.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

enum { SHORT = 20 }; /* bytes of a URI: 2^20 ways at the very most */

static size_t
taken(const struct uri_part *v, const char *p, size_t n)
{
	size_t k = *p == '%' ? 3 : 1;

	assert(k <= n);
	if (!v->reserved &&
	    (*p == '/' || (k == 3 && p[1] == '2' && (p[2] | 32) == 'f')))
		return 0;
	return k;
}

static bool
search(const struct uri_template *t, size_t part, const char *p, size_t n)
{
	const struct uri_part *l = &t->part[part];
	size_t i, k;

	if (part == t->parts)
		return n == 0;
	if (!l->variable)
		return l->n <= n && memcmp(l->p, p, l->n) == 0 &&
		    search(t, part + 1, p + l->n, n - l->n);
	for (i = 0; i < n && (k = taken(l, p + i, n - i)) > 0;) {
		i += k;
		if (search(t, part + 1, p + i, n - i))
			return true;
	}
	return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *text = (const char *)data, *uri;
	struct uri_value v[URI_VARIABLES_MAX];
	struct uri_template t;
	struct buf out;
	size_t i, at = 0, values = 0, m;
	struct err e;
	bool match;

	if (n == 0 || (uri = memchr(data, '\n', n)) == NULL)
		return 0;
	m = n - (size_t)(uri - text) - 1;
	if (uri_template_parse(text, (size_t)(uri - text), &t, &e) == -1)
		return 0;
	uri++;
	match = uri_template_match(&t, uri, m, v);
	if (uri_check(uri, m, &e) == -1)
		assert(!match);
	else if (m <= SHORT)
		assert(match == search(&t, 0, uri, m));
	if (!match)
		return 0;
	buf_init(&out, URI_MAX);
	for (i = 0; i < t.parts; i++) {
		if (t.part[i].variable) {
			assert(v[values].p == uri + at && v[values].n > 0);
			at += v[values].n;
			buf_clear(&out);
			if (uri_decode(v[values].p, v[values].n, &out) == 0 &&
			    !t.part[i].reserved)
				assert(memchr(out.p, '/', out.len) == NULL);
			values++;
		} else {
			assert(memcmp(uri + at, t.part[i].p, t.part[i].n) == 0);
			at += t.part[i].n;
		}
	}
	assert(at == m && values == t.variables);
	buf_free(&out);
	return 0;
}
