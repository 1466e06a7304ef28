/*
 * Bytes to messages: JSON-RPC shape (step 4 of the ladder). The steps that
 * differ by era are in mcp_era.c, parameters (step 12) in mcp_params.c.
 *
 * Nothing is rebuilt: the parts that travel on (id, arguments, capabilities,
 * progress token) are slices of the bytes received, after json_scan has proved
 * that the whole body has one reading only (no duplicate names, strict UTF-8).
 */
#include <json-c/json_object.h>
#include <stdio.h>
#include <string.h>

#include "json.h"
#include "mcp_era.h"
#include "walk.h"

static const char *const rev_text[MCP_REV_COUNT] = {
    "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"};

const char *
mcp_request_rev_text(enum mcp_rev r)
{
	return rev_text[r];
}

int
mcp_request_rev(const char *s)
{
	int i;

	for (i = 0; i < MCP_REV_COUNT; i++)
		if (strcmp(s, rev_text[i]) == 0)
			return i;
	return -1;
}

/* Records the first failure only: the ladder stops at its first broken step. */
int
mcp_era_fail(
    struct mcp_error *e, enum failure f, int status, const char *message)
{
	if (e->failure == FAILURE_NONE) {
		e->failure = f;
		e->status = status;
		snprintf(e->message, sizeof(e->message), "%s", message);
		e->data[0] = '\0';
	}
	return -1;
}

int
mcp_request_text(struct ipc_bytes json, char *out, size_t size)
{
	struct json_object *o = NULL;
	const char *s;
	size_t n;
	int rc = -1;

	if (json.n < 2 || json.p[0] != '"')
		return -1;
	/* Without an escape the text is the bytes between the quotes. */
	if (memchr(json.p, '\\', json.n) == NULL) {
		s = (const char *)json.p + 1;
		n = json.n - 2;
	} else {
		if (json_parse(json.p, json.n, &o, NULL) < 0)
			return -1;
		s = json_object_get_string(o);
		n = (size_t)json_object_get_string_len(o);
	}
	if (n < size && memchr(s, '\0', n) == NULL) {
		memcpy(out, s, n);
		out[n] = '\0';
		rc = 0;
	}
	if (o != NULL)
		json_object_put(o);
	return rc;
}

bool
mcp_era_get(struct ipc_bytes object, const char *name, struct ipc_bytes *out)
{
	const char *path[2] = {name, NULL};

	out->p = NULL;
	out->n = 0;
	return object.n > 0 &&
	    json_slice(object.p, object.n, path, &out->p, &out->n) == 1;
}

bool
mcp_era_given(struct ipc_bytes object, const char *name, struct ipc_bytes *out)
{
	return mcp_era_get(object, name, out) && !mcp_era_is_null(*out);
}

bool
mcp_era_is_null(struct ipc_bytes v)
{
	return v.n == 0 || (v.n == 4 && memcmp(v.p, "null", 4) == 0);
}

bool
mcp_era_is_object(struct ipc_bytes v)
{
	return v.n > 0 && v.p[0] == '{';
}

/* True for a string, or an integer written as one: the forms of an id (MCP:
 * base protocol) and of a progress token. */
bool
mcp_era_is_id(struct ipc_bytes v)
{
	size_t i;

	if (v.n == 0 || v.n > MCP_ID_MAX)
		return false;
	if (v.p[0] == '"')
		return true;
	i = v.p[0] == '-';
	if (i == v.n)
		return false;
	for (; i < v.n; i++)
		if (v.p[i] < '0' || v.p[i] > '9')
			return false;
	return true;
}

/* Returns the id of a message, or n = 0 if it has no usable one. */
static struct ipc_bytes
read_id(struct ipc_bytes object)
{
	struct ipc_bytes id;

	if (!mcp_era_get(object, "id", &id) || !mcp_era_is_id(id))
		id = ipc_bytes(NULL, 0);
	return id;
}

static bool
is_space(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct ipc_bytes
trim(const uint8_t *p, size_t n)
{
	while (n > 0 && is_space(p[0])) {
		p++;
		n--;
	}
	while (n > 0 && is_space(p[n - 1]))
		n--;
	return ipc_bytes(p, n);
}

/* Brackets and quotes are balanced, since json_scan accepted the text. */
bool
mcp_request_element(struct ipc_bytes *rest, struct ipc_bytes *element)
{
	const uint8_t *p = rest->p, *end = rest->p + rest->n;
	unsigned depth = 0;
	bool quoted = false;

	*element = trim(p, rest->n);
	if (element->n == 0)
		return false;
	for (; p < end; p++) {
		if (quoted) {
			if (*p == '\\')
				p++;
			else if (*p == '"')
				quoted = false;
		} else if (*p == ',' && depth == 0) {
			break;
		} else if (*p == '"') {
			quoted = true;
		} else if (*p == '{' || *p == '[') {
			depth++;
		} else if (*p == '}' || *p == ']') {
			depth--;
		}
	}
	*element = trim(rest->p, (size_t)(p - rest->p));
	if (p < end)
		p++; /* the comma */
	*rest = ipc_bytes(p, (size_t)(end - p));
	return true;
}

/* Returns the number of members, or -1 if there are too many. */
static int
split_array(struct ipc_bytes a, struct mcp_body *b)
{
	struct ipc_bytes rest = ipc_bytes(a.p + 1, a.n - 2), e;

	while (mcp_request_element(&rest, &e)) {
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
		return mcp_era_fail(e, FAILURE_PARSE, 400, err.text);
	all = trim(p, n);
	if (all.p[0] == '{') {
		b->n = 1;
		b->member[0] = all;
		*id = read_id(all);
		return 0;
	}
	if (all.p[0] != '[')
		return mcp_era_fail(e, FAILURE_INVALID_REQUEST, 400,
		    "The body is not a JSON-RPC object.");

	/* Arrays exist in 2025-03-26 only; a client that names no revision
	 * speaks it. */
	b->array = true;
	rev = h->version != NULL ? mcp_request_rev(h->version)
	    : session >= 0       ? session
				 : MCP_REV_2025_03_26;
	if (rev != MCP_REV_2025_03_26)
		return mcp_era_fail(e, FAILURE_INVALID_REQUEST, 400,
		    "JSON-RPC arrays exist only in revision 2025-03-26.");
	switch (split_array(all, b)) {
	case -1:
		return mcp_era_fail(e, FAILURE_INVALID_REQUEST, 400,
		    "A JSON-RPC array may have at most 16 members.");
	case 0:
		return mcp_era_fail(e, FAILURE_INVALID_REQUEST, 400,
		    "The JSON-RPC array is empty.");
	default:
		break;
	}
	for (i = 0; i < b->n; i++)
		if (mcp_era_claimed(b->member[i]))
			return mcp_era_fail(e, FAILURE_INVALID_REQUEST, 400,
			    "A JSON-RPC array may not hold requests of "
			    "revision 2026-07-28.");
	return 0;
}

/* Adds a fault of the envelope, of the member with this name. */
static int
wrong(struct mcp_message *m, const char *name, const char *fix)
{
	return mcp_fault(m, FAILURE_INVALID_REQUEST, "", name, fix);
}

/* Refuses members that no JSON-RPC message has. w has the names of all members
 * that it may have. */
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
		/* With its quotes: the name may be written with escapes. */
		if (mcp_request_text(ipc_bytes(raw.p - 1, raw.n + 2), name,
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

	if (!mcp_era_is_object(member))
		return mcp_era_fail(&m->error, FAILURE_INVALID_REQUEST, 400,
		    "A JSON-RPC message is an object.");
	json_slice_all(member.p, member.n, w, ALL);
	has_id = w[ID].p != NULL;
	m->id = ipc_bytes(w[ID].p, w[ID].n);
	if (!mcp_era_is_id(m->id))
		m->id = ipc_bytes(NULL, 0);
	if (w[JSONRPC].p == NULL ||
	    mcp_request_text(ipc_bytes(w[JSONRPC].p, w[JSONRPC].n), text,
		sizeof(text)) < 0 ||
	    strcmp(text, "2.0") != 0)
		wrong(m, "jsonrpc", "Write \"2.0\".");
	check_unknown(m, member, w, ALL);
	v = ipc_bytes(w[METHOD].p, w[METHOD].n);
	if (v.p == NULL) {
		read_response(m, &w[ID], &w[PARAMS], &w[RESULT], &w[ERROR]);
		return m->error.failure == FAILURE_NONE ? 0 : -1;
	}
	/* A method that does not fit is none of ours. */
	if (v.p[0] != '"')
		wrong(m, "method", "Write a string.");
	else if (mcp_request_text(v, method, size) < 0)
		method[0] = '\0';
	if (w[RESULT].p != NULL)
		wrong(m, "result", "Leave it out: only responses have it.");
	if (w[ERROR].p != NULL)
		wrong(m, "error", "Leave it out: only responses have it.");
	if (has_id && m->id.n == 0)
		wrong(m, "id", "Write a string or an integer.");
	m->params = ipc_bytes(w[PARAMS].p, w[PARAMS].n);
	if (mcp_era_is_null(m->params)) {
		m->params = ipc_bytes(NULL, 0);
	} else if (!mcp_era_is_object(m->params)) {
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
		mcp_era_fail(&m->error, FAILURE_INVALID_REQUEST, 400,
		    "initialize may not be part of an array.");
		return;
	}
	if (mcp_era_check(h, method, m) == 0)
		mcp_params_read(m);
}
