/*
 * Parameters: step 12 of the ladder. What is wrong here is answered in band,
 * with status 200. Only shapes are judged; whether a name, cursor, state or id
 * means anything is the business of who serves the method.
 */
#include <stdio.h>
#include <string.h>

#include "mcp_era.h"
#include "walk.h"

#define TASKS "io.modelcontextprotocol/tasks"

/* RFC 5424 severities in the order MCP gives them. */
int
mcp_params_log_level(struct ipc_bytes v)
{
	static const char *const names[] = {"debug", "info", "notice",
	    "warning", "error", "critical", "alert", "emergency"};
	char text[16];
	int i;

	if (mcp_request_text(v, text, sizeof(text)) < 0)
		return -1;
	for (i = 0; i < 8; i++)
		if (strcmp(text, names[i]) == 0)
			return i;
	return -1;
}

static bool
has_object(struct ipc_bytes object, const char *name, struct ipc_bytes *v)
{
	return mcp_era_is_object(object) && mcp_era_get(object, name, v) &&
	    mcp_era_is_object(*v);
}

/* An elicitation object without members means forms, as before there were
 * URLs (MCP 2025-11-25, elicitation). */
uint32_t
mcp_params_declared(struct ipc_bytes c)
{
	struct ipc_bytes v, sub;
	uint32_t d = 0;
	bool url;

	if (c.n <= 2) /* {} */
		return 0;
	if (has_object(c, "elicitation", &v)) {
		url = has_object(v, "url", &sub);
		if (url)
			d |= CLIENT_ELICITATION_URL;
		if (!url || has_object(v, "form", &sub))
			d |= CLIENT_ELICITATION;
	}
	if (has_object(c, "sampling", &v)) {
		d |= CLIENT_SAMPLING;
		if (has_object(v, "tools", &sub))
			d |= CLIENT_SAMPLING_TOOLS;
	}
	if (has_object(c, "roots", &v))
		d |= CLIENT_ROOTS;
	if (has_object(c, "extensions", &v) && has_object(v, TASKS, &sub))
		d |= CLIENT_TASKS;
	return d;
}

static int
bad(struct mcp_message *m, const char *text)
{
	return mcp_era_fail(&m->error, FAILURE_INVALID_PARAMS, 200, text);
}

/* A member that must be a string: 0 and its raw JSON, or -1. */
static int
need_string(struct mcp_message *m, struct ipc_bytes object, const char *name,
    struct ipc_bytes *out)
{
	char text[96];

	if (mcp_era_get(object, name, out) && out->p[0] == '"')
		return 0;
	*out = ipc_bytes(NULL, 0);
	snprintf(text, sizeof(text), "params.%s must be a string.", name);
	return bad(m, text);
}

/* A member that may be left out but else must begin with `first`. */
static int
may_have(struct mcp_message *m, struct ipc_bytes object, const char *name,
    char first, struct ipc_bytes *out)
{
	char text[96];

	if (!mcp_era_given(object, name, out)) {
		*out = ipc_bytes(NULL, 0);
		return 0;
	}
	if ((char)out->p[0] == first)
		return 0;
	*out = ipc_bytes(NULL, 0);
	snprintf(text, sizeof(text), "params.%s must be %s.", name,
	    first == '{'       ? "an object"
		: first == '[' ? "an array"
			       : "a string");
	return bad(m, text);
}

/* mcp_era.c has found them. */
static int
read_meta(struct mcp_message *m)
{
	struct ipc_bytes token = m->progress_token;

	m->progress_token = ipc_bytes(NULL, 0);
	if (mcp_era_is_null(m->meta))
		return 0;
	if (!mcp_era_is_object(m->meta))
		return bad(m, "params._meta must be an object.");
	if (mcp_era_is_null(token))
		return 0;
	if (!mcp_era_is_id(token))
		return bad(m, "progressToken must be a string or an integer.");
	m->progress_token = token;
	return 0;
}

static void
read_initialize(struct mcp_message *m)
{
	struct ipc_bytes v;

	if (need_string(m, m->params, "protocolVersion", &v) < 0)
		return;
	/* One that does not fit is one we do not have. */
	if (mcp_request_text(v, m->offered, sizeof(m->offered)) < 0)
		m->offered[0] = '\0';
	if (mcp_era_get(m->params, "capabilities", &v) &&
	    mcp_era_is_object(v)) {
		m->capabilities = v;
		m->declared = mcp_params_declared(v);
	}
	if (mcp_era_get(m->params, "clientInfo", &v))
		mcp_era_client(v, m);
}

/* What a client adds when it calls again after input_required (MRTR). They
 * mean nothing on the legacy wire, where unknown members are ignored. */
static int
read_retry(struct mcp_message *m)
{
	if (!m->modern)
		return 0;
	if (may_have(m, m->params, "inputResponses", '{', &m->input_responses) <
	    0)
		return -1;
	return may_have(m, m->params, "requestState", '"', &m->request_state);
}

/*
 * mcpbox_call_tool is for clients that do not take up tools approved since they
 * connected: from here on such a request is the call it asks for, in every
 * respect, so what is true of a call by its own name (who may, limits, records,
 * confirmation, questions, tasks) is true of this one. It gives nobody a call
 * that he could not make directly. What is not of its form stays as it is:
 * admind says what is wrong with it. A management tool is none it calls: a
 * client that lets this one pass would not know which.
 */
static void
by_name(struct mcp_message *m)
{
	struct ipc_bytes name, value, tool = {NULL, 0}, arguments = {NULL, 0};
	char text[sizeof(m->tool)];
	struct walk w;

	if (walk_open(&w, m->arguments, '{') != 0)
		return;
	while (walk_next(&w, &name, &value))
		if (walk_is(name, "name"))
			tool = value;
		else if (walk_is(name, "arguments"))
			arguments = value;
		else
			return;
	if (arguments.p == NULL)
		arguments = ipc_bytes("{}", 2);
	if (tool.p == NULL || !mcp_era_is_object(arguments) ||
	    mcp_request_text(tool, text, sizeof(text)) < 0 || text[0] == '\0' ||
	    strncmp(text, "mcpbox_", 7) == 0)
		return;
	memcpy(m->tool, text, sizeof(text));
	m->arguments = arguments;
	m->by_name = true;
}

static void
read_call(struct mcp_message *m)
{
	struct ipc_bytes v;
	bool tool = m->method == MCP_TOOLS_CALL;

	if (need_string(m, m->params, "name", &v) < 0)
		return;
	if (mcp_request_text(v, m->tool, sizeof(m->tool)) < 0) {
		mcp_era_fail(&m->error,
		    tool ? FAILURE_UNKNOWN_TOOL : FAILURE_UNKNOWN_PROMPT, 200,
		    tool ? "No tool has a name this long."
			 : "No prompt has a name this long.");
		return;
	}
	m->arguments = ipc_bytes("{}", 2);
	if (may_have(m, m->params, "arguments", '{', &v) < 0)
		return;
	if (v.n > 0)
		m->arguments = v;
	if (tool && strcmp(m->tool, "mcpbox_call_tool") == 0)
		by_name(m);
	read_retry(m);
}

static void
read_uri(struct mcp_message *m)
{
	if (need_string(m, m->params, "uri", &m->uri) < 0)
		return;
	m->arguments = ipc_bytes("{}", 2);
	if (m->method == MCP_RESOURCES_READ)
		read_retry(m);
}

static void
read_complete(struct mcp_message *m)
{
	struct ipc_bytes ref, arg, type;
	char text[16];

	if (!mcp_era_get(m->params, "ref", &ref) || !mcp_era_is_object(ref)) {
		bad(m, "params.ref must be an object.");
		return;
	}
	if (!mcp_era_get(m->params, "argument", &arg) ||
	    !mcp_era_is_object(arg)) {
		bad(m, "params.argument must be an object.");
		return;
	}
	if (!mcp_era_get(ref, "type", &type) ||
	    mcp_request_text(type, text, sizeof(text)) < 0 ||
	    (strcmp(text, "ref/prompt") != 0 &&
		strcmp(text, "ref/resource") != 0)) {
		bad(m, "params.ref.type must be ref/prompt or ref/resource.");
		return;
	}
	m->complete.prompt = strcmp(text, "ref/prompt") == 0;
	if (need_string(m, ref, m->complete.prompt ? "name" : "uri",
		&m->complete.ref) < 0 ||
	    need_string(m, arg, "name", &m->complete.name) < 0)
		return;
	need_string(m, arg, "value", &m->complete.value);
}

static bool
is_true(struct ipc_bytes object, const char *name)
{
	struct ipc_bytes v;

	return mcp_era_get(object, name, &v) && v.n == 4 &&
	    memcmp(v.p, "true", 4) == 0;
}

static void
read_listen(struct mcp_message *m)
{
	struct ipc_bytes f;

	if (!mcp_era_get(m->params, "notifications", &f) ||
	    !mcp_era_is_object(f)) {
		bad(m, "params.notifications must be an object.");
		return;
	}
	m->listen.tools = is_true(f, "toolsListChanged");
	m->listen.prompts = is_true(f, "promptsListChanged");
	m->listen.resources = is_true(f, "resourcesListChanged");
	if (may_have(m, f, "resourceSubscriptions", '[', &m->listen.uris) < 0)
		return;
	may_have(m, f, "taskIds", '[', &m->listen.tasks);
}

void
mcp_params_read(struct mcp_message *m)
{
	struct ipc_bytes v;

	if (read_meta(m) < 0)
		return;
	switch (m->method) {
	case MCP_INITIALIZE:
		read_initialize(m);
		break;
	case MCP_TOOLS_LIST:
	case MCP_PROMPTS_LIST:
	case MCP_RESOURCES_LIST:
	case MCP_TEMPLATES_LIST:
		may_have(m, m->params, "cursor", '"', &m->cursor);
		break;
	case MCP_TOOLS_CALL:
	case MCP_PROMPTS_GET:
		read_call(m);
		break;
	case MCP_RESOURCES_READ:
	case MCP_RESOURCES_SUBSCRIBE:
	case MCP_RESOURCES_UNSUBSCRIBE:
		read_uri(m);
		break;
	case MCP_COMPLETE:
		read_complete(m);
		break;
	case MCP_SET_LEVEL:
		m->level = mcp_era_get(m->params, "level", &v)
		    ? mcp_params_log_level(v)
		    : -1;
		if (m->level < 0)
			bad(m, "params.level must be a log level.");
		break;
	case MCP_LISTEN:
		read_listen(m);
		break;
	case MCP_TASKS_UPDATE:
		if (may_have(m, m->params, "inputResponses", '{',
			&m->input_responses) == 0)
			need_string(m, m->params, "taskId", &m->task_id);
		break;
	case MCP_TASKS_GET:
	case MCP_TASKS_CANCEL:
		need_string(m, m->params, "taskId", &m->task_id);
		break;
	case MCP_CANCELLED:
		if (mcp_era_get(m->params, "requestId", &v) && mcp_era_is_id(v))
			m->cancel_id = v;
		break;
	default:
		break;
	}
}
