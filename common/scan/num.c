#include "num.h"
#include "fnv.h"

struct num
num_read(const uint8_t *p, size_t len)
{
	const uint8_t *end = p + len, *q, *last = NULL;
	struct num v = {.sign = 1};
	long long exp = 0, after = 0, trailing = 0;
	bool point = false, minus = false;

	if (p < end && *p == '-') {
		v.sign = -1;
		p++;
	}
	for (q = p; q < end && *q != 'e' && *q != 'E'; q++) {
		if (*q == '.') {
			point = true;
			continue;
		}
		after += point;
		if (*q == '0') {
			trailing++;
			continue;
		}
		if (v.p == NULL) {
			v.p = q;
			trailing = 0;
		}
		v.n += 1 + (size_t)trailing; /* the zeros were inside */
		trailing = 0;
		last = q;
	}
	if (v.p == NULL) {
		v.sign = 0;
		return v;
	}
	v.span = (size_t)(last - v.p) + 1;
	if (q < end) {
		q++;
		if (*q == '+' || *q == '-')
			minus = *q++ == '-';
		/* Beyond this exponent no text of our size has enough digits to
		 * make up for the exponent. */
		for (; q < end; q++)
			if (exp < 1000000000000LL)
				exp = exp * 10 + (*q - '0');
		if (minus)
			exp = -exp;
	}
	v.exp = exp - after + trailing;
	return v;
}

/* Returns the next digit of v from *i on (skipping the point), or 0 past the
 * end. */
static unsigned
next_digit(const struct num *v, size_t *i)
{
	while (*i < v->span && v->p[*i] == '.')
		(*i)++;
	return *i < v->span ? (unsigned)(v->p[(*i)++] - '0') : 0;
}

int
num_cmp(const struct num *a, const struct num *b)
{
	long long ea, eb;
	size_t i = 0, j = 0, most = a->n > b->n ? a->n : b->n;

	if (a->sign != b->sign)
		return a->sign < b->sign ? -1 : 1;
	if (a->sign == 0)
		return 0;
	/* Compare the place of the first digit, then digit by digit. */
	ea = a->exp + (long long)a->n;
	eb = b->exp + (long long)b->n;
	if (ea != eb)
		return (ea < eb ? -1 : 1) * a->sign;
	for (size_t k = 0; k < most; k++) {
		unsigned x = next_digit(a, &i), y = next_digit(b, &j);

		if (x != y)
			return (x < y ? -1 : 1) * a->sign;
	}
	return 0;
}

bool
num_integer(const struct num *v)
{
	return v->sign == 0 || v->exp >= 0;
}

bool
num_u64(const struct num *v, uint64_t max, uint64_t *out)
{
	unsigned __int128 u = 0;
	size_t i = 0;

	if (!num_integer(v) || v->sign < 0 || v->n > 20 || v->exp > 20)
		return false;
	for (size_t k = 0; k < v->n; k++)
		u = u * 10 + next_digit(v, &i);
	for (long long k = 0; k < v->exp && u <= max; k++)
		u *= 10;
	if (u > max)
		return false;
	*out = (uint64_t)u;
	return true;
}

/*
 * With a = A * 10^x and by = B * 10^y: if x >= y, A * 10^(x-y) mod B must be 0;
 * if x < y, A would have to be divisible by ten, which A is not, because A has
 * no trailing zero.
 */
bool
num_multiple(const struct num *a, const struct num *by)
{
	unsigned __int128 b = 0, rest = 0, ten = 10;
	long long shift = a->exp - by->exp;
	size_t i = 0;

	if (a->sign == 0)
		return true;
	if (shift < 0)
		return false;
	for (size_t k = 0; k < by->n; k++)
		b = b * 10 + next_digit(by, &i);
	if (b == 0) /* refused when the schema was compiled */
		return false;
	i = 0;
	for (size_t k = 0; k < a->n; k++)
		rest = (rest * 10 + next_digit(a, &i)) % b;
	for (ten %= b; shift > 0; shift >>= 1) {
		if (shift & 1)
			rest = rest * ten % b;
		ten = ten * ten % b;
	}
	return rest == 0;
}

uint32_t
num_hash(const struct num *v)
{
	uint32_t h = FNV_START ^ (uint32_t)(v->sign + 1);
	size_t i = 0;

	if (v->sign == 0)
		return h;
	h = fnv_add(h, (uint32_t)v->exp);
	for (size_t k = 0; k < v->n; k++)
		h = fnv_add(h, next_digit(v, &i));
	return h;
}
