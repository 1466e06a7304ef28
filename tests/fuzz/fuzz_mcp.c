/*
 * MCP messages: header values and a body, each ended by a newline in the
 * order version, method, name, session revision; "-" is an absent header.
 * What gets through must keep the promises of mcp_request.h.
 */
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "mcp_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *, size_t);

static void
must(bool ok)
{
	if (!ok)
		abort();
}

static void
within(struct ipc_bytes v, const uint8_t *p, size_t n)
{
	/* or the constant that stands for absent arguments */
	if (v.n > 0 && !(v.n == 2 && memcmp(v.p, "{}", 2) == 0))
		must(v.p >= p && v.p + v.n <= p + n);
}

/* A slice that a method hands on: of the body, one JSON value, of this type
 * (its first byte). */
static void
value(struct ipc_bytes v, char first, const uint8_t *p, size_t n)
{
	if (v.n == 0)
		return;
	within(v, p, n);
	must(v.p[0] == (uint8_t)first && json_scan(v.p, v.n, NULL) == 0);
}

/* What the parameters of the methods beside tools become. */
static void
parameters(const struct mcp_message *m, const uint8_t *p, size_t n)
{
	struct ipc_bytes rest, element;
	size_t count = 0;

	value(m->cursor, '"', p, n);
	value(m->uri, '"', p, n);
	value(m->task_id, '"', p, n);
	value(m->request_state, '"', p, n);
	value(m->input_responses, '{', p, n);
	value(m->complete.ref, '"', p, n);
	value(m->complete.name, '"', p, n);
	value(m->complete.value, '"', p, n);
	value(m->listen.tasks, '[', p, n);
	value(m->listen.uris, '[', p, n);
	if (m->listen.uris.n > 0) {
		rest = ipc_bytes(m->listen.uris.p + 1, m->listen.uris.n - 2);
		while (mcp_json_element(&rest, &element)) {
			within(element, p, n);
			must(json_scan(element.p, element.n, NULL) == 0);
			must(++count <= n);
		}
	}
	must(m->level >= 0 && m->level <= 7);
	must(m->log_level >= -1 && m->log_level <= 7);
	if (m->capabilities.n == 0)
		must(m->declared == 0);
	switch (m->method) {
	case MCP_RESOURCES_READ:
	case MCP_RESOURCES_SUBSCRIBE:
	case MCP_RESOURCES_UNSUBSCRIBE:
		must(m->kind != MCP_REQUEST || m->uri.n > 0);
		break;
	case MCP_COMPLETE:
		must(m->kind != MCP_REQUEST ||
		    (m->complete.ref.n > 0 && m->complete.name.n > 0 &&
			m->complete.value.n > 0));
		break;
	case MCP_TASKS_GET:
	case MCP_TASKS_UPDATE:
	case MCP_TASKS_CANCEL:
		must(m->kind != MCP_REQUEST || m->task_id.n > 0);
		break;
	default:
		break;
	}
}

/* Members of error.data: whole, whatever the client wrote. */
static void
check_data(const struct mcp_error *e)
{
	char text[sizeof(e->data) + 2];
	size_t n = strlen(e->data);

	must(n < sizeof(e->data));
	text[0] = '{';
	memcpy(text + 1, e->data, n);
	text[n + 1] = '}';
	must(json_scan((const uint8_t *)text, n + 2, NULL) == 0);
}

static void
promises(const struct mcp_message *m, const uint8_t *p, size_t n)
{
	within(m->id, p, n);
	within(m->arguments, p, n);
	within(m->progress_token, p, n);
	within(m->capabilities, p, n);
	if (m->id.n > 0)
		must(json_scan(m->id.p, m->id.n, NULL) == 0);
	must(memchr(m->tool, '\0', sizeof(m->tool)) != NULL);
	must(memchr(m->client, '\0', sizeof(m->client)) != NULL);
	must(memchr(m->error.message, '\0', sizeof(m->error.message)) != NULL);
	if (m->error.failure != FAILURE_NONE) {
		check_data(&m->error);
		must(m->error.status == 200 || m->error.status == 400 ||
		    m->error.status == 404);
		return;
	}
	if (m->kind == MCP_RESPONSE) {
		within(m->result, p, n);
		within(m->response_error, p, n);
		must((m->result.n > 0) != (m->response_error.n > 0));
		return;
	}
	parameters(m, p, n);
	if (m->kind == MCP_REQUEST)
		must(m->id.n > 0 && m->method != MCP_OTHER);
	if (m->method == MCP_TOOLS_CALL && m->kind == MCP_REQUEST) {
		must(m->arguments.n >= 2 && m->arguments.p[0] == '{');
		must(json_scan(m->arguments.p, m->arguments.n, NULL) == 0);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
	char field[4][160];
	struct mcp_headers h;
	struct mcp_message m;
	struct mcp_error e;
	struct mcp_body b;
	struct ipc_bytes id;
	const uint8_t *nl;
	size_t i, k;

	for (i = 0; i < 4; i++) {
		nl = memchr(p, '\n', n);
		if (nl == NULL)
			return 0;
		k = (size_t)(nl - p);
		if (k >= sizeof(field[0]))
			return 0;
		memcpy(field[i], p, k);
		field[i][k] = '\0';
		p += k + 1;
		n -= k + 1;
	}
	h.version = strcmp(field[0], "-") != 0 ? field[0] : NULL;
	h.method = strcmp(field[1], "-") != 0 ? field[1] : NULL;
	h.name = strcmp(field[2], "-") != 0 ? field[2] : NULL;
	h.quirks = (unsigned)n & 7; /* all combinations */
	if (mcp_request_split(p, n, &h, mcp_rev_of(field[3]), &b, &id, &e) <
	    0) {
		must(e.failure != FAILURE_NONE && e.status == 400);
		within(id, p, n);
		return 0;
	}
	must(b.n >= 1 && b.n <= MCP_BATCH_MAX);
	for (i = 0; i < b.n; i++) {
		within(b.member[i], p, n);
		must(json_scan(b.member[i].p, b.member[i].n, NULL) == 0);
		mcp_request_read(b.member[i], &h, b.array, &m);
		promises(&m, p, n);
	}
	return 0;
}
