#include "linediff.h"

#include <stdlib.h>
#include <string.h>

#include "fnv.h"

struct line {
	const char *p;
	size_t n;     /* with its newline */
	uint32_t sum; /* most unequal lines differ here */
};

struct text {
	struct line *line;
	size_t n;
};

/* A run of n equal lines: from line `a` of text a on, and `b` of text b. */
struct run {
	size_t a, b, n;
};

struct runs {
	struct run *run;
	size_t n;
};

static int
split(struct text *t, const char *p, size_t n)
{
	const char *end = p + n, *nl;
	size_t lines = 0;

	for (size_t i = 0; i < n; i++)
		lines += p[i] == '\n' || i + 1 == n;
	t->n = 0;
	t->line = calloc(lines + 1, sizeof(*t->line));
	if (t->line == NULL)
		return -1;
	while (p < end) {
		struct line *l = &t->line[t->n++];

		nl = memchr(p, '\n', (size_t)(end - p));
		l->p = p;
		l->n = (size_t)((nl == NULL ? end : nl + 1) - p);
		l->sum = fnv_bytes(FNV_START, p, l->n);
		p += l->n;
	}
	return 0;
}

static bool
same(const struct line *a, const struct line *b)
{
	return a->sum == b->sum && a->n == b->n &&
	    memcmp(a->p, b->p, a->n) == 0;
}

/*
 * Finds a shortest difference by Myers' greedy algorithm ("An O(ND) Difference
 * Algorithm and Its Variations", 1986) over a[0..n) and b[0..m): row d holds,
 * for each diagonal k of -d, -d+2 .. d, how far a path of d edits gets. All
 * rows are kept, to walk the path back. Puts the runs of equal lines into out,
 * in order. 0; 1: more than LINEDIFF_EDITS_MAX edits; -1: no memory.
 */
static int
shortest(const struct line *a, size_t n, const struct line *b, size_t m,
    struct runs *out)
{
	enum { WIDTH = 2 * LINEDIFF_EDITS_MAX + 3, MID = WIDTH / 2 };
	int32_t *v = calloc(WIDTH, sizeof(*v));
	int32_t **rows = calloc(LINEDIFF_EDITS_MAX + 1, sizeof(*rows));
	int rc = -1, d, k;
	int32_t x, y;

	if (v == NULL || rows == NULL)
		goto out;
	for (d = 0; d <= LINEDIFF_EDITS_MAX; d++) {
		/* the row before this step */
		rows[d] = malloc(((size_t)d * 2 + 3) * sizeof(**rows));
		if (rows[d] == NULL)
			goto out;
		memcpy(rows[d], v + MID - d - 1,
		    ((size_t)d * 2 + 3) * sizeof(**rows));
		for (k = -d; k <= d; k += 2) {
			x = k == -d ||
				(k != d && v[MID + k - 1] < v[MID + k + 1])
			    ? v[MID + k + 1]
			    : v[MID + k - 1] + 1;
			y = x - k;
			/* If x or y is past an end of its text, no equal lines
			 * follow. */
			while (x >= 0 && y >= 0 && (size_t)x < n &&
			    (size_t)y < m && same(&a[x], &b[y])) {
				x++;
				y++;
			}
			v[MID + k] = x;
			if ((size_t)x >= n && y >= 0 && (size_t)y >= m)
				goto found;
		}
	}
	rc = 1;
	goto out;
found:
	x = (int32_t)n;
	y = (int32_t)m;
	for (; d >= 0; d--) {
		const int32_t *row = rows[d] + d + 1; /* row[k] */
		int32_t px, py;
		int prev;

		k = x - y;
		prev = k == -d || (k != d && row[k - 1] < row[k + 1]) ? k + 1
								      : k - 1;
		px = d == 0 ? 0 : row[prev];
		py = d == 0 ? 0 : px - prev;
		/* where the equal lines after the edit, or at the beginning,
		 * start */
		if (d > 0) {
			if (prev == k + 1)
				py++;
			else
				px++;
		}
		if (x > px) {
			struct run *r = &out->run[out->n++];

			r->a = (size_t)px;
			r->b = (size_t)py;
			r->n = (size_t)(x - px);
		}
		if (d > 0) {
			x = prev == k + 1 ? px : px - 1;
			y = prev == k + 1 ? py - 1 : py;
		}
	}
	/* The last run was found first: reverse the order. */
	for (size_t i = 0; i < out->n / 2; i++) {
		struct run t = out->run[i];

		out->run[i] = out->run[out->n - 1 - i];
		out->run[out->n - 1 - i] = t;
	}
	rc = 0;
out:
	for (d = 0; rows != NULL && d <= LINEDIFF_EDITS_MAX; d++)
		free(rows[d]);
	free(rows);
	free(v);
	return rc;
}

/* Writes a line. If it has no newline, a second line says so, as in diff. */
static void
put_line(struct buf *out, char mark, const struct line *l)
{
	buf_putc(out, mark);
	buf_put(out, l->p, l->n);
	if (l->n == 0 || l->p[l->n - 1] != '\n')
		buf_puts(out, "\n\\ No newline at end of file\n");
}

static void
put_range(struct buf *out, char mark, size_t from, size_t n)
{
	/* an empty range is given by the number of the line before it */
	buf_putf(out, "%c%zu", mark, n == 0 ? from : from + 1);
	if (n != 1)
		buf_putf(out, ",%zu", n);
}

/*
 * Writes runs as hunks. Two changes share one hunk if at most twice the context
 * is between them. The last run reaches the end of both texts; it may be empty.
 */
static void
put_hunks(const struct text *a, const struct text *b, const struct runs *runs,
    struct buf *out)
{
	size_t i = 0, j, ax = 0, bx = 0; /* after the last equal line */

	while (i < runs->n) {
		const struct run *r = &runs->run[i];
		size_t lead, tail, a0, b0;

		if (r->a == ax && r->b == bx) { /* no change before this run */
			ax = r->a + r->n;
			bx = r->b + r->n;
			i++;
			continue;
		}
		lead = ax < LINEDIFF_CONTEXT ? ax : LINEDIFF_CONTEXT;
		lead = bx < lead ? bx : lead;
		/* The lead can't be longer than the previous run, because only
		 * that run's lines are equal in both texts. */
		if (i == 0)
			lead = 0;
		else if (runs->run[i - 1].n < lead)
			lead = runs->run[i - 1].n;
		for (j = i;
		    j + 1 < runs->n && runs->run[j].n <= 2 * LINEDIFF_CONTEXT;
		    j++)
			;
		tail = runs->run[j].n < LINEDIFF_CONTEXT ? runs->run[j].n
							 : LINEDIFF_CONTEXT;
		a0 = ax - lead;
		b0 = bx - lead;
		buf_puts(out, "@@ ");
		put_range(out, '-', a0, runs->run[j].a + tail - a0);
		buf_putc(out, ' ');
		put_range(out, '+', b0, runs->run[j].b + tail - b0);
		buf_puts(out, " @@\n");
		for (size_t l = 0; l < lead; l++)
			put_line(out, ' ', &a->line[a0 + l]);
		for (; i <= j; i++) {
			size_t shown;

			r = &runs->run[i];
			for (; ax < r->a; ax++)
				put_line(out, '-', &a->line[ax]);
			for (; bx < r->b; bx++)
				put_line(out, '+', &b->line[bx]);
			shown = i == j ? tail : r->n;
			for (size_t l = 0; l < shown; l++)
				put_line(out, ' ', &a->line[r->a + l]);
			ax = r->a + r->n;
			bx = r->b + r->n;
		}
	}
}

void
linediff(const void *a, size_t na, const void *b, size_t nb, struct buf *out)
{
	struct text ta = {0}, tb = {0};
	struct runs runs = {0};
	size_t head = 0, tail = 0, n, m;
	int rc;

	if (na == nb && (na == 0 || memcmp(a, b, na) == 0))
		return;
	if (split(&ta, a, na) == -1 || split(&tb, b, nb) == -1)
		goto failed;
	while (
	    head < ta.n && head < tb.n && same(&ta.line[head], &tb.line[head]))
		head++;
	while (tail < ta.n - head && tail < tb.n - head &&
	    same(&ta.line[ta.n - 1 - tail], &tb.line[tb.n - 1 - tail]))
		tail++;
	n = ta.n - head - tail;
	m = tb.n - head - tail;
	/* room for the equal beginning, the runs of shortest(), the equal
	 * end */
	runs.run = calloc((n < m ? n : m) + 3, sizeof(*runs.run));
	if (runs.run == NULL)
		goto failed;
	rc = shortest(ta.line + head, n, tb.line + head, m, &runs);
	if (rc == -1)
		goto failed;
	if (rc == 1)
		runs.n = 0;
	for (size_t i = runs.n; i > 0; i--) {
		runs.run[i] = runs.run[i - 1];
		runs.run[i].a += head;
		runs.run[i].b += head;
	}
	runs.run[0] = (struct run){0, 0, head};
	runs.n++;
	runs.run[runs.n++] = (struct run){ta.n - tail, tb.n - tail, tail};
	put_hunks(&ta, &tb, &runs, out);
	goto out;
failed:
	out->failed = true;
out:
	free(ta.line);
	free(tb.line);
	free(runs.run);
}
