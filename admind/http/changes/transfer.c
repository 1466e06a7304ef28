#include <json-c/json.h>

#include <string.h>

#include "ask.h"
#include "body.h"
#include "changes.h"
#include "json.h"
#include "name.h"
#include "problem.h"
#include "reply.h"
#include "web.h"

/* Export and import: the steps in which the vault has a part. The text goes by
 * GET /api/exports/{id}/lines and PUT /api/imports/{id}/text. */

enum { SEAL_HEX_MAX = 512 };

static void
said(struct call *c, struct ipc_frame *f)
{
	reply_admind(c, f, false);
}

/* POST /api/exports {"servers": [names]}. Absent or empty: all servers. */
void
export_post(struct call *c)
{
	static const char *const names[] = {"servers", NULL};
	struct ipc_export m = {.token = ipc_str(c->token_hash)};
	struct json_object *o, *list, *v;
	struct buf lines;
	struct err e;
	int rc;

	if (body_parse(c, names, &o) < 0)
		return;
	buf_init(&lines, IPC_FRAME_MAX / 2);
	rc = json_get_arr(o, "servers", &list, &e);
	for (size_t i = 0; rc == 1 && i < json_object_array_length(list); i++) {
		v = json_object_array_get_idx(list, i);
		if (!json_object_is_type(v, json_type_string) ||
		    !name_valid(json_object_get_string(v),
			(size_t)json_object_get_string_len(v), NAME_SERVER_MAX))
			rc = err_set(&e, FAILURE_INVALID_PARAMS,
			    "member servers must be an array of names");
		else if (i > 0)
			buf_putc(&lines, '\n');
		if (rc == 1)
			buf_puts(&lines, json_object_get_string(v));
	}
	if (rc >= 0 && lines.failed)
		rc = err_set(&e, FAILURE_INVALID_PARAMS,
		    "member servers has too many names");
	m.servers = ipc_bytes(lines.p, lines.len);
	if (rc < 0)
		problem_send(c, FAILURE_INVALID_PARAMS, e.text, NULL);
	else
		ask_admind(c, IPC_EXPORT, &m, said);
	buf_free(&lines);
	json_object_put(o);
}

/* POST /api/imports/{id}/finish {"signature": hex} */
void
import_post(struct call *c)
{
	static const char *const names[] = {"signature", NULL};
	struct ipc_import m = {.token = ipc_str(c->token_hash)};
	uint8_t seal[SEAL_HEX_MAX / 2];
	struct ipc_bytes hex = {0};
	struct json_object *o;
	struct err e;

	if (uuid_parse(c->id, strlen(c->id), &m.import) < 0) {
		problem_send(c, FAILURE_NOT_FOUND, "no such import", NULL);
		return;
	}
	if (body_parse(c, names, &o) < 0)
		return;
	if (body_str(o, "signature", &hex, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
	} else if (hex.n > SEAL_HEX_MAX ||
	    hex_decode((const char *)hex.p, hex.n, seal) < 0) {
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "member signature is not one of an export", NULL);
	} else {
		m.seal = ipc_bytes(seal, hex.n / 2);
		ask_admind(c, IPC_IMPORT, &m, said);
	}
	json_object_put(o);
}
