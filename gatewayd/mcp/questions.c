/* See questions.h. */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "json.h"
#include "jsonw.h"
#include "questions.h"
#include "walk.h"

enum kind { FORM, URL, SAMPLE, SAMPLE_TOOLS, ROOTS };

struct question {
	char key[QUESTION_KEY_MAX + 1];
	enum kind kind;
	struct ipc_bytes method, params;
	char id[QUESTION_ID_LEN + 1];
	bool answered;
	struct buf answer; /* {"result": ...} or {"error": ...} */
};

struct questions {
	uint32_t number;
	uint8_t *text; /* the slices in q point into it */
	size_t answer_bytes;
	unsigned n, open;
	struct question q[QUESTIONS_MAX];
};

static bool
get(struct ipc_bytes object, const char *name, struct ipc_bytes *v)
{
	const char *const path[] = {name, NULL};

	v->p = NULL;
	v->n = 0;
	return object.n > 0 &&
	    json_slice(object.p, object.n, path, &v->p, &v->n) == 1;
}

static bool
is_text(struct ipc_bytes v, const char *s)
{
	return v.n == strlen(s) + 2 && v.p[0] == '"' &&
	    memcmp(v.p + 1, s, v.n - 2) == 0;
}

/* Reads one question. The question must be of a kind that MCP has, so nothing
 * else passes to a client. 0 or -1. */
static int
read_question(struct question *q, struct ipc_bytes key, struct ipc_bytes v)
{
	struct ipc_bytes part;
	struct ipc_id id;

	if (key.n == 0 || key.n > QUESTION_KEY_MAX ||
	    memchr(key.p, '\\', key.n) != NULL || v.n == 0 || v.p[0] != '{' ||
	    !get(v, "method", &q->method) || !get(v, "params", &q->params) ||
	    q->params.p[0] != '{')
		return -1;
	if (is_text(q->method, "elicitation/create"))
		q->kind = get(q->params, "mode", &part) && is_text(part, "url")
		    ? URL
		    : FORM;
	else if (is_text(q->method, "sampling/createMessage"))
		q->kind = get(q->params, "tools", &part) ||
			get(q->params, "toolChoice", &part)
		    ? SAMPLE_TOOLS
		    : SAMPLE;
	else if (is_text(q->method, "roots/list"))
		q->kind = ROOTS;
	else
		return -1;
	memcpy(q->key, key.p, key.n);
	id_random(&id);
	b64url_encode(id.b, sizeof(id.b), q->id);
	return 0;
}

struct questions *
questions_new(uint32_t number, struct ipc_bytes json)
{
	struct ipc_bytes key, v;
	struct questions *qs;
	struct walk w;

	if (json_scan(json.p, json.n, NULL) < 0 ||
	    (qs = calloc(1, sizeof(*qs))) == NULL)
		return NULL;
	qs->number = number;
	if ((qs->text = malloc(json.n)) == NULL)
		goto bad;
	memcpy(qs->text, json.p, json.n);
	if (walk_open(&w, ipc_bytes(qs->text, json.n), '{') != 0)
		goto bad;
	while (walk_next(&w, &key, &v)) {
		if (qs->n == QUESTIONS_MAX ||
		    read_question(&qs->q[qs->n], key, v) < 0)
			goto bad;
		qs->n++;
	}
	qs->open = qs->n;
	if (qs->n > 0)
		return qs;
bad:
	questions_free(qs);
	return NULL;
}

void
questions_free(struct questions *qs)
{
	unsigned i;

	if (qs == NULL)
		return;
	for (i = 0; i < qs->n; i++)
		buf_free(&qs->q[i].answer);
	free(qs->text);
	free(qs);
}

uint32_t
questions_number(const struct questions *qs)
{
	return qs->number;
}

unsigned
questions_open(const struct questions *qs)
{
	return qs->open;
}

static void
fail(struct questions *qs, struct question *q, int code, const char *message)
{
	struct jsonw w;

	buf_free(&q->answer);
	buf_init(&q->answer, 1024);
	jsonw_open(&w, &q->answer);
	jsonw_obj(&w);
	jsonw_name(&w, "error");
	jsonw_obj(&w);
	jsonw_kv_int(&w, "code", code);
	jsonw_kv_str(&w, "message", message);
	jsonw_obj_end(&w);
	jsonw_obj_end(&w);
	q->answered = true;
	qs->open--;
}

/* Keeps a part of the client's response as an answer. All answers together must
 * fit one CALL_ANSWER, keys and braces included. */
static void
keep(struct questions *qs, struct question *q, const char *name,
    struct ipc_bytes part)
{
	if (part.n > ARGUMENTS_MAX / 2 ||
	    qs->answer_bytes + part.n > ARGUMENTS_MAX - 8 * 1024) {
		fail(qs, q, -32603, "The client's answer is too large.");
		return;
	}
	buf_free(&q->answer);
	buf_init(&q->answer, part.n + 32);
	buf_putf(&q->answer, "{\"%s\":", name);
	buf_put(&q->answer, part.p, part.n);
	buf_putc(&q->answer, '}');
	if (q->answer.failed) {
		fail(qs, q, -32603, "There is no memory for the answer.");
		return;
	}
	qs->answer_bytes += part.n;
	q->answered = true;
	qs->open--;
}

void
questions_declared(struct questions *qs, uint32_t declared, enum mcp_rev rev)
{
	static const struct {
		uint32_t needs;
		enum mcp_rev since;
		const char *message;
	} rows[] = {
	    [FORM] = {CLIENT_ELICITATION, MCP_REV_2025_06_18,
		"The client can't ask its user (capability elicitation)."},
	    [URL] = {CLIENT_ELICITATION_URL, MCP_REV_2025_11_25,
		"The client can't send its user to a page (capability "
		"elicitation.url)."},
	    [SAMPLE] = {CLIENT_SAMPLING, MCP_REV_2025_03_26,
		"The client can't ask its model (capability sampling)."},
	    [SAMPLE_TOOLS] = {CLIENT_SAMPLING | CLIENT_SAMPLING_TOOLS,
		MCP_REV_2025_11_25,
		"The client can't ask its model with tools (capability "
		"sampling.tools)."},
	    [ROOTS] = {CLIENT_ROOTS, MCP_REV_2025_03_26,
		"The client has no roots (capability roots)."},
	};
	unsigned i;

	for (i = 0; i < qs->n; i++) {
		struct question *q = &qs->q[i];

		if (!q->answered &&
		    ((declared & rows[q->kind].needs) != rows[q->kind].needs ||
			rev < rows[q->kind].since))
			fail(qs, q, -32021, rows[q->kind].message);
	}
}

void
questions_fail(struct questions *qs, const char *message)
{
	unsigned i;

	for (i = 0; i < qs->n; i++)
		if (!qs->q[i].answered)
			fail(qs, &qs->q[i], -32603, message);
}

/* True if v is a result of the form that this kind of question demands (schema
 * of 2026-07-28: ElicitResult, CreateMessageResult, ListRootsResult). */
static bool
fits(enum kind kind, struct ipc_bytes v)
{
	struct ipc_bytes part;

	if (v.n == 0 || v.p[0] != '{')
		return false;
	switch (kind) {
	case FORM:
	case URL:
		if (!get(v, "action", &part) ||
		    !(is_text(part, "accept") || is_text(part, "decline") ||
			is_text(part, "cancel")))
			return false;
		return !get(v, "content", &part) || part.p[0] == '{' ||
		    part.p[0] == 'n';
	case SAMPLE:
	case SAMPLE_TOOLS:
		return get(v, "role", &part) && part.p[0] == '"' &&
		    get(v, "content", &part) &&
		    (part.p[0] == '{' || part.p[0] == '[');
	case ROOTS:
		return get(v, "roots", &part) && part.p[0] == '[';
	}
	return false;
}

void
questions_take(struct questions *qs, struct ipc_bytes responses)
{
	struct ipc_bytes v;
	unsigned i;

	for (i = 0; i < qs->n; i++) {
		struct question *q = &qs->q[i];

		if (!q->answered && get(responses, q->key, &v) &&
		    fits(q->kind, v))
			keep(qs, q, "result", v);
	}
}

void
questions_requests(const struct questions *qs, struct buf *out)
{
	struct jsonw w;
	unsigned i;

	jsonw_open(&w, out);
	jsonw_obj(&w);
	for (i = 0; i < qs->n; i++) {
		const struct question *q = &qs->q[i];

		if (q->answered)
			continue;
		jsonw_name(&w, q->key);
		jsonw_obj(&w);
		jsonw_kv_raw(&w, "method", q->method.p, q->method.n);
		jsonw_kv_raw(&w, "params", q->params.p, q->params.n);
		jsonw_obj_end(&w);
	}
	jsonw_obj_end(&w);
}

/* For a page, revision 2025-11-25 wants an elicitationId, which later revisions
 * don't have. The question's id is used as the elicitationId. */
bool
questions_request(
    const struct questions *qs, unsigned i, struct buf *out, bool *end)
{
	const struct question *q;

	*end = i >= qs->n;
	if (*end || qs->q[i].answered)
		return false;
	q = &qs->q[i];
	buf_putf(out, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":", q->id);
	buf_put(out, q->method.p, q->method.n);
	buf_puts(out, ",\"params\":");
	if (q->kind == URL) {
		buf_putf(out, "{\"elicitationId\":\"%s\",", q->id);
		buf_put(out, q->params.p + 1, q->params.n - 1);
	} else {
		buf_put(out, q->params.p, q->params.n);
	}
	buf_putc(out, '}');
	return true;
}

bool
questions_response(struct questions *qs, struct ipc_bytes id,
    struct ipc_bytes result, struct ipc_bytes error)
{
	unsigned i;

	for (i = 0; i < qs->n; i++) {
		struct question *q = &qs->q[i];

		if (q->answered || id.n != QUESTION_ID_LEN + 2 ||
		    !ct_equal(id.p + 1, q->id, QUESTION_ID_LEN))
			continue;
		if (result.n > 0 && fits(q->kind, result))
			keep(qs, q, "result", result);
		else if (error.n > 0 && error.p[0] == '{')
			keep(qs, q, "error", error);
		else
			fail(qs, q, -32603,
			    "The client's answer is not what was asked for.");
		return true;
	}
	return false;
}

void
questions_answers(const struct questions *qs, struct buf *out)
{
	struct jsonw w;
	unsigned i;

	jsonw_open(&w, out);
	jsonw_obj(&w);
	for (i = 0; i < qs->n; i++)
		if (qs->q[i].answered)
			jsonw_kv_raw(&w, qs->q[i].key, qs->q[i].answer.p,
			    qs->q[i].answer.len);
	jsonw_obj_end(&w);
}
