#include <string.h>
#include <strings.h>

#include "negotiate.h"

enum { Q_ABSENT = -1, Q_ONE = 1000 }; /* a weight in thousandths */

/* Passes over optional white space, and over empty elements of a list. */
static const char *
skip(const char *s, const char *chars)
{
	return s + strspn(s, chars);
}

/* Reads a qvalue: 0 or 1, a point, up to three digits; above 1 is malformed.
 * Returns the text after it, NULL if malformed. */
static const char *
read_q(const char *s, int *q)
{
	int v, unit = Q_ONE / 10;

	if (*s != '0' && *s != '1')
		return NULL;
	v = (*s++ - '0') * Q_ONE;
	if (*s == '.')
		for (s++; *s >= '0' && *s <= '9' && unit > 0; s++, unit /= 10)
			v += (*s - '0') * unit;
	if (v > Q_ONE)
		return NULL;
	*q = v;
	return s;
}

/* Notes the weight of a coding that was named. If one is named twice, the
 * lower weight counts, so a coding that was refused once is not sent. */
static void
lower(int *weight, int q)
{
	if (*weight == Q_ABSENT || q < *weight)
		*weight = q;
}

struct weights {
	int gzip, identity, any;
};

/* Reads one field's list of codings. false: malformed. */
static bool
read_codings(const char *s, struct weights *w)
{
	const char *name;
	size_t n;
	int q;

	for (s = skip(s, " \t,"); *s != '\0'; s = skip(s, " \t,")) {
		name = s;
		n = strcspn(s, " \t,;");
		s = skip(s + n, " \t");
		q = Q_ONE;
		if (*s == ';') {
			s = skip(s + 1, " \t");
			if (strncasecmp(s, "q=", 2) != 0 ||
			    (s = read_q(s + 2, &q)) == NULL)
				return false;
			s = skip(s, " \t");
		}
		if (n == 0 || (*s != ',' && *s != '\0'))
			return false;
		/* x-gzip is gzip's old name (section 8.4.1.3) */
		if ((n == 4 && strncasecmp(name, "gzip", n) == 0) ||
		    (n == 6 && strncasecmp(name, "x-gzip", n) == 0))
			lower(&w->gzip, q);
		else if (n == 8 && strncasecmp(name, "identity", n) == 0)
			lower(&w->identity, q);
		else if (n == 1 && *name == '*')
			lower(&w->any, q);
	}
	return true;
}

bool
negotiate_gzip(const struct http1_request *r)
{
	struct weights w = {Q_ABSENT, Q_ABSENT, Q_ABSENT};

	for (size_t i = 0; i < r->nfields; i++)
		if (strcmp(r->fields[i].name, "accept-encoding") == 0 &&
		    !read_codings(r->fields[i].value, &w))
			return false;
	if (w.gzip == Q_ABSENT)
		w.gzip = w.any;
	return w.gzip > 0 && w.gzip >= w.identity;
}

/* True if one field's list has the tag, or is the asterisk, which means any
 * bytes that exist. */
static bool
has_tag(const char *s, const char *tag)
{
	size_t n, want = strlen(tag);
	const char *end;

	s = skip(s, " \t,");
	if (*s == '*')
		return s[1] == '\0';
	while (*s != '\0') {
		if (s[0] == 'W' && s[1] == '/')
			s += 2;
		if (*s != '"' || (end = strchr(s + 1, '"')) == NULL)
			return false;
		n = (size_t)(end - s) + 1;
		if (n == want && memcmp(s, tag, n) == 0)
			return true;
		s = skip(s + n, " \t");
		if (*s != ',' && *s != '\0')
			return false;
		s = skip(s, " \t,");
	}
	return false;
}

bool
negotiate_known(const struct http1_request *r, const char *tag)
{
	for (size_t i = 0; i < r->nfields; i++)
		if (strcmp(r->fields[i].name, "if-none-match") == 0 &&
		    has_tag(r->fields[i].value, tag))
			return true;
	return false;
}
