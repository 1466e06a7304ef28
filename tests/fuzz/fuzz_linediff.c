/*
 * The difference of two strangers' texts (split at the first 0xff): it ends,
 * it fits, and applied to the one it gives the other.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linediff.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

/* Copies n lines from *at on. */
static void
copy(struct buf *out, const char **at, const char *end, size_t n)
{
	const char *nl;

	for (; n > 0; n--) {
		if (*at == end)
			abort();
		nl = memchr(*at, '\n', (size_t)(end - *at));
		nl = nl == NULL ? end : nl + 1;
		buf_put(out, *at, (size_t)(nl - *at));
		*at = nl;
	}
}

/* One "start[,n]"; where its lines begin, counted from 0. */
static size_t
range(const char **p, char mark, size_t *n)
{
	size_t start;
	char *end;

	if (**p != mark)
		abort();
	start = strtoul(*p + 1, &end, 10);
	*n = 1;
	if (*end == ',')
		*n = strtoul(end + 1, &end, 10);
	*p = end;
	return *n == 0 ? start : start - 1;
}

static void
apply(const char *a, size_t na, const char *d, size_t nd, struct buf *out)
{
	const char *end = a + na, *dend = d + nd, *at = a;
	size_t line = 0; /* of a */

	while (d < dend) {
		size_t n, m, from;

		d += 3; /* "@@ " */
		from = range(&d, '-', &n);
		d++;
		(void)range(&d, '+', &m);
		d += 4; /* " @@\n" */
		copy(out, &at, end, from - line);
		line = from;
		while (n > 0 || m > 0) {
			const char *nl = memchr(d, '\n', (size_t)(dend - d));
			size_t len = (size_t)(nl + 1 - d) - 1;
			const char *text = d + 1;
			char mark = *d;

			d = nl + 1;
			if (d < dend && *d == '\\') {
				len--; /* it had no newline */
				d = memchr(d, '\n', (size_t)(dend - d));
				d++;
			}
			if (mark != '+') {
				struct buf skip;

				buf_init(&skip, 1 << 20);
				copy(&skip, &at, end, 1);
				if (skip.len != len ||
				    memcmp(skip.p, text, len) != 0)
					abort();
				buf_free(&skip);
				line++;
				n--;
			}
			if (mark != '-') {
				buf_put(out, text, len);
				m--;
			}
			if (mark != ' ' && mark != '-' && mark != '+')
				abort();
		}
	}
	buf_put(out, at, (size_t)(end - at));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *half = n > 0 ? memchr(data, 0xff, n) : NULL;
	const char *a = n > 0 ? (const char *)data : ""; /* libFuzzer's NULL */
	size_t na = half == NULL ? n : (size_t)(half - data);
	const char *b = a + na + (half != NULL);
	size_t nb = half == NULL ? 0 : n - na - 1;
	struct buf d, got;

	if (n > 65536)
		return 0;
	buf_init(&d, 1 << 22);
	buf_init(&got, 1 << 20);
	linediff(a, na, b, nb, &d);
	if (d.failed)
		abort();
	apply(a, na, d.len > 0 ? (const char *)d.p : "", d.len, &got);
	if (got.len != nb || (nb > 0 && memcmp(got.p, b, nb) != 0))
		abort();
	buf_free(&d);
	buf_free(&got);
	return 0;
}
