/* See parked.h. */
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "ids.h"
#include "jsonw.h"
#include "log.h"
#include "parked.h"

enum { FORMAT = 1 };

struct parked {
	TAILQ_ENTRY(parked) link;
	struct gateway *gw;
	struct ipc_id id;
	struct parked_binding binding;
	struct ipc_hash principal;
	struct ipc_hash credential; /* of the last request: a client may come
				     * back with a fresh token */
	uint64_t expires_ms;        /* Unix time */
	uint64_t until_ms; /* end of that credential, since boot; 0: none */
	uint32_t round;    /* of the last requestState given out */
	bool waits;        /* the last requestState was not used yet */
	struct event *timer;
	const struct parked_owner *owner;
	void *arg;
};

struct parked_set {
	struct event_base *base;
	TAILQ_HEAD(, parked) all;
	unsigned n;
};

struct parked_set *
parked_set_new(struct event_base *base)
{
	struct parked_set *s = calloc(1, sizeof(*s));

	if (s != NULL) {
		s->base = base;
		TAILQ_INIT(&s->all);
	}
	return s;
}

void
parked_set_free(struct parked_set *s)
{
	const struct parked_owner *owner;
	struct parked *p;
	void *arg;

	if (s == NULL)
		return;
	while ((p = TAILQ_FIRST(&s->all)) != NULL) {
		owner = p->owner;
		arg = p->arg;
		parked_free(p);
		if (owner->dropped != NULL)
			owner->dropped(arg);
	}
	free(s);
}

static void
put_be(uint8_t *p, uint64_t v, int n)
{
	while (n-- > 0) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

/* Digests the parts of a request. Each part is digested by itself, so no bytes
 * can be moved from one part into another. mac() derives a key of its own, so
 * code that signs session tokens or cursors with the session key can't be made
 * to sign a requestState. */
static void
bind_to(const struct exchange *ex, struct parked_binding *out)
{
	struct ipc_hash part[6];
	uint8_t which[2] = {(uint8_t)ex->gw->listener, (uint8_t)ex->m.method};

	sha256(which, sizeof(which), &part[0]);
	sha256(ex->who.principal, strlen(ex->who.principal), &part[1]);
	sha256(ex->m.tool, strlen(ex->m.tool), &part[2]);
	sha256(ex->m.uri.n > 0 ? (const void *)ex->m.uri.p : "", ex->m.uri.n,
	    &part[3]);
	sha256(ex->m.arguments.n > 0 ? (const void *)ex->m.arguments.p : "",
	    ex->m.arguments.n, &part[4]);
	sha256(
	    ex->credential.endpoint, strlen(ex->credential.endpoint), &part[5]);
	sha256(part, sizeof(part), &out->of);
}

/* Makes the MAC over `plain` and the binding. requestState has `plain` and the
 * MAC, but not the binding. */
static void
mac(const struct gateway *gw, const uint8_t plain[PARKED_PLAIN_LEN],
    const struct parked_binding *binding, struct ipc_hash *out)
{
	uint8_t key[KEY_LEN], b[PARKED_PLAIN_LEN + 32];

	hkdf_sha256(gw->session_key, "mcp-request-state", key);
	memcpy(b, plain, PARKED_PLAIN_LEN);
	memcpy(b + PARKED_PLAIN_LEN, binding->of.b, 32);
	hmac_sha256(key, b, sizeof(b), out);
	explicit_bzero(key, sizeof(key));
}

/* Returns the time that the client's credential has left. When it is over the
 * entry ends, as by parked_end(): admind does not remember every token, so it
 * may not tell. */
static uint64_t
left_ms(const struct parked *p)
{
	uint64_t now = now_boot_ms();

	if (p->until_ms == 0)
		return UINT64_MAX;
	return p->until_ms > now ? p->until_ms - now : 0;
}

int
parked_state(
    struct parked *p, uint64_t expires_ms, char text[PARKED_TEXT_LEN + 1])
{
	uint64_t now = now_us() / 1000;
	uint64_t ms = expires_ms > now ? expires_ms - now : 0;
	uint64_t left = left_ms(p);
	struct timeval tv;
	uint8_t b[PARKED_LEN];
	struct ipc_hash m;

	if (ms > left)
		ms = left;
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	if (evtimer_add(p->timer, &tv) != 0)
		return -1;
	p->expires_ms = expires_ms;
	p->round++;
	p->waits = true;
	b[0] = FORMAT;
	memcpy(b + 1, p->id.b, 16);
	put_be(b + 17, p->expires_ms, 8);
	put_be(b + 25, p->round, 4);
	mac(p->gw, b, &p->binding, &m);
	memcpy(b + PARKED_PLAIN_LEN, m.b, 32);
	b64url_encode(b, sizeof(b), text);
	return 0;
}

void
parked_free(struct parked *p)
{
	if (p == NULL)
		return;
	TAILQ_REMOVE(&p->gw->parked->all, p, link);
	p->gw->parked->n--;
	event_free(p->timer);
	free(p);
}

static void
on_expired(evutil_socket_t fd, short what, void *arg)
{
	struct parked *p = arg;
	const struct parked_owner *owner = p->owner;
	void *its = p->arg;

	(void)fd;
	(void)what;
	parked_free(p);
	owner->expired(its);
}

/* Ends only entries whose client is away. Between resume and the next
 * parked_state an entry has an open request, which ends as any other request
 * does. */
void
parked_end(struct gateway *gw, const struct ipc_hash *credential,
    struct ipc_bytes principal)
{
	const struct parked_owner *owner;
	const struct ipc_hash *its_own;
	struct ipc_hash h = *credential;
	struct parked *p;
	void *its;

	if (principal.n > 0)
		sha256(principal.p, principal.n, &h);
	for (;;) {
		TAILQ_FOREACH(p, &gw->parked->all, link) {
			its_own =
			    principal.n > 0 ? &p->principal : &p->credential;
			if (p->waits && memcmp(its_own, &h, sizeof(h)) == 0)
				break;
		}
		if (p == NULL)
			return;
		owner = p->owner;
		its = p->arg;
		parked_free(p);
		owner->expired(its);
	}
}

static unsigned
of_principal(const struct parked_set *s, const struct ipc_hash *principal)
{
	const struct parked *p;
	unsigned n = 0;

	TAILQ_FOREACH(p, &s->all, link)
		if (memcmp(&p->principal, principal, sizeof(*principal)) == 0)
			n++;
	return n;
}

struct parked *
parked_new(struct gateway *gw, const struct exchange *ex,
    const struct parked_owner *owner, void *arg, struct refusal *no)
{
	struct parked_set *s = gw->parked;
	struct ipc_hash principal;
	struct parked *p;

	sha256(ex->who.principal, strlen(ex->who.principal), &principal);
	if (!gw->has_key) {
		refusal_set(no, FAILURE_VAULT_UNAVAILABLE, RETRY_MS,
		    "Nothing can be asked until the vault is back.");
		return NULL;
	}
	if (s->n >= PARKED_MAX ||
	    of_principal(s, &principal) >= PARKED_PRINCIPAL_MAX) {
		refusal_set(no, FAILURE_BUSY, RETRY_MS,
		    "Too many calls wait for an answer.");
		return NULL;
	}
	if ((p = calloc(1, sizeof(*p))) == NULL ||
	    (p->timer = evtimer_new(s->base, on_expired, p)) == NULL) {
		free(p);
		refusal_set(no, FAILURE_BUSY, RETRY_MS, "Out of memory.");
		return NULL;
	}
	p->gw = gw;
	id_random(&p->id);
	bind_to(ex, &p->binding);
	p->principal = principal;
	p->credential = ex->credential.hash;
	p->until_ms = ex->who.until_ms;
	p->owner = owner;
	p->arg = arg;
	TAILQ_INSERT_TAIL(&s->all, p, link);
	s->n++;
	return p;
}

/* Returns the entry that ex's requestState names, or NULL. The MAC is checked
 * first, so nothing of a forged text is read, and the answer tells nothing
 * about the entries. */
static struct parked *
find(const struct exchange *ex)
{
	uint8_t b[PARKED_LEN + 3];
	char text[PARKED_TEXT_LEN + 1];
	struct parked_binding binding;
	struct ipc_hash m;
	struct parked *p;
	uint32_t round;

	if (!ex->gw->has_key ||
	    mcp_json_text(ex->m.request_state, text, sizeof(text)) != 0 ||
	    strlen(text) != PARKED_TEXT_LEN ||
	    b64url_decode(text, PARKED_TEXT_LEN, b) != PARKED_LEN)
		return NULL;
	bind_to(ex, &binding);
	mac(ex->gw, b, &binding, &m);
	if (!ct_equal(m.b, b + PARKED_PLAIN_LEN, 32) || b[0] != FORMAT ||
	    get_be64(b + 17) <= now_us() / 1000)
		return NULL;
	round = get_be32(b + 25);
	TAILQ_FOREACH(p, &ex->gw->parked->all, link)
		if (memcmp(p->id.b, b + 1, 16) == 0)
			return p->waits && p->round == round ? p : NULL;
	return NULL;
}

int
parked_resume(struct exchange *ex, struct refusal *no)
{
	struct parked *p = find(ex);

	if (p == NULL) {
		refusal_set(no, FAILURE_BAD_STATE, 0,
		    "requestState is not one that this request may go on "
		    "with: it was changed, used, or expired, or belongs to "
		    "other parameters.");
		return -1;
	}
	p->waits = false;
	p->credential = ex->credential.hash;
	p->until_ms = ex->who.until_ms;
	(void)evtimer_del(p->timer);
	p->owner->resume(p->arg, ex);
	return 0;
}

void
parked_answer(struct parked *p, struct exchange *ex, uint64_t expires_ms,
    struct ipc_bytes requests)
{
	struct answer_to to = exchange_to(ex);
	char text[PARKED_TEXT_LEN + 1];
	struct buf b;

	buf_init(&b, ANSWER_MAX);
	if (parked_state(p, expires_ms, text) == 0) {
		answer_input_required(&b, &to, requests, text);
	} else {
		/* Without memory for a timer the answer is "busy", and the
		 * entry ends. */
		b.failed = true;
		event_active(p->timer, EV_TIMEOUT, 0);
	}
	exchange_answer(ex, 200, &b);
}
