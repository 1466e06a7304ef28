/* subscriptions/listen (MCP 2026-07-28): chooses the parts of the request that
 * are honoured, and names them in the stream's first message. */
#include <stdlib.h>
#include <string.h>

#include "catalogue.h"
#include "jsonw.h"
#include "stream_internal.h"
#include "walk.h"

enum { ACK_MAX = 512 * 1024 };

/* Copies one string of an array into out. 0, or -1: no string, or too long. */
static int
take_text(struct ipc_bytes v, char *out, size_t size)
{
	return v.n > 0 && v.p[0] == '"' ? mcp_json_text(v, out, size) : -1;
}

/* Reads the tasks that the request names; texts that can't be an id are left
 * out. */
static unsigned
read_tasks(const struct exchange *ex, struct buf *out)
{
	char text[STREAM_TASK_ID_MAX + 1];
	struct ipc_bytes name, v;
	struct walk w;
	unsigned n = 0;

	if (ex->m.listen.tasks.n == 0 || !(ex->m.declared & CLIENT_TASKS) ||
	    walk_open(&w, ex->m.listen.tasks, '[') < 0)
		return 0;
	while (n < STREAM_TASKS_MAX && walk_next(&w, &name, &v))
		if (take_text(v, text, sizeof(text)) == 0 && text[0] != '\0') {
			buf_put(out, text, strlen(text) + 1);
			n++;
		}
	return out->failed ? 0 : n;
}

static bool
watched(const struct stream *s, const char *uri)
{
	unsigned i;

	for (i = 0; i < s->nwatches; i++)
		if (strcmp(s->watches[i].uri, uri) == 0)
			return true;
	return false;
}

/* Reads the named resources that exist. Only these are honoured, and the client
 * is told of these only, so a stream shows nothing that a list doesn't. */
static int
read_watches(
    struct stream *s, const struct exchange *ex, const struct catalogue *c)
{
	struct uri_value values[URI_VARIABLES_MAX];
	const struct catalogue_item *item;
	struct session_watch *watch;
	char uri[URI_MAX + 1];
	struct ipc_bytes name, v;
	struct walk w;

	if (walk_open(&w, ex->m.listen.uris, '[') < 0)
		return 0;
	while (s->nwatches < STREAM_URIS_MAX && walk_next(&w, &name, &v)) {
		if (take_text(v, uri, sizeof(uri)) < 0 || watched(s, uri) ||
		    (item = catalogue_item_for(c, uri, values)) == NULL ||
		    item->stopped)
			continue;
		watch = realloc(
		    s->watches, (s->nwatches + 1) * sizeof(*s->watches));
		if (watch == NULL)
			return -1;
		s->watches = watch;
		watch += s->nwatches;
		watch->uri = strdup(uri);
		if (watch->uri == NULL)
			return -1;
		watch->version = item->version;
		watch->due = false;
		s->nwatches++;
	}
	return 0;
}

/* Sends the first message of a stream: the parts of the request that are
 * honoured. false: there was no memory for the message, and the stream is
 * gone. */
static bool
acknowledge(struct stream *s)
{
	const char *task = s->tasks;
	struct jsonw w;
	struct buf b;
	unsigned i;
	bool ok;

	buf_init(&b, ACK_MAX);
	buf_puts(&b, "\"notifications\":");
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	if (s->want & DUE_TOOLS)
		jsonw_kv_bool(&w, "toolsListChanged", true);
	if (s->want & DUE_PROMPTS)
		jsonw_kv_bool(&w, "promptsListChanged", true);
	if (s->want & DUE_RESOURCES)
		jsonw_kv_bool(&w, "resourcesListChanged", true);
	if (s->nwatches > 0) {
		jsonw_name(&w, "resourceSubscriptions");
		jsonw_arr(&w);
		for (i = 0; i < s->nwatches; i++)
			jsonw_str(&w, s->watches[i].uri);
		jsonw_arr_end(&w);
	}
	if (s->ntasks > 0) {
		jsonw_name(&w, "taskIds");
		jsonw_arr(&w);
		for (i = 0; i < s->ntasks; i++, task += strlen(task) + 1)
			jsonw_str(&w, task);
		jsonw_arr_end(&w);
	}
	jsonw_obj_end(&w);
	buf_putc(&b, '\0');
	ok = !b.failed;
	if (ok)
		stream_tell_event(s, -1,
		    "notifications/subscriptions/acknowledged",
		    (const char *)b.p);
	else
		stream_close(s, false);
	buf_free(&b);
	return ok;
}

/* Opens the stream. c: NULL if the request names no resources. */
static void
listen_open(struct exchange *ex, const struct catalogue *c)
{
	struct refusal no;
	struct stream *s;
	struct buf tasks, b;
	unsigned n;

	if (ex->req == NULL) { /* the client left, which cancels */
		buf_init(&b, 16);
		exchange_answer(ex, 202, &b);
		return;
	}
	if (!stream_room(ex->gw, ex->who.principal, &no)) {
		exchange_refuse(ex, &no);
		return;
	}
	buf_init(&tasks, STREAM_TASKS_MAX * (STREAM_TASK_ID_MAX + 1));
	n = read_tasks(ex, &tasks);
	s = stream_new(ex, ex->m.id, (const char *)tasks.p, tasks.len);
	buf_free(&tasks);
	if (s == NULL) {
		stream_refuse_memory(ex);
		return;
	}
	s->ntasks = n;
	s->want = (ex->m.listen.tools ? DUE_TOOLS : 0) |
	    (ex->m.listen.prompts ? DUE_PROMPTS : 0) |
	    (ex->m.listen.resources ? DUE_RESOURCES : 0);
	if (c != NULL && read_watches(s, ex, c) < 0) {
		stream_unlink(s);
		stream_refuse_memory(ex);
		return;
	}
	if (s->nwatches > 0)
		s->want |= DUE_UPDATES | DUE_LOOK | DUE_ALL;
	stream_begin(s, exchange_release(ex));
	if (acknowledge(s))
		httpd_stream_lean(s->req, stream_gone);
}

static void
listen_looked(void *arg, const struct catalogue *c, const struct refusal *no)
{
	struct exchange *ex = arg;

	if (c == NULL)
		exchange_refuse(ex, no);
	else
		listen_open(ex, c);
}

void
stream_listen(struct exchange *ex)
{
	if (!ex->accepts_sse)
		exchange_error(ex, 406, FAILURE_INVALID_REQUEST,
		    "Accept must list text/event-stream: the answer is one.",
		    NULL);
	else if (ex->m.listen.uris.n > 0 &&
	    !exchange_may_read(ex, 1u << MCP_LIST_RESOURCES))
		return;
	else if (ex->m.listen.uris.n > 0)
		catalogue_ask(
		    ex->gw, ex->who.permission_set, listen_looked, ex);
	else
		listen_open(ex, NULL);
}
