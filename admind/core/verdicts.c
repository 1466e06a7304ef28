/*
 * Remembers arguments that admind-check found valid, so that the same question
 * need not wake admind-check again. The table is bounded, and its least
 * recently used entry makes room.
 *
 * An entry can be trusted as much as the answer that made it, for these
 * reasons:
 *
 * - A check is a function of schema and arguments, without state or settings.
 *   The key is the SHA-256 of a fixed head and the schema's bytes; the head
 *   holds the SHA-256 of the arguments and the version's hash. Callers can
 *   choose only the digested bytes. So to pass one text off as another they
 *   need a collision of SHA-256, with which they could also have one version
 *   approved for another.
 * - Only "valid" is remembered. A refusal is judged each time, so its list of
 *   errors always belongs to the arguments of this call.
 * - An admind-check that was taken over can call invalid arguments valid for
 *   calls that ask it, with or without this table. A remembered verdict would
 *   also serve the same arguments of the same caller later, when another
 *   process may have replaced that admind-check. So the whole table is
 *   forgotten when the connection ends (links.c). Without a connection no
 *   verdict is found (call.c), because no other call goes on without
 *   admind-check either.
 * - The caller is in the key. Otherwise the time of an answer would tell one
 *   caller whether another has sent these arguments, which may be a password.
 *   The table does not hold the arguments themselves, only the redacted form
 *   that records keep (kept.h).
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

/* The head has a fixed length. So the digested bytes can be read as head and
 * schema in one way only. */
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

	/* The same question may have been asked twice at the same time. Then
	 * the entry is here already. */
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
