#include "unit.h"

#include "linediff.h"
#include "show.h"
#include "show_decode.h"
#include "utf8.h"

void
show_put_char(struct buf *b, unsigned long c)
{
	uint8_t utf8[UTF8_MAX];

	buf_put(b, utf8, utf8_encode((uint32_t)c, utf8));
}

/* Appends what one row of text stands for. */
static void
decode(struct buf *b, const char *p, size_t n)
{
	const char *end;
	unsigned long c, run;
	char *q;

	if (n == 0)
		return;
	for (end = p + n; p < end;) {
		if (end - p < 3 || p[0] != '\\' || p[2] != '{' ||
		    (p[1] != 'u' && p[1] != 'x')) {
			buf_putc(b, *p++);
			continue;
		}
		c = strtoul(p + 3, &q, 16);
		run = *q == '*' ? strtoul(q + 1, &q, 10) : 1;
		assert_int_equal(*q, '}');
		while (run-- > 0)
			if (p[1] == 'x')
				buf_putc(b, (int)c);
			else
				show_put_char(b, c);
		p = q + 1;
	}
}

/* Appends `times` times the bytes that b has at `at`. */
static void
again(struct buf *b, size_t at, size_t size, unsigned long times)
{
	char *line = malloc(size);

	assert_non_null(line);
	memcpy(line, b->p + at, size);
	while (times-- > 0)
		buf_put(b, line, size);
	free(line);
}

/* Appends what the rows of a block stand for. */
static void
decode_block(struct buf *b, const char *p, size_t n, unsigned width)
{
	const char *end, *nl, *text;
	unsigned long want = 1, from, to;
	size_t at = 0, size = 0; /* the last line */
	bool open = false;
	char *q;

	if (n == 0)
		return;
	for (end = p + n; p < end; p = nl + 1) {
		nl = memchr(p, '\n', (size_t)(end - p));
		assert_non_null(nl);
		assert_true((size_t)(nl - p) <= width);
		for (const char *c = p; c < nl; c++)
			assert_true(*c >= ' ' && *c <= '~');
		if (strncmp(p, "       + ", 9) == 0) {
			assert_true(open);
			assert_int_not_equal(nl[-1], ' ');
			decode(b, p + 9, (size_t)(nl - p - 9));
			continue;
		}
		if (strncmp(p, "       (no newline at the end)\n", 31) == 0) {
			assert_true(open && nl + 1 == end);
			open = false;
			continue;
		}
		if (open) {
			buf_putc(b, '\n');
			size = b->len - at;
		}
		if (strncmp(p, "       (lines ", 14) == 0) {
			assert_true(open);
			open = false;
			from = strtoul(p + 14, &q, 10);
			assert_int_equal(strncmp(q, " to ", 4), 0);
			to = strtoul(q + 4, &q, 10);
			assert_int_equal(
			    strncmp(q, " are equal to line ", 19), 0);
			assert_int_equal(from, want);
			assert_int_equal(strtoul(q + 19, &q, 10), want - 1);
			assert_int_equal(strncmp(q, ")\n", 2), 0);
			assert_true(to > from);
			again(b, at, size, to + 1 - from);
			want = to + 1;
			continue;
		}
		at = b->len;
		assert_int_equal(strtoul(p, &q, 10), want++);
		assert_int_equal(strncmp(q, " | ", 3), 0);
		text = q + 3;
		assert_true(nl == text || nl[-1] != ' ');
		decode(b, text, (size_t)(nl - text));
		open = true;
	}
	if (open)
		buf_putc(b, '\n');
}

/* Takes a row of at most `width` columns of printable ASCII: what follows its
 * `skip` columns, up to *nl. */
static const char *
row(const char *p, const char *end, size_t skip, unsigned width,
    const char **nl)
{
	*nl = memchr(p, '\n', (size_t)(end - p));
	assert_non_null(*nl);
	assert_in_range(*nl - p, skip, width);
	for (const char *c = p; c < *nl; c++)
		assert_in_range(*c, ' ', '~');
	assert_true(*nl == p + skip || (*nl)[-1] != ' ');
	return p + skip;
}

/* Appends what a named value's rows stand for: they are all of p. */
static void
decode_value(
    struct buf *b, const char *name, const char *p, size_t n, unsigned width)
{
	static const char more[] = "                 + ";
	const char *end = p + n, *nl, *text;
	size_t len = strlen(name), skip = len < 18 ? 19 : len + 1;
	unsigned long size;
	char *q;

	assert_int_equal(memcmp(p, name, len), 0);
	nl = memchr(p, '\n', n);
	assert_non_null(nl);
	if (nl + 1 < end && strncmp(nl + 1, "     1 | ", 9) == 0) {
		assert_int_equal(strncmp(p + len, " (", 2), 0);
		size = strtoul(p + len + 2, &q, 10);
		assert_int_equal(strncmp(q, " bytes):\n", 9), 0);
		decode_block(b, nl + 1, (size_t)(end - nl - 1), width);
		assert_int_equal(b->len, size);
		return;
	}
	for (size_t i = len; i < skip; i++)
		assert_int_equal(p[i], ' ');
	while (p < end) {
		text = row(p, end, skip, width, &nl);
		decode(b, text, (size_t)(nl - text));
		p = nl + 1;
		skip = sizeof(more) - 1;
		if (p < end)
			assert_int_equal(strncmp(p, more, skip), 0);
	}
}

/* Appends a hunk's range as linediff() writes it. */
static void
range(struct buf *b, char mark, unsigned long at, unsigned long n)
{
	buf_putf(b, n == 1 ? "%c%lu" : "%c%lu,%lu", mark, at, n);
}

/* Appends what the rows of a difference stand for. Each line is behind the
 * numbers that it has before and after. */
static void
decode_diff(struct buf *b, const char *p, size_t n, unsigned width)
{
	static const char more[] = "              > ";
	unsigned long before = 0, after = 0, na, nb, times;
	const char *end = n > 0 ? p + n : p, *nl, *text;
	bool open = false;    /* the last line may go on */
	bool counted = false; /* it is the last of several */
	char want[40], a[16], z[16], mark = ' ';
	size_t at = 0;

	for (; p < end; p = nl + 1) {
		if (strncmp(p, more, sizeof(more) - 1) == 0) {
			assert_true(open);
			text = row(p, end, sizeof(more) - 1, width, &nl);
			decode(b, text, (size_t)(nl - text));
			continue;
		}
		if (open)
			buf_putc(b, '\n');
		if (sscanf(p, "       (@@ -%lu,%lu +%lu,%lu @@)\n", &before,
			&na, &after, &nb) == 4) {
			(void)row(p, end, 7, width, &nl);
			buf_puts(b, "@@ ");
			range(b, '-', before, na);
			buf_putc(b, ' ');
			range(b, '+', after, nb);
			buf_puts(b, " @@\n");
			before += na == 0;
			after += nb == 0;
			open = false;
			continue;
		}
		if (strncmp(p, "       (", 8) == 0) {
			text = row(p, end, 8, width, &nl);
			assert_true(open || counted);
			open = counted = false;
			if (sscanf(text, "and %lu more such lines)\n",
				&times) == 1) {
				assert_in_range(times, SHOW_EQUAL_MAX, 1000000);
				again(b, at, b->len - at, times);
				before += mark == '+' ? 0 : times;
				after += mark == '-' ? 0 : times;
				counted = true;
				continue;
			}
			assert_int_equal(
			    strncmp(text, "no newline at the end)\n", 23), 0);
			buf_puts(b, "\\ No newline at end of file\n");
			continue;
		}
		text = memchr(p, '|', (size_t)(end - p));
		assert_non_null(text);
		mark = text[1];
		snprintf(a, sizeof(a), "%lu", before);
		snprintf(z, sizeof(z), "%lu", after);
		snprintf(want, sizeof(want), "%6s %6s |%c",
		    mark == '+' ? "" : a, mark == '-' ? "" : z, mark);
		assert_int_equal(strncmp(p, want, strlen(want)), 0);
		before += mark != '+';
		after += mark != '-';
		text = row(p, end, strlen(want), width, &nl);
		at = b->len;
		counted = false;
		buf_putc(b, mark);
		decode(b, text, (size_t)(nl - text));
		open = true;
	}
	if (open)
		buf_putc(b, '\n');
}

static void
value_inverts(const void *in, size_t n, unsigned width)
{
	static const char *const names[] = {
	    "a", "notes", "eighteen_letters__", "client_capabilities"};
	struct buf out, back;

	buf_init(&out, OUT_MAX);
	buf_init(&back, OUT_MAX);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		buf_clear(&out);
		buf_clear(&back);
		show_value(&out, names[i], in, n, width);
		decode_value(
		    &back, names[i], (const char *)out.p, out.len, width);
		assert_false(out.failed || back.failed);
		assert_int_equal(back.len, n);
		assert_true(n == 0 || memcmp(back.p, in, n) == 0);
	}
	buf_free(&out);
	buf_free(&back);
}

void
show_diff_inverts(
    const void *a, size_t na, const void *b, size_t nb, unsigned width)
{
	struct buf in, out, back;

	buf_init(&in, OUT_MAX);
	buf_init(&out, OUT_MAX);
	buf_init(&back, OUT_MAX);
	linediff(a, na, b, nb, &in);
	show_diff(&out, in.p, in.len, width);
	buf_putc(&out, '\0'); /* for sscanf(3) */
	decode_diff(&back, (const char *)out.p, out.len - 1, width);
	assert_false(in.failed || out.failed || back.failed);
	assert_int_equal(back.len, in.len);
	assert_true(in.len == 0 || memcmp(back.p, in.p, in.len) == 0);
	buf_free(&in);
	buf_free(&out);
	buf_free(&back);
}

void
show_inverts(const void *in, size_t n, unsigned width)
{
	struct buf out, back;

	buf_init(&out, OUT_MAX);
	buf_init(&back, OUT_MAX);
	for (int mode = SHOW_LINE; mode <= SHOW_CODE; mode++) {
		show_text(&out, in, n, (enum show_mode)mode);
		decode(&back, (const char *)out.p, out.len);
		assert_false(out.failed || back.failed);
		assert_int_equal(back.len, n);
		assert_true(n == 0 || memcmp(back.p, in, n) == 0);
		buf_clear(&out);
		buf_clear(&back);
	}
	show_block(&out, in, n, width);
	decode_block(&back, (const char *)out.p, out.len, width);
	assert_false(out.failed || back.failed);
	assert_int_equal(back.len, n);
	assert_true(n == 0 || memcmp(back.p, in, n) == 0);
	buf_free(&out);
	buf_free(&back);
}

/* In every form, of a difference all of it added, and taken away. */
void
show_all_invert(const void *in, size_t n, unsigned width)
{
	show_inverts(in, n, width);
	value_inverts(in, n, width);
	show_diff_inverts("", 0, in, n, width);
	show_diff_inverts(in, n, "", 0, width);
}
