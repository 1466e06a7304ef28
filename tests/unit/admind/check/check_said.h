/* The last answer of admind-check, for its unit tests. */
#ifndef CHECK_SAID_H
#define CHECK_SAID_H

#include "check.h"
#include "unit.h"

static char text[1 << 20]; /* the errors of the last check, as a string */

static bool
errors(const struct check *c)
{
	size_t n =
	    c->errors.len < sizeof(text) - 1 ? c->errors.len : sizeof(text) - 1;

	memcpy(text, c->errors.len > 0 ? (char *)c->errors.p : "", n);
	text[n] = '\0';
	return !c->ok;
}

static enum failure
args(const char *schema, const char *arguments)
{
	struct check c;
	enum failure f;

	check_schema(&c, ipc_str(schema));
	if (errors(&c))
		fail_msg("schema %s: %s", schema, text);
	check_free(&c);
	check_arguments(&c, ipc_str(schema), ipc_str(arguments), false);
	f = errors(&c) ? c.failure : FAILURE_NONE;
	check_free(&c);
	return f;
}

static bool
has(const char *pointer, const char *message)
{
	char want[512];

	snprintf(want, sizeof(want), "{\"pointer\":\"%s\",\"message\":\"%s",
	    pointer, message);
	return strstr(text, want) != NULL;
}

#define OBJ(p)                                         \
	"{\"type\":\"object\",\"properties\":{" p "}," \
	"\"additionalProperties\":false}"

#endif
