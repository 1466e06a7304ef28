/* See telemetry_batch.h. The columns are those of telemetry_take()
 * (sql/migrations/0015_telemetry.sql). */
#include <string.h>

#include "access.h"
#include "activity.h"
#include "db.h"
#include "ids.h"
#include "telemetry_batch.h"

enum column {
	C_ID,
	C_KIND,
	C_OBJECT,
	C_TOOL,
	C_SERVER,
	C_OUTCOME,
	C_FAILURE,
	C_LISTENER,
	C_PRINCIPAL,
	C_PROTOCOL,
	C_VERSION,
	C_TRACE,
	C_SPAN,
	C_CREATED,
	C_ENDED,
	C_DROPPED,
	C_WAITING
};

int
telemetry_batch_calls(const struct pg_result *rows)
{
	int n = db_nrows(rows);

	return n > 0 && db_null(rows, 0, C_ID) ? 0 : n;
}

void
telemetry_batch_figures(struct otlp_state *s, const struct pg_result *rows)
{
	if (db_nrows(rows) == 0)
		return;
	s->dropped = (uint64_t)db_int(rows, 0, C_DROPPED);
	s->waiting = (uint64_t)db_int(rows, 0, C_WAITING);
}

static void
read_call(struct otlp_call *c, const struct pg_result *rows, int i)
{
	struct ipc_bytes object = db_bytes(rows, i, C_OBJECT);
	struct ipc_bytes span = db_bytes(rows, i, C_SPAN);

	memset(c, 0, sizeof(*c));
	c->id = db_id(rows, i, C_ID);
	if (!db_null(rows, i, C_TRACE) && span.n == sizeof(c->trace.span)) {
		c->trace.id = db_id(rows, i, C_TRACE);
		memcpy(c->trace.span, span.p, span.n);
	}
	if (ipc_streq(object, "prompt"))
		c->method = OTLP_PROMPT;
	else if (ipc_streq(object, "resource") || ipc_streq(object, "template"))
		c->method = OTLP_RESOURCE;
	c->tool = db_bytes(rows, i, C_TOOL);
	c->server = db_bytes(rows, i, C_SERVER);
	c->outcome = db_bytes(rows, i, C_OUTCOME);
	c->failure = db_bytes(rows, i, C_FAILURE);
	c->listener = db_bytes(rows, i, C_LISTENER);
	c->principal = db_bytes(rows, i, C_PRINCIPAL);
	c->protocol = db_bytes(rows, i, C_PROTOCOL);
	c->version = db_bytes(rows, i, C_VERSION);
	c->begin_us = db_time_us(rows, i, C_CREATED);
	c->end_us = db_time_us(rows, i, C_ENDED);
}

static void
put_spans(
    struct jsonw *w, const struct otlp_who *who, const struct pg_result *rows)
{
	struct otlp_call c;

	otlp_begin(w, who, true);
	for (int i = 0; i < telemetry_batch_calls(rows); i++) {
		read_call(&c, rows, i);
		otlp_span(w, who, &c);
	}
	otlp_end(w);
}

static void
put_metrics(struct jsonw *w, const struct otlp_who *who, struct admind *a)
{
	const struct otlp_state *s = a->access->telemetry;
	struct otlp_number refused[FAILURE_COUNT];
	const struct otlp_number running = {NULL, a->live.count},
				 dropped = {NULL, s->dropped};
	uint64_t now = now_us();
	unsigned n = 0;

	for (int i = 1; a->metrics != NULL && i < FAILURE_COUNT; i++)
		if (a->metrics->refused[i] > 0)
			refused[n++] = (struct otlp_number){
			    failure_info((enum failure)i)->name,
			    a->metrics->refused[i]};
	otlp_begin(w, who, false);
	otlp_durations(w, &s->counts, now);
	otlp_numbers(w, "mcpbox.calls.running", "{call}",
	    "Calls that the sandbox answers for.", false, &running, 1, 0, now);
	otlp_numbers(w, "mcpbox.calls.refused", "{call}",
	    "Calls that became no execution.", true, refused, n, a->started_us,
	    now);
	otlp_numbers(w, "mcpbox.telemetry.dropped", "{call}",
	    "Calls that no span was sent of, of all nodes together.", false,
	    &dropped, 1, 0, now);
	otlp_end(w);
}

/* Puts one post, and frees its body. */
static void
post(struct jsonw *w, const char *path, struct buf *body)
{
	jsonw_obj(w);
	jsonw_kv_str(w, "path", path);
	jsonw_kv_strn(w, "body", body->p, body->len);
	jsonw_obj_end(w);
	if (body->failed)
		w->out->failed = true;
	buf_free(body);
}

int
telemetry_batch_put(struct admind *a, const struct telemetry *to,
    const struct pg_result *rows, struct buf *out)
{
	struct otlp_who who = {.node = a->node, .principals = to->principals};
	struct jsonw w, body;
	struct buf text;
	int n = 0;

	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_name(&w, "posts");
	jsonw_arr(&w);
	if (to->spans && telemetry_batch_calls(rows) > 0) {
		buf_init(&text, ARGUMENTS_MAX);
		jsonw_open(&body, &text);
		put_spans(&body, &who, rows);
		post(&w, "/v1/traces", &text);
		n++;
	}
	if (to->metrics) {
		buf_init(&text, ARGUMENTS_MAX);
		jsonw_open(&body, &text);
		put_metrics(&body, &who, a);
		post(&w, "/v1/metrics", &text);
		n++;
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	return n;
}

void
telemetry_batch_count(struct otlp_state *s, const struct pg_result *rows)
{
	struct otlp_call c;

	for (int i = 0; i < telemetry_batch_calls(rows); i++) {
		read_call(&c, rows, i);
		otlp_count(&s->counts, &c);
	}
}
