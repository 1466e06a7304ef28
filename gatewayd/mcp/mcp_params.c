/* Parameters: step 12 of the ladder (mcp_request.h). A fault here is told in
 * the JSON-RPC answer, with HTTP status 200. Only shapes are judged. The code
 * that serves the method decides whether a name, cursor, state or id means
 * anything. */
#include <stdio.h>
#include <string.h>

#include "mcp_era.h"
#include "name.h"
#include "walk.h"

#define TASKS "io.modelcontextprotocol/tasks"

/* Reads a severity of RFC 5424. The table has MCP's order: the index of a name
 * is its level. */
int
mcp_params_log_level(struct ipc_bytes v)
{
	static const char *const names[] = {"debug", "info", "notice",
	    "warning", "error", "critical", "alert", "emergency"};
	char text[16];
	int i;

	if (mcp_json_text(v, text, sizeof(text)) < 0)
		return -1;
	for (i = 0; i < 8; i++)
		if (strcmp(text, names[i]) == 0)
			return i;
	return -1;
}

static bool
has_object(struct ipc_bytes object, const char *name, struct ipc_bytes *v)
{
	return mcp_json_is_object(object) && mcp_json_get(object, name, v) &&
	    mcp_json_is_object(*v);
}

/* Returns the declared capabilities. An elicitation object without members
 * means forms, as it did before there were URLs (MCP 2025-11-25,
 * elicitation). */
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

int
mcp_params_client(struct ipc_bytes info, struct mcp_message *m)
{
	struct ipc_bytes name, version;
	char a[MCP_CLIENT_MAX / 2], b[MCP_CLIENT_MAX / 2];
	size_t n;

	if (!mcp_json_get(info, "name", &name) || name.p[0] != '"' ||
	    !mcp_json_get(info, "version", &version) || version.p[0] != '"')
		return -1;
	/* A name too long to keep is left out of the record, not refused. */
	if (mcp_json_text(name, a, sizeof(a)) < 0)
		a[0] = '\0';
	if (mcp_json_text(version, b, sizeof(b)) < 0)
		b[0] = '\0';
	/* a, a blank and b fit, because a and b have less than half of the room
	 * each. */
	n = strlen(a);
	memcpy(m->client, a, n);
	m->client[n] = ' ';
	memcpy(m->client + n + 1, b, strlen(b) + 1);
	return 0;
}

/* Adds a fault of the member `name`: of params if `within` is "", else of the
 * object `within` in params. */
static int
bad(struct mcp_message *m, const char *within, const char *name,
    const char *fix)
{
	char pointer[32];

	snprintf(pointer, sizeof(pointer), "/params%s%s",
	    within[0] != '\0' ? "/" : "", within);
	return mcp_fault(m, FAILURE_INVALID_PARAMS, pointer, name, fix);
}

/* Reads a member that must be a string. 0 and its raw JSON, or -1. */
static int
need_string(struct mcp_message *m, const char *within, struct ipc_bytes object,
    const char *name, struct ipc_bytes *out)
{
	if (mcp_json_get(object, name, out) && out->p[0] == '"')
		return 0;
	*out = ipc_bytes(NULL, 0);
	return bad(m, within, name, "Write a string; it may not be left out.");
}

/* Reads a member of params that must be an object of known members. 0 or -1. */
static int
need_object(struct mcp_message *m, const char *name, struct ipc_bytes *out)
{
	if (mcp_json_get(m->params, name, out) && mcp_json_is_object(*out)) {
		mcp_member_check(m, name, *out);
		return 0;
	}
	*out = ipc_bytes(NULL, 0);
	return bad(m, "", name, "Write an object; it may not be left out.");
}

/* Reads a member that may be left out. If present, its JSON must begin with
 * `first`. */
static void
may_have(struct mcp_message *m, const char *within, struct ipc_bytes object,
    const char *name, char first, struct ipc_bytes *out)
{
	if (!mcp_json_given(object, name, out)) {
		*out = ipc_bytes(NULL, 0);
		return;
	}
	if ((char)out->p[0] == first)
		return;
	*out = ipc_bytes(NULL, 0);
	bad(m, within, name,
	    first == '{'       ? "Write an object, or leave it out."
		: first == '[' ? "Write an array, or leave it out."
			       : "Write a string, or leave it out.");
}

/* Checks _meta and the progress token, which mcp_era.c has found. */
static void
read_meta(struct mcp_message *m)
{
	struct ipc_bytes token = m->progress_token;

	m->progress_token = ipc_bytes(NULL, 0);
	if (mcp_json_is_null(m->meta))
		return;
	if (!mcp_json_is_object(m->meta))
		bad(m, "", "_meta", "Write an object, or leave it out.");
	else if (!mcp_json_is_null(token) && !mcp_json_is_id(token))
		bad(m, "_meta", "progressToken",
		    "Write a string or an integer, or leave it out.");
	else if (!mcp_json_is_null(token))
		m->progress_token = token;
}

static void
read_initialize(struct mcp_message *m)
{
	struct ipc_bytes v;

	if (need_string(m, "", m->params, "protocolVersion", &v) < 0)
		return;
	/* A version that is too long for m->offered is not served here. */
	if (mcp_json_text(v, m->offered, sizeof(m->offered)) < 0)
		m->offered[0] = '\0';
	if (mcp_json_get(m->params, "capabilities", &v) &&
	    mcp_json_is_object(v)) {
		m->capabilities = v;
		m->declared = mcp_params_declared(v);
	}
	if (mcp_json_get(m->params, "clientInfo", &v))
		mcp_params_client(v, m);
}

/* Reads the members that a client adds when it calls again after input_required
 * (parked.h). The legacy revisions don't have these members. */
static void
read_retry(struct mcp_message *m)
{
	if (!m->modern)
		return;
	may_have(m, "", m->params, "inputResponses", '{', &m->input_responses);
	may_have(m, "", m->params, "requestState", '"', &m->request_state);
}

/*
 * Turns mcpbox_call_tool into the call that it asks for. This tool is for
 * clients that do not take up tools approved since they connected. From here on
 * the request is that call in every respect: permission, limits, records,
 * confirmation, questions and tasks are those of a call by the tool's own name.
 * So no client can make a call in this way that it could not make directly.
 *
 * Arguments of another form stay as they are, and admind names the fault. A
 * management tool can't be called in this way, because a client that lets
 * mcpbox_call_tool pass would not know which tool it allows.
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
	if (tool.p == NULL || !mcp_json_is_object(arguments) ||
	    mcp_json_text(tool, text, sizeof(text)) < 0 || text[0] == '\0' ||
	    name_is_management(text))
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

	if (need_string(m, "", m->params, "name", &v) == 0 &&
	    mcp_json_text(v, m->tool, sizeof(m->tool)) < 0)
		mcp_fault_set(&m->error,
		    tool ? FAILURE_UNKNOWN_TOOL : FAILURE_UNKNOWN_PROMPT, 200,
		    tool ? "No tool has a name this long."
			 : "No prompt has a name this long.");
	m->arguments = ipc_bytes("{}", 2);
	may_have(m, "", m->params, "arguments", '{', &v);
	if (v.n > 0)
		m->arguments = v;
	read_retry(m);
	if (m->error.failure == FAILURE_NONE && tool &&
	    strcmp(m->tool, "mcpbox_call_tool") == 0)
		by_name(m);
}

static void
read_uri(struct mcp_message *m)
{
	need_string(m, "", m->params, "uri", &m->uri);
	m->arguments = ipc_bytes("{}", 2);
	if (m->method == MCP_RESOURCES_READ)
		read_retry(m);
}

static void
read_ref(struct mcp_message *m, struct ipc_bytes ref)
{
	struct ipc_bytes type, v;
	char text[16];

	if (!mcp_json_get(ref, "type", &type) ||
	    mcp_json_text(type, text, sizeof(text)) < 0 ||
	    (strcmp(text, "ref/prompt") != 0 &&
		strcmp(text, "ref/resource") != 0)) {
		bad(m, "ref", "type", "Write ref/prompt or ref/resource.");
		return;
	}
	m->complete.prompt = strcmp(text, "ref/prompt") == 0;
	need_string(m, "ref", ref, m->complete.prompt ? "name" : "uri",
	    &m->complete.ref);
	/* A ref with name and uri would be two questions. */
	if (mcp_json_get(ref, m->complete.prompt ? "uri" : "name", &v))
		bad(m, "ref", m->complete.prompt ? "uri" : "name",
		    "Leave it out: a prompt has a name, a resource a uri.");
}

static void
read_complete(struct mcp_message *m)
{
	struct ipc_bytes v;

	if (need_object(m, "ref", &v) == 0)
		read_ref(m, v);
	if (need_object(m, "argument", &v) == 0) {
		need_string(m, "argument", v, "name", &m->complete.name);
		need_string(m, "argument", v, "value", &m->complete.value);
	}
	may_have(m, "", m->params, "context", '{', &v);
	mcp_member_check(m, "context", v);
}

/* Reads a flag. An absent member is false. */
static bool
flag(struct mcp_message *m, struct ipc_bytes filter, const char *name)
{
	struct ipc_bytes v;

	if (!mcp_json_given(filter, name, &v) ||
	    (v.n == 5 && memcmp(v.p, "false", 5) == 0))
		return false;
	if (v.n != 4 || memcmp(v.p, "true", 4) != 0)
		bad(m, "notifications", name, "Write true or false.");
	return true;
}

static void
read_listen(struct mcp_message *m)
{
	struct ipc_bytes f;

	if (need_object(m, "notifications", &f) < 0)
		return;
	m->listen.tools = flag(m, f, "toolsListChanged");
	m->listen.prompts = flag(m, f, "promptsListChanged");
	m->listen.resources = flag(m, f, "resourcesListChanged");
	may_have(m, "notifications", f, "resourceSubscriptions", '[',
	    &m->listen.uris);
	may_have(m, "notifications", f, "taskIds", '[', &m->listen.tasks);
}

/* Reads the id to cancel. A notification without requestId cancels nothing
 * here: it is about a task of the client's (2025-11-25). */
static void
read_cancelled(struct mcp_message *m)
{
	struct ipc_bytes v;

	if (!mcp_json_given(m->params, "requestId", &v))
		return;
	if (mcp_json_is_id(v))
		m->cancel_id = v;
	else
		bad(m, "", "requestId", "Write a string or an integer.");
}

/* Reads all parameters, and tells all their faults at once. */
void
mcp_params_read(struct mcp_message *m)
{
	struct ipc_bytes v;

	read_meta(m);
	mcp_member_check(m, "", m->params);
	switch (m->method) {
	case MCP_INITIALIZE:
		read_initialize(m);
		break;
	case MCP_TOOLS_LIST:
	case MCP_PROMPTS_LIST:
	case MCP_RESOURCES_LIST:
	case MCP_TEMPLATES_LIST:
		may_have(m, "", m->params, "cursor", '"', &m->cursor);
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
		m->level = mcp_json_get(m->params, "level", &v)
		    ? mcp_params_log_level(v)
		    : -1;
		if (m->level < 0)
			bad(m, "", "level",
			    "Write debug, info, notice, warning, error, "
			    "critical, alert or emergency.");
		break;
	case MCP_LISTEN:
		read_listen(m);
		break;
	case MCP_TASKS_UPDATE:
		may_have(m, "", m->params, "inputResponses", '{',
		    &m->input_responses);
		need_string(m, "", m->params, "taskId", &m->task_id);
		break;
	case MCP_TASKS_GET:
	case MCP_TASKS_CANCEL:
		need_string(m, "", m->params, "taskId", &m->task_id);
		break;
	case MCP_CANCELLED:
		read_cancelled(m);
		break;
	default:
		break;
	}
}
