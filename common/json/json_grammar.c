#include <string.h>

#include "json_grammar.h"
#include "bounds.h"
#include "ids.h"
#include "walk.h"

struct cursor {
	const uint8_t *p, *end;
};

static int
peek(const struct cursor *c)
{
	return c->p < c->end ? *c->p : -1;
}

static void
space(struct cursor *c)
{
	while (walk_space(peek(c)))
		c->p++;
}

/* Reads a string, its first quote included. */
static bool
string(struct cursor *c)
{
	int ch;

	if (peek(c) != '"')
		return false;
	for (c->p++; (ch = peek(c)) != '"'; c->p++) {
		if (ch < 0x20) /* also the end of the text */
			return false;
		if (ch != '\\')
			continue;
		c->p++;
		ch = peek(c);
		if (ch <= 0 || strchr("\"\\/bfnrtu", ch) == NULL)
			return false;
		if (ch != 'u')
			continue;
		for (int i = 0; i < 4; i++) {
			c->p++;
			if (hex_digit(peek(c)) < 0)
				return false;
		}
	}
	c->p++;
	return true;
}

static bool
digits(struct cursor *c)
{
	const uint8_t *start = c->p;

	while (peek(c) >= '0' && peek(c) <= '9')
		c->p++;
	return c->p > start;
}

static bool
number(struct cursor *c)
{
	if (peek(c) == '-')
		c->p++;
	if (peek(c) == '0')
		c->p++;
	else if (!digits(c))
		return false;
	if (peek(c) == '.') {
		c->p++;
		if (!digits(c))
			return false;
	}
	if (peek(c) == 'e' || peek(c) == 'E') {
		c->p++;
		if (peek(c) == '+' || peek(c) == '-')
			c->p++;
		if (!digits(c))
			return false;
	}
	return true;
}

static bool
word(struct cursor *c, const char *w)
{
	size_t n = strlen(w);

	if ((size_t)(c->end - c->p) < n || memcmp(c->p, w, n) != 0)
		return false;
	c->p += n;
	return true;
}

/* Reads a name and its colon, where an object expects a member. */
static bool
member(struct cursor *c)
{
	space(c);
	if (!string(c))
		return false;
	space(c);
	if (peek(c) != ':')
		return false;
	c->p++;
	return true;
}

/*
 * Doesn't recurse: a fixed array holds the kinds of the open containers, so
 * nesting costs no C stack. Each turn reads one value, then closes as many
 * containers as end after it, then takes the comma before the next one.
 */
bool
json_grammar_valid(const uint8_t *p, size_t n)
{
	struct cursor c = {p, p + n};
	char open[JSON_DEPTH_MAX];
	size_t depth = 0;
	bool ok;
	int ch;

	for (;;) {
		space(&c);
		ch = peek(&c);
		if (ch == '{' || ch == '[') {
			if (depth == JSON_DEPTH_MAX)
				return false;
			c.p++;
			space(&c);
			if (peek(&c) != (ch == '{' ? '}' : ']')) {
				open[depth++] = (char)ch;
				if (ch == '{' && !member(&c))
					return false;
				continue;
			}
			c.p++; /* empty: a finished value */
			ok = true;
		} else if (ch == '"')
			ok = string(&c);
		else if (ch == 't')
			ok = word(&c, "true");
		else if (ch == 'f')
			ok = word(&c, "false");
		else if (ch == 'n')
			ok = word(&c, "null");
		else
			ok = number(&c);
		if (!ok)
			return false;
		for (;;) {
			space(&c);
			if (depth == 0)
				return c.p == c.end;
			ch = peek(&c);
			if (ch == ',') {
				c.p++;
				if (open[depth - 1] == '{' && !member(&c))
					return false;
				break;
			}
			if (ch != (open[depth - 1] == '{' ? '}' : ']'))
				return false;
			c.p++;
			depth--;
		}
	}
}
