/*
 * An ended call as a span. See otlp.h.
 *
 * With a traceparent the span is a child of the client's. Without one it is the
 * root of a trace whose id is that of the record. The flag `sampled` of a
 * traceparent is not asked: a client must not choose which of its calls an
 * administrator sees.
 */
#include <stdio.h>
#include <string.h>

#include "crypto.h"
#include "ids.h"
#include "otlp.h"

enum {
	KIND_SERVER = 2,
	STATUS_ERROR = 2,
	VERSION_BYTES = 6,   /* of the hash: as people are shown it */
	PROTOCOL_LEN = 10,   /* "2025-11-25" */
	FLAGS = 0x100,       /* known: is the parent remote? */
	FLAGS_REMOTE = 0x200 /* it is */
};

/* Tells whether a client's word has the form of a version of MCP. */
static bool
is_protocol(struct ipc_bytes b)
{
	if (b.n != PROTOCOL_LEN)
		return false;
	for (size_t i = 0; i < b.n; i++)
		if (i == 4 || i == 7 ? b.p[i] != '-'
				     : b.p[i] < '0' || b.p[i] > '9')
			return false;
	return true;
}

static void
hex(struct jsonw *w, const char *name, const uint8_t *p, size_t n)
{
	char text[2 * sizeof(struct ipc_id) + 1];

	hex_encode(p, n, text);
	jsonw_kv_str(w, name, text);
}

static void
ids(struct jsonw *w, const struct otlp_call *c)
{
	static const struct trace none;
	static const char domain[] = "mcpbox span 1";
	bool child = memcmp(&c->trace.id, &none.id, sizeof(none.id)) != 0;
	struct ipc_hash h;

	sha256_2(domain, sizeof(domain), c->id.b, sizeof(c->id.b), &h);
	h.b[0] |= 1; /* zeros alone would be no id */
	hex(w, "traceId", child ? c->trace.id.b : c->id.b, sizeof(c->id.b));
	hex(w, "spanId", h.b, TRACE_SPAN_LEN);
	if (child)
		hex(w, "parentSpanId", c->trace.span, TRACE_SPAN_LEN);
	jsonw_kv_int(w, "flags", child ? FLAGS | FLAGS_REMOTE : FLAGS);
}

static void
name(struct jsonw *w, const struct otlp_call *c)
{
	char text[OTLP_NAME_MAX + 32];
	size_t n = c->tool.n <= OTLP_NAME_MAX ? c->tool.n : OTLP_NAME_MAX;

	if (c->method == OTLP_RESOURCE || n == 0)
		snprintf(text, sizeof(text), "%s", otlp_method_name(c->method));
	else
		snprintf(text, sizeof(text), "%s %.*s",
		    otlp_method_name(c->method), (int)n,
		    (const char *)c->tool.p);
	jsonw_kv_strn(w, "name", text, strlen(text));
}

static void
attributes(
    struct jsonw *w, const struct otlp_who *who, const struct otlp_call *c)
{
	char text[UUID_TEXT_LEN + 1];

	jsonw_name(w, "attributes");
	jsonw_arr(w);
	otlp_call_attrs(w, c->method, c->tool, c->failure);
	if (is_protocol(c->protocol))
		otlp_attr(w, "mcp.protocol.version", c->protocol);
	if (!ipc_streq(c->listener, "admind"))
		otlp_attr(w, "network.transport", ipc_str("tcp"));
	otlp_attr(w, "mcpbox.listener", c->listener);
	otlp_attr(w, "mcpbox.outcome", c->outcome);
	if (c->server.n > 0)
		otlp_attr(w, "mcpbox.server", c->server);
	if (c->version.n >= VERSION_BYTES) {
		hex_encode(c->version.p, VERSION_BYTES, text);
		otlp_attr(w, "mcpbox.version", ipc_str(text));
	}
	uuid_text(&c->id, text);
	otlp_attr(w, "mcpbox.execution", ipc_str(text));
	if (who->principals)
		otlp_attr(w, "mcpbox.principal", c->principal);
	jsonw_arr_end(w);
}

void
otlp_span(
    struct jsonw *w, const struct otlp_who *who, const struct otlp_call *c)
{
	uint64_t end = c->end_us > c->begin_us ? c->end_us : c->begin_us;

	jsonw_obj(w);
	ids(w, c);
	name(w, c);
	jsonw_kv_int(w, "kind", KIND_SERVER);
	otlp_time(w, "startTimeUnixNano", c->begin_us);
	otlp_time(w, "endTimeUnixNano", end);
	attributes(w, who, c);
	jsonw_name(w, "status");
	jsonw_obj(w);
	if (c->failure.n > 0)
		jsonw_kv_int(w, "code", STATUS_ERROR);
	jsonw_obj_end(w);
	jsonw_obj_end(w);
}
