#include "policy.h"

#include <string.h>

#include "grantreq.h"
#include "serials.h"
#include "tlv.h"
#include "version.h"

#define DAY_US (UINT64_C(24) * 60 * 60 * 1000 * 1000)

void
policy_default(struct policy *p)
{
	memset(p, 0, sizeof(*p));
	for (int q = 0; q < REVIEW_QUEUES; q++)
		p->mode[q] = REVIEW_REQUIRE;
}

static int
read_body(const uint8_t *body, size_t n, struct policy *p)
{
	struct tlv f;

	memset(p, 0, sizeof(*p));
	if (tlv_find(body, n, POLICY_SERIAL, &f) != 1 ||
	    tlv_u64(&f, &p->serial) == -1 || p->serial == 0 ||
	    tlv_find(body, n, POLICY_UNTIL_US, &f) != 1 ||
	    tlv_u64(&f, &p->until_us) == -1 ||
	    tlv_find(body, n, POLICY_MODES, &f) != 1 || f.n != REVIEW_QUEUES)
		return -1;
	for (size_t q = 0; q < REVIEW_QUEUES; q++) {
		if (review_mode_name(f.p[q]) == NULL)
			return -1;
		p->mode[q] = f.p[q];
	}
	if (tlv_find(body, n, POLICY_ACTOR, &f) != 1 || f.n > POLICY_ACTOR_MAX)
		return -1;
	if (f.n > 0)
		memcpy(p->actor, f.p, f.n);
	return 0;
}

/*
 * admind may bring nothing, an older policy, or a policy of its own making.
 * Only a policy of ours that is not older replaces the present one. A policy
 * with an equal serial is the same policy, perhaps sealed again under a newer
 * key.
 */
void
policy_take(const struct keys *k, struct ipc_bytes seal, struct policy *newest)
{
	const uint8_t *body;
	struct policy p;
	size_t n;

	if (seal.n == 0 || seal.n > POLICY_SEAL_MAX ||
	    macs_check(k, MACS_POLICY, seal.p, seal.n, &body, &n, NULL) == -1 ||
	    read_body(body, n, &p) == -1 || p.serial < newest->serial)
		return;
	sha256(seal.p, seal.n, &p.seal);
	*newest = p;
}

int
policy_make(const struct keys *k, const struct policy *newest, uint64_t stored,
    const uint8_t mode[REVIEW_QUEUES], uint32_t days, struct ipc_bytes actor,
    uint64_t now_us, struct buf *out, struct policy *made, struct err *err)
{
	struct policy p;
	struct buf w;

	policy_default(&p);
	p.serial = serials_next(newest->serial, stored, now_us);
	for (int q = 0; q < REVIEW_QUEUES; q++) {
		if (review_mode_name(mode[q]) == NULL)
			return err_set(err, FAILURE_INVALID_PARAMS,
			    "a mode is require, second or automatic");
		p.mode[q] = mode[q];
		if (mode[q] == REVIEW_AUTOMATIC)
			p.until_us = now_us + days * DAY_US;
	}
	if (days < 1 || days > REVIEW_DAYS_MAX)
		return err_set(err, FAILURE_INVALID_PARAMS,
		    "an automatic mode holds for 1 to %d days",
		    REVIEW_DAYS_MAX);
	if (actor.n == 0 || actor.n > POLICY_ACTOR_MAX)
		return err_set(
		    err, FAILURE_INVALID_PARAMS, "a policy has an author");
	memcpy(p.actor, actor.p, actor.n);
	buf_init(&w, POLICY_SEAL_MAX);
	macs_open(k, &w);
	tlv_put_u64(&w, POLICY_SERIAL, p.serial);
	tlv_put(&w, POLICY_MODES, p.mode, sizeof(p.mode));
	tlv_put(&w, POLICY_ACTOR, actor.p, actor.n);
	tlv_put_u64(&w, POLICY_UNTIL_US, p.until_us);
	if (macs_close(k, MACS_POLICY, &w, err) == -1) {
		buf_free(&w);
		return -1;
	}
	sha256(w.p, w.len, &p.seal);
	buf_free(out);
	*out = w;
	*made = p;
	return 0;
}

/* The end is compared with the wall clock, which admind can't set. */
enum review_mode
policy_mode(const struct policy *p, enum review_queue queue, uint64_t now)
{
	if (p->mode[queue] == REVIEW_AUTOMATIC && now >= p->until_us)
		return REVIEW_REQUIRE;
	return (enum review_mode)p->mode[queue];
}

/*
 * Under an automatic policy a hostile admind could have everything approved
 * that this function allows. So it allows nothing that reaches things which are
 * kept from admind: secrets (a tool that returns a secret would give it to
 * admind) and the local network. It does not allow a tool of another server
 * either, because no person here wrote its description (decision 0050). A
 * version's hosts need grants of their own.
 */
int
policy_covers(
    enum review_queue queue, struct ipc_bytes preimage, struct err *err)
{
	const uint8_t *fields;
	struct grantreq g;
	struct tlv f;
	size_t n;

	if (queue == REVIEW_TOOL) {
		if (version_check(preimage.p, preimage.n, &fields, &n, err) ==
		    -1)
			return -1;
		if (tlv_find(fields, n, VERSION_SECRET, &f) != 0)
			return err_set(err, FAILURE_FORBIDDEN,
			    "it names secrets: a person must approve it");
		if (tlv_find(fields, n, VERSION_KIND, &f) != 1 ||
		    (f.n == sizeof("mcp") - 1 && memcmp(f.p, "mcp", f.n) == 0))
			return err_set(err, FAILURE_FORBIDDEN,
			    "it is another server's tool: a person must "
			    "approve it");
		return 0;
	}
	if (grantreq_read(preimage.p, preimage.n, &g, err) == -1)
		return -1;
	if (queue == REVIEW_NETWORK &&
	    (grantreq_host(g.host) != GRANT_HOST_NAME ||
		!ipc_streq(g.proto, "tcp")))
		return err_set(err, FAILURE_FORBIDDEN,
		    "only single public names are granted automatically, for "
		    "TCP: a person must approve this host");
	return 0;
}
