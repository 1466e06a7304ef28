#include <string.h>

#include "bounds.h"
#include "limit.h"
#include "version.h"

static const struct limit_info table[LIMIT_COUNT] = {
#define L(SYMBOL, name, unit, min, max, context, version, reason) \
	{name, unit, min, max, context, version, reason},
    LIMITS(L, L) LIMITS_SERVER(L)
#undef L
};

/* The tags in LIMITS are plain numbers, because limit.h is also used where
 * neither enum context_tag nor enum version_tag is known. Here enum version_tag
 * is known. */
#define L(SYMBOL, name, unit, min, max, context, version, reason)        \
	_Static_assert(                                                  \
	    (version) == VERSION_##SYMBOL && (min) > 0 && (min) < (max), \
	    name);
LIMITS(L, L)
#undef L
_Static_assert(
    VERSION_OBJECT == VERSION_PROGRESS_RATE + 1, "every limit is here");
_Static_assert(
    VERSION_TAG_MAX == VERSION_NETWORK_RATE, "and those that came later");

/* No limit exceeds the bound of bounds.h for a frame or a row. */
enum {
#define L(SYMBOL, name, unit, min, max, context, version, reason) \
	MAX_##SYMBOL = (max) < INT32_MAX ? (int)(max) : INT32_MAX,
	LIMITS(L, L) LIMITS_SERVER(L)
#undef L
};
_Static_assert(MAX_RESULT_BYTES == (int)RESULT_MAX, "result");
_Static_assert(MAX_ARGUMENT_BYTES == (int)ARGUMENTS_MAX, "arguments");
_Static_assert(MAX_STDOUT_BYTES == (int)STDOUT_SHOWN_MAX, "stdout");
_Static_assert(MAX_CODE_BYTES == (int)CODE_MAX, "code");

const struct limit_info *
limit_info(enum limit l)
{
	return &table[l];
}

int
limit_find(const void *name, size_t n)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (strlen(table[i].name) == n &&
		    memcmp(table[i].name, name, n) == 0)
			return i;
	return -1;
}

int
limit_of_context(unsigned tag)
{
	for (int i = 0; i < LIMIT_COUNT; i++)
		if (tag != 0 && table[i].context == tag)
			return i;
	return -1;
}

int
limit_check(enum limit l, uint64_t value, struct err *e)
{
	const struct limit_info *t = &table[l];

	if (value >= t->min && value <= t->max)
		return 0;
	return err_set(e, FAILURE_LIMIT,
	    "%s must be from %llu to %llu %s, not %llu", t->name,
	    (unsigned long long)t->min, (unsigned long long)t->max, t->unit,
	    (unsigned long long)value);
}
