/*
 * resources/read, subscribe and unsubscribe: find the object that a URI names.
 *
 * The object is the resource with just this URI, else the stopped object with
 * this URI, else the first template that matches. The template's variables,
 * decoded, are then the arguments. From there on a read is a call like any
 * other: admind decides by name and arguments, and never sees the URI.
 */
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "catalogue.h"
#include "json.h"
#include "jsonw.h"
#include "log.h"
#include "methods.h"

/* Answers -32602 with data.uri. answer.c makes the code -32002 for the legacy
 * revisions. The client's URI goes back as the JSON string that came. */
static void
not_found(struct exchange *ex)
{
	struct buf b;

	buf_init(&b, HTTP_BODY_MAX);
	buf_puts(&b, "\"uri\":");
	buf_put(&b, ex->m.uri.p, ex->m.uri.n);
	buf_putc(&b, '\0');
	exchange_error(ex, 200, FAILURE_UNKNOWN_RESOURCE,
	    "No resource has this URI.", b.failed ? NULL : (const char *)b.p);
	buf_free(&b);
}

/* Writes {"variable":"value", ...} into ex->made. 0, or -1: a value is no
 * text. */
static int
arguments(struct exchange *ex, const struct uri_template *t,
    const struct uri_value *values)
{
	struct buf *out = &ex->made, v;
	char name[NAME_TOOL_MAX + 1];
	struct jsonw w;
	size_t i;
	int rc = 0;

	buf_free(out);
	buf_init(out, ARGUMENTS_MAX);
	jsonw_open(&w, out);
	jsonw_obj(&w);
	for (i = 0; rc == 0 && i < t->variables; i++) {
		buf_init(&v, URI_MAX);
		rc = uri_decode(values[i].p, values[i].n, &v);
		snprintf(name, sizeof(name), "%.*s", (int)values[i].name_n,
		    values[i].name);
		jsonw_name(&w, name);
		jsonw_strn(&w, v.p, v.len);
		buf_free(&v);
	}
	jsonw_obj_end(&w);
	return rc < 0 || out->failed ? -1 : 0;
}

/* Returns the object that the URI names. NULL: there is none, and the request
 * was answered. */
static const struct catalogue_item *
resolve(struct exchange *ex, const struct catalogue *c)
{
	struct uri_value values[URI_VARIABLES_MAX];
	const struct catalogue_item *item = NULL;
	char uri[URI_MAX + 1];

	if (mcp_json_text(ex->m.uri, uri, sizeof(uri)) == 0)
		item = catalogue_item_for(c, uri, values);
	if (item == NULL || strlen(item->name) > MCP_NAME_MAX ||
	    (item->template != NULL &&
		arguments(ex, item->template, values) < 0)) {
		not_found(ex);
		return NULL;
	}
	return item;
}

static void
found(void *arg, const struct catalogue *c, const struct refusal *no)
{
	static const char *const path[] = {"mimeType", NULL};
	struct exchange *ex = arg;
	const struct catalogue_item *item;
	struct ipc_bytes json;
	const uint8_t *p;
	size_t n;

	if (c == NULL) {
		exchange_refuse(ex, no);
		return;
	}
	item = resolve(ex, c);
	if (item == NULL)
		return;
	memcpy(ex->m.tool, item->name, strlen(item->name) + 1);
	if (item->template != NULL)
		ex->m.arguments = ipc_bytes(ex->made.p, ex->made.len);
	ex->ttl_ms = item->ttl_ms;
	buf_clear(&ex->mime);
	if (item->stopped) {
		call_start(ex);
		return;
	}
	json = catalogue_item_json(
	    &c->part[item->template != NULL ? MCP_LIST_TEMPLATES
					    : MCP_LIST_RESOURCES],
	    item);
	if (json_slice(json.p, json.n, path, &p, &n) == 1)
		buf_put(&ex->mime, p, n);
	if (ex->mime.failed) /* the type is only a hint: go on */
		buf_clear(&ex->mime);
	call_start(ex);
}

void
resource_read(struct exchange *ex)
{
	struct refusal no;

	/* A token that may not read finds no resource, so admind would not be
	 * asked whether it may call. */
	if (ex->who.call_scope[0] == '\0') {
		catalogue_ask(ex->gw, ex->who.permission_set, found, ex);
		return;
	}
	refusal_scope(&no, ex->who.call_scope);
	exchange_refuse(ex, &no);
}

/* ---- subscriptions of legacy sessions ---- */

static void
subscribed(void *arg, const struct catalogue *c, const struct refusal *no)
{
	struct exchange *ex = arg;
	struct answer_to to = exchange_to(ex);
	const struct catalogue_item *item;
	char uri[URI_MAX + 1];
	struct refusal no_more;
	struct buf b;

	if (c == NULL) {
		exchange_refuse(ex, no);
		return;
	}
	item = resolve(ex, c);
	if (item == NULL)
		return;
	if (item->stopped) {
		refusal_set(&no_more, FAILURE_STOPPED, 0,
		    "The resource is stopped. resources/read says who stopped "
		    "it.");
		exchange_refuse(ex, &no_more);
		return;
	}
	/* The URI fits, because resolve() has read it. */
	if (mcp_json_text(ex->m.uri, uri, sizeof(uri)) < 0 ||
	    session_state_subscribe(
		ex->gw->states, &ex->session, uri, &item->version) < 0) {
		refusal_set(&no_more, FAILURE_BUSY, 0,
		    "Too many subscriptions: 64 a session. Unsubscribe "
		    "from another first.");
		exchange_refuse(ex, &no_more);
		return;
	}
	buf_init(&b, ANSWER_MAX);
	answer_empty(&b, &to);
	exchange_answer(ex, 200, &b);
}

void
resource_subscribe(struct exchange *ex)
{
	struct answer_to to = exchange_to(ex);
	char uri[URI_MAX + 1];
	struct buf b;

	if (!ex->has_session) {
		exchange_error(ex, 200, FAILURE_INVALID_REQUEST,
		    "A subscription needs a session: nobody else could be "
		    "told.",
		    NULL);
		return;
	}
	if (ex->m.method == MCP_RESOURCES_SUBSCRIBE) {
		if (exchange_may_read(ex, 1u << MCP_LIST_RESOURCES))
			catalogue_ask(
			    ex->gw, ex->who.permission_set, subscribed, ex);
		return;
	}
	if (mcp_json_text(ex->m.uri, uri, sizeof(uri)) == 0)
		session_state_unsubscribe(ex->gw->states, &ex->session, uri);
	buf_init(&b, ANSWER_MAX);
	answer_empty(&b, &to);
	exchange_answer(ex, 200, &b);
}
