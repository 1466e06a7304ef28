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
 *
 * A call ends with the login that made it, as a client's call ends with its
 * token. The vault alone knows logins and does not tell of their ends, so it is
 * asked every LOOK_TICKS while a call runs. A login is lost by logout, by its
 * time, by a new password or role, and by the removal of its administrator.
 * Then all running calls of this person on this node are killed, those of the
 * person's other logins too: nothing that a removed person began goes on. While
 * the vault does not answer, no call ends by this, but each ends by its own
 * time limit. A taken-over admind-http can't keep a call alive, because admind
 * asks the vault itself.
 */
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "ended.h"
#include "ids.h"
#include "inner.h"
#include "jsonw.h"
#include "log.h"
#include "login.h"
#include "name.h"

/* Ticks (seconds) between two looks at a login: as often as streams look. */
enum { LOOK_TICKS = 2 };

/* A call that runs. */
struct running {
	LIST_ENTRY(running) entry;
	struct admind *a;
	struct op *op; /* NULL: it ended while the vault was asked */
	struct ipc_session_lookup login;
	char actor[PRINCIPAL_MAX + 1];
	bool asking;
};
static LIST_HEAD(, running) runs = LIST_HEAD_INITIALIZER(runs);

/* The management tools that no other route serves. */
static const char *const drafting[] = {"mcpbox_create_tool",
    "mcpbox_update_tool", "mcpbox_create_prompt", "mcpbox_update_prompt",
    "mcpbox_create_resource", "mcpbox_update_resource", "mcpbox_validate_code",
    "mcpbox_test_code", "mcpbox_request_publish"};

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

/* ---- the end of a login ---- */

static bool
is_lost(const struct running *r, struct ipc_frame *f)
{
	struct ipc_session_info m;
	struct ipc_refused no;
	enum admin_role role;

	if (f != NULL && f->type == IPC_REFUSED)
		return ipc_decode(f, &no, NULL) == 0 &&
		    no.failure == FAILURE_UNAUTHENTICATED;
	return f != NULL && f->type == IPC_SESSION_INFO &&
	    ipc_decode(f, &m, NULL) == 0 &&
	    (!ipc_streq(m.username, r->actor) ||
		admin_action_role(m.role, &role) == -1 ||
		role < ADMIN_ADMINISTRATOR);
}

static void
looked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct running *r = arg;
	struct admind *a = r->a;
	char actor[PRINCIPAL_MAX + 1];

	(void)gone;
	r->asking = false;
	if (r->op == NULL) {
		free(r);
		return;
	}
	if (!is_lost(r, f))
		return;
	/* A call that ends here frees r. */
	memcpy(actor, r->actor, sizeof(actor));
	log_call(LOG_LV_INFO, "login_lost", NULL, actor,
	    "the calls of this person end");
	ended_jobs(a, actor);
	ended_runs_of(a, actor);
}

void
person_call_tick(struct admind *a)
{
	struct running *r, *next;
	struct err err;

	if (a->ticks % LOOK_TICKS != 0)
		return;
	for (r = LIST_FIRST(&runs); r != NULL; r = next) {
		next = LIST_NEXT(r, entry);
		if (r->asking)
			continue;
		r->asking = true;
		if (ask(a->vault, IPC_SESSION_LOOKUP, &r->login, looked, r,
			&err) == -1)
			r->asking = false;
	}
}

/* ---- calls ---- */

static void
ended(void *arg, const struct inner_end *e)
{
	struct ipc_admin_json m;
	char id[UUID_TEXT_LEN + 1];
	struct running *r = arg;
	struct op *op = r->op;
	struct jsonw w;
	struct buf b;

	LIST_REMOVE(r, entry);
	r->op = NULL;
	if (!r->asking)
		free(r);
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

/* Runs the call of an administrator. op->buf has the login's hash, then the
 * arguments. */
static void
run(struct op *op)
{
	struct running *r = calloc(1, sizeof(*r));
	size_t n = sizeof(r->login.token);

	if (r == NULL) {
		op_refuse(op, FAILURE_BUSY, "out of memory");
		return;
	}
	r->a = op->a;
	r->op = op;
	memcpy(&r->login.token, op->buf.p, n);
	memcpy(r->actor, op->actor, sizeof(r->actor));
	LIST_INSERT_HEAD(&runs, r, entry);
	inner_person(op->a, op->text, op->actor,
	    ipc_bytes(op->buf.p + n, op->buf.len - n), &op->hash, ended, r);
}

int
person_call_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_hash login = {0};
	struct ipc_person_call m;
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
	/* login_check() refuses other texts, and keys. */
	if (m.token.n == LOGIN_HASH_TEXT)
		(void)b64url_decode(
		    (const char *)m.token.p, m.token.n, login.b);
	buf_put(&op->buf, login.b, sizeof(login.b));
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
