#include <stdio.h>
#include <string.h>

#include "json.h"
#include "line.h"
#include "mcp_era.h"

#define VERSION_KEY "io.modelcontextprotocol/protocolVersion"

/* True if a header can carry the text as it is: visible ASCII and inner spaces.
 * A text that looks like the encoded form is encoded, too (MCP 2026-07-28,
 * Streamable HTTP, header values). */
static bool
plain(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || s[0] == ' ' || s[n - 1] == ' ' ||
	    strncmp(s, "=?base64?", 9) == 0)
		return false;
	for (; *s != '\0'; s++)
		if (*s < ' ' || *s > '~')
			return false;
	return true;
}

int
line_header(const char *text, char *out, size_t size)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = (const uint8_t *)text;
	size_t n = strlen(text), at;

	if (plain(text)) {
		if (n >= size)
			return -1;
		memcpy(out, text, n + 1);
		return 0;
	}
	if (sizeof("=?base64?") + (n + 2) / 3 * 4 + 2 > size)
		return -1;
	at = (size_t)snprintf(out, size, "=?base64?");
	for (size_t i = 0; i < n; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 |
		    (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
		    (i + 2 < n ? p[i + 2] : 0);

		out[at++] = digits[v >> 18];
		out[at++] = digits[v >> 12 & 63];
		out[at++] = i + 1 < n ? digits[v >> 6 & 63] : '=';
		out[at++] = i + 2 < n ? digits[v & 63] : '=';
	}
	memcpy(out + at, "?=", 3);
	return 0;
}

/* Returns the parameter that the Mcp-Name header of a method repeats; NULL:
 * none. */
static const char *
named_by(const char *method)
{
	if (strcmp(method, "tools/call") == 0 ||
	    strcmp(method, "prompts/get") == 0)
		return "name";
	if (strcmp(method, "resources/read") == 0)
		return "uri";
	if (strncmp(method, "tasks/", 6) == 0)
		return "taskId";
	return NULL;
}

static int
read_modern(struct line *l, struct err *err)
{
	struct ipc_bytes meta, v;
	char text[LINE_HEADER_MAX];
	const char *name;

	if (!mcp_json_given(l->params, "_meta", &meta) ||
	    !mcp_json_is_object(meta) || !mcp_json_given(meta, VERSION_KEY, &v))
		return 0;
	if (mcp_json_text(v, text, sizeof(text)) < 0 ||
	    line_header(text, l->version, sizeof(l->version)) < 0)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "the protocol version in _meta is no version");
	l->modern = true;
	name = named_by(l->method);
	if (name == NULL || !mcp_json_given(l->params, name, &v) ||
	    v.p[0] != '"')
		return 0;
	if (mcp_json_text(v, text, sizeof(text)) < 0 ||
	    line_header(text, l->name, sizeof(l->name)) < 0)
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "params.%s is longer than a header can be", name);
	return 0;
}

int
line_read(const uint8_t *p, size_t n, struct line *l, struct err *err)
{
	struct ipc_bytes all = ipc_bytes(p, n), v;

	memset(l, 0, sizeof(*l));
	if (json_scan(p, n, err) < 0)
		return -1;
	while (all.n > 0 && (all.p[0] == ' ' || all.p[0] == '\t')) {
		all.p++;
		all.n--;
	}
	if (all.p[0] == '[') {
		l->kind = LINE_ARRAY;
		return 0;
	}
	if (all.p[0] != '{')
		return err_set(err, FAILURE_INVALID_REQUEST,
		    "a line is one JSON-RPC message");
	if (mcp_json_get(all, "id", &v) && mcp_json_is_id(v))
		l->id = v;
	if (!mcp_json_get(all, "method", &v)) {
		l->kind = LINE_RESPONSE;
		return 0;
	}
	l->kind = l->id.n > 0 ? LINE_REQUEST : LINE_NOTIFICATION;
	if (mcp_json_text(v, l->method, sizeof(l->method)) < 0)
		return err_set(
		    err, FAILURE_INVALID_REQUEST, "method is no method's name");
	if (mcp_json_given(all, "params", &v) && mcp_json_is_object(v))
		l->params = v;
	if (strcmp(l->method, "notifications/cancelled") == 0 &&
	    mcp_json_get(l->params, "requestId", &v) && mcp_json_is_id(v))
		l->cancel_id = v;
	return read_modern(l, err);
}

void
line_flatten(uint8_t *p, size_t n)
{
	for (; n > 0; n--, p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
}
