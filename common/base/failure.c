#include <stdbool.h>
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

static const struct {
	enum failure failure;
	const char *message; /* * matches any characters */
	const char *fix;
} cases[] = {
#define X(failure, message, fix) {FAILURE_##failure, message, fix},
#include "fix.def"
#undef X
};

/*
 * Tells whether the text has this form. Each * matches as few characters as
 * possible. Matching goes back to the last * only, so the time is at most the
 * product of both lengths, whatever a stranger wrote into the text.
 */
static bool
fits(const char *form, const char *text, size_t n)
{
	const char *star = NULL;
	size_t i = 0, again = 0;

	while (i < n) {
		if (*form == '*') {
			star = form++;
			again = i;
		} else if (*form == text[i] && *form != '\0') {
			form++;
			i++;
		} else if (star != NULL) {
			form = star + 1;
			i = ++again;
		} else
			return false;
	}
	while (*form == '*')
		form++;
	return *form == '\0';
}

const char *
failure_fix(enum failure f, const char *message, size_t n)
{
	static const char error[] = "Error: "; /* begins isError results */

	if (message != NULL && n >= sizeof(error) - 1 &&
	    memcmp(message, error, sizeof(error) - 1) == 0) {
		message += sizeof(error) - 1;
		n -= sizeof(error) - 1;
	}
	for (size_t i = 0;
	    message != NULL && i < sizeof(cases) / sizeof(cases[0]); i++)
		if (cases[i].failure == f && fits(cases[i].message, message, n))
			return cases[i].fix;
	return failure_info(f)->fix;
}

enum failure
failure_by_name(const char *name)
{
	for (unsigned i = 0; i < FAILURE_COUNT; i++)
		if (strcmp(table[i].name, name) == 0)
			return (enum failure)i;
	return FAILURE_INTERNAL;
}
