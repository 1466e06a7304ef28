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

/*
 * Finds the member `arguments` of a body that was parsed: an object, as the
 * very bytes that the person sent. A client's arguments come so, too. json-c
 * would write an integer beyond 64 bits as the largest that it has, and the
 * tool would run with another number than the person sent.
 */
static bool
find_arguments(const struct call *c, struct ipc_bytes *out)
{
	static const char *const path[] = {"arguments", NULL};
	const struct http1_request *r = httpd_request(c->req);

	return json_slice(r->body, r->body_len, path, &out->p, &out->n) == 1 &&
	    out->n > 0 && out->p[0] == '{';
}

/* Tells whether a draft may name the version that it is made from. */
static enum admin_seen
rule(const char *tool)
{
	return strncmp(tool, "mcpbox_update_", 14) == 0 ||
		strcmp(tool, "mcpbox_test_code") == 0 ||
		strcmp(tool, "mcpbox_request_publish") == 0
	    ? ADMIN_SEEN_OPTIONAL
	    : ADMIN_SEEN_NONE;
}

/* Sends a tool's name and its arguments. drafts: the body's `name` is a
 * management tool's, without its prefix. */
static void
run(struct call *c, bool drafts)
{
	static const char *const members[] = {"name", "arguments", NULL};
	struct ipc_person_call m = {.token = ipc_str(c->token_hash)};
	char tool[TOOL_NAME_MAX + 1];
	struct json_object *o;
	const char *name;
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
	    !find_arguments(c, &m.arguments)) {
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "name must be a tool's name, and arguments an object",
		    NULL);
	} else if (action_match(c, rule(tool), &m.seen) == 0) {
		m.tool = ipc_str(tool);
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
