/*
 * mcpbox_test_code: the newest version of a tool runs once, approved or not.
 *
 *  version -> arguments -> run (own_run.h) -> result
 *
 * Why unapproved code may run here: it is an execution of kind test. The vault
 * seals it without secrets and for admind's own listener only. sandboxd gives
 * it no network, no client to ask and no more than the default limits. No
 * gateway can start it (contexts.c, held.c, park.c). So an author gains nothing
 * over an inspection, which imports his code; neither does a hostile admind.
 * The result is untrusted bytes and goes to the author only.
 *
 * A test is not a call of the tool. So a tool that is stopped, disabled or
 * revoked can be tested. A deleted tool cannot.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "ids.h"
#include "limit.h"
#include "management_tools.h"
#include "own_run.h"
#include "step.h"
#include "version.h"
#include "versions.h"

enum {
	/* With the queue and the way back, the test must end before the
	 * management call does (MANAGEMENT_DEADLINE_MS). A longer run needs a
	 * real call of the tool. */
	TEST_TIMEOUT_MAX_MS = 40 * 1000,
	TEST_WAIT_MS = QUEUE_MS + TEST_TIMEOUT_MAX_MS + 10 * 1000,
};

#define LIMIT_SQL(SYMBOL, name, unit, min, max, context, version, reason) \
	", coalesce(v." name ", l." name ", 0)"

/* Columns of test_version. Limits begin at C_LIMITS, in the order of enum
 * limit. */
enum {
	C_OBJECT,
	C_ID,
	C_HASH,
	C_PREIMAGE,
	C_SCHEMA,
	C_NUMBER,
	C_NAME,
	C_KIND,
	C_MISSING,
	C_LIMITS
};

/* clang-format off */
static const struct db_stmt newest = {"test_version",
    "SELECT t.object, v.id, v.hash, v.preimage, v.input_schema, v.version_no,"
    " v.exposed_name, v.kind, CASE WHEN v.modules <> '{}' THEN"
    " mcpbox.module_missing(t.id, v.modules) END"
    LIMITS(LIMIT_SQL, LIMIT_SQL)
    " FROM mcpbox.tools t"
    " JOIN LATERAL (SELECT * FROM mcpbox.tool_versions y"
    "  WHERE y.tool_id = t.id ORDER BY y.version_no DESC LIMIT 1) v ON true"
    " LEFT JOIN mcpbox.server_limits l ON l.server_id = t.server_id"
    " WHERE t.id = $1::uuid AND t.deleted_at IS NULL",
    DB_FAST};
/* clang-format on */

/* PostgreSQL takes the result's JSON apart. */
static const struct db_stmt shown = {"test_shown",
    "SELECT mcpbox.manage_tested($1::bytea, $2::bytea, $3::text, $4::int8,"
    " $5::int8, $6::uuid)",
    DB_FAST};

struct test {
	struct job *j;
	struct ipc_id version;
	struct ipc_hash version_hash;
	int64_t number;
	uint32_t timeout_ms;
	char name[EXPOSED_NAME_MAX + 1];
	struct buf args;     /* as the client sent them, or {} */
	struct buf material; /* the code or command, with its limits */
};

/* The steps, in order; each leads to the next. */
static void found(struct job *j, const struct pg_result *rows);
static void put_limits(struct test *t, const struct pg_result *rows);
static int put_kind(
    struct test *t, bool command, struct ipc_bytes preimage, struct err *err);
static void put_field(struct buf *out, uint8_t tag, const uint8_t *list,
    size_t n, uint8_t version);
static void checked(struct job *j);
static void ran(void *arg, const struct own_end *e);
static void show(struct test *t, const struct own_end *e);
static void answered(struct job *j, const struct pg_result *rows);
static void test_free(void *p);

/* ---- 1, 2: the version, and its arguments ---- */

void
manage_test_code(struct job *j)
{
	struct test *t;
	struct db_params p;
	struct ipc_id id;

	if (job_uuid(j, MF_TOOL_ID, &id) == -1)
		return;
	if ((t = calloc(1, sizeof(*t))) == NULL) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	t->j = j;
	buf_init(&t->args, ARGUMENTS_MAX);
	buf_init(&t->material, IPC_BLOB_MAX);
	j->data = t;
	j->free_data = test_free;
	db_params_init(&p);
	db_p_id(&p, &id);
	job_query(j, &newest, &p, found);
}

static void
found(struct job *j, const struct pg_result *rows)
{
	struct ipc_bytes missing, hash, args = ipc_str("{}");
	struct test *t = j->data;
	struct err err;

	if (db_nrows(rows) == 0) {
		job_fail(j, FAILURE_NOT_FOUND,
		    "no tool has this id: see mcpbox_list_tools");
		return;
	}
	if (!ipc_streq(db_bytes(rows, 0, C_OBJECT), "tool")) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "only tools can be tried: this is no tool");
		return;
	}
	/* A tool of kind http or mcp is run by mcpbox's own code, and needs the
	 * network. A test gets no network, because no person has reviewed the
	 * tool's access yet. */
	if (ipc_streq(db_bytes(rows, 0, C_KIND), "http") ||
	    ipc_streq(db_bytes(rows, 0, C_KIND), "mcp")) {
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "a tool of this kind is a request to another server: it "
		    "cannot be tried before it is approved and its host is "
		    "granted");
		return;
	}
	if (!db_null(rows, 0, C_MISSING)) {
		missing = db_bytes(rows, 0, C_MISSING);
		job_fail(j, FAILURE_MISSING_GRANT,
		    "the module %.*s is not granted to this tool (any more): "
		    "ask for it with mcpbox_request_module",
		    missing.n > 65 ? (int)missing.n - 65 : (int)missing.n,
		    (const char *)missing.p);
		return;
	}
	t->version = db_id(rows, 0, C_ID);
	t->number = db_int(rows, 0, C_NUMBER);
	hash = db_bytes(rows, 0, C_HASH);
	if (hash.n != sizeof(t->version_hash.b) ||
	    !db_text(rows, 0, C_NAME, t->name, sizeof(t->name))) {
		job_fail(j, FAILURE_INTERNAL, "malformed version");
		return;
	}
	memcpy(t->version_hash.b, hash.p, hash.n);
	if (!job_seen(j, db_bytes(rows, 0, C_PREIMAGE)))
		return;
	(void)job_field(j, MF_ARGUMENTS, &args);
	buf_put(&t->args, args.p, args.n);
	put_limits(t, rows);
	if (put_kind(t, ipc_streq(db_bytes(rows, 0, C_KIND), "command"),
		db_bytes(rows, 0, C_PREIMAGE), &err) == -1)
		job_fail(j, err.failure, "%s", err.text);
	else if (t->args.failed || t->material.failed)
		job_fail(j, FAILURE_BUSY, "out of memory");
	else
		job_check_arguments(j, db_bytes(rows, 0, C_SCHEMA),
		    ipc_bytes(t->args.p, t->args.len), checked);
}

static void
put_limits(struct test *t, const struct pg_result *rows)
{
	uint64_t standard =
	    (uint64_t)conf_int(t->j->a->proc.conf, "call_timeout");
	uint64_t timeout = 0;
	int column = C_LIMITS;

	for (int i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *l = limit_info((enum limit)i);
		uint64_t v;

		if (l->version == 0)
			continue;
		v = (uint64_t)db_int(rows, 0, column++);
		if (i == LIMIT_TIMEOUT_MS)
			timeout = v;
		else if (l->context != 0 && v != 0)
			tlv_put_u64(&t->material, (uint8_t)l->context, v);
	}
	if (timeout == 0)
		timeout = standard;
	if (timeout > TEST_TIMEOUT_MAX_MS)
		timeout = TEST_TIMEOUT_MAX_MS;
	t->timeout_ms = (uint32_t)timeout;
}

/* Adds the code with its modules, or the command with the digest of the
 * executable that it was drafted for. The vault takes the same fields from an
 * approved version. */
static int
put_kind(
    struct test *t, bool command, struct ipc_bytes preimage, struct err *err)
{
	uint8_t module[MODULES_PER_CALL_MAX][32], digest[32];
	const uint8_t *list;
	struct tlv hex;
	size_t n, count;

	if (version_check(preimage.p, preimage.n, &list, &n, err) == -1)
		return -1;
	if (command) {
		if (tlv_find(list, n, VERSION_EXECUTABLE_DIGEST, &hex) != 1 ||
		    hex.n != HEX32_LEN ||
		    hex_decode((const char *)hex.p, hex.n, digest) == -1)
			return err_set(err, FAILURE_INTERNAL,
			    "the version has no digest of its executable");
		tlv_puts(&t->material, CTX_KIND, "command");
		put_field(&t->material, CTX_SPEC, list, n, VERSION_SPEC);
		put_field(
		    &t->material, CTX_EXECUTABLE, list, n, VERSION_EXECUTABLE);
		tlv_put(&t->material, CTX_EXECUTABLE_DIGEST, digest, 32);
	} else {
		if (version_modules(list, n, module, &count, err) == -1)
			return -1;
		put_field(&t->material, CTX_CODE, list, n, VERSION_CODE);
		for (size_t i = 0; i < count; i++)
			tlv_put(&t->material, CTX_MODULE, module[i], 32);
	}
	put_field(
	    &t->material, CTX_OUTPUT_SCHEMA, list, n, VERSION_OUTPUT_SCHEMA);
	return 0;
}

static void
put_field(struct buf *out, uint8_t tag, const uint8_t *list, size_t n,
    uint8_t version)
{
	struct tlv f;

	if (tlv_find(list, n, version, &f) == 1)
		tlv_put(out, tag, f.p, f.n);
}

/* ---- 3: the run ---- */

static void
checked(struct job *j)
{
	struct test *t = j->data;
	const struct buf *kept =
	    j->inner_kept.len > 0 ? &j->inner_kept : &t->args;
	struct own_what own = {.kind = CONTEXT_TEST,
	    .noun = "test",
	    .tool = t->name,
	    .principal = j->principal,
	    .client = j->client,
	    .protocol = j->protocol,
	    .version = &t->version,
	    .version_hash = &t->version_hash,
	    .arguments = ipc_bytes(t->args.p, t->args.len),
	    .material = &t->material,
	    .timeout_ms = t->timeout_ms,
	    .wait_ms = TEST_WAIT_MS};
	struct buf text;

	buf_init(&text, ARGUMENTS_KEPT);
	db_text_clean(&text, kept->p, kept->len, ARGUMENTS_KEPT);
	own.kept = ipc_bytes(text.p, text.len);
	own_run(j->a, &own, ran, t);
	buf_free(&text);
}

/* ---- 4: the test ran ---- */

/* Failures of the tested code are a result; failures of the platform are
 * not. */
static void
ran(void *arg, const struct own_end *e)
{
	struct test *t = arg;
	char why[ERR_TEXT_MAX];

	if (e->how == OWN_RAN && e->body.n > 0) {
		show(t, e);
		return;
	}
	snprintf(why, sizeof(why), "%s", e->text);
	job_fail(t->j,
	    e->failure == FAILURE_NONE ? FAILURE_INTERNAL : e->failure, "%s",
	    why);
}

static void
show(struct test *t, const struct own_end *e)
{
	struct db_params p;

	/* The record of the test's execution has the result, without the values
	 * of members whose names look secret (kept.h). */
	t->j->result_elsewhere = true;
	db_params_init(&p);
	db_p_bytes(&p, e->body.p, e->body.n);
	db_p_bytes(&p, e->meta.p, e->meta.n);
	if (e->failure == FAILURE_NONE)
		db_p_null(&p);
	else
		db_p_str(&p, failure_info(e->failure)->name);
	db_p_i64(&p, (int64_t)((e->duration_us + 500) / 1000));
	db_p_i64(&p, t->number);
	db_p_id(&p, &e->execution);
	job_query(t->j, &shown, &p, answered);
}

static void
answered(struct job *j, const struct pg_result *rows)
{
	job_out(j, db_bytes(rows, 0, 0));
	job_done(j);
}

static void
test_free(void *p)
{
	struct test *t = p;

	if (t == NULL)
		return;
	buf_free(&t->args);
	buf_free(&t->material);
	free(t);
}
