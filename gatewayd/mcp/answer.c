#include <string.h>

#include "answer.h"
#include "instructions.h"
#include "json.h"
#include "jsonw.h"
#include "narrow.h"
#include "walk.h"

#define SERVER_INFO                                              \
	"{\"name\":\"mcpbox\",\"title\":\"mcpbox\",\"version\":" \
	"\"" MCPBOX_VERSION "\"}"
#define META_SERVER_INFO "\"io.modelcontextprotocol/serverInfo\":" SERVER_INFO
/* The capabilities of both eras. answer_discover adds `extensions`. */
#define CAPABILITIES                                               \
	"\"tools\":{\"listChanged\":true},"                        \
	"\"prompts\":{\"listChanged\":true},"                      \
	"\"resources\":{\"subscribe\":true,\"listChanged\":true}," \
	"\"completions\":{},\"logging\":{}"

/* How long a client may keep a list, in ms. 0, because an approval may change
 * the list at any moment, and a client without a stream is not told. */
#define TTL_LIST     "0"
#define TTL_DISCOVER "60000" /* changes with an upgrade only */

/* Bytes reserved for each of the two longest constant answers, in addition to
 * the instructions, so that the answer's buffer need not grow. */
enum { FRAME_ROOM = 1024 };

static void
put_id(struct buf *b, const struct answer_to *to)
{
	buf_puts(b, "{\"jsonrpc\":\"2.0\"");
	if (to->id.n > 0) {
		buf_puts(b, ",\"id\":");
		buf_put(b, to->id.p, to->id.n);
	} else if (to->null_id)
		buf_puts(b, ",\"id\":null");
}

/* Opens the result object. resultType, which every modern result has, comes
 * first. */
static void
put_result(struct buf *b, const struct answer_to *to)
{
	put_id(b, to);
	buf_puts(b, ",\"result\":{");
	if (to->modern)
		buf_puts(b, "\"resultType\":\"complete\",");
}

/* Closes a result that has no _meta yet. The text so far ends with "{", or with
 * a comma of put_result or of the caller. */
static void
end_result(struct buf *b, const struct answer_to *to)
{
	if (to->modern)
		buf_puts(b, "\"_meta\":{" META_SERVER_INFO "}");
	else if (b->len > 0 && b->p[b->len - 1] == ',')
		b->len--;
	buf_puts(b, "}}");
}

/* Returns an error's code. Failures on the tool's side have no code of their
 * own, because they are errors only in methods without isError. */
static int
error_code(const struct answer_to *to, enum failure f)
{
	const struct failure_info *fi = failure_info(f);

	/* UNKNOWN_RESOURCE had a code of its own before 2026-07-28. */
	if (f == FAILURE_UNKNOWN_RESOURCE && !to->modern)
		return -32002;
	if (fi->jsonrpc_code != 0)
		return fi->jsonrpc_code;
	return f == FAILURE_INVALID_ARGUMENTS ? -32602 : -32603;
}

void
answer_error(struct buf *b, const struct answer_to *to, enum failure f,
    const char *message, uint64_t retry_after_ms, const char *data)
{
	const struct failure_info *fi = failure_info(f);
	struct jsonw w;

	put_id(b, to);
	buf_puts(b, ",\"error\":");
	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_int(&w, "code", error_code(to, f));
	jsonw_kv_str(&w, "message", message);
	jsonw_name(&w, "data");
	jsonw_obj(&w);
	jsonw_kv_str(&w, "failure_mode", fi->name);
	jsonw_kv_str(&w, "fix", failure_fix(f, message, strlen(message)));
	if (retry_after_ms > 0)
		jsonw_kv_int(&w, "retry_after_ms", (int64_t)retry_after_ms);
	if (data != NULL && data[0] != '\0') {
		buf_putc(b, ',');
		buf_puts(b, data);
	}
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	buf_putc(b, '}');
}

void
answer_refusal(
    struct buf *b, const struct answer_to *to, const struct mcp_error *e)
{
	answer_error(b, to, e->failure, e->message, 0, e->data);
}

/* Gets the text between an object's braces; n = 0: no members. 0, or -1: no
 * object. */
static int
members(struct ipc_bytes o, struct ipc_bytes *out)
{
	const uint8_t *p = o.p, *end = o.p + o.n;

	while (p < end && walk_space(*p))
		p++;
	while (end > p && walk_space(end[-1]))
		end--;
	if (end - p < 2 || p[0] != '{' || end[-1] != '}')
		return -1;
	p++;
	end--;
	while (p < end && walk_space(*p))
		p++;
	*out = ipc_bytes(p, (size_t)(end - p));
	return 0;
}

static bool
has(struct ipc_bytes object, const char *name)
{
	const char *path[2] = {name, NULL};
	const uint8_t *p;
	size_t n;

	return json_slice(object.p, object.n, path, &p, &n) == 1;
}

/*
 * Writes a result of text that was made elsewhere. m: the members of its body,
 * without braces. Splicing is safe: each piece is scanned by itself first and
 * is exactly one JSON object, so the piece's braces balance and can't end the
 * result early. A body may not have the members that we add. So the client
 * never sees two members of one name, and need not choose one.
 */
static int
put_body(struct buf *b, const struct answer_to *to, struct ipc_bytes m,
    struct ipc_bytes meta)
{
	struct ipc_bytes mm = {NULL, 0};

	if (meta.n > 0 &&
	    (members(meta, &mm) < 0 || json_scan(meta.p, meta.n, NULL) < 0 ||
		has(meta, "io.modelcontextprotocol/serverInfo")))
		return -1;
	put_result(b, to);
	if (m.n > 0) {
		buf_put(b, m.p, m.n);
		buf_putc(b, ',');
	}
	if (mm.n == 0) {
		end_result(b, to);
	} else {
		buf_puts(b, "\"_meta\":{");
		if (to->modern)
			buf_puts(b, META_SERVER_INFO ",");
		buf_put(b, mm.p, mm.n);
		buf_puts(b, "}}}");
	}
	return b->failed ? -1 : 0;
}

int
answer_call(struct buf *b, const struct answer_to *to, struct ipc_bytes body,
    struct ipc_bytes meta)
{
	struct narrow hidden = {0, 0};
	struct ipc_bytes m;
	struct buf made;
	int rc;

	if (members(body, &m) < 0 || json_scan(body.p, body.n, NULL) < 0 ||
	    has(body, "_meta") || has(body, "resultType"))
		return -1;
	if (!to->modern)
		hidden = narrow_result(body);
	if (hidden.n == 0)
		return put_body(b, to, m, meta);
	buf_init(&made, body.n);
	buf_put(&made, body.p, hidden.at);
	buf_put(&made, body.p + hidden.at + hidden.n,
	    body.n - hidden.at - hidden.n);
	rc = made.failed || members(ipc_bytes(made.p, made.len), &m) < 0
	    ? -1
	    : put_body(b, to, m, meta);
	buf_free(&made);
	return rc;
}

/* Writes one element of contents. An element without a URI is the resource that
 * was asked for, so it gets the resource's URI and, unless it names a type, the
 * declared type. */
static int
put_content(struct buf *b, struct ipc_bytes e, struct ipc_bytes uri,
    struct ipc_bytes mime)
{
	struct ipc_bytes m;

	if (members(e, &m) < 0)
		return -1;
	if (has(e, "uri")) {
		buf_put(b, e.p, e.n);
		return 0;
	}
	buf_puts(b, "{\"uri\":");
	buf_put(b, uri.p, uri.n);
	if (mime.n > 0 && !has(e, "mimeType")) {
		buf_puts(b, ",\"mimeType\":");
		buf_put(b, mime.p, mime.n);
	}
	if (m.n > 0) {
		buf_putc(b, ',');
		buf_put(b, m.p, m.n);
	}
	buf_putc(b, '}');
	return 0;
}

int
answer_resource(struct buf *b, const struct answer_to *to,
    struct ipc_bytes body, struct ipc_bytes meta, struct ipc_bytes uri,
    struct ipc_bytes mime, uint64_t ttl_ms)
{
	static const char *const path[] = {"contents", NULL};
	struct ipc_bytes m, c, e;
	struct buf made;
	int rc = -1, n = 0;

	if (members(body, &m) < 0 || json_scan(body.p, body.n, NULL) < 0 ||
	    has(body, "_meta") || has(body, "resultType") ||
	    has(body, "ttlMs") || has(body, "cacheScope") ||
	    json_slice(body.p, body.n, path, &c.p, &c.n) != 1 || c.p[0] != '[')
		return -1;
	buf_init(&made, ANSWER_MAX);
	buf_puts(&made, "\"contents\":[");
	/* Other members of the body are dropped, because MCP has none. */
	for (c = ipc_bytes(c.p + 1, c.n - 2); mcp_json_element(&c, &e); n++) {
		if (n > 0)
			buf_putc(&made, ',');
		if (put_content(&made, e, uri, mime) < 0)
			goto out;
	}
	buf_putc(&made, ']');
	if (to->modern)
		buf_putf(&made, ",\"ttlMs\":%llu,\"cacheScope\":\"private\"",
		    (unsigned long long)ttl_ms);
	if (!made.failed)
		rc = put_body(b, to, ipc_bytes(made.p, made.len), meta);
out:
	buf_free(&made);
	return rc;
}

/* Returns the text of a result's first content block, as JSON; n = 0: there is
 * none. */
static struct ipc_bytes
first_text(struct ipc_bytes body)
{
	static const char *const content[] = {"content", NULL};
	static const char *const text[] = {"text", NULL};
	const uint8_t *p;
	size_t n;

	if (json_slice(body.p, body.n, content, &p, &n) != 1 || *p != '[' ||
	    json_slice(p + 1, n - 1, text, &p, &n) != 1 || *p != '"')
		return ipc_bytes(NULL, 0);
	return ipc_bytes(p, n);
}

/* Writes an error with the text of the failed call's result as its message,
 * because prompts/get and resources/read have no isError. body and meta were
 * made elsewhere, so they are scanned here. */
int
answer_failed_call(struct buf *b, const struct answer_to *to, enum failure f,
    struct ipc_bytes body, struct ipc_bytes meta, struct ipc_bytes uri)
{
	static const char *const path[] = {"mcpbox/execution", NULL};
	static const char *const said[] = {"mcpbox/failure", "fix", NULL};
	const struct failure_info *fi = failure_info(f);
	struct ipc_bytes text, run = {NULL, 0}, fix = {NULL, 0};
	struct jsonw w;

	if (json_scan(body.p, body.n, NULL) < 0 ||
	    (meta.n > 0 && json_scan(meta.p, meta.n, NULL) < 0))
		return -1;
	if (meta.n > 0) {
		(void)json_slice(meta.p, meta.n, path, &run.p, &run.n);
		(void)json_slice(meta.p, meta.n, said, &fix.p, &fix.n);
	}
	text = first_text(body);
	put_id(b, to);
	buf_puts(b, ",\"error\":");
	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_int(&w, "code", error_code(to, f));
	if (text.n > 0)
		jsonw_kv_raw(&w, "message", text.p, text.n);
	else
		jsonw_kv_str(&w, "message", fi->fix);
	jsonw_name(&w, "data");
	jsonw_obj(&w);
	jsonw_kv_str(&w, "failure_mode", fi->name);
	if (fix.n > 0)
		jsonw_kv_raw(&w, "fix", fix.p, fix.n);
	else
		jsonw_kv_str(&w, "fix", fi->fix);
	if (uri.n > 0)
		jsonw_kv_raw(&w, "uri", uri.p, uri.n);
	if (run.n > 0)
		jsonw_kv_raw(&w, "execution", run.p, run.n);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	buf_putc(b, '}');
	return b->failed ? -1 : 0;
}

void
answer_input_required(struct buf *b, const struct answer_to *to,
    struct ipc_bytes requests, const char *state)
{
	put_id(b, to);
	buf_puts(b, ",\"result\":{\"resultType\":\"input_required\",");
	if (requests.n > 0) {
		buf_puts(b, "\"inputRequests\":");
		buf_put(b, requests.p, requests.n);
		buf_putc(b, ',');
	}
	buf_putf(b, "\"requestState\":\"%s\",", state);
	end_result(b, to);
}

void
answer_tool_failure(struct buf *b, const struct answer_to *to, enum failure f,
    const char *message)
{
	const struct failure_info *fi = failure_info(f);
	struct jsonw w;

	put_result(b, to);
	buf_puts(b, "\"content\":[");
	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "type", "text");
	jsonw_kv_str(&w, "text", message);
	jsonw_obj_end(&w);
	buf_puts(b, "],\"isError\":true,\"_meta\":{");
	if (to->modern)
		buf_puts(b, META_SERVER_INFO ",");
	buf_puts(b, "\"mcpbox/failure\":");
	jsonw_open(&w, b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "failure_mode", fi->name);
	jsonw_kv_str(&w, "fix", failure_fix(f, message, strlen(message)));
	jsonw_obj_end(&w);
	buf_puts(b, "}}}");
}

void
answer_list_head(struct buf *b, const struct answer_to *to, const char *member)
{
	put_result(b, to);
	buf_putc(b, '"');
	buf_puts(b, member);
	buf_puts(b, "\":[");
}

void
answer_list_tail(struct buf *b, const struct answer_to *to, const char *cursor)
{
	buf_puts(b, "],");
	if (cursor[0] != '\0') {
		buf_puts(b, "\"nextCursor\":\"");
		buf_puts(b, cursor);
		buf_puts(b, "\",");
	}
	if (to->modern)
		buf_puts(
		    b, "\"ttlMs\":" TTL_LIST ",\"cacheScope\":\"private\",");
	end_result(b, to);
}

void
answer_empty(struct buf *b, const struct answer_to *to)
{
	put_result(b, to);
	end_result(b, to);
}

void
answer_members(struct buf *b, const struct answer_to *to, const char *type,
    struct ipc_bytes m)
{
	put_id(b, to);
	buf_putf(b, ",\"result\":{\"resultType\":\"%s\",", type);
	buf_put(b, m.p, m.n);
	buf_putc(b, ',');
	end_result(b, to);
}

/* Writes the member of the instructions. */
static void
put_instructions(struct buf *b, const char *text)
{
	struct jsonw w;

	buf_puts(b, ",\"instructions\":");
	if (text == NULL) {
		buf_puts(b, "\"" INSTRUCTIONS "\"");
		return;
	}
	jsonw_open(&w, b);
	jsonw_str(&w, text);
}

void
answer_initialize(struct buf *b, const struct answer_to *to, enum mcp_rev rev,
    const char *instructions)
{
	buf_reserve(b, MCP_ID_MAX + sizeof(INSTRUCTIONS) + FRAME_ROOM);
	put_result(b, to);
	buf_puts(b, "\"protocolVersion\":\"");
	buf_puts(b, mcp_rev_text(rev));
	buf_puts(b,
	    "\",\"capabilities\":{" CAPABILITIES
	    "},\"serverInfo\":" SERVER_INFO);
	put_instructions(b, instructions);
	buf_putc(b, ',');
	end_result(b, to);
}

void
answer_discover(
    struct buf *b, const struct answer_to *to, const char *instructions)
{
	buf_reserve(b, MCP_ID_MAX + sizeof(INSTRUCTIONS) + FRAME_ROOM);
	put_result(b, to);
	buf_puts(b,
	    "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":"
	    "{" CAPABILITIES ",\"extensions\":{"
	    "\"io.modelcontextprotocol/"
	    "tasks\":{}}}");
	put_instructions(b, instructions);
	buf_puts(b, ",\"ttlMs\":" TTL_DISCOVER ",\"cacheScope\":\"private\",");
	end_result(b, to);
}

int
answer_notification(struct buf *b, const char *method, struct ipc_bytes params)
{
	struct ipc_bytes m;

	if (members(params, &m) < 0 || json_scan(params.p, params.n, NULL) < 0)
		return -1;
	buf_putf(
	    b, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":", method);
	buf_put(b, params.p, params.n);
	buf_putc(b, '}');
	return b->failed ? -1 : 0;
}
