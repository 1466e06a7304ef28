/*
 * See json_alike.h. One pass, which builds nothing. The content of each open
 * container goes into one number; for an object this is a sum, because the
 * order of members has no meaning. If a caller makes two texts of one digest,
 * two of the caller's own calls are taken for one. Other callers lose nothing.
 */
#include <string.h>

#include "bounds.h"
#include "json_alike.h"
#include "json_scan.h"
#include "num.h"

typedef unsigned __int128 u128;

/* FNV-1a of 128 bits (RFC 9923): offset basis and prime. */
#define WIDE(high, low) ((u128)(high) << 64 | (low))
static const u128 basis =
    WIDE(UINT64_C(0x6c62272e07bb0142), UINT64_C(0x62b821756295c58d));
static const u128 prime =
    WIDE(UINT64_C(0x0000000001000000), UINT64_C(0x000000000000013b));

struct level {
	u128 sum, name;
	bool object, named; /* named: a value follows, not a name */
};

struct state {
	struct level level[JSON_DEPTH_MAX + 1];
	unsigned depth;
	u128 whole;
};

static u128
byte(u128 h, unsigned c)
{
	return (h ^ (c & 0xff)) * prime;
}

/* Digests a number of n bytes. */
static u128
number(u128 h, u128 v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		h = byte(h, (unsigned)(v >> 8 * i));
	return h;
}

/* Digests the string whose inside begins at *p, and moves *p past its end. */
static u128
string(const uint8_t **p, const uint8_t *end)
{
	u128 h = byte(basis, 's');

	while (*p < end && **p != '"')
		h = number(h, json_slice_point(p), 4);
	if (*p < end)
		++*p;
	return h;
}

/* Digests the value of digits, not the digits: 1.0 and 1e0 are 1, -0 is 0. */
static u128
digits(const uint8_t *p, size_t n)
{
	struct num v = num_read(p, n);
	u128 h = byte(byte(basis, 'n'), (unsigned)(v.sign + 1));

	if (v.sign == 0)
		return h;
	h = number(h, (u128)v.exp, 8);
	for (size_t i = 0; i < v.span; i++)
		if (v.p[i] != '.')
			h = byte(h, v.p[i]);
	return h;
}

/* Adds the digest of a whole value to its container. */
static void
put(struct state *s, u128 h)
{
	struct level *l = &s->level[s->depth];

	if (s->depth == 0)
		s->whole = h;
	else if (l->object) {
		l->sum += number(number(basis, l->name, 16), h, 16);
		l->named = false;
	} else
		l->sum = number(l->sum, h, 16);
}

static void
begin(struct state *s, bool object)
{
	if (s->depth < JSON_DEPTH_MAX)
		s->level[++s->depth] =
		    (struct level){.sum = basis, .object = object};
}

static void
finish(struct state *s)
{
	struct level *l = &s->level[s->depth];

	if (s->depth == 0)
		return;
	s->depth--;
	put(s, number(byte(basis, l->object ? 'o' : 'a'), l->sum, 16));
}

/* Takes a number or one of true, false, null; returns its end. */
static const uint8_t *
plain(struct state *s, const uint8_t *p, const uint8_t *end)
{
	const uint8_t *from = p;

	while (p < end && *p != ',' && *p != '}' && *p != ']' && *p > ' ')
		p++;
	if (*from == '-' || (*from >= '0' && *from <= '9'))
		put(s, digits(from, (size_t)(p - from)));
	else
		put(s, byte(byte(basis, 'l'), *from));
	return p;
}

void
json_alike(struct ipc_bytes text, struct ipc_id *out)
{
	const uint8_t *p = text.p, *end = text.p + text.n;
	struct state s = {.depth = 0, .whole = basis};
	u128 h;

	while (p < end) {
		switch (*p) {
		case ' ':
		case '\t':
		case '\r':
		case '\n':
		case ',':
		case ':':
			p++;
			break;
		case '{':
		case '[':
			begin(&s, *p++ == '{');
			break;
		case '}':
		case ']':
			p++;
			finish(&s);
			break;
		case '"':
			p++;
			h = string(&p, end);
			if (s.depth > 0 && s.level[s.depth].object &&
			    !s.level[s.depth].named) {
				s.level[s.depth].name = h;
				s.level[s.depth].named = true;
			} else
				put(&s, h);
			break;
		default:
			p = plain(&s, p, end);
		}
	}
	memcpy(out->b, &s.whole, sizeof(out->b));
	out->b[0] |= s.whole == 0; /* zero means none */
}
