/*
 * Bytes to messages: JSON-RPC shape (step 4 of the ladder in mcp_request.h).
 * The steps that differ by era are in mcp_era.c, parameters (step 12) in
 * mcp_params.c.
 *
 * Nothing is rebuilt: the parts that travel on (id, arguments, capabilities,
 * progress token) are slices of the bytes received, after json_scan has proved
 * that the whole body has one reading only (no duplicate names, strict UTF-8).
 */
#include <string.h>

#include "json.h"
#include "mcp_era.h"
#include "walk.h"

/* Returns the id of a message, or n = 0 if it has no usable id. */
static struct ipc_bytes
read_id(struct ipc_bytes object)
{
	struct ipc_bytes id;

	if (!mcp_json_get(object, "id", &id) || !mcp_json_is_id(id))
		id = ipc_bytes(NULL, 0);
	return id;
}

/* Splits an array. Returns the number of members, or -1: too many. */
static int
split_array(struct ipc_bytes a, struct mcp_body *b)
{
	struct ipc_bytes rest = ipc_bytes(a.p + 1, a.n - 2), e;

	while (mcp_json_element(&rest, &e)) {
		if (b->n == MCP_BATCH_MAX)
			return -1;
		b->member[b->n++] = e;
	}
	return (int)b->n;
}

int
mcp_request_split(const uint8_t *p, size_t n, const struct mcp_headers *h,
    int session, struct mcp_body *b, struct ipc_bytes *id, struct mcp_error *e)
{
	struct err err;
	struct ipc_bytes all;
	size_t i;
	int rev;

	memset(b, 0, sizeof(*b));
	memset(e, 0, sizeof(*e));
	*id = ipc_bytes(NULL, 0);
	if (json_scan(p, n, &err) < 0)
		return mcp_fault_set(e, FAILURE_PARSE, 400, err.text);
	all = mcp_json_trim(p, n);
	if (all.p[0] == '{') {
		b->n = 1;
		b->member[0] = all;
		*id = read_id(all);
		return 0;
	}
	if (all.p[0] != '[')
		return mcp_fault_set(e, FAILURE_INVALID_REQUEST, 400,
		    "The body is not a JSON-RPC object.");

	/* Arrays exist in 2025-03-26 only. A client that names no revision is
	 * taken to speak 2025-03-26. */
	b->array = true;
	rev = h->version != NULL ? mcp_rev_of(h->version)
	    : session >= 0       ? session
				 : MCP_REV_2025_03_26;
	if (rev != MCP_REV_2025_03_26)
		return mcp_fault_set(e, FAILURE_INVALID_REQUEST, 400,
		    "JSON-RPC arrays exist only in revision 2025-03-26.");
	switch (split_array(all, b)) {
	case -1:
		return mcp_fault_set(e, FAILURE_INVALID_REQUEST, 400,
		    "A JSON-RPC array may have at most 16 members.");
	case 0:
		return mcp_fault_set(e, FAILURE_INVALID_REQUEST, 400,
		    "The JSON-RPC array is empty.");
	default:
		break;
	}
	for (i = 0; i < b->n; i++)
		if (mcp_era_claimed(b->member[i]))
			return mcp_fault_set(e, FAILURE_INVALID_REQUEST, 400,
			    "A JSON-RPC array may not hold requests of "
			    "revision 2026-07-28.");
	return 0;
}

/* Adds a fault of the message's member with this name. */
static int
wrong(struct mcp_message *m, const char *name, const char *fix)
{
	return mcp_fault(m, FAILURE_INVALID_REQUEST, "", name, fix);
}

/* Refuses members that no JSON-RPC message has. w: the allowed members, with
 * the values that this message gives them. */
static void
check_unknown(struct mcp_message *m, struct ipc_bytes member,
    const struct json_wanted *w, size_t n)
{
	struct ipc_bytes raw, value;
	char name[MCP_MEMBER_MAX + 1];
	struct walk at;
	size_t i;

	if (walk_open(&at, member, '{') < 0)
		return;
	while (walk_next(&at, &raw, &value)) {
		for (i = 0; i < n && value.p != w[i].p; i++)
			;
		if (i < n)
			continue;
		/* The slice includes the quotes, because the name may have
		 * escapes to decode. */
		if (mcp_json_text(ipc_bytes(raw.p - 1, raw.n + 2), name,
			sizeof(name)) < 0)
			wrong(m, NULL,
			    "Leave out the member with the longest name.");
		else
			wrong(m, name,
			    "Leave it out: a message has jsonrpc, id, method, "
			    "params, or jsonrpc, id, and result or error.");
	}
}

/* Reads a response: a message without method. */
static void
read_response(struct mcp_message *m, const struct json_wanted *id,
    const struct json_wanted *params, const struct json_wanted *result,
    const struct json_wanted *error)
{
	if (result->p == NULL && error->p == NULL) {
		wrong(m, "method", "Write the name of a method.");
		return;
	}
	if (result->p != NULL && error->p != NULL)
		wrong(m, "error", "Write result or error, not both.");
	if (id->p == NULL)
		wrong(m, "id", "Write the id of the request it answers.");
	if (params->p != NULL)
		wrong(m, "params", "Leave it out of a response.");
	if (m->error.failure != FAILURE_NONE)
		return;
	m->kind = MCP_RESPONSE;
	m->result = ipc_bytes(result->p, result->n);
	m->response_error = ipc_bytes(error->p, error->n);
}

/* Step 4: reads a JSON-RPC 2.0 request, notification or response that has no
 * other members. All its faults are told at once. 0 or -1. */
static int
read_shape(
    struct ipc_bytes member, struct mcp_message *m, char *method, size_t size)
{
	struct json_wanted w[] = {JSON_WANTED("id"), JSON_WANTED("jsonrpc"),
	    JSON_WANTED("method"), JSON_WANTED("params"), JSON_WANTED("result"),
	    JSON_WANTED("error")};
	enum { ID, JSONRPC, METHOD, PARAMS, RESULT, ERROR, ALL };
	struct ipc_bytes v;
	char text[8];
	bool has_id;

	if (!mcp_json_is_object(member))
		return mcp_fault_set(&m->error, FAILURE_INVALID_REQUEST, 400,
		    "A JSON-RPC message is an object.");
	json_slice_all(member.p, member.n, w, ALL);
	has_id = w[ID].p != NULL;
	m->id = ipc_bytes(w[ID].p, w[ID].n);
	if (!mcp_json_is_id(m->id))
		m->id = ipc_bytes(NULL, 0);
	if (w[JSONRPC].p == NULL ||
	    mcp_json_text(ipc_bytes(w[JSONRPC].p, w[JSONRPC].n), text,
		sizeof(text)) < 0 ||
	    strcmp(text, "2.0") != 0)
		wrong(m, "jsonrpc", "Write \"2.0\".");
	check_unknown(m, member, w, ALL);
	v = ipc_bytes(w[METHOD].p, w[METHOD].n);
	if (v.p == NULL) {
		read_response(m, &w[ID], &w[PARAMS], &w[RESULT], &w[ERROR]);
		return m->error.failure == FAILURE_NONE ? 0 : -1;
	}
	/* No method that is served here has a name too long for `method`. */
	if (v.p[0] != '"')
		wrong(m, "method", "Write a string.");
	else if (mcp_json_text(v, method, size) < 0)
		method[0] = '\0';
	if (w[RESULT].p != NULL)
		wrong(m, "result", "Leave it out: only responses have it.");
	if (w[ERROR].p != NULL)
		wrong(m, "error", "Leave it out: only responses have it.");
	if (has_id && m->id.n == 0)
		wrong(m, "id", "Write a string or an integer.");
	m->params = ipc_bytes(w[PARAMS].p, w[PARAMS].n);
	if (mcp_json_is_null(m->params)) {
		m->params = ipc_bytes(NULL, 0);
	} else if (!mcp_json_is_object(m->params)) {
		m->params = ipc_bytes(NULL, 0);
		wrong(m, "params", "Write an object.");
	}
	if (m->error.failure != FAILURE_NONE)
		return -1;
	m->kind = has_id ? MCP_REQUEST : MCP_NOTIFICATION;
	return 0;
}

void
mcp_request_read(struct ipc_bytes member, const struct mcp_headers *h,
    bool in_array, struct mcp_message *m)
{
	const struct mcp_method_info *row;
	char method[64];

	memset(m, 0, sizeof(*m));
	m->log_level = -1;
	m->rev = h->session;
	if (read_shape(member, m, method, sizeof(method)) < 0 ||
	    m->kind == MCP_RESPONSE)
		return;
	row = mcp_method_find(method);
	if (row != NULL)
		m->method = row->method;
	if (in_array && m->method == MCP_INITIALIZE) {
		mcp_fault_set(&m->error, FAILURE_INVALID_REQUEST, 400,
		    "initialize may not be part of an array.");
		return;
	}
	if (mcp_era_check(h, method, m) == 0)
		mcp_params_read(m);
}
