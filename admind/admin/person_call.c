/*
 * PERSON_CALL: an administrator calls a tool over REST, drafts one, tries a
 * draft, or asks for its review (docs/decisions/0111).
 *
 * It is allowed for admind-http with the token of an administrator's login that
 * the vault knows, as with ADMIN_ACTION (adminact.c). A call takes the path of
 * a client's call: approved code alone, its limits, its grants, a record of its
 * own. So a taken-over admind-http gains, while an administrator is logged in,
 * the rights of a client of the local listener. It can't approve its drafts:
 * that takes the vault and a fresh proof.
 *
 * The principal is the administrator's name, as with imports. No client has
 * such a name: theirs have a colon, or are `local`, which no administrator may
 * be called.
 *
 * Management tools that have a route of their own are refused here. That route
 * judges the authority to undo another person's stop, and this path would act
 * as a client does.
 */
#include <string.h>

#include "admin.h"
#include "ids.h"
#include "inner.h"
#include "jsonw.h"
#include "login.h"
#include "name.h"

/* The management tools that no other route serves. */
static const char *const drafting[] = {"mcpbox_create_tool",
    "mcpbox_update_tool", "mcpbox_create_prompt", "mcpbox_update_prompt",
    "mcpbox_create_resource", "mcpbox_update_resource", "mcpbox_validate_code",
    "mcpbox_test_code", "mcpbox_request_publish"};

/* The beginning of op->buf. The arguments follow. */
struct head {
	struct ipc_hash login; /* SHA-256 of the login's token */
};

static bool
callable(const char *tool)
{
	if (!name_is_management(tool))
		return true;
	for (size_t i = 0; i < sizeof(drafting) / sizeof(drafting[0]); i++)
		if (strcmp(tool, drafting[i]) == 0)
			return true;
	return false;
}

static void
ended(void *arg, const struct inner_end *e)
{
	struct ipc_admin_json m;
	char id[UUID_TEXT_LEN + 1];
	struct op *op = arg;
	struct jsonw w;
	struct buf b;

	if (e->body.n == 0) {
		op_refuse(op,
		    e->failure == FAILURE_NONE ? FAILURE_INTERNAL : e->failure,
		    e->text);
		return;
	}
	uuid_text(&e->execution, id);
	buf_init(&b, IPC_BLOB_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "execution", id);
	jsonw_name(&w, "failure_mode");
	if (e->failure == FAILURE_NONE)
		jsonw_null(&w);
	else
		jsonw_str(&w, failure_info(e->failure)->name);
	/* As text: the sandbox made it, and its reader judges its form. */
	jsonw_kv_strn(&w, "result", e->body.p, e->body.n);
	jsonw_obj_end(&w);
	m.json = ipc_bytes(b.p, b.len);
	if (b.failed)
		op_refuse(op, FAILURE_TOO_LARGE,
		    "it ran, but its result is too long for this answer");
	else
		op_answer(op, IPC_ADMIN_JSON, &m);
	buf_free(&b);
}

static void
run(struct op *op)
{
	struct head h;

	memcpy(&h, op->buf.p, sizeof(h));
	inner_person(op->a, op->text, op->actor,
	    ipc_bytes(op->buf.p + sizeof(h), op->buf.len - sizeof(h)),
	    &op->hash, &h.login, ended, op);
}

int
person_call_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_person_call m;
	struct head h = {0};
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.tool.n == 0 || m.tool.n > EXPOSED_NAME_MAX ||
	    memchr(m.tool.p, 0, m.tool.n) != NULL ||
	    m.arguments.n > ARGUMENTS_MAX) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "this is no name of a tool, or the arguments are too long");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	memcpy(op->text, m.tool.p, m.tool.n);
	op->text[m.tool.n] = '\0';
	op->hash = m.seen;
	/* login_check() refuses a malformed one. */
	if (m.token.n == LOGIN_HASH_TEXT)
		(void)b64url_decode(
		    (const char *)m.token.p, m.token.n, h.login.b);
	buf_put(&op->buf, &h, sizeof(h));
	buf_put(&op->buf, m.arguments.p, m.arguments.n);
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else if (!callable(op->text))
		op_refuse(op, FAILURE_INVALID_PARAMS,
		    "this management tool has a route of its own");
	else
		login_check(op, m.token, run);
	return 0;
}
