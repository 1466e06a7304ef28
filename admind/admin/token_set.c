/*
 * Makes and revokes tokens for an administrator.
 *
 * A new token leaves this process once, in the answer to the administrator who
 * asked for it. The database gets its SHA-256. An Idempotency-Key can't repeat
 * the answer, because then the token would have to be kept. An administrator
 * who lost the answer revokes that token and makes another.
 *
 * Allowed for a login that the vault says is an administrator's, and for uid 0.
 * A taken-over admind gains nothing by tokens: it decides whom a credential
 * belongs to, so it could admit any client without a token.
 */
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "audit.h"
#include "ended.h"
#include "crypto.h"
#include "ids.h"
#include "log.h"
#include "login.h"
#include "tokens.h"

static const struct db_stmt create_row = {"token_create",
    "SELECT mcpbox.token_create($1::uuid, $2::text, $3::bytea, $4::text,"
    " $5::text, $6::text, $7::text, $8::timestamptz, $9::text,"
    " $10::text)",
    DB_SURE};
static const struct db_stmt revoke_row = {"token_revoke",
    "SELECT id, digest, shown FROM mcpbox.token_revoke($1::text, $2::text,"
    " $3::text)",
    DB_SURE};

/* Appends a text with its NUL to op->buf. */
static void
put(struct op *op, struct ipc_bytes text)
{
	buf_put(&op->buf, text.p, text.n);
	buf_putc(&op->buf, '\0');
}

static const char *
text(const struct op *op, unsigned i)
{
	const char *p = (const char *)op->buf.p;

	while (i-- > 0)
		p += strlen(p) + 1;
	return p;
}

/* ---- making one ---- */

/* The texts in op->buf, in this order. JSON is there after the token was
 * made. */
enum { NAME, SCOPES, LISTENERS, ALLOW, DENY, SECRET, SET, JSON };

/* Answers after this process has read the token, so that the token works as
 * soon as its owner gets it. */
static void
known(void *arg)
{
	struct op *op = arg;
	struct ipc_token_created m = {.secret = ipc_str(text(op, SECRET)),
	    .json = ipc_str(text(op, JSON))};

	audit_sign(op->a);
	op_answer(op, IPC_TOKEN_CREATED, &m);
}

static void
created(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	put(op, db_bytes(rows, 0, 0));
	if (op->buf.failed) {
		/* The token exists, but no person knows it. */
		op_refuse(op, FAILURE_BUSY,
		    "out of memory: revoke the token and make another");
		return;
	}
	tokens_load(op->a, known, op);
}

static void
store(struct op *op)
{
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &op->id);
	db_p_str(&p, text(op, NAME));
	db_p_hash(&p, &op->hash);
	db_p_str(&p, text(op, SCOPES));
	db_p_str(&p, text(op, LISTENERS));
	db_p_str(&p, text(op, ALLOW));
	db_p_str(&p, text(op, DENY));
	db_p_time_us(&p, op->number);
	db_p_str(&p, op->actor);
	db_p_str(&p, text(op, SET));
	db_query(op->a->db, &create_row, &p, created, op);
}

static int
create(struct link *l, struct ipc_frame *f)
{
	uint8_t random[TOKEN_BYTES];
	char secret[TOKEN_TEXT_LEN + 1] = TOKEN_PREFIX;
	struct ipc_token_create m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.name.n > TOKEN_NAME_MAX || m.expires_ms > INT64_MAX / 1000) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "a token's name has at most 64 characters, and its time an "
		    "end that can be told");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	random_bytes(random, sizeof(random));
	b64url_encode(random, sizeof(random), secret + strlen(TOKEN_PREFIX));
	sha256(secret, strlen(secret), &op->hash);
	uuid_v7(&op->id);
	op->number = m.expires_ms * 1000;
	op->least = ADMIN_ADMINISTRATOR;
	put(op, m.name);
	put(op, m.scopes);
	put(op, m.listeners);
	put(op, m.allow);
	put(op, m.deny);
	put(op, ipc_str(secret));
	put(op, m.set);
	explicit_bzero(random, sizeof(random));
	explicit_bzero(secret, sizeof(secret));
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, store);
	return 0;
}

/* ---- ending one ---- */

enum { WHICH, REASON, SHOWN };

static void
told(void *arg, const struct ended_told *t)
{
	struct op *op = arg;
	struct ipc_admin_json m = {.json = ipc_str(text(op, SHOWN))};

	audit_sign(op->a);
	/* The token is revoked, and no call gets through. But a hanging gateway
	 * may show its cached answers as long as that cache lasts. */
	if (t->late > 0)
		op_refuse(op, FAILURE_BUSY,
		    "it is revoked, but a gateway does not answer: it forgets "
		    "within 30 s, or ask again");
	else
		op_answer(op, IPC_ADMIN_JSON, &m);
}

static void
revoked(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	char principal[PRINCIPAL_MAX + 1] = "";
	struct ipc_bytes digest;
	struct ipc_id id;
	struct token *t;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	id = db_id(rows, 0, 0);
	digest = db_bytes(rows, 0, 1);
	put(op, db_bytes(rows, 0, 2));
	if (op->buf.failed || digest.n != sizeof(op->hash.b)) {
		op_refuse(op, FAILURE_BUSY, "it is revoked, but out of memory");
		return;
	}
	memcpy(op->hash.b, digest.p, digest.n);
	t = tokens_by_id(op->a, &id);
	if (t != NULL) {
		memcpy(principal, t->principal, sizeof(principal));
		tokens_end(op->a, t, "it was revoked");
	}
	/* tokens_end (or the NOTIFY, if it came first) has sent the same
	 * message already. This message is sent later, so its answer comes
	 * after the answer to the earlier one. */
	ended_tell(op->a, &op->hash, principal, told, op);
}

static void
end(struct op *op)
{
	struct db_params p;

	db_params_init(&p);
	db_p_str(&p, text(op, WHICH));
	db_p_str(&p, text(op, REASON));
	db_p_str(&p, op->actor);
	db_query(op->a->db, &revoke_row, &p, revoked, op);
}

static int
revoke(struct link *l, struct ipc_frame *f)
{
	struct ipc_token_revoke m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	put(op, m.which);
	put(op, m.reason);
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, end);
	return 0;
}

int
token_set_message(struct link *l, struct ipc_frame *f)
{
	return f->type == IPC_TOKEN_CREATE ? create(l, f) : revoke(l, f);
}
