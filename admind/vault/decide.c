/*
 * APPROVE and REJECT.
 *
 * Why approval is safe with a hostile admind. Who decides comes from a login
 * that we made, or from the socket that admits uid 0 only; neither is in
 * admind's reach (its own socket may not send APPROVE, the table says). What
 * is decided comes from admind, but the human's program showed it and sent the
 * hash of what it showed; we fetch the content, hash it ourselves and seal
 * only if both agree. So admind may lie to both sides alike, and then a human
 * has read, and approved, just that lie; or to one side, and the hashes
 * differ. The ids and secret names in the seal are those inside the content.
 * admind may also answer OK without committing: the approval is then lost, not
 * gained.
 *
 * With a hostile web process: it can approve as somebody who is logged in, for
 * as long as one is; its logins are named in every seal and every log line.
 */
#include <stdlib.h>
#include <string.h>

#include "ids.h"
#include "jsonw.h"
#include "log.h"
#include "seal.h"
#include "vault.h"

enum { REASON_MAX = 2000 }; /* bytes; a reviewer's paragraph */

struct decision {
	struct vault *v;
	struct vault_ref ref;
	bool approve, root;
	struct ipc_hash token; /* the login that decides, unless root */
	char actor[SESSIONS_USER_MAX + 1];
	struct ipc_id approval;
	struct ipc_hash reviewed;
	char reason[REASON_MAX + 1];
};

static void
decision_free(struct decision *d)
{
	d->v->ops--;
	free(d);
}

static void
refuse(struct decision *d, enum failure failure, const char *message)
{
	callers_refuse(d->v, d->ref, failure, message);
	decision_free(d);
}

/* A refusal that somebody should know of: it goes to the audit log. */
static void
refuse_audited(struct decision *d, enum failure failure, const char *message)
{
	char subject[UUID_TEXT_LEN + 1];
	struct jsonw w;
	struct buf b;

	uuid_text(&d->approval, subject);
	buf_init(&b, 2048);
	jsonw_open(&w, &b);
	jsonw_obj(&w);
	jsonw_kv_str(&w, "failure", failure_info(failure)->name);
	jsonw_kv_str(&w, "message", message);
	jsonw_obj_end(&w);
	buf_put_u8(&b, 0);
	(void)audit_event(d->v, d->actor, "approve_refused", subject,
	    b.failed ? "{}" : (const char *)b.p, NULL, NULL);
	buf_free(&b);
	refuse(d, failure, message);
}

static void
on_stored(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct decision *d = arg;
	char id[UUID_TEXT_LEN + 1];

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(d->v, d->ref, f, gone);
		decision_free(d);
		return;
	}
	uuid_text(&d->approval, id);
	log_event(LOG_LV_INFO, d->approve ? "approved" : "rejected", "%s by %s",
	    id, d->actor);
	callers_ok(d->v, d->ref);
	decision_free(d);
}

static void
store(struct decision *d, const struct ipc_hash *hash, uint64_t time_us,
    struct ipc_bytes seal)
{
	struct ipc_decision_store m;

	memset(&m, 0, sizeof(m));
	m.approval = d->approval;
	m.approved = d->approve;
	if (hash != NULL)
		m.content = *hash;
	m.actor = ipc_str(d->actor);
	m.time_us = time_us;
	m.reason = ipc_str(d->reason);
	m.seal = seal;
	if (callers_ask(d->v, IPC_DECISION_STORE, &m, on_stored, d) == -1)
		refuse(d, FAILURE_BUSY, "admind is not connected");
}

/* May this login decide? Asked again when the content is there, since it may
 * have ended meanwhile. NULL: yes. */
static const char *
may_decide(struct decision *d, enum failure *failure)
{
	const struct session *s;

	if (d->root)
		return NULL;
	s = sessions_find(d->v->sessions, &d->token, now_boot_ms());
	*failure = FAILURE_UNAUTHENTICATED;
	if (s == NULL)
		return "not logged in";
	*failure = FAILURE_FORBIDDEN;
	if (strcmp(s->role, "administrator") != 0 &&
	    strcmp(s->role, "reviewer") != 0)
		return "this role may not decide";
	return NULL;
}

/* admind names the kind; but a version's content is no call's, nor the other
 * way round, and neither's seal passes for the other's. */
static int
make_seal(struct decision *d, bool call, struct ipc_bytes content, uint64_t now,
    struct buf *seal, struct ipc_hash *hash, struct err *err)
{
	const struct calls_time both = {now, now_boot_ms()};
	const uint8_t *key = d->v->keys->approvals;

	if (call)
		return calls_seal(contexts_calls(d->v->contexts), key,
		    &d->approval, content, ipc_str(d->actor), &both, seal, hash,
		    err);
	return seal_make(key, &d->approval, content.p, content.n,
	    ipc_str(d->actor), now, seal, hash, err);
}

static void
on_content(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct decision *d = arg;
	enum failure failure;
	const char *why;
	struct ipc_content c;
	struct ipc_hash hash;
	struct err err;
	struct buf seal;
	uint64_t now = now_us();
	bool call;

	if (f == NULL || f->type != IPC_CONTENT) {
		callers_refuse_as(d->v, d->ref, f, gone);
		decision_free(d);
		return;
	}
	if (ipc_decode(f, &c, &err) == -1) {
		refuse(d, FAILURE_INTERNAL, err.text);
		return;
	}
	if ((why = may_decide(d, &failure)) != NULL) {
		refuse_audited(d, failure, why);
		return;
	}
	if (!ipc_streq(c.state, "pending")) {
		refuse(d, FAILURE_ALREADY_DECIDED,
		    "the request is not pending any more");
		return;
	}
	call = ipc_streq(c.kind, "call");
	if (!call && !ipc_streq(c.kind, "tool")) {
		refuse(d, FAILURE_INVALID_PARAMS,
		    "this version approves tools and calls only");
		return;
	}
	sha256(c.preimage.p, c.preimage.n, &hash);
	if (!ct_equal(hash.b, d->reviewed.b, sizeof(hash.b))) {
		refuse_audited(d, FAILURE_HASH_MISMATCH,
		    "the content is not what was reviewed");
		return;
	}
	buf_init(&seal, SEAL_MAX);
	if (make_seal(d, call, c.preimage, now, &seal, &hash, &err) == -1)
		refuse_audited(d, err.failure, err.text);
	else
		store(d, &hash, now, ipc_bytes(seal.p, seal.len));
	buf_free(&seal);
}

/*
 * The common start: who decides. From the uid-0 socket the actor is root and
 * a token has no business there; else the login named by the token.
 */
static struct decision *
start(struct port *port, struct ipc_peer *peer, uint64_t request,
    struct ipc_bytes token, const struct ipc_id *approval)
{
	struct vault_ref ref = callers_ref(port, peer, request);
	const struct session *s = NULL;
	enum failure failure;
	struct decision *d;
	const char *why;

	if (!callers_room(port) || (d = calloc(1, sizeof(*d))) == NULL) {
		callers_refuse(
		    port->v, ref, FAILURE_BUSY, "too many requests at once");
		return NULL;
	}
	port->v->ops++;
	d->v = port->v;
	d->ref = ref;
	d->approval = *approval;
	d->root = port->role == IPC_ROLE_CTL;
	if (d->root && token.n != 0) {
		refuse(
		    d, FAILURE_INVALID_REQUEST, "root decides without a token");
		return NULL;
	}
	if (d->root) {
		memcpy(d->actor, "root", sizeof("root"));
		return d;
	}
	s = sessions_find_text(
	    port->v->sessions, token, now_boot_ms(), &d->token);
	memcpy(d->actor, "unknown", sizeof("unknown"));
	if (s != NULL)
		memcpy(d->actor, s->username, sizeof(d->actor));
	if (s == NULL) {
		refuse_audited(d, FAILURE_UNAUTHENTICATED, "not logged in");
		return NULL;
	}
	if ((why = may_decide(d, &failure)) != NULL) {
		refuse_audited(d, failure, why);
		return NULL;
	}
	return d;
}

static int
approve(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_content_get get;
	struct ipc_approve m;
	struct decision *d;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	d = start(port, peer, m.request, m.token, &m.approval);
	if (d == NULL)
		return 0;
	d->approve = true;
	d->reviewed = m.reviewed;
	memset(&get, 0, sizeof(get));
	get.approval = m.approval;
	if (callers_ask(d->v, IPC_CONTENT_GET, &get, on_content, d) == -1)
		refuse(d, FAILURE_BUSY, "admind is not connected");
	return 0;
}

/* Nothing is sealed, so nothing is fetched: admind knows whether the request
 * is still pending. A forged rejection would be refusal of service, which
 * admind has anyway. */
static int
reject(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_reject m;
	struct decision *d;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	d = start(port, peer, m.request, m.token, &m.approval);
	if (d == NULL)
		return 0;
	if (m.reason.n > REASON_MAX) {
		refuse(d, FAILURE_TOO_LARGE, "a reason has at most 2000 bytes");
		return 0;
	}
	if (m.reason.n != 0)
		memcpy(d->reason, m.reason.p, m.reason.n);
	store(d, NULL, now_us(), ipc_bytes(NULL, 0));
	return 0;
}

int
decide_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	return f->type == IPC_APPROVE ? approve(port, peer, f)
	    : f->type == IPC_REJECT   ? reject(port, peer, f)
				      : -1;
}
