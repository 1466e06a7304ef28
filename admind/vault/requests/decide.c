/*
 * APPROVE, REJECT and APPROVE_AUTO.
 *
 * Approval is safe even if admind is hostile. The person who decides is known
 * by a login that we made, or by the socket that admits uid 0 only. admind can
 * use neither, and its own socket may not send APPROVE (the table of messages).
 * The content comes from admind, but the human's program showed it and sent the
 * hash of the shown content. We fetch the content, hash it ourselves, and seal
 * only if both hashes agree. If admind lies to both sides alike, a human has
 * read and approved just that lie. If it lies to one side, the hashes differ.
 * The ids and secret names in the seal are those inside the content. admind may
 * also answer OK without committing. Then an approval is lost, but none is
 * gained.
 *
 * An approval needs a fresh proof by the login's person (fresh.h). A hostile
 * web process can approve as a person with a login for SESSIONS_PROOF_MS after
 * each proof of this person, and can show a password again that it saw. Every
 * seal and every log line names that person.
 *
 * The first bytes of a content tell its queue, and so which mode of the policy
 * applies. docs/decisions/0038 and policy.c explain which content a policy may
 * approve by itself, and what admind gains if it brings back an old policy.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "callreq.h"
#include "fresh.h"
#include "grantreq.h"
#include "grants.h"
#include "ids.h"
#include "jsonw.h"
#include "log.h"
#include "seal.h"
#include "requests.h"

enum {
	REASON_MAX = 2000, /* bytes; enough for a paragraph */
	/* a name, or "policy:" and a name */
	ACTOR_MAX = sizeof("policy:") - 1 + POLICY_ACTOR_MAX
};

/* Values of DECISION_STORE's `approved`. */
enum verdict { REJECTED = 0, APPROVED = 1, FIRST_OF_TWO = 2 };

struct decision {
	struct vault *v;
	struct vault_ref ref;
	enum verdict verdict;
	bool root;
	bool automatic;        /* no person decides: the policy does */
	struct ipc_hash token; /* the login that decides, unless root */
	char actor[ACTOR_MAX + 1];
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

/* Refuses, and writes an audit event so that administrators learn of it. */
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
	struct ipc_half_approved half = {0};
	struct decision *d = arg;
	char id[UUID_TEXT_LEN + 1];

	if (f == NULL || f->type != IPC_OK) {
		callers_refuse_as(d->v, d->ref, f, gone);
		decision_free(d);
		return;
	}
	uuid_text(&d->approval, id);
	log_event(LOG_LV_INFO,
	    d->verdict == APPROVED       ? "approved"
		: d->verdict == REJECTED ? "rejected"
					 : "approved_first",
	    "%s by %s", id, d->actor);
	if (d->verdict == FIRST_OF_TWO)
		callers_answer(d->v, d->ref, IPC_HALF_APPROVED, &half);
	else
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
	m.approved = d->verdict;
	if (hash != NULL)
		m.content = *hash;
	m.actor = ipc_str(d->actor);
	m.time_us = time_us;
	m.reason = ipc_str(d->reason);
	m.seal = seal;
	if (callers_ask(d->v, IPC_DECISION_STORE, &m, on_stored, d) == -1)
		refuse(d, FAILURE_BUSY, "admind is not connected");
}

/* Returns the reason why this login may not decide, or NULL if it may. Called
 * again when the content arrives, because the login may have ended since. */
static const char *
may_decide(struct decision *d, enum failure *failure)
{
	const struct session *s;

	if (d->root || d->automatic)
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

/* Finds a content's queue by its bytes. The kind that admind names must be the
 * same. So the content of a version can't be sealed as a call, or the other way
 * round, and no seal passes for a seal of another kind. */
enum { QUEUE_CALL = REVIEW_QUEUES };

static int
queue_of(const struct ipc_content *c, unsigned *queue, struct err *err)
{
	struct grantreq g;

	*queue = REVIEW_TOOL;
	if (callreq_is(c->preimage.p, c->preimage.n)) {
		*queue = QUEUE_CALL;
	} else if (grantreq_is(c->preimage.p, c->preimage.n)) {
		if (grantreq_read(c->preimage.p, c->preimage.n, &g, err) == -1)
			return -1;
		*queue =
		    g.kind == GRANT_MODULE ? REVIEW_MODULE : REVIEW_NETWORK;
	}
	if (!ipc_streq(c->kind,
		*queue == QUEUE_CALL ? "call" : review_queue_name(*queue)))
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "the content is not of the kind it is said to be");
	return 0;
}

static int
make_seal(struct decision *d, unsigned queue, struct ipc_bytes content,
    const struct seal_by *by, struct buf *seal, struct ipc_hash *hash,
    struct err *err)
{
	const struct calls_time both = {by->time_us, now_boot_ms()};
	const struct keys *k = d->v->keys;

	if (queue == QUEUE_CALL)
		return calls_seal(contexts_calls(d->v->contexts), k,
		    &d->approval, content, by->approver, &both, seal, hash,
		    err);
	if (queue != REVIEW_TOOL)
		return grants_seal(
		    k, &d->approval, content, by, seal, hash, err);
	return seal_make(
	    k, &d->approval, content.p, content.n, by, seal, hash, err);
}

/*
 * Approves by the policy, without a person. The queue's mode must be automatic
 * now, and the policy must be allowed to cover the content. The seal names as
 * approver the policy, with the name of the person who set it.
 */
static int
by_policy(struct decision *d, unsigned queue, struct ipc_bytes content,
    struct seal_by *by, struct err *err)
{
	const struct policy *p = &d->v->policy;

	if (queue == QUEUE_CALL ||
	    policy_mode(p, (enum review_queue)queue, by->time_us) !=
		REVIEW_AUTOMATIC)
		return err_set(err, FAILURE_FORBIDDEN,
		    "no policy approves this automatically");
	if (policy_covers((enum review_queue)queue, content, err) == -1)
		return -1;
	(void)snprintf(d->actor, sizeof(d->actor), "policy:%s", p->actor);
	by->approver = ipc_str(d->actor);
	by->policy = p->serial;
	return 0;
}

/*
 * Finds whether this approval is the first or the second of two. It is the
 * second if admind brings a first approval that we sealed for this request and
 * these bytes. Then another person must have given the first. Otherwise this
 * approval becomes the first (FIRST_OF_TWO). 0, or -1 with err.
 */
static int
by_two(struct decision *d, const struct ipc_content *c,
    const struct ipc_hash *hash, struct seal_by *by, struct err *err)
{
	if (c->first.n == 0 ||
	    grants_first_check(d->v->keys, c->first, &d->approval, hash,
		&by->first, NULL) == -1) {
		by->first = ipc_bytes(NULL, 0);
		d->verdict = FIRST_OF_TWO;
		return 0;
	}
	if (by->first.n == by->approver.n &&
	    memcmp(by->first.p, by->approver.p, by->first.n) == 0)
		return err_set(err, FAILURE_CONFLICT,
		    "you have approved this: another person must, too");
	return 0;
}

static int
judge(struct decision *d, const struct ipc_content *c, struct buf *seal,
    struct ipc_hash *hash, uint64_t now, struct err *err)
{
	struct seal_by by = {.approver = ipc_str(d->actor), .time_us = now};
	unsigned queue;

	if (queue_of(c, &queue, err) == -1)
		return -1;
	policy_take(d->v->keys, c->policy, &d->v->policy);
	if (d->automatic) {
		if (by_policy(d, queue, c->preimage, &by, err) == -1)
			return -1;
	} else if (queue != QUEUE_CALL &&
	    policy_mode(&d->v->policy, (enum review_queue)queue, now) ==
		REVIEW_SECOND) {
		if (by_two(d, c, hash, &by, err) == -1)
			return -1;
	}
	if (make_seal(d, queue, c->preimage, &by, seal, hash, err) == -1)
		return -1;
	/* A first approval is sealed only now, when make_seal has shown that
	 * the content can be sealed. */
	if (d->verdict == FIRST_OF_TWO)
		return grants_first_seal(d->v->keys, &d->approval, hash,
		    by.approver, now, seal, err);
	return 0;
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
	sha256(c.preimage.p, c.preimage.n, &hash);
	if (!d->automatic && !ct_equal(hash.b, d->reviewed.b, sizeof(hash.b))) {
		refuse_audited(d, FAILURE_HASH_MISMATCH,
		    "the content is not what was reviewed");
		return;
	}
	buf_init(&seal, SEAL_MAX);
	if (judge(d, &c, &seal, &hash, now, &err) == 0)
		store(d, &hash, now, ipc_bytes(seal.p, seal.len));
	else if (d->automatic)
		refuse(d, err.failure, err.text); /* usual: a person decides */
	else
		refuse_audited(d, err.failure, err.text);
	buf_free(&seal);
}

/*
 * Begins APPROVE and REJECT: finds the person who decides. On uid 0's socket
 * that is root, and a token is refused. On the other socket it is the user of
 * the token's login, whose proof must be fresh if this message needs it. NULL:
 * the request was refused.
 */
static struct decision *
start(struct port *port, struct ipc_peer *peer, struct ipc_frame *f,
    uint64_t request, struct ipc_bytes token, const struct ipc_id *approval)
{
	struct vault_ref ref = callers_ref(port, peer, request);
	const struct session *s = NULL;
	enum failure failure;
	struct decision *d;
	const char *why;
	struct err err;

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
		memcpy(d->actor, s->username, sizeof(s->username));
	if (s == NULL) {
		refuse_audited(d, FAILURE_UNAUTHENTICATED, "not logged in");
		return NULL;
	}
	if ((why = may_decide(d, &failure)) != NULL) {
		refuse_audited(d, failure, why);
		return NULL;
	}
	/* Not asked again when the content arrives: a slow admind can't make
	 * a proof stale. */
	if (fresh_check(s, f->type, now_boot_ms(), &err) == -1) {
		refuse_audited(d, err.failure, err.text);
		return NULL;
	}
	return d;
}

static int
fetch(struct decision *d)
{
	struct ipc_content_get get;

	d->verdict = APPROVED;
	memset(&get, 0, sizeof(get));
	get.approval = d->approval;
	if (callers_ask(d->v, IPC_CONTENT_GET, &get, on_content, d) == -1)
		refuse(d, FAILURE_BUSY, "admind is not connected");
	return 0;
}

static int
approve(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_approve m;
	struct decision *d;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	d = start(port, peer, f, m.request, m.token, &m.approval);
	if (d == NULL)
		return 0;
	d->reviewed = m.reviewed;
	return fetch(d);
}

/* Approves by a policy. admind may ask for this at any time and for any
 * request. It gains no more than is approved anyway by a policy that an
 * administrator set. */
static int
approve_auto(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_approve_auto m;
	struct decision *d;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	if (!callers_room(port) || (d = calloc(1, sizeof(*d))) == NULL) {
		callers_refuse(port->v, callers_ref(port, peer, m.request),
		    FAILURE_BUSY, "too many requests at once");
		return 0;
	}
	port->v->ops++;
	d->v = port->v;
	d->ref = callers_ref(port, peer, m.request);
	d->approval = m.approval;
	d->automatic = true;
	memcpy(d->actor, "policy", sizeof("policy"));
	return fetch(d);
}

/* Rejects a request. Nothing is sealed, so the content is not fetched; admind
 * knows whether the request is still pending. A forged rejection would be a
 * denial of service, which admind can cause anyway. */
static int
reject(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	struct ipc_reject m;
	struct decision *d;

	if (ipc_decode(f, &m, NULL) == -1)
		return -1;
	d = start(port, peer, f, m.request, m.token, &m.approval);
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
	switch (f->type) {
	case IPC_APPROVE:
		return approve(port, peer, f);
	case IPC_REJECT:
		return reject(port, peer, f);
	case IPC_APPROVE_AUTO:
		return approve_auto(port, peer, f);
	default:
		return -1;
	}
}
