/* The envelope of OTLP, and attributes. See otlp.h. */
#include "otlp.h"

#include <stdio.h>
#include <string.h>

const char *
otlp_method_name(enum otlp_method m)
{
	static const char *const names[] = {[OTLP_TOOL] = "tools/call",
	    [OTLP_PROMPT] = "prompts/get",
	    [OTLP_RESOURCE] = "resources/read"};

	return names[m];
}

void
otlp_attr(struct jsonw *w, const char *key, struct ipc_bytes value)
{
	jsonw_obj(w);
	jsonw_kv_str(w, "key", key);
	jsonw_name(w, "value");
	jsonw_obj(w);
	jsonw_kv_strn(w, "stringValue", value.p, value.n);
	jsonw_obj_end(w);
	jsonw_obj_end(w);
}

void
otlp_u64(struct jsonw *w, const char *name, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	jsonw_kv_str(w, name, text);
}

void
otlp_time(struct jsonw *w, const char *name, uint64_t us)
{
	otlp_u64(w, name, us * 1000);
}

void
otlp_call_attrs(struct jsonw *w, enum otlp_method method, struct ipc_bytes tool,
    struct ipc_bytes failure)
{
	otlp_attr(w, "mcp.method.name", ipc_str(otlp_method_name(method)));
	if (method == OTLP_TOOL)
		otlp_attr(w, "gen_ai.operation.name", ipc_str("execute_tool"));
	/* The conventions have no name of a resource, and its URI may have
	 * arguments in it. */
	if (tool.n > 0 && method != OTLP_RESOURCE)
		otlp_attr(w,
		    method == OTLP_TOOL ? "gen_ai.tool.name"
					: "gen_ai.prompt.name",
		    tool);
	if (failure.n > 0)
		otlp_attr(w, "error.type", failure);
}

/* Opens {"resourceSpans": [{"resource": {...}, "scopeSpans": [{"scope": {...},
 * "spans": [ */
void
otlp_begin(struct jsonw *w, const struct otlp_who *who, bool spans)
{

	jsonw_obj(w);
	jsonw_name(w, spans ? "resourceSpans" : "resourceMetrics");
	jsonw_arr(w);
	jsonw_obj(w);
	jsonw_name(w, "resource");
	jsonw_obj(w);
	jsonw_name(w, "attributes");
	jsonw_arr(w);
	otlp_attr(w, "service.name", ipc_str("mcpbox"));
	otlp_attr(w, "service.version", ipc_str(MCPBOX_VERSION));
	otlp_attr(w, "service.instance.id", ipc_str(who->node));
	jsonw_arr_end(w);
	jsonw_obj_end(w);
	jsonw_name(w, spans ? "scopeSpans" : "scopeMetrics");
	jsonw_arr(w);
	jsonw_obj(w);
	jsonw_name(w, "scope");
	jsonw_obj(w);
	jsonw_kv_str(w, "name", "mcpbox");
	jsonw_kv_str(w, "version", MCPBOX_VERSION);
	jsonw_obj_end(w);
	jsonw_name(w, spans ? "spans" : "metrics");
	jsonw_arr(w);
}

void
otlp_end(struct jsonw *w)
{
	jsonw_arr_end(w);
	jsonw_obj_end(w);
	jsonw_arr_end(w);
	jsonw_obj_end(w);
	jsonw_arr_end(w);
	jsonw_obj_end(w);
}
