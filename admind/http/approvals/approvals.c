#include <json-c/json.h>

#include <stdio.h>
#include <string.h>

#include "approvals.h"
#include "ask.h"
#include "body.h"
#include "content_show.h"
#include "crypto.h"
#include "guard.h"
#include "json.h"
#include "json_grammar.h"
#include "jsonw.h"
#include "problem.h"
#include "reply.h"
#include "reviews.h"
#include "version_marks.h"
#include "web.h"

enum {
	REASON_MAX = 2000, /* most bytes of a rejection's reason, as of a
			    * description */
	SHOWN_MAX = 8 * IPC_BLOB_MAX
};

/*
 * admind isn't trusted to decide what a reviewer sees. The hash is computed
 * here, over the very bytes that are shown; the vault computes it again over
 * the bytes that it then seals. admind writes the circumstances. They must be
 * complete JSON members, so they can't end the object that they are put into.
 * They may not bring a second id, hash, content or marks (version_marks.h finds
 * the marks in the bytes). The scan of the whole object refuses duplicate names
 * at every depth.
 */
int
approvals_show(const struct ipc_id *id, const struct ipc_approval_content *a,
    struct buf *out, struct ipc_hash *hash, struct err *e)
{
	char uuid[UUID_TEXT_LEN + 1], hex[HEX32_LEN + 1];
	struct buf members, content;
	struct jsonw w;
	int rc = -1;

	buf_init(&members, IPC_FRAME_MAX + 16);
	buf_init(&content, SHOWN_MAX);
	buf_putc(&members, '{');
	buf_put(&members, a->circumstances.p, a->circumstances.n);
	buf_putc(&members, '}');
	if (members.failed || !json_grammar_valid(members.p, members.len)) {
		err_set(e, FAILURE_INTERNAL, "admind's answer was unreadable");
		goto out;
	}
	if (content_show_json(a->preimage.p, a->preimage.n, &content, e) < 0) {
		e->failure = FAILURE_INTERNAL;
		goto out;
	}
	sha256(a->preimage.p, a->preimage.n, hash);
	hex_encode(hash->b, sizeof(hash->b), hex);
	uuid_text(id, uuid);
	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "id", uuid);
	jsonw_kv_strn(&w, "kind", a->kind.p, a->kind.n);
	jsonw_kv_strn(&w, "state", a->state.p, a->state.n);
	if (members.len > 2)
		jsonw_raw(&w, members.p + 1, members.len - 2);
	jsonw_name(&w, "marks");
	version_marks_json(&w, a->preimage.p, a->preimage.n);
	jsonw_kv_str(&w, "hash", hex);
	jsonw_kv_raw(&w, "content", content.p, content.len);
	jsonw_obj_end(&w);
	if (out->failed) {
		err_set(e, FAILURE_INTERNAL, "out of memory");
		goto out;
	}
	if (json_scan(out->p, out->len, e) < 0) {
		err_set(e, FAILURE_INTERNAL,
		    "the content can't be shown without ambiguity");
		goto out;
	}
	rc = 0;
out:
	buf_free(&members);
	buf_free(&content);
	return rc;
}

static void
show(struct call *c, struct ipc_frame *f)
{
	struct ipc_approval_content a;
	char tag[HEX32_LEN + 3];
	struct ipc_hash hash;
	struct ipc_id id;
	struct buf b;
	struct err e;

	buf_init(&b, SHOWN_MAX);
	if (f->type != IPC_APPROVAL_CONTENT || ipc_decode(f, &a, &e) < 0 ||
	    uuid_parse(c->id, strlen(c->id), &id) < 0) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
	} else if (approvals_show(&id, &a, &b, &hash, &e) < 0) {
		problem_send(c, e.failure, e.text, NULL);
	} else {
		tag[0] = '"';
		hex_encode(hash.b, sizeof(hash.b), tag + 1);
		tag[HEX32_LEN + 1] = '"';
		tag[HEX32_LEN + 2] = '\0';
		httpd_header(c->req, "ETag", tag);
		reply_json(c, 200, &b);
	}
	buf_free(&b);
}

/* Reads the {id} of the path; a text that is no uuid names no request. */
static int
take_id(struct call *c, struct ipc_id *id)
{
	if (uuid_parse(c->id, strlen(c->id), id) == 0)
		return 0;
	problem_send(c, FAILURE_NOT_FOUND, "no such approval request", NULL);
	return -1;
}

void
approval_get(struct call *c)
{
	struct ipc_approval_get msg = {.token = ipc_str(c->token_hash)};

	if (take_id(c, &msg.approval) == 0)
		ask_admind(c, IPC_APPROVAL_GET, &msg, show);
}

static void
decided(struct call *c, const char *state)
{
	struct jsonw w;
	struct buf b;

	buf_init(&b, 256);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "id", c->id);
	jsonw_kv_str(&w, "state", state);
	jsonw_obj_end(&w);
	reply_json(c, 200, &b);
	buf_free(&b);
}

/* The first of two yeses leaves the request pending. */
static void
approved(struct call *c, struct ipc_frame *f)
{
	decided(c, f->type == IPC_HALF_APPROVED ? "pending" : "approved");
}

/* Approves. If-Match carries the hash that was reviewed. "*" would approve
 * whatever is there now. The hash exists to prevent that, so "*" counts as
 * absent. A value that isn't one strong tag can't be the reviewed hash. */
void
approve_post(struct call *c)
{
	struct ipc_approve msg = {.token = ipc_str(c->token)};
	const char *match;
	unsigned count;

	if (take_id(c, &msg.approval) < 0)
		return;
	match = http1_field(httpd_request(c->req), "if-match", &count);
	if (match == NULL || strcmp(match, "*") == 0) {
		problem_send(c, FAILURE_HASH_REQUIRED,
		    "approving needs the hash of what was reviewed",
		    "Read the request, then send its ETag as If-Match.");
		return;
	}
	if (count != 1 || guard_etag(match, &msg.reviewed) < 0) {
		problem_send(c, FAILURE_HASH_MISMATCH,
		    "If-Match is not one hash in quotes", NULL);
		return;
	}
	ask_vault(c, IPC_APPROVE, &msg, approved);
}

static void
rejected(struct call *c, struct ipc_frame *f)
{
	(void)f;
	decided(c, "rejected");
}

void
reject_post(struct call *c)
{
	static const char *const names[] = {"reason", NULL};
	struct ipc_reject msg = {.token = ipc_str(c->token)};
	struct json_object *o;
	struct err e;

	if (take_id(c, &msg.approval) < 0 || body_parse(c, names, &o) < 0)
		return;
	if (body_str(o, "reason", &msg.reason, &e) < 0)
		problem_send(c, e.failure, e.text, NULL);
	else if (msg.reason.n > REASON_MAX)
		problem_send(c, FAILURE_INVALID_PARAMS,
		    "reason is longer than 2000 bytes", NULL);
	else
		ask_vault(c, IPC_REJECT, &msg, rejected);
	json_object_put(o);
}
