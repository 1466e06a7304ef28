/*
 * admind's part in the change of the access document: it stores the document
 * that the vault sealed, and gives the newest seal back. admind can't make a
 * document, because it accepts none itself that the vault did not seal
 * (document.c).
 *
 * The vault compares the document that an administrator saw with the row that
 * we name here. Until the new document is stored, another one can come, also
 * from another node. So the vault gives the row's SHA-256 back, and the
 * database compares it in the transaction that stores.
 *
 * admind-check judges the document before it is stored. So an administrator
 * reads all faults at once, and no stored document is invalid.
 */
#include <stdlib.h>
#include <string.h>

#include "access.h"
#include "audit.h"
#include "crypto.h"
#include "ids.h"

enum {
	/* Bytes of the list of errors that go into a refusal. A document with
	   more errors has one mistake many times. */
	ERRORS_SHOWN_MAX = 8 * 1024
};
#define AHEAD_MAX_US (UINT64_C(24) * 3600 * 1000 * 1000)

static const struct db_stmt load = {"access_load",
    "SELECT seal, sha256, serial FROM mcpbox.access_read()", DB_FAST};
static const struct db_stmt store = {"access_store",
    "SELECT mcpbox.access_store($1::int8, $2::text, $3::bytea, $4::text,"
    " $5::bytea, $6::text[], $7::text[], $8::bytea)",
    DB_SURE};

static void
loaded(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct ipc_access_sealed m = {0};
	struct ipc_bytes hash;
	struct op *op = arg;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	if (db_nrows(rows) == 1) {
		m.seal = db_bytes(rows, 0, 0);
		hash = db_bytes(rows, 0, 1);
		if (hash.n == sizeof(m.document.b))
			memcpy(m.document.b, hash.p, hash.n);
		m.serial = (uint64_t)db_int(rows, 0, 2);
	}
	op_answer(op, IPC_ACCESS_SEALED, &m);
}

static int
access_load(struct link *l, struct ipc_frame *f)
{
	struct ipc_access_load m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	op = op_new(l, m.request);
	if (op != NULL)
		db_query(op->a->db, &load, NULL, loaded, op);
	return 0;
}

/* ---- storing ---- */

/* op->buf has the document and then the seal; op->hash is the document's
 * SHA-256, op->number the serial, op->actor the actor. */
struct stored {
	struct op *op;
	size_t document;      /* bytes of the document */
	struct ipc_hash over; /* SHA-256 of the document that it replaces */
};

static void
in_force(void *arg)
{
	op_ok(arg);
}

/* The document is stored. The answer waits until this process has read it, so
 * that an administrator can rely on the change. */
static void
committed(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;

	if (err != NULL) {
		op_refuse_err(op, err);
		return;
	}
	audit_sign(op->a);
	document_load(op->a, in_force, op);
}

static void
commit(struct stored *s, const struct compiled *c)
{
	struct op *op = s->op;
	struct db_array names, urls;
	struct db_params p;

	db_array_init(&names, DB_TEXT, IPC_BLOB_MAX);
	db_array_init(&urls, DB_TEXT, IPC_BLOB_MAX);
	for (unsigned i = 0; i < c->nissuers; i++) {
		db_a_bytes(&names, c->issuer[i].name.p, c->issuer[i].name.n);
		db_a_bytes(&urls, c->issuer[i].url.p, c->issuer[i].url.n);
	}
	db_params_init(&p);
	db_p_i64(&p, (int64_t)op->number);
	db_p_text(&p, ipc_bytes(op->buf.p, s->document));
	db_p_hash(&p, &op->hash);
	db_p_str(&p, op->actor);
	db_p_bytes(&p, op->buf.p + s->document, op->buf.len - s->document);
	db_p_array(&p, &names);
	db_p_array(&p, &urls);
	db_p_hash(&p, &s->over);
	db_query(op->a->db, &store, &p, committed, op);
	db_array_free(&names);
	db_array_free(&urls);
}

/* Refuses with the summary and the list of all errors, each with its JSON
 * pointer. A long list is cut, and the text says so. */
static void
invalid(struct op *op, const struct ipc_check_errors *m)
{
	size_t n = m->json.n < ERRORS_SHOWN_MAX ? m->json.n : ERRORS_SHOWN_MAX;
	struct buf text, clean;

	buf_init(&text, IPC_FRAME_MAX / 2);
	buf_init(&clean, IPC_FRAME_MAX / 2);
	buf_put(&text, m->summary.p, m->summary.n);
	if (m->json.n > 2) { /* more than [] */
		buf_putc(&text, '\n');
		db_text_clean(&clean, m->json.p, n, n);
		buf_put(&text, clean.p, clean.len);
		if (n < m->json.n)
			buf_putf(&text,
			    "...\nThe list is cut: these are %zu of %zu bytes. "
			    "Correct these errors first.",
			    n, m->json.n);
	}
	buf_putc(&text, '\0');
	op_refuse(op, FAILURE_INVALID_PARAMS,
	    text.failed || clean.failed ? "the access document is not valid"
					: (const char *)text.p);
	buf_free(&text);
	buf_free(&clean);
}

static void
checked(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct stored s = *(struct stored *)arg;
	struct ipc_check_errors bad;
	struct compiled *c;
	struct ipc_check_ok ok;
	struct err err;

	free(arg);
	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &bad, &err) == 0) {
		invalid(s.op, &bad);
		return;
	}
	if (f == NULL || f->type != IPC_CHECK_OK) {
		answer_err(f, gone, &err);
		op_refuse_err(s.op, &err);
		return;
	}
	c = ipc_decode(f, &ok, &err) == 0 ? compiled_new(ok.fields, &err)
					  : NULL;
	if (c != NULL)
		commit(&s, c);
	else
		op_refuse_err(s.op, &err);
	compiled_free(c);
}

static int
access_store(struct link *l, struct ipc_frame *f)
{
	struct ipc_check_access q = {0};
	struct ipc_access_store m;
	struct stored *s;
	struct err err;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.actor.n == 0 || m.actor.n > PRINCIPAL_MAX) {
		link_refuse(
		    l, m.request, FAILURE_INVALID_PARAMS, "malformed actor");
		return 0;
	}
	if (m.serial > now_us() + AHEAD_MAX_US) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "the document's serial is more than a day ahead of "
		    "admind's clock: set the clock right, then try again");
		return 0;
	}
	/* It is stored as text, and the database takes only this. */
	if (!utf8_valid(m.document.p, m.document.n) ||
	    (m.document.n > 0 &&
		memchr(m.document.p, 0, m.document.n) != NULL)) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "the access document is not UTF-8 text");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	s = calloc(1, sizeof(*s));
	buf_put(&op->buf, m.document.p, m.document.n);
	buf_put(&op->buf, m.seal.p, m.seal.n);
	if (s == NULL || op->buf.failed) {
		free(s);
		op_refuse(op, FAILURE_BUSY, "out of memory");
		return 0;
	}
	s->op = op;
	s->document = m.document.n;
	s->over = m.over;
	op->number = m.serial;
	memcpy(op->actor, m.actor.p, m.actor.n);
	sha256(m.document.p, m.document.n, &op->hash);
	q.document = m.document;
	if (ask(l->a->check, IPC_CHECK_ACCESS, &q, checked, s, &err) == -1) {
		free(s);
		op_refuse_err(op, &err);
	}
	return 0;
}

int
access_store_message(struct link *l, struct ipc_frame *f)
{
	return f->type == IPC_ACCESS_LOAD ? access_load(l, f)
					  : access_store(l, f);
}
