#include <json-c/json_object.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "mcp_era.h"
#include "mcp_param.h"

struct walk {
	mcp_param_header *header;
	mcp_param_emit *emit; /* either header or emit is set */
	void *arg;
	struct mcp_error *e;
	unsigned seen;
};

static int
mismatch(struct walk *w, const char *name, const char *what)
{
	char text[MCP_MESSAGE_MAX];

	snprintf(text, sizeof(text), "The Mcp-Param-%s header %s.", name, what);
	return mcp_fault_set(w->e, FAILURE_HEADER_MISMATCH, 400, text);
}

/* True for a token (RFC 9110). A property's NAME must be a token, since it
 * becomes part of a header's name. */
static bool
token(const char *s)
{
	size_t n = strlen(s);

	return n > 0 && n <= 64 &&
	    strspn(s,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"0123456789!#$%&'*+-.^_`|~") == n;
}

/* True if the header's text equals the value. Strings and booleans are compared
 * as text, numbers as numbers: 42 equals 42.0. */
static bool
same(struct json_object *value, const char *text)
{
	double d;
	char *end;

	switch (json_object_get_type(value)) {
	case json_type_string:
		return strlen(text) ==
		    (size_t)json_object_get_string_len(value) &&
		    memcmp(text, json_object_get_string(value), strlen(text)) ==
		    0;
	case json_type_boolean:
		return strcmp(text,
			   json_object_get_boolean(value) ? "true" : "false") ==
		    0;
	case json_type_int:
		if (strcmp(text, json_object_get_string(value)) == 0)
			return true;
		__attribute__((fallthrough));
	case json_type_double:
		if (text[0] == '\0' ||
		    strspn(text, "+-.0123456789eE") != strlen(text))
			return false;
		d = strtod(text, &end);
		return *end == '\0' && isfinite(d) &&
		    !(d < json_object_get_double(value)) &&
		    !(d > json_object_get_double(value));
	default:
		return false;
	}
}

static int
check_one(struct walk *w, const char *name, struct json_object *value)
{
	char field[80], text[MCP_PARAM_VALUE_MAX];
	const char *sent;
	size_t i;

	if (!token(name))
		return 0; /* no client can send such a header */
	if (w->header == NULL)
		return w->emit == NULL
		    ? 0
		    : w->emit(w->arg, name,
			  json_object_get_type(value) == json_type_boolean
			      ? json_object_get_boolean(value) ? "true"
							       : "false"
			      : json_object_get_string(value));
	snprintf(field, sizeof(field), MCP_PARAM_FIELD "%s", name);
	for (i = 0; field[i] != '\0'; i++)
		if (field[i] >= 'A' && field[i] <= 'Z')
			field[i] = (char)(field[i] + ('a' - 'A'));
	sent = w->header(w->arg, field);
	if (sent == NULL)
		return mismatch(w, name, "is missing");
	if (mcp_header_decode(sent, text, sizeof(text)) < 0)
		return mismatch(w, name, "can't be decoded");
	if (!same(value, text))
		return mismatch(w, name, "differs from the argument");
	return 0;
}

/* Walks schema and arguments together. Only properties that are statically
 * reachable through "properties" count, as the specification says. */
static int
walk(struct walk *w, struct json_object *schema, struct json_object *args,
    unsigned depth)
{
	struct json_object *props, *mark, *value;
	struct json_object_iter it;
	int rc;

	if (depth > MCP_PARAM_DEPTH_MAX ||
	    !json_object_is_type(schema, json_type_object) ||
	    !json_object_is_type(args, json_type_object) ||
	    !json_object_object_get_ex(schema, "properties", &props) ||
	    !json_object_is_type(props, json_type_object))
		return 0;
	json_object_object_foreachC(props, it)
	{
		if (!json_object_is_type(it.val, json_type_object) ||
		    !json_object_object_get_ex(args, it.key, &value) ||
		    value == NULL)
			continue; /* absent or null: no header is expected */
		if (json_object_object_get_ex(it.val, "x-mcp-header", &mark) &&
		    json_object_is_type(mark, json_type_string) &&
		    !json_object_is_type(value, json_type_object) &&
		    !json_object_is_type(value, json_type_array)) {
			if (++w->seen > MCP_PARAM_MAX)
				return w->e == NULL
				    ? -1
				    : mismatch(w, "*",
					  "fields of this tool are too many");
			rc = check_one(w, json_object_get_string(mark), value);
			if (rc != 0)
				return rc;
		}
		rc = walk(w, it.val, value, depth + 1);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int
begin(struct walk *w, struct ipc_bytes tool, struct ipc_bytes arguments)
{
	struct json_object *schema = NULL, *args = NULL;
	struct ipc_bytes s;
	int rc = 0;

	if (!mcp_json_get(tool, "inputSchema", &s) ||
	    memmem(s.p, s.n, "x-mcp-header", 12) == NULL)
		return 0;
	if (json_parse(s.p, s.n, &schema, NULL) == 0 &&
	    json_parse(arguments.p, arguments.n, &args, NULL) == 0)
		rc = walk(w, schema, args, 0);
	if (schema != NULL)
		json_object_put(schema);
	if (args != NULL)
		json_object_put(args);
	return rc;
}

int
mcp_param_check(struct ipc_bytes tool, struct ipc_bytes arguments,
    mcp_param_header *header, void *arg, struct mcp_error *e)
{
	struct walk w = {header, NULL, arg, e, 0};

	return begin(&w, tool, arguments);
}

int
mcp_param_unlisted(const char *field, struct mcp_error *e)
{
	char text[MCP_MESSAGE_MAX];

	snprintf(text, sizeof(text),
	    "The header %.80s can't be compared, because tools/list lacks this "
	    "tool: leave the header out.",
	    field);
	return mcp_fault_set(e, FAILURE_HEADER_MISMATCH, 400, text);
}

int
mcp_param_each(struct ipc_bytes tool, struct ipc_bytes arguments,
    mcp_param_emit *emit, void *arg)
{
	struct walk w = {NULL, emit, arg, NULL, 0};

	return begin(&w, tool, arguments);
}
