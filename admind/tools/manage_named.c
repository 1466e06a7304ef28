/*
 * Names where ids are accepted: before a management tool runs, a name in its
 * arguments (MF_NAMED, or a text of tool_ids that is not a uuid) becomes the id
 * of the one object of that name.
 *
 * A token that may not use every name finds only objects that it may name. So a
 * name tells the token no more than an id would: neither that a hidden object
 * exists, nor that a name is ambiguous because of a hidden object.
 */
#include <string.h>

#include "ids.h"
#include "manage.h"
#include "management_tools.h"
#include "step.h"
#include "token.h"

static const struct db_stmt find = {"manage_named",
    "SELECT n, id, likes FROM mcpbox.manage_named($1::text, $2::text,"
    " $3::text)",
    DB_FAST};

/* Columns of find. */
enum { C_COUNT, C_ID, C_LIKES };

static bool
is_named(const struct tlv *f, uint8_t *tag)
{
	struct ipc_id id;

	*tag = f->tag;
	if (f->tag == MF_TOOL_IDS)
		return f->n > 0 &&
		    uuid_parse((const char *)f->p, f->n, &id) == -1;
	if (f->tag <= MF_NAMED || f->tag > MF_NAMED + MF_MAX)
		return false;
	*tag = (uint8_t)(f->tag - MF_NAMED);
	return true;
}

/* The kind of object that a field names: the word for PostgreSQL, the words for
 * a person, and the tool that lists such objects. */
struct named {
	const char *kind, *words, *list;
};

static const struct named *
kind_of(uint8_t tag)
{
	static const struct named
	    server = {"server", "server", "mcpbox_list_servers"},
	    prompt = {"prompt", "prompt", "mcpbox_list_prompts"},
	    resource = {"resource", "resource", "mcpbox_list_resources"},
	    source = {"source", "source", "mcpbox_list_external_sources"},
	    tool = {"tool", "tool, prompt or resource", "mcpbox_list_tools"};

	switch (tag) {
	case MF_SERVER_ID:
		return &server;
	case MF_PROMPT_ID:
		return &prompt;
	case MF_RESOURCE_ID:
		return &resource;
	case MF_SOURCE_ID:
		return &source;
	default:
		return &tool;
	}
}

static void
fail(struct job *j, const struct pg_result *rows, int row, const struct tlv *f,
    const struct named *k)
{
	struct ipc_bytes likes = db_bytes(rows, row, C_LIKES);

	if (db_int(rows, row, C_COUNT) == 0)
		job_fail(j, FAILURE_NOT_FOUND, "no %s is named %.*s: see %s",
		    k->words, (int)f->n, (const char *)f->p, k->list);
	else
		job_fail(j, FAILURE_INVALID_ARGUMENTS,
		    "the name %.*s is ambiguous, it may be %.*s: give the "
		    "whole name or the id",
		    (int)f->n, (const char *)f->p, (int)likes.n,
		    (const char *)likes.p);
}

/* Copies the fields, with ids in the place of names. */
static void
found(struct job *j, const struct pg_result *rows)
{
	char text[UUID_TEXT_LEN + 1];
	struct tlv_reader r;
	struct ipc_id id;
	struct buf with;
	struct tlv f;
	uint8_t tag;
	int row = 0;

	buf_init(&with, IPC_BLOB_MAX);
	tlv_open(&r, j->fields.p, j->fields.len);
	while (tlv_next(&r, &f) == 1) {
		if (!is_named(&f, &tag)) {
			tlv_put(&with, f.tag, f.p, f.n);
			continue;
		}
		if (row >= db_nrows(rows) || db_int(rows, row, C_COUNT) != 1) {
			if (row < db_nrows(rows))
				fail(j, rows, row, &f, kind_of(tag));
			else
				job_fail(j, FAILURE_INTERNAL,
				    "a name was not looked up");
			buf_free(&with);
			return;
		}
		id = db_id(rows, row++, C_ID);
		uuid_text(&id, text);
		if (tag == MF_TOOL_IDS)
			tlv_puts(&with, tag, text);
		else
			tlv_put(&with, tag, id.b, sizeof(id.b));
	}
	if (with.failed) {
		buf_free(&with);
		job_fail(j, FAILURE_BUSY, "out of memory");
		return;
	}
	buf_free(&j->fields);
	j->fields = with;
	manage_judge(j);
}

void
manage_named(struct job *j)
{
	struct tlv_reader r;
	struct db_params p;
	struct buf lines;
	struct tlv f;
	uint8_t tag;

	buf_init(&lines, IPC_FRAME_MAX);
	tlv_open(&r, j->fields.p, j->fields.len);
	while (tlv_next(&r, &f) == 1)
		if (is_named(&f, &tag)) {
			if (lines.len > 0)
				buf_putc(&lines, '\n');
			buf_puts(&lines, kind_of(tag)->kind);
			buf_putc(&lines, ' ');
			buf_put(&lines, f.p, f.n);
		}
	if (lines.failed) {
		job_fail(j, FAILURE_LIMIT, "too many names");
	} else if (lines.len == 0) {
		manage_judge(j);
	} else {
		db_params_init(&p);
		db_p_text(&p, ipc_bytes(lines.p, lines.len));
		token_params(j->token, &p);
		job_query(j, &find, &p, found);
	}
	buf_free(&lines);
}
