/*
 * POST /api/servers/{id}/openapi {"document": {...}, "base_url": URL,
 * "operations": [names]}: imports operations as tools, each a request in the
 * queue. The document's members are passed on unread; admind-check reads them.
 * A body has WEB_LARGE_MAX bytes at most, as mcpbox_import_openapi's. mcpboxctl
 * takes larger documents.
 */
#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "json.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

enum { OPERATIONS_MAX = 50 };

static void
said(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, false);
}

/* Writes the names, each with a line feed after it. 0 or -1. */
static int
lines(struct json_object *o, struct buf *out)
{
	struct json_object *list, *v;
	struct err e;
	int rc = json_get_arr(o, "operations", &list, &e);

	if (rc <= 0)
		return rc;
	if (json_object_array_length(list) > OPERATIONS_MAX)
		return -1;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		v = json_object_array_get_idx(list, i);
		if (!json_object_is_type(v, json_type_string) ||
		    json_object_get_string_len(v) == 0 ||
		    strpbrk(json_object_get_string(v), "\n") != NULL ||
		    strlen(json_object_get_string(v)) !=
			(size_t)json_object_get_string_len(v))
			return -1;
		buf_puts(out, json_object_get_string(v));
		buf_putc(out, '\n');
	}
	return 0;
}

void
openapi_post(struct call *c)
{
	static const char *const members[] = {
	    "document", "base_url", "operations", NULL};
	struct ipc_openapi_import m = {.token = ipc_str(c->token_hash)};
	struct json_object *o, *document;
	const char *text, *base = "";
	size_t n = 0;
	struct buf b;
	struct err e;
	bool ok;

	if (uuid_parse(c->id, strlen(c->id), &m.server) < 0) {
		problem_send(c, FAILURE_NOT_FOUND, "no such server", NULL);
		return;
	}
	if (body_parse(c, members, &o) < 0)
		return;
	buf_init(&b, IPC_BLOB_MAX);
	ok = json_object_object_get_ex(o, "document", &document) &&
	    json_object_is_type(document, json_type_object) &&
	    json_get_str(o, "base_url", &base, &n, &e) >= 0 &&
	    (base == NULL || strlen(base) == n);
	if (ok) {
		text = json_object_to_json_string_length(
		    document, JSON_C_TO_STRING_PLAIN, &n);
		buf_put(&b, text, n);
		m.document_len = (uint32_t)n;
		ok = lines(o, &b) == 0 && !b.failed;
	}
	if (ok) {
		m.base_url = ipc_str(base != NULL ? base : "");
		m.document_operations = ipc_bytes(b.p, b.len);
		ask_admind(c, IPC_OPENAPI_IMPORT, &m, said);
	} else
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "document must be an object, base_url text, operations an "
		    "array of at most 50 names",
		    NULL);
	json_object_put(o);
	buf_free(&b);
}
