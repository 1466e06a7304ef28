#include <string.h>

#include "failure.h"

static const struct failure_info table[FAILURE_COUNT] = {
#define F(symbol, name, code, status, side, fix) \
	[FAILURE_##symbol] = {name, code, status, FAILURE_##side, fix},
#include "failure.def"
#undef F
};

const struct failure_info *
failure_info(enum failure f)
{
	if ((unsigned)f >= FAILURE_COUNT)
		f = FAILURE_INTERNAL;
	return &table[f];
}

enum failure
failure_by_name(const char *name)
{
	for (unsigned i = 0; i < FAILURE_COUNT; i++)
		if (strcmp(table[i].name, name) == 0)
			return (enum failure)i;
	return FAILURE_INTERNAL;
}
