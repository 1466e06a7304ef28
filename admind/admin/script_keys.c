/*
 * Makes scripts' keys for an administrator, and answers admind-http whether a
 * key may be used. A key is ended by the action key_revoke.
 *
 * A new key leaves this process once, in the answer to its maker. The database
 * gets its SHA-256. No key makes another: the
 * requests here set no scope (core/login.c).
 *
 * A taken-over admind gains nothing by keys: this process does itself all that
 * a key may do. The vault takes no key.
 */
#include <string.h>

#include "admin.h"
#include "audit.h"
#include "crypto.h"
#include "ids.h"
#include "login.h"

static const struct db_stmt create_row = {"script_key_create",
    "SELECT mcpbox.script_key_create($1::text, $2::bytea, $3::text, $4::int8,"
    " $5::text)",
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

/* The texts in op->buf, in this order. JSON is there after the key was made. */
enum { NAME, SCOPES, SECRET, JSON };

static void
created(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_script_key_created m = {0};

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	put(op, db_bytes(rows, 0, 0));
	audit_sign(op->a);
	if (op->buf.failed) {
		/* The key exists, but no person knows it. */
		op_refuse(op, FAILURE_BUSY,
		    "out of memory: revoke the key and make another");
		return;
	}
	m.secret = ipc_str(text(op, SECRET));
	m.json = ipc_str(text(op, JSON));
	op_answer(op, IPC_SCRIPT_KEY_CREATED, &m);
}

static void
store(struct op *op)
{
	struct db_params p;

	db_params_init(&p);
	db_p_str(&p, text(op, NAME));
	db_p_hash(&p, &op->hash);
	db_p_str(&p, text(op, SCOPES));
	db_p_i64(&p, (int64_t)op->number);
	db_p_str(&p, op->actor);
	db_query(op->a->db, &create_row, &p, created, op);
}

static int
create(struct link *l, struct ipc_frame *f)
{
	char secret[SCRIPT_KEY_TEXT + 1] = SCRIPT_KEY_PREFIX;
	uint8_t random[SCRIPT_KEY_BYTES];
	struct ipc_script_key_create m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	random_bytes(random, sizeof(random));
	b64url_encode(
	    random, sizeof(random), secret + strlen(SCRIPT_KEY_PREFIX));
	sha256(secret, strlen(secret), &op->hash);
	op->number = m.days;
	op->least = ADMIN_ADMINISTRATOR;
	put(op, m.name);
	put(op, m.scopes);
	put(op, ipc_str(secret));
	explicit_bzero(random, sizeof(random));
	explicit_bzero(secret, sizeof(secret));
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, store);
	return 0;
}

/* admind-http asks before it parses a body, for /metrics, and while a stream
 * runs. The answer is for this moment: a request that changes or reads
 * something is judged again here. */
static int
check(struct link *l, struct ipc_frame *f)
{
	struct ipc_script_key_check m;
	enum script_scope scope;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (script_scope_find(m.scope, &scope) == -1 ||
	    !login_is_key(m.token)) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "no such scope, or no key");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_VIEWER;
	op->scope = scope;
	login_check(op, m.token, op_ok);
	return 0;
}

int
script_keys_message(struct link *l, struct ipc_frame *f)
{
	return f->type == IPC_SCRIPT_KEY_CREATE ? create(l, f) : check(l, f);
}
