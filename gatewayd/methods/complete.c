/* completion/complete: returns the values that the author of a prompt or
 * template listed for an argument, as far as they begin with the client's
 * text. */
#include <json-c/json_object.h>
#include <string.h>
#include <strings.h>

#include "catalogue.h"
#include "json.h"
#include "jsonw.h"
#include "methods.h"

enum {
	VALUES_MAX = 100, /* MCP: completion, response values */
	TEXT_MAX = 4096   /* bytes of typed text; values are shorter */
};

/* Writes {"values":[...],"total":N,"hasMore":B} into b. values may be NULL. */
static void
put_completion(struct buf *b, struct json_object *values, const char *typed)
{
	struct json_object *v;
	struct jsonw w;
	size_t i, n, total = 0;

	n = values != NULL ? json_object_array_length(values) : 0;
	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_name(&w, "values");
	jsonw_arr(&w);
	for (i = 0; i < n; i++) {
		v = json_object_array_get_idx(values, i);
		if (!json_object_is_type(v, json_type_string) ||
		    strncasecmp(
			json_object_get_string(v), typed, strlen(typed)) != 0)
			continue;
		if (total++ < VALUES_MAX)
			jsonw_str(&w, json_object_get_string(v));
	}
	jsonw_arr_end(&w);
	jsonw_kv_int(&w, "total", (int64_t)total);
	jsonw_kv_bool(&w, "hasMore", total > VALUES_MAX);
	jsonw_obj_end(&w);
}

/* Returns the object that params.ref names; NULL: there is none. */
static const struct catalogue_item *
referred(const struct mcp_message *m, const struct catalogue *c)
{
	const struct catalogue_item *item;
	char text[URI_MAX + 1];

	if (mcp_json_text(m->complete.ref, text, sizeof(text)) < 0)
		return NULL;
	if (m->complete.prompt)
		return catalogue_item_named(c, MCP_LIST_PROMPTS, text);
	item = catalogue_item_at(c, MCP_LIST_TEMPLATES, text);
	return item != NULL ? item
			    : catalogue_item_at(c, MCP_LIST_RESOURCES, text);
}

static void
complete(void *arg, const struct catalogue *c, const struct refusal *no)
{
	struct exchange *ex = arg;
	struct answer_to to = exchange_to(ex);
	char name[MCP_NAME_MAX + 1], typed[TEXT_MAX] = "";
	struct json_object *values = NULL;
	const struct catalogue_item *item;
	struct buf b, body;

	if (c == NULL) {
		exchange_refuse(ex, no);
		return;
	}
	item = referred(&ex->m, c);
	if (item == NULL) {
		exchange_error(ex, 200,
		    ex->m.complete.prompt ? FAILURE_UNKNOWN_PROMPT
					  : FAILURE_INVALID_PARAMS,
		    ex->m.complete.prompt
			? "No prompt has this name."
			: "No resource or template has this URI.",
		    NULL);
		return;
	}
	/* No value begins with a text that is longer than any value, and an
	 * argument that does not exist has no values. */
	if (item->values == NULL ||
	    mcp_json_text(ex->m.complete.name, name, sizeof(name)) < 0 ||
	    mcp_json_text(ex->m.complete.value, typed, sizeof(typed)) < 0 ||
	    !json_object_object_get_ex(item->values, name, &values))
		values = NULL;
	buf_init(&body, ANSWER_MAX);
	buf_puts(&body, "{\"completion\":");
	put_completion(&body, values, typed);
	buf_putc(&body, '}');
	buf_init(&b, ANSWER_MAX);
	if (body.failed ||
	    answer_call(
		&b, &to, ipc_bytes(body.p, body.len), ipc_bytes(NULL, 0)) < 0)
		b.failed = true;
	buf_free(&body);
	exchange_answer(ex, 200, &b);
}

void
complete_serve(struct exchange *ex)
{
	if (exchange_may_read(ex, 1u << MCP_LIST_PROMPTS))
		catalogue_ask(ex->gw, ex->who.permission_set, complete, ex);
}
