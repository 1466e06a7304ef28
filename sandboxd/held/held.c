/* See held.h. */
#include <stdlib.h>
#include <string.h>

#include "depot_conf.h"
#include "held_internal.h"
#include "ids.h"
#include "netgrant.h"
#include "tlv.h"

int
held_init(struct held_set *s, size_t max, const struct ipc_id *epoch)
{
	memset(s, 0, sizeof(*s));
	s->max = max;
	s->epoch = *epoch;
	return table_init(&s->by_id, max);
}

void
held_defaults(struct held_set *s, const uint64_t limit[LIMIT_COUNT])
{
	memcpy(s->limit, limit, sizeof(s->limit));
}

void
held_free(struct held *h)
{
	if (h == NULL)
		return;
	record_free(h->record);
	buf_free(&h->plain);
	buf_free(&h->secrets);
	buf_free(&h->modules);
	buf_free(&h->requires);
	buf_free(&h->grants);
	free(h);
}

static void
free_node(struct table_node *n, void *arg)
{
	struct held_set *s = arg;

	table_del(&s->by_id, n);
	held_free(TABLE_OBJECT(struct held, node, n));
}

void
held_clear(struct held_set *s)
{
	table_each(&s->by_id, free_node, s);
	table_free(&s->by_id);
	explicit_bzero(s->key, sizeof(s->key));
	s->have_key = false;
}

void
held_key(struct held_set *s, const uint8_t key[KEY_LEN])
{
	memcpy(s->key, key, KEY_LEN);
	s->have_key = true;
	s->keys++;
	replay_reset(&s->used);
}

/*
 * Returns the context's number, which is larger than those of all contexts that
 * were sealed before. The vault numbers contexts from the start under each new
 * key, so the high bits hold the number of keys that came so far.
 */
static uint64_t
order_of(const struct held_set *s, uint64_t number)
{
	return s->keys << 48 | (number & ((1ULL << 48) - 1));
}

/*
 * Opens a sealed context. The kind is not sent in clear, but is part of the
 * data that the vault authenticated. So the kind is found by trying each of
 * `kinds`, and the process that carried the context here can't claim another
 * kind. *order is set from the context's number.
 */
static int
open_sealed(struct held_set *s, struct context_binding *b, const uint8_t *kinds,
    size_t nkinds, struct ipc_bytes sealed, struct buf *plain, uint64_t *order,
    struct err *e)
{
	const uint8_t *nonce, *ct;
	uint64_t number;
	size_t ctlen;

	if (context_split(sealed.p, sealed.n, &nonce, &ct, &ctlen, e) != 0)
		return -1;
	number = get_be64(nonce + 4);
	if (!replay_fresh(&s->used, number))
		return err_set(
		    e, FAILURE_CONFLICT, "this context was handed in before");
	for (size_t i = 0; i < nkinds; i++) {
		b->kind = kinds[i];
		buf_clear(plain);
		if (context_open(s->key, b, sealed.p, sealed.n, plain, NULL) ==
		    0) {
			replay_mark(&s->used, number);
			*order = order_of(s, number);
			return 0;
		}
	}
	/* After a restart of the vault, contexts of the old key still arrive
	 * for a moment. This failure makes the caller ask again. */
	return err_set(e, FAILURE_VAULT_UNAVAILABLE,
	    "the context was not sealed under this sandbox's present key");
}

/* Opens the context of a call. */
static int
open_call(
    struct held_set *s, struct held *h, struct ipc_bytes sealed, struct err *e)
{
	static const uint8_t kinds[] = {CONTEXT_TOOL, CONTEXT_INSPECT,
	    CONTEXT_TEST, CONTEXT_MODULE, CONTEXT_KEYS, CONTEXT_TELEMETRY,
	    CONTEXT_NOTIFY};
	struct context_binding b = {
	    .epoch = s->epoch,
	    .execution = h->id,
	    .listener = h->listener,
	};

	if (open_sealed(s, &b, kinds, sizeof(kinds), sealed, &h->plain,
		&h->granted_by, e) != 0)
		return -1;
	h->kind = b.kind;
	return 0;
}

int
held_add(struct held_set *s, const struct ipc_id *execution, uint8_t listener,
    struct ipc_bytes sealed, uint64_t now_ms, struct err *e)
{
	struct held *h;

	if (!s->have_key)
		return err_set(e, FAILURE_VAULT_UNAVAILABLE,
		    "the sandbox has no context key yet");
	if (s->by_id.count >= s->max)
		return err_set(e, FAILURE_BUSY, "too many calls wait to run");
	if (table_find(&s->by_id, execution, sizeof(struct ipc_id)) != NULL)
		return err_set(
		    e, FAILURE_CONFLICT, "this call is held already");
	if ((h = calloc(1, sizeof(*h))) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
	h->id = *execution;
	h->listener = listener;
	buf_init(&h->plain, IPC_BLOB_MAX);
	buf_init(&h->secrets, IPC_BLOB_MAX);
	buf_init(&h->modules, MODULES_PER_CALL_MAX * sizeof(struct ipc_hash));
	buf_init(&h->requires, NET_REQUIRES_MAX * (NETGRANT_LINE_MAX + 1));
	buf_init(&h->grants, NET_GRANTS_MAX * (NETGRANT_LINE_MAX + 1));
	if (listener < LISTENER_LOCAL || listener > LISTENER_ADMIND) {
		(void)err_set(e, FAILURE_INTERNAL, "no such listener");
		goto bad;
	}
	if (open_call(s, h, sealed, e) != 0 ||
	    held_read(h, now_ms, s->limit, e) != 0)
		goto bad;
	if (h->kind == CONTEXT_MODULE) {
		if (s->installer == NULL) {
			(void)err_set(e, FAILURE_MISSING_GRANT,
			    "this sandbox installs no modules");
			goto bad;
		}
		if (depot_fill(s->installer, h, e) != 0)
			goto bad;
	}
	table_add(&s->by_id, &h->node, &h->id, sizeof(h->id));
	return 0;
bad:
	held_free(h);
	return -1;
}

/* --- Grants that changed. ------------------------------------------------- */

void
held_regrant_free(struct regrant *r)
{
	buf_free(&r->grants);
}

static int
read_grants(struct buf *plain, struct regrant *r, struct err *e)
{
	struct tlv_reader reader;
	struct ipc_id server = {0};
	struct tlv t;
	int rc, bad;

	tlv_open(&reader, plain->p, plain->len);
	while ((rc = tlv_next(&reader, &t)) == 1) {
		if (t.tag == CTX_GRANT)
			bad = held_read_host(&r->grants, &t, e);
		else if (t.tag == CTX_SERVER_ID)
			bad = held_read_server(&server, &t, e);
		else
			bad = err_set(e, FAILURE_INTERNAL,
			    "the grants have a field %u", t.tag);
		if (bad != 0)
			return -1;
	}
	if (rc != 0)
		return err_set(e, FAILURE_INTERNAL, "the grants are malformed");
	if (memcmp(&server, &r->server, sizeof(server)) != 0)
		return err_set(
		    e, FAILURE_FORBIDDEN, "the grants are another server's");
	return 0;
}

/*
 * Opens new grants. They come from admind and were sealed by the vault, which
 * checked the seal of each grant. A list of grants opens once, as every context
 * does, and an older list has no effect after a newer one (held_take_grants()).
 * So a process gains nothing if it holds back a list with a host and brings the
 * list after the host was withdrawn. A taken-over admind can only fail to send
 * grants.
 */
int
held_regrant(struct held_set *s, const struct ipc_id *server,
    struct ipc_bytes sealed, struct regrant *r, struct err *e)
{
	static const uint8_t kinds[] = {CONTEXT_GRANTS};
	struct context_binding b = {
	    .epoch = s->epoch,
	    .execution = *server,
	    .listener = LISTENER_ADMIND,
	};
	struct buf plain;
	int rc;

	memset(r, 0, sizeof(*r));
	r->server = *server;
	buf_init(&r->grants, NET_GRANTS_MAX * (NETGRANT_LINE_MAX + 1));
	if (!s->have_key)
		return err_set(e, FAILURE_VAULT_UNAVAILABLE,
		    "the sandbox has no context key yet");
	buf_init(&plain, IPC_BLOB_MAX);
	rc = open_sealed(
	    s, &b, kinds, sizeof(kinds), sealed, &plain, &r->number, e);
	if (rc == 0)
		rc = read_grants(&plain, r, e);
	buf_free(&plain);
	return rc;
}

bool
held_take_grants(struct held *h, const struct regrant *r)
{
	if (!held_connects(h) || !h->has_server ||
	    memcmp(&h->server, &r->server, sizeof(r->server)) != 0 ||
	    h->granted_by >= r->number)
		return false;
	h->granted_by = r->number;
	buf_clear(&h->grants);
	buf_put(&h->grants, r->grants.p, r->grants.len);
	if (h->grants.failed)
		buf_clear(&h->grants);
	return true;
}

static void
grant_node(struct table_node *n, void *arg)
{
	(void)held_take_grants(TABLE_OBJECT(struct held, node, n), arg);
}

void
held_grant_all(struct held_set *s, const struct regrant *r)
{
	struct regrant copy = *r; /* borrows the list */

	table_each(&s->by_id, grant_node, &copy);
}

unsigned
held_form(const struct held *h)
{
	return h->method == CALL_TOOL && h->output_schema.n > 0
	    ? (unsigned)CALL_STRUCTURED
	    : (unsigned)h->method;
}

struct held *
held_find(const struct held_set *s, const struct ipc_id *id)
{
	return TABLE_OBJECT(struct held, node,
	    table_find(&s->by_id, id, sizeof(struct ipc_id)));
}

struct held *
held_remove(struct held_set *s, const struct ipc_id *id, uint8_t listener)
{
	struct table_node *n = table_find(&s->by_id, id, sizeof(*id));

	if (n == NULL ||
	    (listener != 0 &&
		TABLE_OBJECT(struct held, node, n)->listener != listener))
		return NULL;
	table_del(&s->by_id, n);
	return TABLE_OBJECT(struct held, node, n);
}

/* Keeps the arguments. They are as trustworthy as the intent: admind made both,
 * and the vault sealed the intent unread. */
int
held_arguments(struct held_set *s, const struct ipc_id *execution,
    struct ipc_bytes text, struct err *e)
{
	struct held *h = held_find(s, execution);

	if (h == NULL || text.n == 0)
		return 0;
	if (text.n > ARGUMENTS_KEPT)
		(void)err_set(e, FAILURE_INTERNAL,
		    "more is to be kept of a call's arguments than may be");
	else if (record_arguments(h->record, text) == -1)
		(void)err_set(e, FAILURE_BUSY, "no memory");
	else
		return 0;
	held_free(held_remove(s, execution, 0));
	return -1;
}

/*
 * Takes a context for its RUN. An id is random and told to one gateway. A peer
 * that presents the id at another listener, or with other arguments than the
 * authorised ones, is not that gateway or not honest. The context is used up in
 * each case, so an attacker who guesses has one attempt.
 */
enum held_verdict
held_take(struct held_set *s, const struct ipc_id *id, uint8_t listener,
    struct ipc_bytes arguments, struct held **out)
{
	struct ipc_hash digest;
	struct held *h;

	if ((h = held_remove(s, id, 0)) == NULL)
		return HELD_UNKNOWN;
	*out = h;
	if (h->listener != listener)
		return HELD_WRONG_LISTENER;
	sha256(arguments.p, arguments.n, &digest);
	if (!ct_equal(&digest, &h->args, sizeof(digest)))
		return HELD_WRONG_DIGEST;
	return HELD_OK;
}

struct expiry {
	uint64_t now_ms;
	struct held *found;
};

static void
find_expired(struct table_node *n, void *arg)
{
	struct expiry *x = arg;

	if (x->found == NULL &&
	    TABLE_OBJECT(struct held, node, n)->expires_ms <= x->now_ms)
		x->found = TABLE_OBJECT(struct held, node, n);
}

struct held *
held_expired(struct held_set *s, uint64_t now_ms)
{
	struct expiry x = {.now_ms = now_ms};

	table_each(&s->by_id, find_expired, &x);
	if (x.found != NULL)
		table_del(&s->by_id, &x.found->node);
	return x.found;
}
