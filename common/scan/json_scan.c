/*
 * The pre-scan: one pass over the bytes of a JSON text that decides whether a
 * parser may see it.
 *
 * Every text from outside passes here first: requests, tools' results, schemas.
 * json-c would silently change some of them (the last of two equal names wins,
 * a lone surrogate becomes U+FFFD, 1e400 becomes infinity, a name is cut at
 * \u0000). Two processes could then read one text in two ways: the text that
 * was checked would not be the text that runs. So all of these are refused
 * here. Nothing recurses and memory is bounded by JSON_MEMBERS_MAX names.
 */
#include <stdlib.h>
#include <string.h>

#include "bounds.h"
#include "ids.h"
#include "json_scan.h"
#include "fnv.h"
#include "walk.h"

enum {
	NAMES_ROOM =
	    32, /* names that need no malloc(3): most requests have fewer */
	/* Up to this many names are compared pair by pair. More names are
	 * sorted, because a text's author chooses how many there are. */
	PAIRS_MAX = 12
};

/* One name of an object that is still open, as the text writes it. */
struct name {
	const uint8_t *p;
	size_t n;
	uint32_t hash; /* of the unescaped code points; set when sorted */
	bool plain;    /* ASCII without escapes: the bytes are the name */
};

struct scan {
	const uint8_t *text, *p, *end;
	struct name *names; /* of all open objects, innermost last */
	size_t nnames, cap;
	size_t members; /* members and elements so far */
	struct {
		bool object;
		size_t first; /* index of its first name */
	} open[JSON_DEPTH_MAX];
	unsigned depth;
	struct err *err;
	struct name room[NAMES_ROOM];
};

/* Bytes that a string may hold as they are: ASCII but controls, the quote and
 * the backslash. */
static const uint8_t plain[256] = {
    [0x20 ... 0x21] = 1, [0x23 ... 0x5b] = 1, [0x5d ... 0x7f] = 1};

static int
refuse(struct scan *s, const uint8_t *at, const char *rule)
{
	return err_set(s->err, FAILURE_PARSE, "byte %zu: %s",
	    (size_t)(at - s->text), rule);
}

static void
skip_space(struct scan *s)
{
	while (s->p < s->end && walk_space(*s->p))
		s->p++;
}

/* Returns the length of the UTF-8 sequence at p, which starts with a byte >=
 * 0x80, by the well-formed table of RFC 3629 section 4; 0 if malformed. */
static size_t
utf8_len(const uint8_t *p, const uint8_t *end)
{
	uint8_t lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] >= 0xc2 && p[0] <= 0xdf) {
		n = 2;
	} else if (p[0] >= 0xe0 && p[0] <= 0xef) {
		n = 3;
		if (p[0] == 0xe0)
			lo = 0xa0;
		else if (p[0] == 0xed)
			hi = 0x9f;
	} else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
		n = 4;
		if (p[0] == 0xf0)
			lo = 0x90;
		else if (p[0] == 0xf4)
			hi = 0x8f;
	} else {
		return 0;
	}
	if ((size_t)(end - p) < n || p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return n;
}

/* Scans the escape at the backslash s->p. A high surrogate must be followed by
 * the escape of a low one (RFC 8259 section 7). */
static int
scan_escape(struct scan *s)
{
	const uint8_t *at = s->p;
	int u;

	if (s->end - at < 2)
		return refuse(s, at, "unfinished escape");
	if (at[1] != 'u') {
		if (strchr("\"\\/bfnrt", at[1]) == NULL || at[1] == '\0')
			return refuse(s, at, "unknown escape");
		s->p += 2;
		return 0;
	}
	if (s->end - at < 6 || (u = hex_number(at + 2, 4)) < 0)
		return refuse(s, at, "\\u without four hex digits");
	s->p += 6;
	if (u >= 0xdc00 && u <= 0xdfff)
		return refuse(s, at, "lone low surrogate");
	if (u >= 0xd800 && u <= 0xdbff) {
		if (s->end - s->p < 6 || s->p[0] != '\\' || s->p[1] != 'u')
			return refuse(s, at, "lone high surrogate");
		u = hex_number(s->p + 2, 4);
		if (u < 0xdc00 || u > 0xdfff)
			return refuse(s, at, "lone high surrogate");
		s->p += 6;
	}
	return 0;
}

/* Scans the string at s->p; *in and *n are its bytes between the quotes.
 * *ascii: all of them are plain. */
static int
scan_string(struct scan *s, const uint8_t **in, size_t *n, bool *ascii)
{
	const uint8_t *start = s->p;

	if (s->p == s->end || *s->p != '"')
		return refuse(s, s->p, "expected a string");
	*ascii = true;
	s->p++;
	while (s->p < s->end) {
		uint8_t c = *s->p;
		size_t len;

		if (plain[c]) {
			s->p++;
			continue;
		}
		if (c == '"') {
			*in = start + 1;
			*n = (size_t)(s->p - start - 1);
			s->p++;
			return 0;
		}
		if (c < 0x20)
			return refuse(
			    s, s->p, "raw control character in a string");
		*ascii = false;
		if (c == '\\') {
			if (scan_escape(s) == -1)
				return -1;
		} else if ((len = utf8_len(s->p, s->end)) == 0) {
			return refuse(s, s->p, "invalid UTF-8");
		} else {
			s->p += len;
		}
	}
	return refuse(s, start, "unfinished string");
}

/* Orders by hash, then by code points. So equal names become neighbours, and
 * names made to collide cost no more than a comparison of their text. */
static int
name_cmp(const void *va, const void *vb)
{
	const struct name *a = va, *b = vb;
	const uint8_t *p = a->p, *q = b->p, *pe = a->p + a->n,
		      *qe = b->p + b->n;

	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	while (p < pe && q < qe) {
		uint32_t x = json_slice_point(&p), y = json_slice_point(&q);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return (p < pe) - (q < qe);
}

static int
count(struct scan *s)
{
	if (++s->members > JSON_MEMBERS_MAX)
		return refuse(s, s->p, "too many members and elements");
	return 0;
}

/* Makes room for one more name. */
static int
more_names(struct scan *s)
{
	size_t cap = s->cap * 2;
	struct name *names = reallocarray(
	    s->names == s->room ? NULL : s->names, cap, sizeof(*names));

	if (names == NULL)
		return err_set(s->err, FAILURE_INTERNAL, "out of memory");
	if (s->names == s->room)
		memcpy(names, s->room, sizeof(s->room));
	s->names = names;
	s->cap = cap;
	return 0;
}

/* Scans a member's name and its colon. U+0000 in a name is refused: C strings
 * would cut it, and two names would become one. */
static int
scan_name(struct scan *s)
{
	struct name nm = {.hash = 0};
	const uint8_t *p, *at;

	skip_space(s);
	at = s->p;
	if (count(s) == -1 || scan_string(s, &nm.p, &nm.n, &nm.plain) == -1)
		return -1;
	/* Only an escape can mean U+0000. */
	for (p = nm.p; !nm.plain && p < nm.p + nm.n;)
		if (json_slice_point(&p) == 0)
			return refuse(s, at, "U+0000 in a name");
	if (s->nnames == s->cap && more_names(s) == -1)
		return -1;
	s->names[s->nnames++] = nm;
	skip_space(s);
	if (s->p == s->end || *s->p != ':')
		return refuse(s, s->p, "expected ':'");
	s->p++;
	return 0;
}

/* Hashes by FNV-1a over code points, so that a name has one hash in every
 * spelling. */
static uint32_t
hash(const struct name *nm)
{
	uint32_t h = FNV_START;
	const uint8_t *p = nm->p;

	while (p < nm->p + nm->n)
		h = fnv_add(h, json_slice_point(&p));
	return h;
}

static bool
same(const struct name *a, const struct name *b)
{
	if (a->plain && b->plain)
		return a->n == b->n && memcmp(a->p, b->p, a->n) == 0;
	return name_cmp(a, b) == 0;
}

static int
twice(struct scan *s, const struct name *a, const struct name *b)
{
	return refuse(
	    s, a->p > b->p ? a->p : b->p, "duplicate name in an object");
}

/* Ends an object, in which no two names may be equal. */
static int
close_object(struct scan *s)
{
	size_t first = s->open[s->depth - 1].first;
	struct name *nm = s->names + first;
	size_t i, j, n = s->nnames - first;

	if (n <= PAIRS_MAX) {
		for (i = 1; i < n; i++)
			for (j = 0; j < i; j++)
				if (same(&nm[i], &nm[j]))
					return twice(s, &nm[i], &nm[j]);
	} else {
		for (i = 0; i < n; i++)
			nm[i].hash = hash(&nm[i]);
		qsort(nm, n, sizeof(*nm), name_cmp);
		for (i = 1; i < n; i++)
			if (name_cmp(&nm[i - 1], &nm[i]) == 0)
				return twice(s, &nm[i], &nm[i - 1]);
	}
	s->nnames = first;
	return 0;
}

static bool
digit(const struct scan *s)
{
	return s->p < s->end && *s->p >= '0' && *s->p <= '9';
}

/*
 * Tells whether this number would be infinite as an IEEE 754 double, which it
 * is if its value is at least 2^1024 - 2^970, the midpoint above the largest
 * finite double. Take the number with its point after the first significant
 * digit. An exponent under 308 is then always small enough, one over 308 always
 * too large; at 308 the digits decide. ndot is the number of digits before the
 * point.
 */
static bool
number_infinite(const uint8_t *p, const uint8_t *end, size_t ndot, long exp)
{
	static const char limit[] =
	    "17976931348623158079372897140530341507993413271003782693617377898"
	    "04449682927647509466490179775872070963302864166928879109465555478"
	    "51940402630657488671505820681908902000708383676273854845817711531"
	    "76447573027006985557136695962284291481986083493647529271907416844"
	    "4365510704342711559699508093042880177904174497792";
	size_t i = 0, seen = 0;
	long e;

	/* The first digit that is not zero gives the scientific exponent. */
	for (; p < end && (*p == '0' || *p == '.'); p++)
		i += *p == '0';
	if (p == end || *p < '1' || *p > '9')
		return false;
	e = (long)ndot - (long)i - 1 + exp;
	if (e != 308)
		return e > 308;
	for (; p < end && seen < sizeof(limit) - 1; p++) {
		if (*p == '.')
			continue;
		if (*p < '0' || *p > '9')
			break;
		if (*p != (uint8_t)limit[seen])
			return *p > (uint8_t)limit[seen];
		seen++;
	}
	for (; seen < sizeof(limit) - 1; seen++)
		if (limit[seen] != '0')
			return false;
	return true;
}

/* RFC 8259 section 6: -? (0 | 1-9 digits) (. digits)? ([eE] [+-]? digits)? */
static int
scan_number(struct scan *s)
{
	/* Beyond this exponent no text of our size has enough digits to make up
	 * for the exponent. */
	const long exp_max = 100000000;
	const uint8_t *at = s->p, *digits;
	size_t ndot;
	long exp = 0;
	bool minus = false;

	if (*s->p == '-')
		s->p++;
	digits = s->p;
	if (!digit(s))
		return refuse(s, at, "number without a digit");
	if (*s->p == '0')
		s->p++;
	else
		while (digit(s))
			s->p++;
	if (digit(s))
		return refuse(s, at, "number with a leading zero");
	ndot = (size_t)(s->p - digits);
	if (s->p < s->end && *s->p == '.') {
		s->p++;
		if (!digit(s))
			return refuse(s, at, "no digit after the point");
		while (digit(s))
			s->p++;
	}
	if (s->p < s->end && (*s->p == 'e' || *s->p == 'E')) {
		s->p++;
		if (s->p < s->end && (*s->p == '+' || *s->p == '-'))
			minus = *s->p++ == '-';
		if (!digit(s))
			return refuse(s, at, "no digit in the exponent");
		for (; digit(s); s->p++)
			if (exp < exp_max)
				exp = exp * 10 + (*s->p - '0');
	}
	if (number_infinite(digits, s->p, ndot, minus ? -exp : exp))
		return refuse(s, at, "number out of range");
	return 0;
}

/* Scans a value that is not a container. */
static int
scan_scalar(struct scan *s)
{
	static const char *const words[] = {"true", "false", "null"};
	const uint8_t *in;
	size_t n;
	bool ascii;

	if (*s->p == '"')
		return scan_string(s, &in, &n, &ascii);
	if (*s->p == '-' || digit(s))
		return scan_number(s);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		n = strlen(words[i]);
		if ((size_t)(s->end - s->p) >= n &&
		    memcmp(s->p, words[i], n) == 0) {
			s->p += n;
			return 0;
		}
	}
	return refuse(s, s->p, "expected a value");
}

/* Scans on after a value: closing brackets, then the comma and the name of the
 * next value. Returns 1 if a value must follow, 0 if the text ended well, or
 * -1. */
static int
after_value(struct scan *s)
{
	for (;;) {
		bool object;

		skip_space(s);
		if (s->depth == 0)
			return s->p == s->end
			    ? 0
			    : refuse(s, s->p, "text after the value");
		if (s->p == s->end)
			return refuse(s, s->p, "unfinished array or object");
		object = s->open[s->depth - 1].object;
		if (*s->p == ',') {
			s->p++;
			if ((object ? scan_name(s) : count(s)) == -1)
				return -1;
			return 1;
		}
		if (*s->p != (object ? '}' : ']'))
			return refuse(s, s->p,
			    object ? "expected ',' or '}'"
				   : "expected ',' or ']'");
		if (object && close_object(s) == -1)
			return -1;
		s->p++;
		s->depth--;
	}
}

static int
scan_text(struct scan *s)
{
	if (s->end - s->p >= 3 && memcmp(s->p, "\xef\xbb\xbf", 3) == 0)
		return refuse(s, s->p, "byte order mark");
	for (;;) {
		bool object;
		int more;

		skip_space(s);
		if (s->p == s->end)
			return refuse(s, s->p, "expected a value");
		if (*s->p == '{' || *s->p == '[') {
			object = *s->p == '{';
			if (s->depth == JSON_DEPTH_MAX)
				return refuse(s, s->p, "nested too deeply");
			s->p++;
			s->open[s->depth].object = object;
			s->open[s->depth].first = s->nnames;
			s->depth++;
			skip_space(s);
			if (s->p < s->end && *s->p == (object ? '}' : ']')) {
				s->p++;
				s->depth--;
			} else {
				if ((object ? scan_name(s) : count(s)) == -1)
					return -1;
				continue;
			}
		} else if (scan_scalar(s) == -1) {
			return -1;
		}
		if ((more = after_value(s)) != 1)
			return more;
	}
}

int
json_scan(const uint8_t *text, size_t n, struct err *err)
{
	/* s is not zeroed as a whole, because most of s is space that is
	 * written before it is read. */
	struct scan s __attribute__((uninitialized));
	int rc;

	s.text = s.p = text;
	s.end = text + n;
	s.names = s.room;
	s.cap = NAMES_ROOM;
	s.nnames = s.members = 0;
	s.depth = 0;
	s.err = err;
	rc = scan_text(&s);
	if (s.names != s.room)
		free(s.names);
	return rc;
}
