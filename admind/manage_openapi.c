/*
 * mcpbox_import_openapi: the operations of an OpenAPI document as tools of kind
 * http, each a request in the queue of approvals.
 *
 *	server -> taken apart (CHECK_OPENAPI) -> drafts made -> stored, asked
 *for
 *
 * The document is anybody's text. Nothing of it is fetched, run or believed:
 * what admind-check makes of it are specifications like those that people
 * write, and a person approves each. Even where a policy approves tools by
 * itself, these wait: nobody has written them.
 */
#include <stdlib.h>
#include <string.h>

#include "admind.h"
#include "draft.h"
#include "ids.h"
#include "management_tools.h"
#include "tlv.h"

/* As many as CHECK_OPENAPI makes. */
enum { TOOLS_MAX = 50 };

struct openapi {
	char server[NAME_SERVER_MAX + 1];
	bool bare;
	struct ipc_id server_id;
	struct buf skipped; /* text, one a line: why operations were left out */
};

static void
openapi_free(void *p)
{
	struct openapi *o = p;

	buf_free(&o->skipped);
	free(o);
}

/* Tools that are there, what was left out, and why. All or nothing but for
 * names that are taken. */
static const struct db_stmt import = {"manage_import_openapi",
    "SELECT mcpbox.import_http_tools($1::uuid, $2::uuid[], $3::uuid[],"
    " $4::bytea[], string_to_array($5::text, E'\\n'), $6::text)",
    DB_SURE};

static void
imported(struct job *j, const struct pg_result *rows)
{
	job_out(j, db_bytes(rows, 0, 0));
	job_done(j);
}

/* ---- drafts ---- */

/* The group of fields that begins at r's NAME (in *name), up to the next one:
 * as arguments of mcpbox_create_tool, and what follows from the specification.
 * 1: *next is the next group's name; 0: that was the last. */
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
store(struct job *j, struct openapi *o, struct made *made)
{
	struct db_params p;

	/* The last line has no line feed behind it. */
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
	db_p_str(&p, j->principal);
	job_query(j, &import, &p, imported);
}

static void
taken_apart(struct job *j, struct ipc_bytes list)
{
	struct openapi *o = j->data;
	struct made made = {0};
	struct err e;

	db_array_init(&made.versions, DB_UUID, 64 * TOOLS_MAX);
	db_array_init(&made.requests, DB_UUID, 64 * TOOLS_MAX);
	db_array_init(&made.preimages, DB_BYTEA, 2 * IPC_BLOB_MAX);
	if (draft_all(o, list, &made, &e) == -1)
		job_fail(j, e.failure, "%s", e.text);
	else
		store(j, o, &made);
	db_array_free(&made.versions);
	db_array_free(&made.requests);
	db_array_free(&made.preimages);
}

/* ---- the beginning ---- */

static const struct db_stmt server_named = {"manage_openapi_server",
    "SELECT s.name, s.expose = 'bare' FROM mcpbox.servers s"
    " WHERE s.id = $1::uuid AND s.deleted_at IS NULL",
    DB_FAST};

static void
server_found(struct job *j, const struct pg_result *rows)
{
	struct ipc_bytes document = ipc_str("{}"), base = ipc_str("");
	struct openapi *o = j->data;
	struct tlv_reader r;
	struct buf lines;
	struct tlv f;

	if (db_nrows(rows) == 0 ||
	    !db_text(rows, 0, 0, o->server, sizeof(o->server))) {
		job_fail(j, FAILURE_NOT_FOUND,
		    "no server has this id: see mcpbox_list_servers");
		return;
	}
	o->bare = db_bool(rows, 0, 1);
	(void)job_field(j, MF_DOCUMENT, &document);
	(void)job_field(j, MF_BASE_URL, &base);
	buf_init(&lines, IPC_FRAME_MAX);
	tlv_open(&r, j->fields.p, j->fields.len);
	while (tlv_next(&r, &f) == 1)
		if (f.tag == MF_OPERATIONS && f.n > 0) {
			buf_put(&lines, f.p, f.n);
			buf_putc(&lines, '\n');
		}
	if (lines.failed)
		job_fail(j, FAILURE_TOO_LARGE, "`operations` is too long");
	else
		job_check_openapi(j, document, base,
		    ipc_bytes(lines.p, lines.len), taken_apart);
	buf_free(&lines);
}

void
manage_import_openapi(struct job *j)
{
	struct openapi *o = calloc(1, sizeof(*o));
	struct db_params p;

	if (o == NULL) {
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	buf_init(&o->skipped, 64 * 1024);
	j->data = o;
	j->free_data = openapi_free;
	if (job_uuid(j, MF_SERVER_ID, &o->server_id) == -1)
		return;
	db_params_init(&p);
	db_p_id(&p, &o->server_id);
	job_query(j, &server_named, &p, server_found);
}
