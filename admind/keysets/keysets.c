/* See keysets.h. */
#include <string.h>

#include "bounds.h"
#include "keysets.h"
#include "tlv.h"

enum {
	SOURCE_MAX = 16 * 1024, /* ten texts of 512 bytes, and their heads */
	SIGN_IN_MAX = 2 * 1024, /* an address or a sentence */
	KEYS_MAX = 64 * 1024    /* 32 keys of 600 bytes, each with a `kid` */
};

static void
clear(struct keyset *s)
{
	buf_free(&s->source);
	buf_free(&s->keys);
	buf_free(&s->sign_in);
	memset(s, 0, sizeof(*s));
}

void
keysets_free(struct keysets *k)
{
	for (unsigned i = 0; i < k->n; i++)
		clear(&k->set[i]);
	k->n = 0;
}

struct keyset *
keysets_find(struct keysets *k, struct ipc_bytes name)
{
	for (unsigned i = 0; i < k->n; i++)
		if (ipc_streq(name, k->set[i].name))
			return &k->set[i];
	return NULL;
}

/* Makes a set without keys. Without memory for its source it is not fetched,
 * and the next document tries again. */
static void
make(struct keyset *s, const struct keysets_source *of)
{
	memset(s, 0, sizeof(*s));
	if (of->name.n < sizeof(s->name))
		memcpy(s->name, of->name.p, of->name.n);
	buf_init(&s->source, SOURCE_MAX);
	buf_init(&s->keys, KEYS_MAX);
	buf_init(&s->sign_in, SIGN_IN_MAX);
	buf_put(&s->source, of->source.p, of->source.n);
}

void
keysets_follow(struct keysets *k, const struct keysets_source *list, unsigned n)
{
	struct keysets next = {.n = n};

	for (unsigned i = 0; i < n; i++) {
		struct keyset *s = keysets_find(k, list[i].name);

		if (s != NULL && s->source.len == list[i].source.n &&
		    memcmp(s->source.p, list[i].source.p, s->source.len) == 0) {
			next.set[i] = *s;
			/* The new place owns its memory. */
			memset(s, 0, sizeof(*s));
		} else {
			make(&next.set[i], &list[i]);
		}
	}
	keysets_free(k);
	*k = next;
}

void
keysets_put(const struct keysets *k, struct ipc_bytes name, uint64_t now_ms,
    struct buf *out)
{
	for (unsigned i = 0; i < k->n; i++) {
		const struct keyset *s = &k->set[i];

		if (ipc_streq(name, s->name) && s->read && now_ms < s->end_ms)
			buf_put(out, s->keys.p, s->keys.len);
	}
}

enum keysets_verdict
keysets_lacks(struct keysets *k, struct ipc_bytes name, uint64_t now_ms)
{
	struct keyset *s = keysets_find(k, name);

	if (s == NULL || s->running)
		return KEYSETS_AWAIT;
	if (s->tried && now_ms - s->tried_ms < KEYSETS_ASK_MS)
		return s->read && s->why[0] == '\0' ? KEYSETS_ABSENT
						    : KEYSETS_AWAIT;
	s->wanted = true;
	return KEYSETS_AWAIT;
}

enum keysets_refresh
keysets_refresh(struct keyset *s, uint64_t now_ms, uint64_t *wait_ms)
{
	*wait_ms = 0;
	if (s->running)
		return KEYSETS_REFRESH_RUNNING;
	if (s->tried && now_ms - s->tried_ms < KEYSETS_ASK_MS) {
		*wait_ms = KEYSETS_ASK_MS - (now_ms - s->tried_ms);
		return KEYSETS_REFRESH_EARLY;
	}
	s->wanted = true;
	return KEYSETS_REFRESH_DUE;
}

struct keyset *
keysets_due(struct keysets *k, uint64_t now_ms)
{
	for (unsigned i = 0; i < k->n; i++) {
		struct keyset *s = &k->set[i];

		if (!s->running && !s->source.failed &&
		    (s->wanted || !s->tried || now_ms >= s->next_ms))
			return s;
	}
	return NULL;
}

void
keysets_begin(struct keyset *s, uint64_t now_ms)
{
	s->running = true;
	s->wanted = false;
	s->tried = true;
	s->tried_ms = now_ms;
}

/* Tells whether a list has this very key. */
static bool
has(struct ipc_bytes keys, const struct tlv *key)
{
	struct tlv_reader r;
	struct tlv f;

	tlv_open(&r, keys.p, keys.n);
	while (tlv_next(&r, &f) == 1)
		if (f.n == key->n && memcmp(f.p, key->p, f.n) == 0)
			return true;
	return false;
}

void
keysets_sign_in(struct keyset *s, struct ipc_bytes fields)
{
	buf_clear(&s->sign_in);
	buf_put(&s->sign_in, fields.p, fields.n);
	if (s->sign_in.failed) { /* without memory nothing is offered */
		buf_free(&s->sign_in);
		buf_init(&s->sign_in, SIGN_IN_MAX);
	}
}

bool
keysets_good(
    struct keyset *s, struct ipc_bytes keys, uint64_t age_s, uint64_t now_us)
{
	uint64_t fresh = KEYSETS_FRESH_MAX_MS;
	struct tlv_reader r;
	bool gone = false;
	struct buf copy;
	struct tlv f;

	buf_init(&copy, KEYS_MAX);
	buf_put(&copy, keys.p, keys.n);
	if (copy.failed) {
		buf_free(&copy);
		keysets_bad(
		    s, ipc_str("out of memory"), s->tried_ms, KEYSETS_AGAIN_MS);
		return false;
	}
	tlv_open(&r, s->keys.p, s->keys.len);
	while (tlv_next(&r, &f) == 1)
		gone = gone || !has(keys, &f);
	buf_free(&s->keys);
	s->keys = copy;
	s->nkeys = 0;
	tlv_open(&r, keys.p, keys.n);
	while (tlv_next(&r, &f) == 1)
		s->nkeys++;
	if (age_s < KEYSETS_FRESH_MAX_MS / 1000)
		fresh = age_s * 1000;
	if (fresh < KEYSETS_FRESH_MIN_MS)
		fresh = KEYSETS_FRESH_MIN_MS;
	s->running = false;
	s->read = true;
	s->read_us = now_us;
	s->why[0] = '\0';
	/* The answer may be as old as its request. */
	s->next_ms = s->tried_ms + fresh;
	s->end_ms = s->next_ms + KEYSETS_SERVE_MS;
	return gone;
}

void
keysets_bad(
    struct keyset *s, struct ipc_bytes why, uint64_t now_ms, uint64_t again_ms)
{
	size_t n = why.n < sizeof(s->why) ? why.n : sizeof(s->why) - 1;

	s->running = false;
	s->next_ms = now_ms + again_ms;
	if (n == 0) {
		why = ipc_str("the fetch failed");
		n = why.n;
	}
	memcpy(s->why, why.p, n);
	s->why[n] = '\0';
}
