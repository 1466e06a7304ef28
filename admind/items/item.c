/* See item.h. */
#include "bounds.h"
#include "item.h"
#include "json_kv.h"

/* Writes _meta: the members of the author's object, whose text is raw, and
 * before them a resource's caching hint. admind-check made sure that the
 * author's object has no member of the hint's name. */
static void
put_meta(struct jsonw *w, struct ipc_bytes raw, bool hint, int64_t ttl_ms)
{
	struct buf b;
	size_t i = 1;

	if (!hint) {
		if (raw.n > 0)
			jsonw_kv_raw(w, "_meta", raw.p, raw.n);
		return;
	}
	buf_init(&b, IPC_FRAME_MAX);
	buf_putf(&b, "{\"mcpbox/ttlMs\":%lld", (long long)ttl_ms);
	while (i < raw.n && raw.p[i] <= ' ')
		i++;
	if (i < raw.n && raw.p[i] != '}') {
		buf_putc(&b, ',');
		buf_put(&b, raw.p + i, raw.n - i);
	} else {
		buf_putc(&b, '}');
	}
	jsonw_kv_raw(w, "_meta", b.p, b.len);
	if (b.failed)
		w->out->failed = true;
	buf_free(&b);
}

void
item_put(struct jsonw *w, enum mcp_list list, const struct pg_result *rows,
    int i, struct ipc_bytes shown, const struct endpoint_rename *rename)
{
	static const struct {
		int column;
		const char *name;
		bool raw;
	} members[] = {{C_TITLE, "title", false},
	    {C_DESCRIPTION, "description", false},
	    {C_MIME_TYPE, "mimeType", false}, {C_ICONS, "icons", true},
	    {C_INPUT_SCHEMA, "inputSchema", true},
	    {C_OUTPUT_SCHEMA, "outputSchema", true},
	    {C_ANNOTATIONS, "annotations", true},
	    {C_ARGUMENTS, "arguments", true}};

	jsonw_obj(w);
	if (list == MCP_LIST_RESOURCES || list == MCP_LIST_TEMPLATES)
		json_kv_bytes(w,
		    list == MCP_LIST_TEMPLATES ? "uriTemplate" : "uri",
		    db_bytes(rows, i, C_URI));
	json_kv_bytes(w, "name", shown);
	for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
		struct ipc_bytes v = db_bytes(rows, i, members[k].column);

		if (members[k].column == C_DESCRIPTION && rename != NULL &&
		    rename->description.n > 0) {
			json_kv_bytes(w, "description", rename->description);
			continue;
		}
		/* A tool's description is never left out, because models choose
		 * by it. */
		if (db_null(rows, i, members[k].column) ||
		    (v.n == 0 && list != MCP_LIST_TOOLS))
			continue;
		if (members[k].raw)
			jsonw_kv_raw(w, members[k].name, v.p, v.n);
		else
			json_kv_bytes(w, members[k].name, v);
	}
	if (!db_null(rows, i, C_SIZE) && list == MCP_LIST_RESOURCES)
		jsonw_kv_int(w, "size", db_int(rows, i, C_SIZE));
	put_meta(w, db_bytes(rows, i, C_META), !db_null(rows, i, C_TTL_MS),
	    db_null(rows, i, C_TTL_MS) ? 0 : db_int(rows, i, C_TTL_MS));
	jsonw_obj_end(w);
}
