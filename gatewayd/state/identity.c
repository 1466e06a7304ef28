/*
 * Finds the identity of a request by AUTHENTICATE. The answer is remembered for
 * as long as admind allows, at most 30 s. It is kept under the digest of the
 * credential and its header (credential_hash.h), so that a dump of this process
 * shows only the tokens of clients that are being served at that moment, and a
 * token that is good in one header is not remembered as good in the other.
 *
 * A remembered identity opens only lists and sessions: a call is authorised by
 * admind each time, with the credential itself. Everything is forgotten when
 * admind says that the catalogue changed, and when admind's connection ends. So
 * a revocation holds from then on.
 *
 * A token that is bound to its request is never remembered: a second request
 * with it must reach admind. The answer brings a ticket, which takes its place
 * for the rest of the request (decision 0098). An answer to a ticket is
 * remembered like any other.
 */
#include <stdlib.h>
#include <string.h>

#include "credential_hash.h"
#include "gateway.h"
#include "identity.h"
#include "ids.h"
#include "refusal.h"

enum { SLOTS = 256, CACHE_MS_MAX = 30 * 1000 };
/* A hundred years: no sum with it is too large. */
#define LEFT_MS_MAX (UINT64_C(100) * 365 * 24 * 3600 * 1000)

struct identity_cache {
	struct {
		struct ipc_hash credential;
		char endpoint[ENDPOINT_NAME_MAX + 1];
		uint64_t until; /* boot ms; 0: empty */
		struct identity who;
	} slot[SLOTS];       /* direct mapped: a collision is a miss */
	uint64_t generation; /* answers to older questions aren't kept */
	size_t asked;        /* bytes of credentials in open questions */
};

struct question {
	struct gateway *gw;
	struct ipc_hash credential;
	char endpoint[ENDPOINT_NAME_MAX + 1];
	size_t bytes;
	uint64_t generation;
	identity_cb *cb;
	void *arg;
};

struct identity_cache *
identity_cache_new(void)
{
	return calloc(1, sizeof(struct identity_cache));
}

void
identity_cache_free(struct identity_cache *c)
{
	free(c);
}

void
identity_cache_drop(struct identity_cache *c)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		c->slot[i].until = 0;
	c->generation++;
}

/* An answer that is on its way may bring the set once more. Then its client's
 * next list is refused, and it is forgotten in turn. */
void
identity_cache_forget(struct identity_cache *c, const char *set)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (strcmp(c->slot[i].who.permission_set, set) == 0)
			c->slot[i].until = 0;
}

/* Most clients of the local listener send no credential, so its digest is made
 * once. */
void
identity_credential(struct credential *c, char *text, enum credential_via via)
{
	static struct ipc_hash none;
	static bool any;

	c->text = text;
	c->via = (uint8_t)via;
	if (text[0] != '\0') {
		credential_hash(c->via, text, strlen(text), &c->hash);
		return;
	}
	if (!any)
		credential_hash(VIA_AUTHORIZATION, "", 0, &none);
	any = true;
	c->hash = none;
}

int
identity_ticket(struct credential *c, const char *ticket)
{
	size_t n = strlen(c->text), len = strlen(ticket);

	if (len > n)
		return -1;
	explicit_bzero(c->text, n);
	memcpy(c->text, ticket, len);
	identity_credential(c, c->text, VIA_TICKET);
	return 0;
}

/* Returns the slot of a credential at an endpoint. */
static unsigned
slot_of(const struct ipc_hash *credential, const char *endpoint)
{
	unsigned i = credential->b[0];

	while (*endpoint != '\0')
		i = i * 31 + (uint8_t)*endpoint++;
	return i % SLOTS;
}

static int
copy(struct ipc_bytes s, size_t max, char *out)
{
	if (s.n > max)
		return -1;
	if (s.n > 0)
		memcpy(out, s.p, s.n);
	out[s.n] = '\0';
	return 0;
}

static void
answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct question *q = arg;
	struct identity_cache *c = q->gw->identities;
	struct ipc_identity m;
	struct identity who = {0};
	struct refusal no;
	unsigned i;

	c->asked -= q->bytes;
	if (f == NULL || f->type != IPC_IDENTITY ||
	    ipc_decode(f, &m, NULL) < 0) {
		refusal_from(&no, f, gone, "admind");
		q->cb(q->arg, NULL, &no);
	} else if (copy(m.principal, PRINCIPAL_MAX, who.principal) < 0 ||
	    copy(m.permission_set, PRINCIPAL_MAX, who.permission_set) < 0 ||
	    copy(m.ticket, TICKET_MAX, who.ticket) < 0) {
		refusal_set(&no, FAILURE_INTERNAL, 0,
		    "The principal's name is too long.");
		q->cb(q->arg, NULL, &no);
	} else {
		if (m.left_ms > 0)
			who.until_ms = now_boot_ms() +
			    (m.left_ms < LEFT_MS_MAX ? m.left_ms : LEFT_MS_MAX);
		who.unread = m.unread;
		gw_access_scopes(m.read_scope, who.read_scope);
		gw_access_scopes(m.call_scope, who.call_scope);
		i = slot_of(&q->credential, q->endpoint);
		if (q->generation == c->generation && m.cache_ms > 0 &&
		    m.ticket.n == 0) {
			c->slot[i].credential = q->credential;
			memcpy(c->slot[i].endpoint, q->endpoint,
			    sizeof(q->endpoint));
			c->slot[i].who = who;
			c->slot[i].until = now_boot_ms() +
			    (m.cache_ms < CACHE_MS_MAX ? m.cache_ms
						       : CACHE_MS_MAX);
		}
		q->cb(q->arg, &who, NULL);
	}
	free(q);
}

/* Asks admind about a credential of which nothing is remembered. */
static void
ask_admind(struct gateway *gw, const struct credential *credential,
    const struct identity_request *request, identity_cb *cb, void *arg)
{
	struct ipc_authenticate m = {.credential = ipc_str(credential->text),
	    .via = credential->via,
	    .endpoint = ipc_str(credential->endpoint)};
	struct ipc_peer *admind = ipc_client_peer(gw->admind);
	struct identity_cache *c = gw->identities;
	struct question *q;
	struct refusal no;
	size_t bytes = m.credential.n;
	uint64_t id;

	if (request != NULL) {
		m.method = ipc_str(request->method);
		m.target = request->target;
		m.body = request->body;
		bytes += m.target.n;
	}
	if (admind != NULL && bytes > CREDENTIALS_ASKED_MAX - c->asked) {
		refusal_set(&no, FAILURE_BUSY, RETRY_MS,
		    "Too many credentials are being checked at once.");
		cb(arg, NULL, &no);
		return;
	}
	q = admind != NULL ? calloc(1, sizeof(*q)) : NULL;
	if (q != NULL) {
		q->gw = gw;
		q->credential = credential->hash;
		memcpy(q->endpoint, credential->endpoint, sizeof(q->endpoint));
		q->bytes = bytes;
		q->generation = c->generation;
		q->cb = cb;
		q->arg = arg;
		c->asked += q->bytes;
		if (ipc_request(admind, IPC_AUTHENTICATE, &m, ADMIND_ASK_MS,
			answered, q, &id) == 0)
			return;
		c->asked -= q->bytes;
		free(q);
	}
	refusal_away(&no, gw, false);
	cb(arg, NULL, &no);
}

bool
identity_remembered(
    const struct gateway *gw, const struct credential *credential)
{
	const struct identity_cache *c = gw->identities;
	const struct ipc_hash *h = &credential->hash;
	unsigned i = slot_of(h, credential->endpoint);

	return c->slot[i].until > now_boot_ms() &&
	    strcmp(c->slot[i].endpoint, credential->endpoint) == 0 &&
	    ct_equal(c->slot[i].credential.b, h->b, sizeof(h->b));
}

/* Finds the identity. On a hit cb gets a pointer into the cache, not a copy.
 * The identity can't change while cb runs: only an answer from admind writes
 * it, and answers are taken by the loop. */
void
identity_ask(struct gateway *gw, const struct credential *credential,
    const struct identity_request *request, identity_cb *cb, void *arg)
{
	struct identity_cache *c = gw->identities;

	if (identity_remembered(gw, credential))
		cb(arg,
		    &c->slot[slot_of(&credential->hash, credential->endpoint)]
			.who,
		    NULL);
	else
		ask_admind(gw, credential, request, cb, arg);
}
