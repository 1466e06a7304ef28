/*
 * See openapi.h.
 *
 *  server -> taken apart (CHECK_OPENAPI) -> drafts made -> stored, requested
 *
 * The document is untrusted text. No part of it is fetched, run or believed:
 * admind-check turns it into specifications like those that people write, and a
 * person approves each. Even where a policy approves tools by itself, these
 * tools wait for a person, because no person has written them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit.h"
#include "draft.h"
#include "ids.h"
#include "login.h"
#include "management_tools.h"
#include "openapi.h"
#include "tlv.h"

/* TOOLS_MAX: the most tools that CHECK_OPENAPI makes from a document. */
enum { TOOLS_MAX = 50, SKIPPED_MAX = 64 * 1024 };

struct openapi {
	struct admind *a;
	char server[NAME_SERVER_MAX + 1];
	bool bare;
	struct ipc_id server_id;
	char actor[PRINCIPAL_MAX + 1];
	struct buf base, both; /* both: document, then operations */
	size_t document_len;
	struct buf skipped; /* one line per operation left out: which, and
			     * why */
	openapi_cb *cb;
	void *arg;
};

static void
end(struct openapi *o, enum failure f, const char *text, struct ipc_bytes json)
{
	struct openapi_end e = {f, text, json};

	o->cb(o->arg, &e);
	buf_free(&o->base);
	buf_free(&o->both);
	buf_free(&o->skipped);
	free(o);
}

static void
end_err(struct openapi *o, const struct err *e)
{
	end(o, e->failure, e->text, ipc_bytes(NULL, 0));
}

/* Makes the tools in one transaction. A tool that is refused (its name may be
 * taken) is left out. The result names the tools made, and says what was left
 * out and why. */
static const struct db_stmt import = {"openapi_import",
    "SELECT mcpbox.import_http_tools($1::uuid, $2::uuid[], $3::uuid[],"
    " $4::bytea[], string_to_array($5::text, E'\\n'), $6::text)",
    DB_SURE};

static void
imported(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct openapi *o = arg;

	if (err != NULL) {
		end_err(o, err);
		return;
	}
	audit_sign(o->a);
	end(o, FAILURE_NONE, "", db_bytes(rows, 0, 0));
}

/* ---- drafts ---- */

/* Reads one tool's group of fields, whose OPENAPI_NAME is read already (*name).
 * `fields` gets them as arguments of mcpbox_create_tool. *follows gets the
 * fields that follow from the specification. 1: *next is the next group's
 * OPENAPI_NAME. 0: this was the last group. */
static int
group(struct tlv_reader *r, struct openapi *o, const struct tlv *name,
    struct buf *fields, struct ipc_bytes *follows, struct tlv *next)
{
	static const uint8_t argument[] = {[OPENAPI_TITLE] = MF_TITLE,
	    [OPENAPI_DESCRIPTION] = MF_DESCRIPTION,
	    [OPENAPI_ANNOTATIONS] = MF_ANNOTATIONS,
	    [OPENAPI_SPEC] = MF_SPEC};
	struct tlv f;

	*follows = ipc_bytes(NULL, 0);
	tlv_put(fields, MF_NAME, name->p, name->n);
	tlv_puts(fields, MF_KIND, "http");
	while (tlv_next(r, &f) == 1) {
		if (f.tag == OPENAPI_NAME) {
			*next = f;
			return 1;
		}
		if (f.tag == OPENAPI_FOLLOWS)
			*follows = ipc_bytes(f.p, f.n);
		else if (f.tag == OPENAPI_SKIPPED) {
			buf_put(&o->skipped, f.p, f.n);
			buf_putc(&o->skipped, '\n');
		} else if (f.tag >= OPENAPI_TITLE && f.tag <= OPENAPI_SPEC)
			tlv_put(fields, argument[f.tag], f.p, f.n);
	}
	return 0;
}

struct made {
	struct db_array versions, requests, preimages;
	unsigned n;
};

static int
draft_one(struct openapi *o, struct made *made, const struct tlv *name,
    const struct buf *fields, struct ipc_bytes follows, struct err *e)
{
	struct draft *d = draft_new();
	struct ipc_id request;
	int rc = -1;

	if (d == NULL)
		return err_set(e, FAILURE_BUSY, "out of memory");
	d->server_id = o->server_id;
	uuid_v7(&d->tool_id);
	uuid_v7(&d->version_id);
	uuid_v7(&request);
	if (draft_names(d, ipc_str(o->server), ipc_bytes(name->p, name->n),
		o->bare) == -1) {
		(void)err_set(e, FAILURE_INTERNAL, "a name is too long");
		goto out;
	}
	if (draft_make(d, ipc_bytes(fields->p, fields->len), follows, e) == -1)
		goto out;
	db_a_bytes(&made->versions, d->version_id.b, sizeof(d->version_id.b));
	db_a_bytes(&made->requests, request.b, sizeof(request.b));
	db_a_bytes(&made->preimages, d->preimage.p, d->preimage.len);
	made->n++;
	rc = 0;
out:
	draft_free(d);
	return rc;
}

static int
draft_all(
    struct openapi *o, struct ipc_bytes list, struct made *made, struct err *e)
{
	struct tlv name, next = {0};
	struct ipc_bytes follows;
	struct tlv_reader r;
	struct buf fields;
	int more = 0, rc = 0;

	tlv_open(&r, list.p, list.n);
	while (!more && tlv_next(&r, &name) == 1) {
		more = name.tag == OPENAPI_NAME;
		if (name.tag == OPENAPI_SKIPPED) {
			buf_put(&o->skipped, name.p, name.n);
			buf_putc(&o->skipped, '\n');
		}
	}
	while (more && rc == 0 && made->n < TOOLS_MAX) {
		buf_init(&fields, IPC_BLOB_MAX);
		more = group(&r, o, &name, &fields, &follows, &next);
		if (fields.failed)
			rc = err_set(e, FAILURE_BUSY, "out of memory");
		else
			rc = draft_one(o, made, &name, &fields, follows, e);
		buf_free(&fields);
		name = next;
	}
	return rc;
}

static void
store(struct openapi *o, struct made *made)
{
	struct db_params p;

	/* The last line ends without a line feed. */
	if (o->skipped.len > 0)
		o->skipped.len--;
	db_params_init(&p);
	db_p_id(&p, &o->server_id);
	db_p_array(&p, &made->versions);
	db_p_array(&p, &made->requests);
	db_p_array(&p, &made->preimages);
	db_p_text(&p,
	    o->skipped.failed ? ipc_str("")
			      : ipc_bytes(o->skipped.p, o->skipped.len));
	db_p_str(&p, o->actor);
	db_query(o->a->db, &import, &p, imported, o);
}

/* ---- taken apart ---- */

static void
refused(struct openapi *o, struct ipc_frame *f, enum failure gone)
{
	struct ipc_check_errors m;
	struct err e;
	char text[ERR_TEXT_MAX];

	if (f == NULL || f->type != IPC_CHECK_ERRORS ||
	    ipc_decode(f, &m, NULL) == -1 || m.failure >= FAILURE_COUNT) {
		answer_err(f, gone, &e);
		end_err(o, &e);
		return;
	}
	snprintf(text, sizeof(text), "%.*s",
	    m.summary.n < ERR_TEXT_MAX ? (int)m.summary.n : 0,
	    (const char *)m.summary.p);
	end(o, (enum failure)m.failure, text, m.json);
}

static void
taken_apart(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct openapi *o = arg;
	struct made made = {0};
	struct ipc_check_ok m;
	struct err e;

	if (f == NULL || f->type != IPC_CHECK_OK ||
	    ipc_decode(f, &m, NULL) == -1) {
		refused(o, f, gone);
		return;
	}
	db_array_init(&made.versions, DB_UUID, 64 * TOOLS_MAX);
	db_array_init(&made.requests, DB_UUID, 64 * TOOLS_MAX);
	db_array_init(&made.preimages, DB_BYTEA, 2 * IPC_BLOB_MAX);
	if (draft_all(o, m.fields, &made, &e) == -1)
		end_err(o, &e);
	else
		store(o, &made);
	db_array_free(&made.versions);
	db_array_free(&made.requests);
	db_array_free(&made.preimages);
}

/* ---- the beginning ---- */

static const struct db_stmt server_named = {"openapi_server",
    "SELECT s.name, s.expose = 'bare' FROM mcpbox.servers s"
    " WHERE s.id = $1::uuid AND s.deleted_at IS NULL",
    DB_FAST};

static void
server_found(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct openapi *o = arg;
	struct ipc_check_openapi m = {
	    .base_url = ipc_bytes(o->base.p, o->base.len),
	    .document_len = (uint32_t)o->document_len,
	    .document_operations = ipc_bytes(o->both.p, o->both.len)};
	struct err e;

	if (err != NULL) {
		end_err(o, err);
		return;
	}
	if (db_nrows(rows) == 0 ||
	    !db_text(rows, 0, 0, o->server, sizeof(o->server))) {
		end(o, FAILURE_NOT_FOUND,
		    "no server has this id: see mcpbox_list_servers",
		    ipc_bytes(NULL, 0));
		return;
	}
	o->bare = db_bool(rows, 0, 1);
	if (ask(o->a->check, IPC_CHECK_OPENAPI, &m, taken_apart, o, &e) == -1)
		end_err(o, &e);
}

void
openapi_import(struct admind *a, const struct ipc_id *server, const char *actor,
    struct ipc_bytes document, struct ipc_bytes base_url,
    struct ipc_bytes operations, openapi_cb *cb, void *arg)
{
	const struct openapi_end busy = {
	    FAILURE_BUSY, "out of memory", ipc_bytes(NULL, 0)};
	struct openapi *o = calloc(1, sizeof(*o));
	struct db_params p;

	if (o == NULL) {
		cb(arg, &busy);
		return;
	}
	o->a = a;
	o->cb = cb;
	o->arg = arg;
	o->server_id = *server;
	snprintf(o->actor, sizeof(o->actor), "%s", actor);
	buf_init(&o->base, IPC_FRAME_MAX);
	buf_init(&o->both, IPC_BLOB_MAX);
	buf_init(&o->skipped, SKIPPED_MAX);
	buf_put(&o->base, base_url.p, base_url.n);
	buf_put(&o->both, document.p, document.n);
	buf_put(&o->both, operations.p, operations.n);
	o->document_len = document.n;
	if (o->base.failed || o->both.failed) {
		end(o, FAILURE_TOO_LARGE, "the document is too large",
		    ipc_bytes(NULL, 0));
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &o->server_id);
	db_query(a->db, &server_named, &p, server_found, o);
}

/* ---- OPENAPI_IMPORT ---- */

/* OPENAPI_IMPORT is allowed for the same senders as ADMIN_ACTION: an
 * administrator's login that the vault knows, or uid 0. OPENAPI_IMPORT only
 * makes requests, and these wait for a review. */
static void
op_ended(void *arg, const struct openapi_end *e)
{
	struct op *op = arg;
	struct ipc_admin_json m = {.json = e->json};

	if (e->failure != FAILURE_NONE)
		op_refuse(op, e->failure, e->text);
	else
		op_answer(op, IPC_ADMIN_JSON, &m);
}

/* op->buf has the base URL, a line feed, the document and the operations.
 * op->number is the length of the document. */
static void
op_run(struct op *op)
{
	const uint8_t *nl = memchr(op->buf.p, '\n', op->buf.len);
	size_t base = (size_t)(nl - op->buf.p), n = (size_t)op->number;

	openapi_import(op->a, &op->id, op->actor, ipc_bytes(nl + 1, n),
	    ipc_bytes(op->buf.p, base),
	    ipc_bytes(nl + 1 + n, op->buf.len - base - 1 - n), op_ended, op);
}

int
openapi_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_openapi_import m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.document_len > m.document_operations.n ||
	    memchr(m.base_url.p, '\n', m.base_url.n) != NULL) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "the document is longer than its message, or its URL is "
		    "none");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	op->id = m.server;
	op->number = m.document_len;
	buf_put(&op->buf, m.base_url.p, m.base_url.n);
	buf_putc(&op->buf, '\n');
	buf_put(&op->buf, m.document_operations.p, m.document_operations.n);
	if (op->buf.failed)
		op_refuse(op, FAILURE_TOO_LARGE, "the document is too large");
	else
		login_check(op, m.token, op_run);
	return 0;
}
