/*
 * An administrator's own calls (docs/decisions/0111). POST /api/calls calls an
 * approved tool, and needs a fresh proof: the effect of a tool outlives the
 * login, so a stolen login alone calls nothing. POST /api/drafts drafts, tries
 * a draft, or asks for its review. A tool that serves changes by an approval
 * alone.
 */
#include <json-c/json.h>

#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "json.h"
#include "name.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

/* Longer than any name of a tool (NAME_EXPOSED_MAX): admind says which name it
 * does not know. */
enum { TOOL_NAME_MAX = 255 };

static void
said(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, false);
}

/* Sends the tool's name after `prefix`, and the arguments. Member `name` of the
 * body is the tool. */
static void
run(struct call *c, bool drafts)
{
	static const char *const members[] = {"name", "arguments", NULL};
	struct ipc_person_call m = {.token = ipc_str(c->token_hash)};
	char tool[TOOL_NAME_MAX + 1];
	struct json_object *o, *arguments;
	const char *name, *text;
	size_t n = 0;
	struct err e;
	int len = -1;

	if (body_parse(c, members, &o) < 0)
		return;
	if (json_get_str(o, "name", &name, &n, &e) == 1 && strlen(name) == n)
		len = snprintf(
		    tool, sizeof(tool), "%s%s", drafts ? "mcpbox_" : "", name);
	if (len < 0 || (size_t)len >= sizeof(tool) ||
	    name_is_management(tool) != drafts ||
	    !json_object_object_get_ex(o, "arguments", &arguments) ||
	    !json_object_is_type(arguments, json_type_object)) {
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "name must be a tool's name, and arguments an object",
		    NULL);
	} else {
		text = json_object_to_json_string_length(
		    arguments, JSON_C_TO_STRING_PLAIN, &n);
		m.tool = ipc_str(tool);
		m.arguments = ipc_bytes(text, n);
		c->slow = true; /* the sandbox runs it */
		ask_admind(c, IPC_PERSON_CALL, &m, said);
	}
	json_object_put(o);
}

/* POST /api/calls {"name": TOOL, "arguments": {...}} */
void
calls_post(struct call *c)
{
	run(c, false);
}

/* POST /api/drafts {"name": "create_tool", "arguments": {...}} */
void
drafts_post(struct call *c)
{
	run(c, true);
}
