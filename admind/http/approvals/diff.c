#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "content_show.h"
#include "crypto.h"
#include "grantreq.h"
#include "jsonw.h"
#include "problem.h"
#include "reply.h"
#include "reviews.h"
#include "version.h"
#include "version_beside.h"
#include "version_diff.h"
#include "web.h"

/*
 * GET /api/approvals/{id}/diff: shows what a request would change.
 *
 * admind sends the request and the base, and may be hostile: a forged "approved
 * version" that already holds the change would hide it. So the vault is asked
 * whether the base bears the vault's seal, which only an approval of just these
 * bytes makes. A base without the seal is an error. version_diff_json refuses a
 * base of another tool. The difference is computed here. If there is no base,
 * everything is shown as new.
 */

enum { DIFF_MAX = 8 * IPC_BLOB_MAX };

struct work {
	struct buf request, base, question;
	struct buf circumstances; /* of the request, as admind tells them */
};

static void
work_free(void *arg)
{
	struct work *w = arg;

	buf_free(&w->request);
	buf_free(&w->base);
	buf_free(&w->question);
	buf_free(&w->circumstances);
	free(w);
}

/* Writes a grant's difference. Nothing was there before, so the whole grant is
 * new. */
static int
grant_diff(const struct work *k, struct buf *out, struct err *e)
{
	char text[GRANTREQ_HOST_MAX + 16], hex[HEX32_LEN + 1];
	struct grantreq g;
	struct jsonw w;
	struct buf host;

	if (grantreq_read(k->request.p, k->request.len, &g, e) == -1)
		return -1;
	jsonw_open(&w, out);
	jsonw_obj(&w);
	jsonw_name(&w, "base");
	jsonw_null(&w);
	jsonw_name(&w, "fields");
	jsonw_arr(&w);
	jsonw_arr_end(&w);
	jsonw_name(&w, "diff");
	jsonw_arr(&w);
	jsonw_arr_end(&w);
	jsonw_name(&w, "gains");
	jsonw_obj(&w);
	jsonw_name(&w, g.kind == GRANT_MODULE ? "modules" : "hosts");
	jsonw_arr(&w);
	if (g.kind == GRANT_NETWORK) {
		buf_init(&host, sizeof(text));
		grantreq_host_text(&g, &host);
		jsonw_strn(&w, host.p, host.len);
		buf_free(&host);
	} else {
		(void)snprintf(text, sizeof(text), "%.*s%s%.*s", (int)g.name.n,
		    (const char *)g.name.p, g.recorded ? "==" : "",
		    (int)g.version.n, (const char *)g.version.p);
		jsonw_str(&w, text);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	jsonw_name(&w, "affected");
	jsonw_arr(&w);
	for (size_t i = 0; i < g.naffected; i++) {
		hex_encode(grantreq_affected(&g, i), 32, hex);
		jsonw_str(&w, hex);
	}
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	return 0;
}

/* Sends the difference. The ETag is the hash that GET of the request gives, so
 * a reviewer who has read only the difference can approve with this ETag. */
static void
reply(struct call *c, bool with_base)
{
	const struct work *k = c->work;
	char tag[HEX32_LEN + 3];
	struct ipc_hash hash;
	struct buf b;
	struct err e;
	int rc;

	buf_init(&b, DIFF_MAX);
	if (grantreq_is(k->request.p, k->request.len)) {
		rc = grant_diff(k, &b, &e);
	} else {
		rc = version_diff_json(with_base ? k->base.p : NULL,
		    with_base ? k->base.len : 0, k->request.p, k->request.len,
		    &b, &e);
		if (rc == 0)
			version_beside(&b, k->request.p, k->request.len,
			    ipc_bytes(
				k->circumstances.p, k->circumstances.len));
	}
	if (rc == -1 || b.failed) {
		problem_send(c, FAILURE_INTERNAL,
		    rc == -1 ? e.text : "out of memory", NULL);
	} else {
		sha256(k->request.p, k->request.len, &hash);
		tag[0] = '"';
		hex_encode(hash.b, sizeof(hash.b), tag + 1);
		tag[HEX32_LEN + 1] = '"';
		tag[HEX32_LEN + 2] = '\0';
		httpd_header(c->req, "ETag", tag);
		reply_json(c, 200, &b);
	}
	buf_free(&b);
}

static void
verified(struct call *c, struct ipc_frame *f)
{
	struct ipc_refused r;

	if (f->type == IPC_SEAL_SAYS)
		reply(c, true);
	else if (f->type == IPC_REFUSED && ipc_decode(f, &r, NULL) == 0 &&
	    r.failure != FAILURE_NOT_APPROVED && r.failure < FAILURE_COUNT)
		problem_send(c, (enum failure)r.failure,
		    "the vault could not be asked about the approved version",
		    NULL);
	else
		problem_send(c, FAILURE_INTERNAL,
		    "what is said to be the approved version bears no seal of "
		    "the vault",
		    "Read the whole content. Somebody should look at admind.");
}

static void
got_base(struct call *c, struct ipc_frame *f)
{
	struct ipc_approval_content a;
	struct ipc_seal_verify m = {.token = ipc_str(c->token)};
	struct work *k = c->work;
	struct err e;

	if (f->type != IPC_APPROVAL_CONTENT || ipc_decode(f, &a, &e) < 0) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	if (a.preimage.n == 0) {
		reply(c, false);
		return;
	}
	buf_put(&k->base, a.preimage.p, a.preimage.n);
	buf_put(&k->question, a.seal.p, a.seal.n);
	buf_put(&k->question, a.preimage.p, a.preimage.n);
	if (k->base.failed || k->question.failed) {
		problem_send(c, FAILURE_INTERNAL, "out of memory", NULL);
		return;
	}
	m.seal_len = (uint32_t)a.seal.n;
	m.seal_preimage = ipc_bytes(k->question.p, k->question.len);
	c->takes_refusals = true;
	ask_vault(c, IPC_SEAL_VERIFY, &m, verified);
}

static void
got_request(struct call *c, struct ipc_frame *f)
{
	struct ipc_approval_get m = {
	    .token = ipc_str(c->token_hash), .base = 1};
	struct ipc_approval_content a;
	struct work *k = c->work;
	struct err e;

	if (f->type != IPC_APPROVAL_CONTENT || ipc_decode(f, &a, &e) < 0 ||
	    uuid_parse(c->id, strlen(c->id), &m.approval) < 0) {
		problem_send(c, FAILURE_INTERNAL,
		    "admind's answer was unreadable", NULL);
		return;
	}
	buf_put(&k->request, a.preimage.p, a.preimage.n);
	buf_put(&k->circumstances, a.circumstances.p, a.circumstances.n);
	if (k->request.failed || k->circumstances.failed)
		problem_send(c, FAILURE_INTERNAL, "out of memory", NULL);
	else if (grantreq_is(a.preimage.p, a.preimage.n))
		reply(c, false);
	else if (ipc_streq(a.kind, "call"))
		problem_send(c, FAILURE_NOT_FOUND,
		    "a call has nothing to be compared with", NULL);
	else
		ask_admind(c, IPC_APPROVAL_GET, &m, got_base);
}

void
approval_diff_get(struct call *c)
{
	struct ipc_approval_get m = {.token = ipc_str(c->token_hash)};
	struct work *k;

	if (uuid_parse(c->id, strlen(c->id), &m.approval) < 0) {
		problem_send(
		    c, FAILURE_NOT_FOUND, "no such approval request", NULL);
		return;
	}
	if ((k = calloc(1, sizeof(*k))) == NULL) {
		problem_send(c, FAILURE_INTERNAL, "out of memory", NULL);
		return;
	}
	buf_init(&k->request, IPC_BLOB_MAX);
	buf_init(&k->base, IPC_BLOB_MAX);
	buf_init(&k->question, IPC_BLOB_MAX);
	buf_init(&k->circumstances, IPC_BLOB_MAX);
	c->work = k;
	c->work_free = work_free;
	ask_admind(c, IPC_APPROVAL_GET, &m, got_request);
}
