/* URIs and URI templates: see uri_template.h. */
#include <string.h>

#include "ids.h"
#include "uri_template.h"
#include "utf8.h"

static bool
alpha(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool
digit(char c)
{
	return c >= '0' && c <= '9';
}

/* RFC 3986 section 2: unreserved and reserved; `%` is judged by length(). */
static bool
allowed(char c)
{
	return alpha(c) || digit(c) ||
	    (c != '\0' && strchr("-._~:/?#[]@!$&'()*+,;=", c) != NULL);
}

/* Returns the length of the URI character at p: 1, 3 for %XX, 0 for none. */
static size_t
length(const char *p, size_t n)
{
	if (n > 0 && allowed(*p))
		return 1;
	if (n >= 3 && *p == '%' && hex_digit(p[1]) != -1 &&
	    hex_digit(p[2]) != -1)
		return 3;
	return 0;
}

/* Returns the length of scheme and colon, 0 if there is no scheme (RFC 3986
 * section 3.1). */
static size_t
scheme(const char *p, size_t n)
{
	size_t i;

	if (n == 0 || !alpha(p[0]))
		return 0;
	for (i = 1; i < n; i++) {
		if (p[i] == ':')
			return i + 1;
		if (!alpha(p[i]) && !digit(p[i]) && p[i] != '+' &&
		    p[i] != '-' && p[i] != '.')
			break;
	}
	return 0;
}

static int
start(const char *p, size_t n, size_t *at, struct err *e)
{
	if (n > URI_MAX)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "a URI has at most %d bytes", URI_MAX);
	if ((*at = scheme(p, n)) == 0)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "a URI starts with a scheme and a colon, such as "
		    "\"notes://\"");
	if (*at == n)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "there is nothing behind the URI's scheme");
	return 0;
}

int
uri_check(const char *p, size_t n, struct err *e)
{
	size_t i = 0, k;

	if (start(p, n, &i, e) == -1)
		return -1;
	for (; i < n; i += k)
		if ((k = length(p + i, n - i)) == 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "a URI can't have the character at offset %zu: "
			    "percent-encode it",
			    i);
	return 0;
}

/* Parses one `{...}` at p and puts its name and kind into v. Returns its
 * length, or 0. */
static size_t
expression(const char *p, size_t n, struct uri_part *v)
{
	size_t i = 1, from;

	v->variable = true;
	v->reserved = n > 1 && p[1] == '+';
	if (v->reserved)
		i++;
	from = i;
	while (
	    i < n && (alpha(p[i]) || p[i] == '_' || (i > from && digit(p[i]))))
		i++;
	v->p = p + from;
	v->n = i - from;
	if (v->n == 0 || v->n > NAME_VARIABLE_MAX || i == n || p[i] != '}')
		return 0;
	return i + 1;
}

static int
add_variable(
    struct uri_template *t, const struct uri_part *v, size_t at, struct err *e)
{
	size_t i;

	if (t->variables == URI_VARIABLES_MAX)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "a URI template has at most %d variables",
		    URI_VARIABLES_MAX);
	if (t->part[t->parts - 1].variable)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "there must be text between the variables at offset %zu",
		    at);
	for (i = 0; i < t->parts; i++)
		if (t->part[i].variable && t->part[i].n == v->n &&
		    memcmp(t->part[i].p, v->p, v->n) == 0)
			return err_set(e, FAILURE_INVALID_PARAMS,
			    "the variable at offset %zu has a name that "
			    "occurred before",
			    at);
	t->part[t->parts++] = *v;
	t->variables++;
	return 0;
}

int
uri_template_parse(
    const char *p, size_t n, struct uri_template *out, struct err *e)
{
	struct uri_template t = {.parts = 1};
	struct uri_part v;
	size_t i = 0, k;

	if (start(p, n, &i, e) == -1)
		return -1;
	t.part[0] = (struct uri_part){.p = p, .n = i};
	while (i < n) {
		if (p[i] == '{') {
			if ((k = expression(p + i, n - i, &v)) == 0)
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "offset %zu: a variable is {name} or "
				    "{+name}, of letters, digits and _, at "
				    "most %d",
				    i, NAME_VARIABLE_MAX);
			if (add_variable(&t, &v, i, e) == -1)
				return -1;
		} else {
			if ((k = length(p + i, n - i)) == 0)
				return err_set(e, FAILURE_INVALID_PARAMS,
				    "a URI template can't have the character "
				    "at offset %zu: percent-encode it",
				    i);
			if (t.part[t.parts - 1].variable)
				t.part[t.parts++] =
				    (struct uri_part){.p = p + i};
			t.part[t.parts - 1].n += k;
		}
		i += k;
	}
	if (t.variables == 0)
		return err_set(e, FAILURE_INVALID_PARAMS,
		    "a URI template has a variable, such as {name}; a URI "
		    "without one is a resource");
	*out = t;
	return 0;
}

/*
 * Returns the length of the character at p if v may hold it, else 0.
 * `{name}` treats an encoded `/` as a `/`, because a reviewer of
 * `files:///{name}` relies on a value without one.
 */
static size_t
takes(const struct uri_part *v, const char *p, size_t n)
{
	size_t k = length(p, n);

	if (k == 0 || v->reserved)
		return k;
	if (*p == '/' ||
	    (k == 3 && hex_digit(p[1]) == 2 && hex_digit(p[2]) == 15))
		return 0;
	return k;
}

/* fits[part] has bit i if the parts from `part` on match the URI from i on. */
enum { ROW = URI_MAX / 8 + 1 };

static bool
bit(const uint8_t *row, size_t i)
{
	return (row[i / 8] >> (i % 8) & 1) != 0;
}

static void
set_bit(uint8_t *row, size_t i)
{
	row[i / 8] = (uint8_t)(row[i / 8] | 1 << (i % 8));
}

static bool
starts(const struct uri_part *l, const char *p, size_t n)
{
	return l->n <= n && memcmp(p, l->p, l->n) == 0;
}

/* Fills the table part by part from the end, and each part from the URI's end:
 * every cell is judged once, so no template and no URI makes this slow. */
static void
fill(const struct uri_template *t, const char *uri, size_t n,
    uint8_t fits[][ROW])
{
	const struct uri_part *l;
	size_t i, k, part;

	set_bit(fits[t->parts], n);
	for (part = t->parts; part-- > 0;) {
		l = &t->part[part];
		for (i = n; i-- > 0;) {
			if (!l->variable) {
				if (starts(l, uri + i, n - i) &&
				    bit(fits[part + 1], i + l->n))
					set_bit(fits[part], i);
			} else if ((k = takes(l, uri + i, n - i)) > 0 &&
			    (bit(fits[part + 1], i + k) ||
				bit(fits[part], i + k))) {
				set_bit(fits[part], i);
			}
		}
	}
}

bool
uri_template_match(const struct uri_template *t, const char *uri, size_t n,
    struct uri_value value[URI_VARIABLES_MAX])
{
	uint8_t fits[2 * URI_VARIABLES_MAX + 2][ROW] = {{0}};
	const struct uri_part *last = &t->part[t->parts - 1];
	size_t i, k, end, part, values = 0;

	/* Most templates don't match, and their first or last text shows it. */
	if (!starts(&t->part[0], uri, n) ||
	    (!last->variable &&
		(last->n > n || !starts(last, uri + n - last->n, last->n))) ||
	    uri_check(uri, n, NULL) == -1)
		return false;
	fill(t, uri, n, fits);
	if (!bit(fits[0], 0))
		return false;
	for (i = 0, part = 0; part < t->parts; part++) {
		if (!t->part[part].variable) {
			i += t->part[part].n;
			continue;
		}
		/* Take the longest value after which the rest still matches. */
		end = i;
		for (k = i; k < n;) {
			size_t c = takes(&t->part[part], uri + k, n - k);

			if (c == 0)
				break;
			k += c;
			if (bit(fits[part + 1], k))
				end = k;
		}
		value[values++] = (struct uri_value){.name = t->part[part].p,
		    .name_n = t->part[part].n,
		    .p = uri + i,
		    .n = end - i};
		i = end;
	}
	return true;
}

int
uri_decode(const char *p, size_t n, struct buf *out)
{
	size_t i, from = out->len;

	for (i = 0; i < n; i++) {
		int c = (uint8_t)p[i];

		if (p[i] == '%' && length(p + i, n - i) == 3) {
			c = hex_digit(p[i + 1]) * 16 + hex_digit(p[i + 2]);
			i += 2;
		}
		if (c == 0)
			return -1;
		buf_putc(out, c);
	}
	if (out->failed || !utf8_valid(out->p + from, out->len - from))
		return -1;
	return 0;
}
