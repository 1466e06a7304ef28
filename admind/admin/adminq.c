/*
 * Answers questions of administrators. Each question is a row of a table
 * (adminq.h). PostgreSQL makes the JSON, and lists are read in pages, by a
 * cursor. No question changes anything.
 */
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "adminq.h"
#include "ids.h"
#include "login.h"

enum {
	LIMIT_MAX = 200,
	LIMIT_STANDARD = 50,
	/* A page ends before an item that would not fit into one message; an
	 * item has at most some 100 kB (the detail of an audit row, twice). */
	PAGE_BYTES = IPC_BLOB_MAX - 4096
};

/* ---- questions ---- */

static const struct question *const tables[] = {
    adminq_servers_questions,
    adminq_approvals_questions,
    adminq_records_questions,
    adminq_audit_questions,
    adminq_admin_questions,
    adminq_tokens_questions,
    adminq_secrets_questions,
    adminq_limits_questions,
    adminq_access_questions,
};

const struct question *
adminq_table(size_t i)
{
	return i < sizeof(tables) / sizeof(tables[0]) ? tables[i] : NULL;
}

static const struct question *
question_find(struct ipc_bytes what)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct question *q = tables[i]; q->what != NULL; q++)
			if (ipc_streq(what, q->what))
				return q;
	return NULL;
}

/* One query under way, at the front of op->buf; id, cursor and filters follow,
 * each NUL-terminated. */
struct query {
	const struct question *q;
	const struct question_form *form;
	uint32_t limit;
};

static struct query
query_of(const struct op *op)
{
	struct query q;

	memcpy(&q, op->buf.p, sizeof(q));
	return q;
}

static void
answer_json(struct op *op, struct buf *b)
{
	struct ipc_admin_json m = {.json = ipc_bytes(b->p, b->len)};

	if (b->failed)
		op_refuse(op, FAILURE_BUSY, "the answer is too large");
	else
		op_answer(op, IPC_ADMIN_JSON, &m);
}

static void
got_object(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct query q = query_of(op);
	struct ipc_bytes text;
	struct jsonw w;
	struct err why;
	struct buf b;

	buf_init(&b, IPC_BLOB_MAX);
	if (q.q->around != NULL) {
		/* A question with around() is answered without a database, too:
		 * then the answer is needed most. */
		jsonw_open(&w, &b);
		jsonw_obj(&w);
		q.q->around(op->a, &w);
		jsonw_name(&w, "counts");
		if (err == NULL && db_nrows(rows) == 1) {
			text = db_bytes(rows, 0, 0);
			jsonw_raw(&w, text.p, text.n);
		} else {
			jsonw_null(&w);
		}
		jsonw_obj_end(&w);
		answer_json(op, &b);
	} else if (err != NULL) {
		op_refuse_err(op, err);
	} else if (db_nrows(rows) != 1 || db_null(rows, 0, 0)) {
		op_refuse(op, FAILURE_NOT_FOUND, "there is no such object");
	} else if (q.q->make != NULL) {
		jsonw_open(&w, &b);
		jsonw_obj(&w);
		if (q.q->make(rows, &w, &why) == -1) {
			op_refuse_err(op, &why);
		} else {
			jsonw_obj_end(&w);
			answer_json(op, &b);
		}
	} else if (q.q->beside != NULL) {
		text = db_bytes(rows, 0, 0);
		jsonw_open(&w, &b);
		jsonw_obj(&w);
		jsonw_raw(&w, text.p + 1, text.n - 2); /* without {} */
		q.q->beside(op->a, rows, &w);
		jsonw_obj_end(&w);
		answer_json(op, &b);
	} else {
		text = db_bytes(rows, 0, 0);
		buf_put(&b, text.p, text.n);
		answer_json(op, &b);
	}
	buf_free(&b);
}

/* Answers with a page. The query asked for one row more than the page has; that
 * row tells whether another page follows. */
static void
got_list(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct op *op = arg;
	struct ipc_bytes text;
	struct jsonw w;
	struct buf b;
	int n, limit = (int)op->number;

	if (err != NULL) {
		/* the cursor is of another list or was made up, or a filter's
		 * value has no meaning */
		if (err->failure == FAILURE_INVALID_PARAMS)
			op_refuse(op, FAILURE_INVALID_PARAMS,
			    "unknown cursor, or a filter without meaning here");
		else
			op_refuse_err(op, err);
		return;
	}
	n = db_nrows(rows);
	buf_init(&b, IPC_BLOB_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "items");
	jsonw_arr(&w);
	for (int i = 0; i < n && i < limit; i++) {
		text = db_bytes(rows, i, 0);
		if (i > 0 && b.len + text.n > PAGE_BYTES)
			limit = i; /* the rest is on the next page */
		else
			jsonw_raw(&w, text.p, text.n);
	}
	jsonw_arr_end(&w);
	jsonw_name(&w, "next_cursor");
	if (n > limit) {
		text = db_bytes(rows, limit - 1, 1);
		jsonw_strn(&w, text.p, text.n);
	} else {
		jsonw_null(&w);
	}
	jsonw_obj_end(&w);
	answer_json(op, &b);
	buf_free(&b);
}

/* Returns the next NUL-terminated text of op->buf. */
static const char *
next_text(const char **at)
{
	const char *s = *at;

	*at += strlen(s) + 1;
	return s;
}

static void
run(struct op *op)
{
	const char *at = (const char *)op->buf.p + sizeof(struct query);
	struct query q = query_of(op);
	const char *id = next_text(&at), *cursor = next_text(&at);
	struct db_params p;

	db_params_init(&p);
	if (q.q->shape == QUESTION_OBJECT)
		db_p_id(&p, &op->id);
	else if (q.q->shape == QUESTION_NAMED)
		db_p_str(&p, id);
	for (const uint8_t *f = q.form->takes; *f != 0; f++)
		db_p_str(&p, next_text(&at));
	if (q.q->shape != QUESTION_LIST) {
		db_query(op->a->db, &q.form->stmt, &p, got_object, op);
		return;
	}
	op->number = q.limit;
	db_p_str(&p, cursor);
	db_p_i64(&p, (int64_t)q.limit + 1);
	if (q.q->reads)
		db_p_bool(&p, op->role >= ADMIN_REVIEWER);
	db_query(op->a->db, &q.form->stmt, &p, got_list, op);
}

/* Reads the filters. kind and state have fields of their own in the message. */
static int
read_filters(const struct ipc_admin_query *m,
    struct ipc_bytes filter[ADMIN_FILTER_COUNT])
{
	const struct {
		enum admin_filter f;
		struct ipc_bytes text;
	} own[] = {{ADMIN_FILTER_KIND, m->filter_kind},
	    {ADMIN_FILTER_STATE, m->filter_state}};

	if (admin_filter_read(m->filters, filter) == -1)
		return -1;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		if (own[i].text.n == 0)
			continue;
		if (filter[own[i].f].n != 0 ||
		    !admin_filter_ok(own[i].f, own[i].text.p, own[i].text.n))
			return -1;
		filter[own[i].f] = own[i].text;
	}
	return 0;
}

/* Returns the first form whose required filters are given and that takes all
 * given filters, or NULL. */
static const struct question_form *
choose(
    const struct question *q, const struct ipc_bytes filter[ADMIN_FILTER_COUNT])
{
	unsigned given = 0, taken;

	for (int i = 0; i < ADMIN_FILTER_COUNT; i++)
		if (filter[i].n != 0)
			given |= 1U << i;
	for (const struct question_form *f = q->forms; f->stmt.name != NULL;
	    f++) {
		taken = 0;
		for (const uint8_t *t = f->takes; *t != 0; t++)
			taken |= 1U << (*t - 1);
		if ((f->must & ~given) == 0 && (given & ~taken) == 0)
			return f;
	}
	return NULL;
}

static void
put_text(struct buf *b, struct ipc_bytes text)
{
	buf_put(b, text.p, text.n);
	buf_putc(b, '\0');
}

int
adminq_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_bytes filter[ADMIN_FILTER_COUNT];
	struct ipc_admin_query m;
	struct query q = {0};
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	q.q = question_find(m.what);
	q.limit = m.limit == 0 ? LIMIT_STANDARD : m.limit;
	if (q.q == NULL || q.limit > LIMIT_MAX ||
	    m.cursor.n > ADMIN_CURSOR_MAX || m.id.n > ADMIN_ID_MAX ||
	    read_filters(&m, filter) == -1) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "unknown question, filter, cursor or limit");
		return 0;
	}
	if ((q.form = choose(q.q, filter)) == NULL) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "this is not filtered so, or not by these together");
		return 0;
	}
	op = op_new(l, m.request);
	if (op == NULL)
		return 0;
	if (q.q->shape == QUESTION_OBJECT &&
	    uuid_parse((const char *)m.id.p, m.id.n, &op->id) == -1) {
		op_refuse(op, FAILURE_NOT_FOUND, "there is no such object");
		return 0;
	}
	op->least = q.form->least > q.q->least ? q.form->least : q.q->least;
	op->scope = q.q->scope != SCRIPT_NEVER ? q.q->scope
	    : q.q->least == ADMIN_VIEWER       ? SCRIPT_READ
					       : SCRIPT_NEVER;
	buf_put(&op->buf, &q, sizeof(q));
	put_text(&op->buf, m.id);
	put_text(&op->buf, m.cursor);
	for (const uint8_t *t = q.form->takes; *t != 0; t++)
		put_text(&op->buf, filter[*t - 1]);
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, run);
	return 0;
}
