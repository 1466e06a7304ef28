/*
 * Arguments that admind-check found valid, so that the same question need not
 * wake it again: a bounded table in which the least recently used entry goes
 * first.
 *
 * Why an entry can be trusted as much as the answer that made it:
 *
 * - A check is a function of schema and arguments, without state or settings.
 *   The key is the SHA-256 of a fixed head and the schema's bytes; the head
 *   holds the SHA-256 of the arguments and the version's hash. Callers choose
 *   the digested bytes and nothing else. So to have one text pass for another
 *   they need a collision of SHA-256, with which they could also have one
 *   version approved for another.
 * - Only "valid" is remembered. A refusal is judged each time, and its list of
 *   errors can't be another's.
 * - An admind-check that was taken over can call invalid arguments valid, as it
 *   always could, for calls that ask it. Here its word would also serve the
 *   same caller's same arguments later, when another process may have taken its
 *   place. So the whole table is forgotten when its connection ends (links.c),
 *   and without a connection nothing is found (call.c), as no call goes on
 *   without admind-check otherwise.
 * - The caller is in the key. Otherwise the time of an answer would tell one
 *   caller whether another has sent these arguments, which may be a password.
 *   The arguments themselves are not here; the form that records keep is,
 *   redacted (kept.h).
 */
#include <stdlib.h>
#include <string.h>

#include "admind.h"
#include "crypto.h"
#include "verdicts.h"

struct verdict {
	TAILQ_ENTRY(verdict) age;
	LIST_ENTRY(verdict) chain;
	struct ipc_hash key;
	size_t kept_len;
	uint8_t kept[];
};

static struct verdicts_chain *
chain_of(struct verdicts *v, const struct ipc_hash *key)
{
	return &v->chain[key->b[0] % VERDICTS_BUCKETS];
}

static void
forget(struct verdicts *v, struct verdict *e)
{
	TAILQ_REMOVE(&v->age, e, age);
	LIST_REMOVE(e, chain);
	v->n--;
	v->bytes -= e->kept_len;
	free(e);
}

static struct verdict *
find(struct verdicts *v, const struct ipc_hash *key)
{
	struct verdict *e;

	LIST_FOREACH(e, chain_of(v, key), chain)
		if (memcmp(&e->key, key, sizeof(*key)) == 0)
			return e;
	return NULL;
}

void
verdicts_init(struct verdicts *v)
{
	memset(v, 0, sizeof(*v));
	TAILQ_INIT(&v->age);
}

/* The head has one length, so no other split of the same bytes is a key. */
bool
verdicts_key(const char *principal, const struct ipc_hash *version,
    struct ipc_bytes schema, size_t arguments_len,
    const struct ipc_hash *arguments_sha256, struct ipc_hash *key)
{
	uint8_t head[PRINCIPAL_MAX + 2 * sizeof(version->b)] = {0};
	size_t n = strnlen(principal, PRINCIPAL_MAX + 1);

	if (n > PRINCIPAL_MAX || schema.n > VERDICT_SCHEMA_MAX ||
	    arguments_len > VERDICT_ARGUMENTS_MAX)
		return false;
	memcpy(head, principal, n);
	memcpy(head + PRINCIPAL_MAX, version->b, sizeof(version->b));
	memcpy(head + PRINCIPAL_MAX + sizeof(version->b), arguments_sha256->b,
	    sizeof(arguments_sha256->b));
	sha256_2(head, sizeof(head), schema.p, schema.n, key);
	return true;
}

bool
verdicts_find(struct verdicts *v, const struct ipc_hash *key, struct buf *kept)
{
	struct verdict *e = find(v, key);

	if (e == NULL)
		return false;
	TAILQ_REMOVE(&v->age, e, age);
	TAILQ_INSERT_HEAD(&v->age, e, age);
	buf_put(kept, e->kept, e->kept_len);
	return true;
}

void
verdicts_add(
    struct verdicts *v, const struct ipc_hash *key, struct ipc_bytes kept)
{
	struct verdict *e;

	/* The same bytes asked twice at once: one entry. */
	if (kept.n > VERDICT_ARGUMENTS_MAX || find(v, key) != NULL ||
	    (e = calloc(1, sizeof(*e) + kept.n)) == NULL)
		return;
	e->key = *key;
	e->kept_len = kept.n;
	if (kept.n > 0)
		memcpy(e->kept, kept.p, kept.n);
	TAILQ_INSERT_HEAD(&v->age, e, age);
	LIST_INSERT_HEAD(chain_of(v, key), e, chain);
	v->n++;
	v->bytes += e->kept_len;
	while (v->n > VERDICTS_MAX || v->bytes > VERDICTS_BYTES_MAX)
		forget(v, TAILQ_LAST(&v->age, verdicts_age));
}

void
verdicts_clear(struct verdicts *v)
{
	struct verdict *e;

	while ((e = TAILQ_FIRST(&v->age)) != NULL)
		forget(v, e);
}
