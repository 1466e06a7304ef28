/* See task_json.h. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "failure.h"
#include "ids.h"
#include "json.h"
#include "jsonw.h"
#include "task_json.h"

static const char *const states[] = {[TASK_WORKING] = "working",
    [TASK_INPUT_REQUIRED] = "input_required",
    [TASK_COMPLETED] = "completed",
    [TASK_FAILED] = "failed",
    [TASK_CANCELLED] = "cancelled"};

void
task_json_time(uint64_t unix_us, char out[TASK_JSON_TIME_LEN + 1])
{
	time_t s = (time_t)(unix_us / 1000000);
	char text[20];
	struct tm tm;

	if (gmtime_r(&s, &tm) == NULL ||
	    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		memcpy(text, "1970-01-01T00:00:00", sizeof(text));
	(void)snprintf(out, TASK_JSON_TIME_LEN + 1, "%s.%03uZ", text,
	    (unsigned)(unix_us / 1000 % 1000));
}

/* True for exactly one JSON object. Its braces balance, so it can be spliced
 * in. */
static bool
is_object(struct ipc_bytes o)
{
	return o.n >= 2 && o.p[0] == '{' && o.p[o.n - 1] == '}' &&
	    json_scan(o.p, o.n, NULL) == 0;
}

static bool
has(struct ipc_bytes object, const char *name)
{
	const char *path[] = {name, NULL};
	const uint8_t *p;
	size_t n;

	return json_slice(object.p, object.n, path, &p, &n) == 1;
}

/* Puts the result as tools/call would have answered. The client that asks knows
 * the task, so the result's _meta does not name the task. */
static int
put_result(struct jsonw *w, struct ipc_bytes body, struct ipc_bytes meta)
{
	struct buf *b = w->out;
	size_t i;

	if (!is_object(body) || has(body, "_meta") || has(body, "resultType") ||
	    (meta.n > 0 && !is_object(meta)))
		return -1;
	jsonw_kv_raw(w, "result", "", 0);
	buf_puts(b, "{\"resultType\":\"complete\"");
	for (i = 1; body.p[i] == ' '; i++)
		;
	if (body.p[i] != '}')
		buf_putc(b, ',');
	buf_put(b, body.p + 1, body.n - 2);
	if (meta.n > 0) {
		buf_puts(b, ",\"_meta\":");
		buf_put(b, meta.p, meta.n);
	}
	buf_putc(b, '}');
	return 0;
}

static void
put_error(struct jsonw *w, const struct ipc_task_state *t)
{
	const struct failure_info *fi =
	    failure_info(t->failure < FAILURE_COUNT ? (enum failure)t->failure
						    : FAILURE_INTERNAL);

	jsonw_name(w, "error");
	jsonw_obj(w);
	jsonw_kv_int(
	    w, "code", fi->jsonrpc_code != 0 ? fi->jsonrpc_code : -32603);
	if (t->message.n > 0)
		jsonw_kv_strn(w, "message", t->message.p, t->message.n);
	else
		jsonw_kv_str(w, "message", fi->fix);
	jsonw_name(w, "data");
	jsonw_obj(w);
	jsonw_kv_str(w, "failure_mode", fi->name);
	jsonw_kv_str(w, "fix",
	    failure_fix(t->failure < FAILURE_COUNT ? (enum failure)t->failure
						   : FAILURE_INTERNAL,
		(const char *)t->message.p, t->message.n));
	jsonw_obj_end(w);
	jsonw_obj_end(w);
}

int
task_json_members(struct buf *b, const struct ipc_task_state *t, bool detailed)
{
	char id[UUID_TEXT_LEN + 1], created[TASK_JSON_TIME_LEN + 1],
	    updated[TASK_JSON_TIME_LEN + 1];
	size_t at = b->len;
	struct ipc_bytes body, meta;
	struct jsonw w;

	if (t->status < TASK_WORKING || t->status > TASK_CANCELLED ||
	    t->body_len > t->body_meta.n)
		return -1;
	body = ipc_bytes(t->body_meta.p, t->body_len);
	meta = ipc_bytes(
	    t->body_meta.p + t->body_len, t->body_meta.n - t->body_len);
	uuid_text(&t->task, id);
	task_json_time(t->created_us, created);
	task_json_time(t->updated_us, updated);
	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "taskId", id);
	jsonw_kv_str(&w, "status", states[t->status]);
	if (t->message.n > 0)
		jsonw_kv_strn(&w, "statusMessage", t->message.p, t->message.n);
	jsonw_kv_str(&w, "createdAt", created);
	jsonw_kv_str(&w, "lastUpdatedAt", updated);
	jsonw_kv_int(&w, "ttlMs", (int64_t)t->ttl_ms);
	jsonw_kv_int(&w, "pollIntervalMs", (int64_t)t->poll_ms);
	if (detailed && t->status == TASK_INPUT_REQUIRED) {
		if (!is_object(body))
			return -1;
		jsonw_kv_raw(&w, "inputRequests", body.p, body.n);
	}
	if (detailed && t->status == TASK_COMPLETED &&
	    put_result(&w, body, meta) == -1)
		return -1;
	if (detailed && t->status == TASK_FAILED)
		put_error(&w, t);
	/* The opening brace is removed. The closing brace was never written. */
	if (b->failed)
		return -1;
	memmove(b->p + at, b->p + at + 1, b->len - at - 1);
	b->len--;
	return 0;
}
