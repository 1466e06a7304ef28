/* See held.h. */
#include <stdlib.h>
#include <string.h>

#include "held.h"
#include "ids.h"
#include "tlv.h"

/* Tags of the TLV in SECRETS (ipc_table.h). */
enum { SECRET_NAME = 1, SECRET_VALUE = 2 };

int
held_init(struct held_set *s, size_t max, const struct ipc_id *epoch)
{
	memset(s, 0, sizeof(*s));
	s->max = max;
	s->epoch = *epoch;
	return table_init(&s->by_id, max);
}

void
held_free(struct held *h)
{
	if (h == NULL)
		return;
	record_free(h->record);
	buf_free(&h->plain);
	buf_free(&h->secrets);
	free(h);
}

static void
free_node(struct table_node *n, void *arg)
{
	struct held_set *s = arg;

	table_del(&s->by_id, n);
	held_free((struct held *)n);
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
	replay_reset(&s->used);
}

/*
 * Opens the sealed form. The kind isn't said in clear: it is part of what the
 * vault authenticated, so it is found by trying the three, and can't be
 * claimed by whoever carried the context here.
 */
static int
open_sealed(
    struct held_set *s, struct held *h, struct ipc_bytes sealed, struct err *e)
{
	static const uint8_t kinds[] = {
	    CONTEXT_TOOL, CONTEXT_INSPECT, CONTEXT_TEST};
	struct context_binding b = {
	    .epoch = s->epoch,
	    .execution = h->node.id,
	    .listener = h->listener,
	};
	const uint8_t *nonce, *ct;
	uint64_t number;
	size_t ctlen;

	if (context_split(sealed.p, sealed.n, &nonce, &ct, &ctlen, e) != 0)
		return -1;
	number = get_be64(nonce + 4);
	if (!replay_fresh(&s->used, number))
		return err_set(
		    e, FAILURE_CONFLICT, "this context was handed in before");
	for (size_t i = 0; i < sizeof(kinds); i++) {
		b.kind = kinds[i];
		buf_clear(&h->plain);
		if (context_open(
			s->key, &b, sealed.p, sealed.n, &h->plain, NULL) == 0) {
			h->kind = kinds[i];
			replay_mark(&s->used, number);
			return 0;
		}
	}
	/* After a restart of the vault contexts of the old key still arrive
	 * for a moment: the caller asks again. */
	return err_set(e, FAILURE_VAULT_UNAVAILABLE,
	    "the context was not sealed under this sandbox's present key");
}

/* A limit of an approved version, cut to what this program can do at all. */
static int
limit(const struct tlv *t, uint64_t max, uint64_t *v, struct err *e)
{
	if (tlv_u64(t, v) != 0)
		return err_set(e, FAILURE_INTERNAL,
		    "field %u of the context is malformed", t->tag);
	if (*v > max)
		*v = max;
	return 0;
}

/* One number of the context, at most max. */
static int
number(const struct tlv *t, uint64_t max, uint64_t *v, struct err *e)
{
	if (tlv_u64(t, v) != 0 || *v > max)
		return err_set(e, FAILURE_INTERNAL,
		    "field %u of the context is out of range", t->tag);
	return 0;
}

/* Takes one field of the plaintext into h. */
static int
take_field(struct held *h, const struct tlv *t, uint64_t *hold,
    struct ipc_bytes *intent, unsigned *secrets, struct err *e)
{
	switch (t->tag) {
	case CTX_SECRET_NAME:
		tlv_put(&h->secrets, SECRET_NAME, t->p, t->n);
		++*secrets;
		return 0;
	case CTX_SECRET_VALUE:
		tlv_put(&h->secrets, SECRET_VALUE, t->p, t->n);
		return 0;
	case CTX_CODE:
		h->code = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_NAME:
		h->name = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_ARGS_SHA256:
		if (t->n != sizeof(h->args))
			return err_set(e, FAILURE_INTERNAL, "digest's length");
		memcpy(&h->args, t->p, sizeof(h->args));
		return 0;
	case CTX_TIMEOUT_MS:
		return number(t, HELD_TIMEOUT_MAX_MS, &h->timeout_ms, e);
	case CTX_MEMORY:
		return limit(t, 1ULL << 40, &h->memory, e);
	case CTX_PROCESSES:
		return limit(t, 1024, &h->processes, e);
	case CTX_TMP:
		return limit(t, 1ULL << 40, &h->tmp, e);
	case CTX_RESULT:
		return limit(t, RESULT_MAX, &h->result, e);
	case CTX_HOLD_UNTIL_MS:
		return number(t, UINT64_MAX, hold, e);
	case CTX_INTENT:
		*intent = ipc_bytes(t->p, t->n);
		return 0;
	case CTX_VERSION_HASH:
		return 0;
	}
	return err_set(
	    e, FAILURE_INTERNAL, "the context has a field %u", t->tag);
}

/*
 * Reads the plaintext. It comes from the vault, which is trusted, but from
 * material that admind chose: numbers are bounded here, and secrets in a
 * context whose kind has no approval behind it are refused.
 */
static int
read_plain(struct held *h, uint64_t now_ms, struct err *e)
{
	struct ipc_bytes intent = {NULL, 0};
	uint64_t hold = HELD_HOLD_MAX_MS;
	unsigned secrets = 0;
	struct tlv_reader r;
	struct tlv t;
	int rc;

	tlv_open(&r, h->plain.p, h->plain.len);
	while ((rc = tlv_next(&r, &t)) == 1)
		if (take_field(h, &t, &hold, &intent, &secrets, e) != 0)
			return -1;
	if (rc != 0)
		return err_set(e, FAILURE_INTERNAL, "the context is malformed");
	if (h->secrets.failed || secrets > SECRETS_PER_CALL_MAX ||
	    (secrets > 0 && h->kind != CONTEXT_TOOL))
		return err_set(e, FAILURE_INTERNAL,
		    "the context's secrets are not as they may be");
	if (h->code.n > CODE_MAX || h->timeout_ms == 0)
		return err_set(e, FAILURE_INTERNAL,
		    "the context has no time limit or too much code");
	if (hold > HELD_HOLD_MAX_MS)
		hold = HELD_HOLD_MAX_MS;
	h->expires_ms = now_ms + hold;
	if ((h->record = record_new(&h->node.id, intent)) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
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
	if (table_find(&s->by_id, execution) != NULL)
		return err_set(
		    e, FAILURE_CONFLICT, "this call is held already");
	if ((h = calloc(1, sizeof(*h))) == NULL)
		return err_set(e, FAILURE_BUSY, "no memory");
	h->node.id = *execution;
	h->listener = listener;
	buf_init(&h->plain, IPC_BLOB_MAX);
	buf_init(&h->secrets, IPC_BLOB_MAX);
	if (listener < LISTENER_LOCAL || listener > LISTENER_ADMIND) {
		(void)err_set(e, FAILURE_INTERNAL, "no such listener");
		goto bad;
	}
	if (open_sealed(s, h, sealed, e) != 0 || read_plain(h, now_ms, e) != 0)
		goto bad;
	table_add(&s->by_id, &h->node);
	return 0;
bad:
	held_free(h);
	return -1;
}

struct held *
held_remove(struct held_set *s, const struct ipc_id *id, uint8_t listener)
{
	struct table_node *n = table_find(&s->by_id, id);

	if (n == NULL ||
	    (listener != 0 && ((struct held *)n)->listener != listener))
		return NULL;
	table_del(&s->by_id, n);
	return (struct held *)n;
}

/*
 * An id is random and told to one gateway; whoever presents it at another
 * listener, or with other arguments than those that were authorised, is not
 * that gateway or not honest. The context is used up either way: guessing
 * and bargaining get one attempt.
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

	if (x->found == NULL && ((struct held *)n)->expires_ms <= x->now_ms)
		x->found = (struct held *)n;
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
