/*
 * Slices of JSON text that json_scan accepted, and their types.
 */
#include <json-c/json_object.h>
#include <string.h>

#include "json.h"
#include "mcp_json.h"
#include "walk.h"

int
mcp_json_text(struct ipc_bytes json, char *out, size_t size)
{
	struct json_object *o = NULL;
	const char *s;
	size_t n;
	int rc = -1;

	if (json.n < 2 || json.p[0] != '"')
		return -1;
	/* Without an escape the text is the bytes between the quotes. */
	if (memchr(json.p, '\\', json.n) == NULL) {
		s = (const char *)json.p + 1;
		n = json.n - 2;
	} else {
		if (json_parse(json.p, json.n, &o, NULL) < 0)
			return -1;
		s = json_object_get_string(o);
		n = (size_t)json_object_get_string_len(o);
	}
	if (n < size && memchr(s, '\0', n) == NULL) {
		memcpy(out, s, n);
		out[n] = '\0';
		rc = 0;
	}
	if (o != NULL)
		json_object_put(o);
	return rc;
}

bool
mcp_json_get(struct ipc_bytes object, const char *name, struct ipc_bytes *out)
{
	const char *path[2] = {name, NULL};

	out->p = NULL;
	out->n = 0;
	return object.n > 0 &&
	    json_slice(object.p, object.n, path, &out->p, &out->n) == 1;
}

bool
mcp_json_is_null(struct ipc_bytes v)
{
	return v.n == 0 || (v.n == 4 && memcmp(v.p, "null", 4) == 0);
}

bool
mcp_json_given(struct ipc_bytes object, const char *name, struct ipc_bytes *out)
{
	return mcp_json_get(object, name, out) && !mcp_json_is_null(*out);
}

bool
mcp_json_is_object(struct ipc_bytes v)
{
	return v.n > 0 && v.p[0] == '{';
}

/* True for a string, or a number without fraction and exponent: the forms of an
 * id (MCP: base protocol) and of a progress token. */
bool
mcp_json_is_id(struct ipc_bytes v)
{
	size_t i;

	if (v.n == 0 || v.n > MCP_ID_MAX)
		return false;
	if (v.p[0] == '"')
		return true;
	i = v.p[0] == '-';
	if (i == v.n)
		return false;
	for (; i < v.n; i++)
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
	return true;
}

struct ipc_bytes
mcp_json_trim(const uint8_t *p, size_t n)
{
	while (n > 0 && walk_space(p[0])) {
		p++;
		n--;
	}
	while (n > 0 && walk_space(p[n - 1]))
		n--;
	return ipc_bytes(p, n);
}

/* Brackets and quotes are balanced, since json_scan accepted the text. */
bool
mcp_json_element(struct ipc_bytes *rest, struct ipc_bytes *element)
{
	const uint8_t *p = rest->p, *end = rest->p + rest->n;
	unsigned depth = 0;
	bool quoted = false;

	*element = mcp_json_trim(p, rest->n);
	if (element->n == 0)
		return false;
	for (; p < end; p++) {
		if (quoted) {
			if (*p == '\\')
				p++;
			else if (*p == '"')
				quoted = false;
		} else if (*p == ',' && depth == 0) {
			break;
		} else if (*p == '"') {
			quoted = true;
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if (*p == '}' || *p == ']') {
			depth--;
		}
	}
	*element = mcp_json_trim(rest->p, (size_t)(p - rest->p));
	if (p < end)
		p++; /* the comma */
	*rest = ipc_bytes(p, (size_t)(end - p));
	return true;
}
