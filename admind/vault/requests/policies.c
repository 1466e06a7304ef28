/*
 * POLICY_SET and POLICY_GET, and SEAL_VERIFY.
 *
 * A policy is set by an administrator's login that we know and whose proof is
 * fresh (fresh.h), or by uid 0. admind may not send POLICY_SET. We show the
 * policy that we would apply, not the policy that admind names. So if admind
 * brings back an older policy after a restart of the vault, an administrator
 * sees that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "callreq.h"
#include "fresh.h"
#include "grants.h"
#include "ids.h"
#include "log.h"
#include "seal.h"
#include "tlv.h"
#include "requests.h"

struct policy_op {
	struct vault *v;
	struct vault_ref ref;
	bool set; /* POLICY_SET; false: POLICY_GET */
	struct ipc_policy_set m;
	char actor[POLICY_ACTOR_MAX + 1];
	uint64_t stored; /* serial of the row that it is to replace; 0: none */
	struct policy made;
};

static void
op_free(struct policy_op *op)
{
	op->v->ops--;
	free(op);
}

static void
refuse(struct policy_op *op, enum failure failure, const char *message)
{
	callers_refuse(op->v, op->ref, failure, message);
	op_free(op);
}

static void
answer(struct policy_op *op)
{
	const struct policy *p = &op->v->policy;
	struct ipc_policy_state s;

	memset(&s, 0, sizeof(s));
	s.tool = p->mode[REVIEW_TOOL];
	s.module = p->mode[REVIEW_MODULE];
	s.network = p->mode[REVIEW_NETWORK];
	s.actor = ipc_str(p->actor);
	s.since_us = p->serial;
	s.until_us = p->until_us;
	s.seal = p->seal;
	callers_answer(op->v, op->ref, IPC_POLICY_STATE, &s);
	op_free(op);
}

/*
 * Returns whether the new policy allows no more than the present one. Such a
 * policy holds from now on, for the life of this process, even if admind does
 * not store it. Otherwise a hostile admind could keep an automatic policy alive
 * by refusing to store any other policy.
 */
static bool
only_takes(const struct policy *made, const struct policy *now)
{
	static const uint8_t strict[] = {
	    [REVIEW_AUTOMATIC] = 0, [REVIEW_REQUIRE] = 1, [REVIEW_SECOND] = 2};

	for (int q = 0; q < REVIEW_QUEUES; q++)
		if (strict[made->mode[q]] < strict[now->mode[q]] ||
		    (made->mode[q] == REVIEW_AUTOMATIC &&
			made->until_us > now->until_us))
			return false;
	return made->serial > now->serial;
}

/* Takes admind's answer. If the policy was committed, it holds, unless a newer
 * one was set in between. */
static void
on_stored(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct policy_op *op = arg;
	const struct policy *p = &op->made;

	op->v->policy_storing = false;
	if (f == NULL || f->type != IPC_OK) {
		if (only_takes(p, &op->v->policy)) {
			op->v->policy = *p;
			log_event(LOG_LV_WARN, "policy",
			    "%s: not stored; what it takes away holds until a "
			    "restart",
			    p->actor);
		}
		callers_refuse_as(op->v, op->ref, f, gone);
		op_free(op);
		return;
	}
	if (p->serial > op->v->policy.serial)
		op->v->policy = *p;
	log_event(LOG_LV_INFO, "policy", "%s: tool %s, module %s, network %s",
	    p->actor, review_mode_name(p->mode[REVIEW_TOOL]),
	    review_mode_name(p->mode[REVIEW_MODULE]),
	    review_mode_name(p->mode[REVIEW_NETWORK]));
	answer(op);
}

/*
 * Makes the policy and has it stored. While another one is being stored, this
 * one is refused, since it was not made from that one. Without that, the
 * answers to both could come in any order, and a refused policy that only takes
 * away (only_takes()) would replace the one that was stored. A hostile admind
 * can refuse a policy by that as long as it leaves another administrator's
 * request without an answer, which ends after a time.
 *
 * Vaults of other nodes store policies, too. So admind gets the serial of the
 * row that it named to us, and the database stores over that row alone
 * (policy_store() in SQL).
 */
static void
set(struct policy_op *op)
{
	const uint8_t mode[REVIEW_QUEUES] = {[REVIEW_TOOL] = op->m.tool,
	    [REVIEW_MODULE] = op->m.module,
	    [REVIEW_NETWORK] = op->m.network};
	struct ipc_policy_store s;
	struct buf seal;
	struct err err;

	if (op->v->policy_storing ||
	    !ct_equal(
		op->m.seen.b, op->v->policy.seal.b, sizeof(op->m.seen.b))) {
		refuse(op, FAILURE_HASH_MISMATCH,
		    "the policy was changed meanwhile: read it again");
		return;
	}
	buf_init(&seal, POLICY_SEAL_MAX);
	if (policy_make(op->v->keys, &op->v->policy, op->stored, mode,
		op->m.days, ipc_str(op->actor), now_us(), &seal, &op->made,
		&err) == -1) {
		buf_free(&seal);
		refuse(op, err.failure, err.text);
		return;
	}
	memset(&s, 0, sizeof(s));
	s.tool = op->m.tool;
	s.module = op->m.module;
	s.network = op->m.network;
	s.actor = ipc_str(op->actor);
	s.serial = op->made.serial;
	s.until_us = op->made.until_us;
	s.over = op->stored;
	s.seal = ipc_bytes(seal.p, seal.len);
	op->v->policy_storing = true;
	if (callers_ask(op->v, IPC_POLICY_STORE, &s, on_stored, op) == -1) {
		op->v->policy_storing = false;
		refuse(op, FAILURE_BUSY, "admind is not connected");
	}
	buf_free(&seal);
}

static void
on_loaded(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct policy_op *op = arg;
	struct ipc_policy_sealed s;

	if (f != NULL && f->type == IPC_POLICY_SEALED &&
	    ipc_decode(f, &s, NULL) == 0) {
		policy_take(op->v->keys, s.seal, &op->v->policy);
		op->stored = s.serial;
	} else if (op->v->policy.serial == 0) {
		callers_refuse_as(op->v, op->ref, f, gone);
		op_free(op);
		return;
	} else { /* the policy that we know holds */
		op->stored = op->v->policy.serial;
	}
	if (op->set)
		set(op);
	else
		answer(op);
}

int
policies_who(struct port *port, struct ipc_bytes token, enum ipc_type type,
    const char *changes, char *actor, struct err *err)
{
	const struct session *s;

	if (port->role == IPC_ROLE_CTL) {
		memcpy(actor, "root", sizeof("root"));
		return token.n == 0 ? 0
				    : err_set(err, FAILURE_INVALID_REQUEST,
					  "root decides without a token");
	}
	s = sessions_find_text(port->v->sessions, token, now_boot_ms(), NULL);
	if (s == NULL)
		return err_set(err, FAILURE_UNAUTHENTICATED, "not logged in");
	memcpy(actor, s->username, sizeof(s->username));
	if (changes != NULL && strcmp(s->role, "administrator") != 0)
		return err_set(err, FAILURE_FORBIDDEN,
		    "only an administrator may change %s", changes);
	return fresh_check(s, type, now_boot_ms(), err);
}

void
policies_refused(struct port *port, const char *actor, const char *action,
    const char *subject, enum failure failure)
{
	char detail[64];

	(void)snprintf(detail, sizeof(detail), "{\"failure\":\"%s\"}",
	    failure_info(failure)->name);
	(void)audit_event(port->v, actor[0] != '\0' ? actor : "unknown", action,
	    subject, detail, NULL, NULL);
}

static int
policy(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	bool sets = f->type == IPC_POLICY_SET;
	struct ipc_policy_load load = {0};
	struct ipc_policy_get get = {0};
	struct ipc_policy_set m = {0};
	struct policy_op *op;
	struct err err;

	if (ipc_decode(f, sets ? (void *)&m : (void *)&get, NULL) == -1)
		return -1;
	if (!sets) {
		m.request = get.request;
		m.token = get.token;
	}
	if (!callers_room(port) || (op = calloc(1, sizeof(*op))) == NULL) {
		callers_refuse(port->v, callers_ref(port, peer, m.request),
		    FAILURE_BUSY, "too many requests at once");
		return 0;
	}
	port->v->ops++;
	op->v = port->v;
	op->ref = callers_ref(port, peer, m.request);
	op->set = sets;
	if (policies_who(port, m.token, f->type, sets ? "the policy" : NULL,
		op->actor, &err) == -1) {
		if (sets)
			policies_refused(port, op->actor, "policy_refused",
			    "policy", err.failure);
		refuse(op, err.failure, err.text);
		return 0;
	}
	op->m = m;
	op->m.token = ipc_bytes(NULL, 0); /* it pointed into the frame */
	if (callers_ask(op->v, IPC_POLICY_LOAD, &load, on_loaded, op) == -1)
		refuse(op, FAILURE_BUSY, "admind is not connected");
	return 0;
}

/* ---- SEAL_VERIFY ---- */

/* Reads the fields that version seals and grant seals both have, under
 * different tags. */
static void
says(const uint8_t *fields, size_t n, bool grant, struct ipc_seal_says *out)
{
	struct tlv f;

	if (tlv_find(fields, n, grant ? GRANTS_REQUEST : SEAL_REQUEST, &f) ==
		1 &&
	    f.n == sizeof(out->about.b))
		memcpy(out->about.b, f.p, f.n);
	if (tlv_find(fields, n, grant ? GRANTS_APPROVER : SEAL_APPROVER, &f) ==
	    1)
		out->approver = ipc_bytes(f.p, f.n);
	if (tlv_find(fields, n, grant ? GRANTS_FIRST : SEAL_FIRST, &f) == 1)
		out->first = ipc_bytes(f.p, f.n);
	if (tlv_find(fields, n, grant ? GRANTS_TIME_US : SEAL_TIME_US, &f) == 1)
		(void)tlv_u64(&f, &out->time_us);
}

/*
 * Verifies a seal for a program that shows a difference or an approved object.
 * The program has content and seal from admind, which could have made the
 * content up. We say only whether a person once approved just these bytes; a
 * seal of an object that was revoked later passes, too.
 */
static int
verify(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	char actor[POLICY_ACTOR_MAX + 1];
	struct ipc_seal_says answer;
	struct ipc_bytes seal, pre;
	const uint8_t *fields;
	struct ipc_seal_verify m;
	struct ipc_hash hash;
	struct err err;
	bool grant;
	size_t n;

	if (ipc_decode(f, &m, NULL) == -1 || m.seal_len > m.seal_preimage.n)
		return -1;
	seal = ipc_bytes(m.seal_preimage.p, m.seal_len);
	pre = ipc_bytes(
	    m.seal_preimage.p + m.seal_len, m.seal_preimage.n - m.seal_len);
	grant = grantreq_is(pre.p, pre.n);
	memset(&answer, 0, sizeof(answer));
	if (policies_who(port, m.token, f->type, NULL, actor, &err) == -1 ||
	    (grant ? grants_check(port->v->keys, seal, pre, &fields, &n, &err)
		   : seal_check(port->v->keys, seal.p, seal.n, pre.p, pre.n,
			 &fields, &n, &hash, &err)) == -1) {
		(void)ipc_refuse(peer, m.request, err.failure, err.text, 0);
		return 0;
	}
	says(fields, n, grant, &answer);
	(void)ipc_answer(peer, m.request, IPC_SEAL_SAYS, &answer);
	return 0;
}

int
policies_message(struct port *port, struct ipc_peer *peer, struct ipc_frame *f)
{
	return f->type == IPC_SEAL_VERIFY ? verify(port, peer, f)
					  : policy(port, peer, f);
}
