/* Runs of digits: hexadecimal, base64, base32 (views.h). */
#include "views_internal.h"

enum { BYTE_BITS = 8 };

static const struct {
	uint8_t bits;   /* of a digit */
	uint8_t phases; /* different values of `skip`, see views.h */
} kinds[] = {
    [VIEW_HEX] = {4, 2}, [VIEW_BASE64] = {6, 4}, [VIEW_BASE32] = {5, 8}};

/* The six bits of a base64 digit plus one, 0 for other bytes (RFC 4648,
 * sections 4 and 5). */
static const uint8_t sixbits[256] = {['A'] = 1,
    ['B'] = 2,
    ['C'] = 3,
    ['D'] = 4,
    ['E'] = 5,
    ['F'] = 6,
    ['G'] = 7,
    ['H'] = 8,
    ['I'] = 9,
    ['J'] = 10,
    ['K'] = 11,
    ['L'] = 12,
    ['M'] = 13,
    ['N'] = 14,
    ['O'] = 15,
    ['P'] = 16,
    ['Q'] = 17,
    ['R'] = 18,
    ['S'] = 19,
    ['T'] = 20,
    ['U'] = 21,
    ['V'] = 22,
    ['W'] = 23,
    ['X'] = 24,
    ['Y'] = 25,
    ['Z'] = 26,
    ['a'] = 27,
    ['b'] = 28,
    ['c'] = 29,
    ['d'] = 30,
    ['e'] = 31,
    ['f'] = 32,
    ['g'] = 33,
    ['h'] = 34,
    ['i'] = 35,
    ['j'] = 36,
    ['k'] = 37,
    ['l'] = 38,
    ['m'] = 39,
    ['n'] = 40,
    ['o'] = 41,
    ['p'] = 42,
    ['q'] = 43,
    ['r'] = 44,
    ['s'] = 45,
    ['t'] = 46,
    ['u'] = 47,
    ['v'] = 48,
    ['w'] = 49,
    ['x'] = 50,
    ['y'] = 51,
    ['z'] = 52,
    ['0'] = 53,
    ['1'] = 54,
    ['2'] = 55,
    ['3'] = 56,
    ['4'] = 57,
    ['5'] = 58,
    ['6'] = 59,
    ['7'] = 60,
    ['8'] = 61,
    ['9'] = 62,
    ['+'] = 63,
    ['-'] = 63,
    ['/'] = 64,
    ['_'] = 64};

/* Returns the value of a digit, or -1. */
static inline int
value(int c, enum view_digits kind)
{
	if (kind == VIEW_HEX)
		return hex_digit(c);
	if (kind == VIEW_BASE64)
		return sixbits[c] - 1;
	/* RFC 4648, section 6. turns() judges the case of the letters. */
	if (c >= '2' && c <= '7')
		return c - '2' + 26;
	c |= 0x20;
	return c >= 'a' && c <= 'z' ? c - 'a' : -1;
}

/* Tells whether in[i] may be between two digits. Pairs of hexadecimal digits
 * may have one mark between them. Digits of base64 and base32 may have only
 * line breaks between them, and the indentation of lines, as in YAML. */
static inline bool
separates(const struct view *in, size_t i, enum view_digits kind)
{
	int c = in->p[i], before = i > 0 ? in->p[i - 1] : 0;

	if (kind == VIEW_HEX)
		return (c == ':' || c == ' ' || c == '-' || c == '\n') &&
		    hex_digit(before) >= 0;
	if (c == '\n' || c == '\r')
		return true;
	return (c == ' ' || c == '\t') &&
	    (before == '\n' || before == ' ' || before == '\t');
}

/* Tells whether a base32 letter has another case than the letters before it.
 * Libraries write one case, so words of mixed case are no run. */
static inline bool
turns(int c, enum view_digits kind, int *letters)
{
	if (kind != VIEW_BASE32 || c < 'A')
		return false;
	if (*letters == 0)
		*letters = c & 0x20 ? 'a' : 'A';
	return (c & 0x20) != (*letters & 0x20);
}

static inline bool
run_of(
    const struct view *in, size_t *pos, enum view_digits kind, struct view *run)
{
	/* `least` digits hold VIEW_RUN_BYTES bytes. The first and the last
	 * digit may also hold bits of other bytes. */
	const unsigned width = kinds[kind].bits;
	const size_t least =
	    ((size_t)BYTE_BITS * VIEW_RUN_BYTES + width - 1) / width;
	size_t i = *pos, first, count;
	int letters;

	while (i < in->n) {
		if (value(in->p[i], kind) < 0) {
			i++;
			continue;
		}
		first = i;
		letters = 0;
		for (count = 0; i < in->n; i++)
			if (value(in->p[i], kind) >= 0) {
				if (turns(in->p[i], kind, &letters))
					break;
				count++;
			} else if (!separates(in, i, kind))
				break;
		if (count >= least) {
			run->p = in->p + first;
			run->at = in->at != NULL ? in->at + first : NULL;
			run->base = in->base + (uint32_t)first;
			run->n = i - first;
			*pos = i;
			return true;
		}
	}
	return false;
}

static inline void
decode(const struct view *run, enum view_digits kind, unsigned skip,
    struct view_mem *m, struct view *out)
{
	const unsigned width = kinds[kind].bits;
	size_t last[3] = {0}; /* places of the latest digits */
	uint32_t bits = 0;
	unsigned have = 0;
	int v;

	view_start(m, out);
	for (size_t i = 0; i < run->n; i++) {
		if ((v = value(run->p[i], kind)) < 0)
			continue;
		if (skip > 0) {
			skip--;
			continue;
		}
		last[2] = last[1];
		last[1] = last[0];
		last[0] = i;
		bits = bits << width | (uint32_t)v;
		have += width;
		if (have < BYTE_BITS)
			continue;
		/* The byte's first bit is the `have`th from the end. */
		view_put(m, out, (int)(bits >> (have - BYTE_BITS) & 0xff), run,
		    last[(have - 1) / width], i);
		have -= BYTE_BITS;
	}
}

/* The loops are inlined for each kind: they take most of a search's time. */
bool
view_run(
    const struct view *in, size_t *pos, enum view_digits kind, struct view *run)
{
	switch (kind) {
	case VIEW_HEX:
		return run_of(in, pos, VIEW_HEX, run);
	case VIEW_BASE64:
		return run_of(in, pos, VIEW_BASE64, run);
	case VIEW_BASE32:
		break;
	}
	return run_of(in, pos, VIEW_BASE32, run);
}

void
view_run_bytes(const struct view *run, enum view_digits kind, unsigned skip,
    struct view_mem *m, struct view *out)
{
	switch (kind) {
	case VIEW_HEX:
		decode(run, VIEW_HEX, skip, m, out);
		return;
	case VIEW_BASE64:
		decode(run, VIEW_BASE64, skip, m, out);
		return;
	case VIEW_BASE32:
		decode(run, VIEW_BASE32, skip, m, out);
		return;
	}
}

unsigned
view_run_phases(enum view_digits kind)
{
	return kinds[kind].phases;
}
