/* See sources.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "inner.h"
#include "json_kv.h"
#include "log.h"
#include "management_tools.h"
#include "op.h"
#include "sources.h"

static const struct db_stmt object = {
    "source_object", "SELECT mcpbox.source_object($1::uuid)", DB_FAST};
static const struct db_stmt discovered = {"source_discovered",
    "SELECT mcpbox.source_discovered($1::uuid, $2::bytea, $3::text)", DB_SURE};
static const struct db_stmt wanted = {
    "source_wanted", "SELECT mcpbox.quarantine_wanted($1::uuid)", DB_SURE};
static const struct db_stmt failed = {"source_failed",
    "SELECT mcpbox.source_failed($1::uuid, $2::text, $3::text, $4::bytea)",
    DB_SURE};
static const struct db_stmt candidates = {"source_candidates",
    "SELECT c.upstream, c.arguments, c.skip"
    " FROM mcpbox.source_candidates($1::uuid, $2::text[]) c",
    DB_FAST};
static const struct db_stmt import = {"source_import",
    "SELECT mcpbox.source_import($1::uuid, $2::text[], $3::text[], $4::text,"
    " $5::text)",
    DB_SURE};

/* One tool of an import. It is judged, and then imported or skipped. */
struct item {
	char *upstream, *arguments;
};

/* A request in work. */
struct work {
	struct admind *a;
	struct ipc_id source;
	char actor[PRINCIPAL_MAX + 1];
	sources_cb *cb;
	void *arg;
	enum failure failure; /* of the listing, until it is stored */
	struct buf names;     /* of an import, as given */
	struct buf answer;    /* of the listing */
	struct item *item;
	size_t n, at;
	struct buf skipped; /* JSON array, not ended yet */
	struct jsonw json;
};

static void
work_free(struct work *w)
{
	for (size_t i = 0; w->item != NULL && i < w->n; i++) {
		free(w->item[i].upstream);
		free(w->item[i].arguments);
	}
	free(w->item);
	buf_free(&w->names);
	buf_free(&w->answer);
	buf_free(&w->skipped);
	free(w);
}

static void
end(struct work *w, enum failure f, const char *text, struct ipc_bytes json)
{
	struct sources_end e = {.failure = f, .text = text, .json = json};

	w->cb(w->arg, &e);
	work_free(w);
}

static void
fail(struct work *w, enum failure f, const char *text)
{
	end(w, f, text, ipc_bytes(NULL, 0));
}

static struct work *
work_new(struct admind *a, const struct ipc_id *source, const char *actor,
    sources_cb *cb, void *arg)
{
	struct sources_end e = {
	    .failure = FAILURE_BUSY, .text = "out of memory"};
	struct work *w = calloc(1, sizeof(*w));

	if (w == NULL) {
		cb(arg, &e);
		return NULL;
	}
	w->a = a;
	w->source = *source;
	w->cb = cb;
	w->arg = arg;
	memcpy(w->actor, actor, strlen(actor) + 1);
	buf_init(&w->names, IPC_BLOB_MAX);
	buf_init(&w->answer, IPC_BLOB_MAX);
	buf_init(&w->skipped, IPC_FRAME_MAX);
	return w;
}

/* Answers with the only text that the statement returned. */
static void
answered(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct work *w = arg;

	if (err != NULL)
		fail(w, err->failure, err->text);
	else
		end(w, FAILURE_NONE, NULL, db_bytes(rows, 0, 0));
}

/* ---- discover ---- */

/* Answers with the failure. Its text is as the database just stored it for the
 * source, so that all readers see the same text. */
static void
noted(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct work *w = arg;
	char text[ERR_TEXT_MAX];

	if (err != NULL || !db_text(rows, 0, 0, text, sizeof(text)))
		fail(w, w->failure, failure_info(w->failure)->fix);
	else
		fail(w, w->failure, text);
}

/* Answers a listing after its changed definitions were put before a reviewer.
 * If that failed, the log says why, and the next listing tries again. The
 * listing itself succeeded in either case. */
static void
queued(void *arg, const struct sources_end *e)
{
	struct work *w = arg;

	if (e->failure != FAILURE_NONE)
		log_event(LOG_LV_WARN, "quarantine",
		    "changed definitions were not put before a reviewer: %s",
		    e->text);
	end(w, FAILURE_NONE, NULL, ipc_bytes(w->answer.p, w->answer.len));
}

static void
got_wanted(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct work *w = arg;

	for (int i = 0; err == NULL && i < db_nrows(rows); i++) {
		struct ipc_bytes name = db_bytes(rows, i, 0);

		buf_put(&w->names, name.p, name.n);
		buf_putc(&w->names, '\0');
	}
	if (err != NULL || w->names.failed || w->names.len == 0) {
		if (err != NULL)
			log_event(LOG_LV_WARN, "quarantine", "%s", err->text);
		end(w, FAILURE_NONE, NULL,
		    ipc_bytes(w->answer.p, w->answer.len));
		return;
	}
	sources_import(w->a, &w->source, SOURCES_SELF,
	    ipc_bytes(w->names.p, w->names.len), queued, w);
}

/* Goes on after a listing was stored. Tools whose definition changed are in
 * quarantine now. Their new definitions are imported, so that a reviewer gets
 * them. */
static void
stored(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct work *w = arg;
	struct ipc_bytes json;
	struct db_params p;

	if (err != NULL) {
		fail(w, err->failure, err->text);
		return;
	}
	json = db_bytes(rows, 0, 0);
	buf_put(&w->answer, json.p, json.n);
	if (w->answer.failed) {
		fail(w, FAILURE_BUSY, "out of memory");
		return;
	}
	db_params_init(&p);
	db_p_id(&p, &w->source);
	db_query(w->a->db, &wanted, &p, got_wanted, w);
}

static void
listed(void *arg, const struct inner_end *e)
{
	struct work *w = arg;
	struct db_params p;

	db_params_init(&p);
	db_p_id(&p, &w->source);
	if (e->failure == FAILURE_NONE) {
		db_p_bytes(&p, e->body.p, e->body.n);
		db_p_str(&p, w->actor);
		db_query(w->a->db, &discovered, &p, stored, w);
		return;
	}
	w->failure = e->failure;
	db_p_str(&p, failure_info(e->failure)->name);
	db_p_str(&p, e->text != NULL ? e->text : "");
	db_p_bytes(&p, e->body.p, e->body.n);
	db_query(w->a->db, &failed, &p, noted, w);
}

static void
named(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct work *w = arg;
	char name[EXPOSED_NAME_MAX + 1];

	if (err != NULL)
		fail(w, err->failure, err->text);
	else if (!db_text(rows, 0, 0, name, sizeof(name)))
		fail(w, FAILURE_NOT_FOUND, "there is no such source");
	else
		inner_call(
		    w->a, name, w->actor, INNER_LIST, ipc_str("{}"), listed, w);
}

void
sources_discover(struct admind *a, const struct ipc_id *source,
    const char *actor, sources_cb *cb, void *arg)
{
	struct work *w = work_new(a, source, actor, cb, arg);
	struct db_params p;

	if (w == NULL)
		return;
	db_params_init(&p);
	db_p_id(&p, source);
	db_query(a->db, &object, &p, named, w);
}

/* ---- import ---- */

static void
skip(struct work *w, struct ipc_bytes name, const char *code, const char *why)
{
	jsonw_obj(&w->json);
	json_kv_bytes(&w->json, "name", name);
	jsonw_kv_str(&w->json, "code", code);
	if (why != NULL)
		jsonw_kv_str(&w->json, "reason", why);
	jsonw_obj_end(&w->json);
}

static void
store(struct work *w)
{
	struct db_array names, arguments;
	struct db_params p;

	jsonw_arr_end(&w->json);
	buf_putc(&w->skipped, '\0');
	if (w->skipped.failed) {
		fail(w, FAILURE_LIMIT, "too many tools at once");
		return;
	}
	db_array_init(&names, DB_TEXT, IPC_BLOB_MAX);
	db_array_init(&arguments, DB_TEXT, IPC_BLOB_MAX * 4);
	for (size_t i = 0; i < w->n; i++) {
		if (w->item[i].arguments == NULL)
			continue;
		db_a_str(&names, w->item[i].upstream);
		db_a_str(&arguments, w->item[i].arguments);
	}
	db_params_init(&p);
	db_p_id(&p, &w->source);
	db_p_array(&p, &names);
	db_p_array(&p, &arguments);
	db_p_str(&p, (const char *)w->skipped.p);
	db_p_str(&p, w->actor);
	db_query(w->a->db, &import, &p, answered, w);
	db_array_free(&names);
	db_array_free(&arguments);
}

static void judge(struct work *);

static void
judged(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct work *w = arg;
	struct item *i = &w->item[w->at];
	struct ipc_check_errors m;
	struct err err;
	char why[ERR_TEXT_MAX];

	if (f != NULL && f->type == IPC_CHECK_ERRORS &&
	    ipc_decode(f, &m, &err) == 0) {
		snprintf(why, sizeof(why), "%.*s: %.*s",
		    m.summary.n < 200 ? (int)m.summary.n : 200,
		    (const char *)m.summary.p,
		    m.json.n < 300 ? (int)m.json.n : 300,
		    (const char *)m.json.p);
		skip(w, ipc_str(i->upstream), "skipped_definition", why);
		free(i->arguments);
		i->arguments = NULL;
	} else if (f == NULL || f->type != IPC_CHECK_OK) {
		answer_err(f, gone, &err);
		fail(w, err.failure, err.text);
		return;
	}
	w->at++;
	judge(w);
}

/* Judges the definitions one after the other, by the rules for definitions that
 * people write: names, lengths, and our subset of JSON Schema. */
static void
judge(struct work *w)
{
	struct ipc_check_management m = {.tool = ipc_str(MANAGEMENT_IMPORTED)};
	struct err err;

	while (w->at < w->n && w->item[w->at].arguments == NULL)
		w->at++;
	if (w->at == w->n) {
		store(w);
		return;
	}
	m.arguments = ipc_str(w->item[w->at].arguments);
	if (ask(w->a->check, IPC_CHECK_MANAGEMENT, &m, judged, w, &err) == -1)
		fail(w, err.failure, err.text);
}

static void
found(void *arg, const struct pg_result *rows, const struct err *err)
{
	struct work *w = arg;
	char code[64];
	int n;

	if (err != NULL) {
		fail(w, err->failure, err->text);
		return;
	}
	n = db_nrows(rows);
	if ((w->item = calloc((size_t)n + 1, sizeof(*w->item))) == NULL) {
		fail(w, FAILURE_BUSY, "out of memory");
		return;
	}
	w->n = (size_t)n;
	jsonw_open(&w->json, &w->skipped);
	jsonw_arr(&w->json);
	for (int i = 0; i < n; i++) {
		struct item *it = &w->item[i];

		if (db_null(rows, i, 1)) {
			(void)db_text(rows, i, 2, code, sizeof(code));
			skip(w, db_bytes(rows, i, 0), code, NULL);
			continue;
		}
		it->upstream = ipc_strdup(db_bytes(rows, i, 0));
		it->arguments = ipc_strdup(db_bytes(rows, i, 1));
		if (it->upstream == NULL || it->arguments == NULL) {
			fail(w, FAILURE_BUSY, "out of memory");
			return;
		}
	}
	judge(w);
}

void
sources_import(struct admind *a, const struct ipc_id *source, const char *actor,
    struct ipc_bytes names, sources_cb *cb, void *arg)
{
	struct work *w = work_new(a, source, actor, cb, arg);
	struct db_array list;
	struct db_params p;
	size_t n = 0;

	if (w == NULL)
		return;
	buf_put(&w->names, names.p, names.n);
	if (w->names.failed) {
		fail(w, FAILURE_LIMIT, "too many names");
		return;
	}
	db_array_init(&list, DB_TEXT, IPC_BLOB_MAX * 2);
	for (size_t at = 0; at < w->names.len && n <= SOURCE_NAMES_MAX; n++) {
		const char *name = (const char *)w->names.p + at;

		db_a_str(&list, name);
		at += strlen(name) + 1;
	}
	if (n == 0 || n > SOURCE_NAMES_MAX) {
		db_array_free(&list);
		fail(w, FAILURE_INVALID_ARGUMENTS,
		    "name 1 to 200 tools of those that were discovered");
		return;
	}
	db_params_init(&p);
	db_p_id(&p, source);
	db_p_array(&p, &list);
	db_query(a->db, &candidates, &p, found, w);
	db_array_free(&list);
}
