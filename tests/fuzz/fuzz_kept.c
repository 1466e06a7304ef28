/*
 * What records keep of JSON (kept.h). Input: u8 n, then the text; at most
 * 16 (n + 1) bytes are kept. Properties: the kept form is no longer; it is
 * valid JSON unless it was cut; what a member of a telling name holds is the
 * mark, or says nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "kept.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* Is the quote at p one that an escape in the text makes? */
static bool
escaped(const uint8_t *start, const uint8_t *p)
{
	bool odd = false;

	while (p > start && p[-1] == '\\') {
		p--;
		odd = !odd;
	}
	return odd;
}

/* Is the name that ends in what begins at p looked at to its end? */
static bool
seen(const uint8_t *start, const uint8_t *p, size_t n)
{
	const uint8_t *name = p;

	if (!escaped(start, p))
		return true;
	do {
		name = memrchr(start, '"', (size_t)(name - start));
		if (name == NULL)
			abort();
	} while (escaped(start, name));
	return (size_t)(p - name) + n <= KEPT_NAME_MAX;
}

/* A text that was cut: what is left of the mark. */
static void
none_left(const uint8_t *start, size_t n, bool cut)
{
	static const char name[] = "\"password\":";
	const uint8_t *p = start, *end = start + n - (cut ? 3 : 0);

	while ((p = memmem(p, (size_t)(end - p), name, sizeof(name) - 1))) {
		size_t mark = sizeof(KEPT_MARK) - 1;
		bool told = seen(start, p, sizeof(name) - 1);

		p += sizeof(name) - 1;
		while (p < end &&
		    (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
			p++;
		if (cut && (size_t)(end - p) < mark)
			mark = (size_t)(end - p);
		if (told && mark > 0 && *p != 'n' && *p != 't' && *p != 'f' &&
		    ((size_t)(end - p) < mark ||
			memcmp(p, KEPT_MARK, mark) != 0))
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	struct buf out;
	struct err e;
	size_t max;
	bool cut;
	int rc;

	if (n < 1)
		return 0;
	max = 16 * ((size_t)p[0] + 1);
	p++;
	n--;
	/* any bytes for a name's inside that the scan would have passed */
	if (json_scan(p, n, &e) == -1)
		return 0;
	buf_init(&out, max);
	rc = kept_form(p, n, max, &out);
	if (rc == -1 || out.failed || out.len > max)
		abort();
	if (rc == 0) {
		if (out.len != 0 || n > max)
			abort();
		none_left(p, n, false);
	} else {
		cut = out.len >= 3 &&
		    memcmp(out.p + out.len - 3, KEPT_CUT, 3) == 0;
		if (!cut && json_scan(out.p, out.len, &e) == -1)
			abort();
		none_left(out.p, out.len, cut);
	}
	buf_free(&out);
	return 0;
}
