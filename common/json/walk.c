/* See walk.h. */
#include <string.h>

#include "walk.h"

/* Skips the white space, commas and colons between names and values. */
static void
skip(struct walk *w)
{
	while (w->p < w->end && strchr(" \t\r\n,:", *w->p) != NULL)
		w->p++;
}

int
walk_open(struct walk *w, struct ipc_bytes v, char bracket)
{
	w->p = v.p;
	w->end = v.n == 0 ? v.p : v.p + v.n; /* no value: no address */
	w->object = bracket == '{';
	skip(w);
	if (w->p == w->end || *w->p != (uint8_t)bracket)
		return -1;
	w->p++;
	return 0;
}

static void
string(struct walk *w)
{
	for (w->p++; w->p < w->end && *w->p != '"'; w->p++)
		if (*w->p == '\\')
			w->p++;
	w->p++;
}

/* Takes one value, containers by counting brackets. */
static struct ipc_bytes
value(struct walk *w)
{
	const uint8_t *from = w->p;
	unsigned depth = 0;

	do {
		switch (*w->p) {
		case '"':
			string(w);
			continue;
		case '{':
		case '[':
			depth++;
			break;
		case '}':
		case ']':
			depth--;
			break;
		default:
			/* Passes a number, a literal or the text between
			 * values. */
			while (w->p + 1 < w->end &&
			    strchr("\"{}[], \t\r\n", w->p[1]) == NULL)
				w->p++;
		}
		w->p++;
	} while (depth > 0 && w->p < w->end);
	return ipc_bytes(from, (size_t)(w->p - from));
}

bool
walk_next(struct walk *w, struct ipc_bytes *name, struct ipc_bytes *v)
{
	skip(w);
	if (w->p >= w->end || *w->p == '}' || *w->p == ']')
		return false;
	*name = ipc_bytes(w->p, 0);
	if (w->object) {
		const uint8_t *from = w->p + 1;

		string(w);
		*name = ipc_bytes(from, (size_t)(w->p - 1 - from));
		skip(w);
	}
	*v = value(w);
	return true;
}

bool
walk_is(struct ipc_bytes name, const char *s)
{
	return name.n == strlen(s) && memcmp(name.p, s, name.n) == 0;
}
