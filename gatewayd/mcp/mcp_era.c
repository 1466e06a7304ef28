/*
 * Steps 5 to 9 of the ladder (mcp_request.h).
 *
 * A message is modern if its params._meta names a protocol version, legacy if
 * not; initialize is legacy unless a valid modern envelope says otherwise. A
 * header that contradicts the body never decides the era, but is an error.
 * Otherwise a proxy that routes by headers and this server could disagree on
 * the method.
 */
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "jsonw.h"
#include "mcp_era.h"
#include "trace.h"

#define KEY_VERSION      "io.modelcontextprotocol/protocolVersion"
#define KEY_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define KEY_CLIENT       "io.modelcontextprotocol/clientInfo"
#define KEY_LOG          "io.modelcontextprotocol/logLevel"

/* The members of params._meta that are read here: the envelope. */
enum { VERSION, CAPABILITIES, CLIENT, LOG, TOKEN, TRACE, ENVELOPE };

struct envelope {
	bool there; /* _meta is an object */
	struct ipc_bytes meta;
	struct json_wanted w[ENVELOPE];
};

static void
find_envelope(struct ipc_bytes params, struct envelope *e)
{
	static const struct envelope none = {false, {NULL, 0},
	    {JSON_WANTED(KEY_VERSION), JSON_WANTED(KEY_CAPABILITIES),
		JSON_WANTED(KEY_CLIENT), JSON_WANTED(KEY_LOG),
		JSON_WANTED("progressToken"), JSON_WANTED("traceparent")}};

	*e = none;
	e->there = mcp_json_get(params, "_meta", &e->meta) &&
	    mcp_json_is_object(e->meta);
	if (e->there)
		json_slice_all(e->meta.p, e->meta.n, e->w, ENVELOPE);
}

/* Gets a member of the envelope. false: it is not there. */
static bool
get(const struct envelope *e, unsigned which, struct ipc_bytes *v)
{
	*v = ipc_bytes(e->w[which].p, e->w[which].n);
	return v->p != NULL;
}

/* Reads the trace. A text that is no traceparent is ignored, as W3C Trace
 * Context says; no decision depends on the trace. A traceparent is a string
 * without escapes, so its bytes are its text. */
static void
read_trace(const struct envelope *e, struct mcp_message *m)
{
	struct ipc_bytes v;
	struct trace t;

	if (get(e, TRACE, &v) && v.n > 2 && v.p[0] == '"' &&
	    trace_parse(v.p + 1, v.n - 2, &t) == 0)
		m->trace = ipc_bytes(v.p + 1, v.n - 2);
}

bool
mcp_era_claimed(struct ipc_bytes member)
{
	struct ipc_bytes params, v;
	struct envelope e;

	if (!mcp_json_get(member, "params", &params))
		return false;
	find_envelope(params, &e);
	return get(&e, VERSION, &v);
}

/* True for a modern revision. Revisions are dates, so the order of their text
 * is the order of age. A text that is no date is no revision and has no era. */
static bool
is_modern(const char *version)
{
	return strlen(version) == 10 && strspn(version, "0123456789-") == 10 &&
	    strcmp(version, "2026-07-28") >= 0;
}

/* Step 6: reads the envelope and checks the types of its members. version: at
 * least 64 bytes. */
static int
read_envelope(const struct envelope *env, struct mcp_message *m, char *version,
    size_t size, struct mcp_error *e)
{
	struct ipc_bytes v;

	if (!get(env, VERSION, &v))
		return mcp_fault_set(e, FAILURE_INVALID_PARAMS, 400,
		    "params._meta lacks " KEY_VERSION ".");
	if (v.p[0] != '"')
		return mcp_fault_set(e, FAILURE_INVALID_PARAMS, 400,
		    KEY_VERSION " must be a string.");
	/* A version that is too long for the buffer is unknown. Use another
	 * unknown version in its place. */
	if (mcp_json_text(v, version, size) < 0)
		snprintf(version, size, "9999-99-99");
	/* A notification gets no answer, so it need not name its sender's
	 * capabilities. */
	if (m->kind == MCP_NOTIFICATION)
		return 0;
	if (!get(env, CAPABILITIES, &v))
		return mcp_fault_set(e, FAILURE_INVALID_PARAMS, 400,
		    "params._meta lacks " KEY_CAPABILITIES ".");
	if (!mcp_json_is_object(v))
		return mcp_fault_set(e, FAILURE_INVALID_PARAMS, 400,
		    KEY_CAPABILITIES " must be an object.");
	if (v.n > MCP_CAPABILITIES_MAX)
		return mcp_fault_set(e, FAILURE_INVALID_PARAMS, 400,
		    KEY_CAPABILITIES " is larger than 8 KiB.");
	m->capabilities = v;
	m->declared = mcp_params_declared(v);
	if (get(env, CLIENT, &v) && mcp_params_client(v, m) < 0)
		return mcp_fault_set(e, FAILURE_INVALID_PARAMS, 400,
		    KEY_CLIENT " must be an object with name and version.");
	if (get(env, LOG, &v)) {
		m->log_level = mcp_params_log_level(v);
		if (m->log_level < 0)
			return mcp_fault_set(e, FAILURE_INVALID_PARAMS, 400,
			    KEY_LOG " must be a log level.");
	}
	return 0;
}

/* Sets the error -32022 with data {"supported":[...],"requested":...}. */
static int
unsupported(struct mcp_error *e, enum failure f, const char *requested)
{
	struct buf b;
	struct jsonw w;

	mcp_fault_set(e, f, 400, "This protocol version is not supported.");
	buf_init(&b, MCP_DATA_MAX - 1);
	buf_puts(&b, "\"supported\":[\"2026-07-28\"],\"requested\":");
	jsonw_open(&w, &b);
	jsonw_str(&w, requested);
	if (!b.failed)
		snprintf(e->data, sizeof(e->data), "%.*s", (int)b.len,
		    (const char *)b.p);
	buf_free(&b);
	return -1;
}

static int
mismatch(struct mcp_message *m, const char *text)
{
	return mcp_fault_set(&m->error, FAILURE_HEADER_MISMATCH, 400, text);
}

/* Compares the modern headers with the body, after step 6. A request must have
 * these headers. The specification defines no checks for notifications, so a
 * notification may lack the headers, but they must not contradict its body. */
static int
check_headers(struct mcp_message *m, const struct mcp_headers *h,
    const char *version, const char *method)
{
	bool request = m->kind == MCP_REQUEST;
	const char *named = h->version;

	if (named != NULL && (h->quirks & 1 << MCP_QUIRK_HEADER_VERSION) &&
	    strcmp(version, "2026-07-28") == 0 && strcmp(named, version) != 0 &&
	    mcp_rev_of(named) >= 0) {
		m->quirks |= 1 << MCP_QUIRK_HEADER_VERSION;
		named = version;
	}

	if (named == NULL ? request : strcmp(named, version) != 0)
		return mismatch(m,
		    named == NULL
			? "The MCP-Protocol-Version header is missing."
			: "The MCP-Protocol-Version header differs from "
			  "params._meta.");
	if (h->method == NULL ? request : strcmp(h->method, method) != 0)
		return mismatch(m,
		    h->method == NULL ? "The Mcp-Method header is missing."
				      : "The Mcp-Method header differs from "
					"the body's method.");
	return 0;
}

/* Step 9: compares Mcp-Name with the parameter `key`: a name, a URI or a task
 * id. */
static int
check_name(struct mcp_message *m, const struct mcp_headers *h, const char *key)
{
	char name[MCP_URI_MAX + 1], header[MCP_URI_MAX + 1];
	struct ipc_bytes v;
	bool has;

	has = mcp_json_get(m->params, key, &v) && v.p[0] == '"';
	if (h->name == NULL)
		return has ? mismatch(m, "The Mcp-Name header is missing.") : 0;
	if (mcp_header_decode(h->name, header, sizeof(header)) < 0)
		return mismatch(m, "The Mcp-Name header cannot be decoded.");
	if (has &&
	    (mcp_json_text(v, name, sizeof(name)) < 0 ||
		strcmp(name, header) != 0))
		return mismatch(
		    m, "The Mcp-Name header differs from the body.");
	return 0;
}

static int
check_modern(const struct envelope *env, const struct mcp_headers *h,
    const char *method, struct mcp_message *m)
{
	const struct mcp_method_info *row = mcp_method_info(m->method);
	char version[64];

	m->modern = true;
	m->rev = MCP_REV_2026_07_28;
	if (read_envelope(env, m, version, sizeof(version), &m->error) < 0 ||
	    check_headers(m, h, version, method) < 0)
		return -1;
	if (strcmp(version, "2026-07-28") != 0)
		return unsupported(
		    &m->error, FAILURE_UNSUPPORTED_VERSION, version);
	if (m->kind == MCP_NOTIFICATION)
		return 0;
	if (row == NULL || row->notification || !(row->eras & MCP_ERA_MODERN))
		return mcp_fault_set(&m->error, FAILURE_METHOD_NOT_FOUND, 404,
		    "This method does not exist in revision 2026-07-28.");
	return row->named != NULL ? check_name(m, h, row->named) : 0;
}

static int
check_legacy(const struct mcp_headers *h, struct mcp_message *m)
{
	const struct mcp_method_info *row = mcp_method_info(m->method);
	int rev;

	/* initialize negotiates the revision by its body, so a header would
	 * only be a guess. */
	if (m->method == MCP_INITIALIZE)
		return 0;
	if (h->version != NULL) {
		rev = mcp_rev_of(h->version);
		if (rev < 0)
			return mcp_fault_set(&m->error, FAILURE_INVALID_REQUEST,
			    400,
			    "The MCP-Protocol-Version header names no "
			    "supported revision: 2025-11-25, 2025-06-18, "
			    "2025-03-26, 2026-07-28.");
		m->rev = (enum mcp_rev)rev;
		m->rev_named = true;
	}
	if (m->kind == MCP_NOTIFICATION)
		return 0;
	/* Status 200, because a legacy client reads 404 as "session ended". */
	if (row == NULL || row->notification || !(row->eras & MCP_ERA_LEGACY))
		return mcp_fault_set(&m->error, FAILURE_METHOD_NOT_FOUND, 200,
		    "This method does not exist here.");
	return 0;
}

/* True if this initialize, which names a version in _meta, is a valid modern
 * message. Works on a copy of m, because nothing of an invalid envelope may
 * count. */
static bool
modern_initialize(const struct envelope *env, const struct mcp_message *m)
{
	struct mcp_message trial = *m;
	char version[64];

	return read_envelope(
		   env, &trial, version, sizeof(version), &trial.error) == 0 &&
	    is_modern(version);
}

int
mcp_era_check(
    const struct mcp_headers *h, const char *method, struct mcp_message *m)
{
	struct envelope env;
	struct ipc_bytes v;
	bool claimed, header_modern;
	char version[64];

	find_envelope(m->params, &env);
	claimed = get(&env, VERSION, &v);
	m->meta = env.meta;
	(void)get(&env, TOKEN, &m->progress_token);
	read_trace(&env, m);
	header_modern = h->version != NULL && is_modern(h->version);

	/* Step 5. initialize comes first, because only a valid modern envelope
	 * makes initialize modern. */
	if (m->method == MCP_INITIALIZE) {
		if (!claimed || !modern_initialize(&env, m)) {
			if (header_modern &&
			    (h->quirks & 1 << MCP_QUIRK_INITIALIZE))
				m->quirks |= 1 << MCP_QUIRK_INITIALIZE;
			else if (header_modern)
				return mismatch(m,
				    "initialize belongs to the legacy "
				    "revisions; the MCP-Protocol-Version "
				    "header names a modern one.");
			return check_legacy(h, m);
		}
	}
	if (claimed)
		return check_modern(&env, h, method, m);
	if (header_modern && m->kind == MCP_REQUEST) {
		/* Name the missing members. */
		m->modern = true;
		m->rev = MCP_REV_2026_07_28;
		if (!env.there)
			return mcp_fault_set(&m->error, FAILURE_INVALID_PARAMS,
			    400,
			    "params._meta is missing; it must hold " KEY_VERSION
			    " and " KEY_CAPABILITIES ".");
		return read_envelope(
		    &env, m, version, sizeof(version), &m->error);
	}
	if (header_modern) {
		/* A notification needs no envelope, so the header decides. */
		m->modern = true;
		m->rev = MCP_REV_2026_07_28;
		return check_headers(m, h, h->version, method);
	}
	return check_legacy(h, m);
}
