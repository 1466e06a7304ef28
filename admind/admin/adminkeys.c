/*
 * ACCESS_REFRESH: an administrator has the keys of an issuer fetched now
 * (decision 0097).
 *
 * It is allowed for an administrator's login that the vault knows, or uid 0, as
 * with ADMIN_ACTION (adminact.c). It names an issuer of the document that
 * holds, and brings no address and no key. So an attacker with such a login
 * gains one GET to an address that an administrator wrote down, at most once in
 * KEYSETS_ASK_MS. The fetch is the tick's, by the same road as any other
 * (key_fetch.c); its run leaves a record.
 */
#include <stdio.h>
#include <string.h>

#include "access.h"
#include "admin.h"
#include "ids.h"
#include "log.h"
#include "login.h"

enum { SENTENCE_MAX = 160 };

/* Makes the fetch of one issuer due if it may be, and writes the result. */
static void
refresh_one(struct op *op, const struct issuer *s, struct jsonw *w)
{
	struct access *x = op->a->access;
	char says[SENTENCE_MAX] = "they are fetched now; mcpboxctl access show "
				  "tells the result";
	const char *state = "due";
	struct keyset *set =
	    s->fetched ? keysets_find(&x->keysets, s->name) : NULL;
	uint64_t wait_ms = 0;

	if (set == NULL) {
		state = "given";
		snprintf(says, sizeof(says),
		    "the access document has its keys (jwks): when they "
		    "change, set the document again");
	} else {
		switch (keysets_refresh(set, now_boot_ms(), &wait_ms)) {
		case KEYSETS_REFRESH_DUE:
			if (!op->a->sandbox_ready)
				snprintf(says, sizeof(says),
				    "they are fetched as soon as the sandbox "
				    "is back");
			log_event(LOG_LV_INFO, "issuer_keys",
			    "%s: %s asks for them", set->name, op->actor);
			break;
		case KEYSETS_REFRESH_RUNNING:
			state = "running";
			snprintf(says, sizeof(says), "a fetch is under way");
			break;
		case KEYSETS_REFRESH_EARLY:
			state = "early";
			snprintf(says, sizeof(says),
			    "they were fetched less than %d s ago: ask again "
			    "in %u s",
			    KEYSETS_ASK_MS / 1000,
			    (unsigned)((wait_ms + 999) / 1000));
			break;
		}
	}
	jsonw_obj(w);
	jsonw_kv_strn(w, "issuer", s->name.p, s->name.n);
	jsonw_kv_str(w, "state", state);
	jsonw_kv_int(w, "wait_seconds", (int64_t)((wait_ms + 999) / 1000));
	jsonw_kv_str(w, "text", says);
	jsonw_obj_end(w);
}

static void
run(struct op *op)
{
	const struct access *x = op->a->access;
	struct ipc_bytes name = ipc_bytes(op->buf.p, op->buf.len);
	struct ipc_admin_json m;
	struct jsonw w;
	struct buf b;
	struct err err;

	if (document_ready(op->a, &err) == -1) {
		op_refuse_err(op, &err);
		return;
	}
	if (x->now == NULL || x->now->nissuers == 0) {
		op_refuse(op, FAILURE_NOT_FOUND,
		    "no access document with issuers is in force");
		return;
	}
	if (name.n > 0 && issuers_named(x->now, name) == NULL) {
		op_refuse(op, FAILURE_NOT_FOUND,
		    "the access document has no issuer of this name");
		return;
	}
	buf_init(&b, RESULT_MAX);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_name(&w, "items");
	jsonw_arr(&w);
	for (unsigned i = 0; i < x->now->nissuers; i++)
		if (name.n == 0 ||
		    issuers_named(x->now, name) == &x->now->issuer[i])
			refresh_one(op, &x->now->issuer[i], &w);
	jsonw_arr_end(&w);
	jsonw_obj_end(&w);
	m.json = ipc_bytes(b.p, b.len);
	if (b.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		op_answer(op, IPC_ADMIN_JSON, &m);
	buf_free(&b);
}

int
adminkeys_message(struct link *l, struct ipc_frame *f)
{
	struct ipc_access_refresh m;
	struct op *op;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (m.issuer.n > ACCESS_NAME_MAX) {
		link_refuse(l, m.request, FAILURE_INVALID_PARAMS,
		    "this is no issuer's name");
		return 0;
	}
	if ((op = op_new(l, m.request)) == NULL)
		return 0;
	op->least = ADMIN_ADMINISTRATOR;
	buf_put(&op->buf, m.issuer.p, m.issuer.n);
	if (op->buf.failed)
		op_refuse(op, FAILURE_BUSY, "out of memory");
	else
		login_check(op, m.token, run);
	return 0;
}
