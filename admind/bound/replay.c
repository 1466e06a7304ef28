/*
 * Security argument.
 *
 * A token that was used must not be used again. Three moments could let one
 * through:
 *
 * - The memory is full. Forgetting the oldest would let the owner of many
 *   good tokens choose which are forgotten. So none is forgotten before its
 *   time. The room is an issuer's own, so its people take no other's.
 * - The process started. It knows nothing of tokens that were used before. Such
 *   a token had passed the check that `iat` is at most the leeway ahead of our
 *   clock, so its `iat` is below the start and the leeway. All of these are
 *   refused.
 * - The clock goes back. A token that was forgotten when its time was over
 *   would be accepted again. So the latest end of all forgotten tokens is kept,
 *   and a token that does not end after it is refused. Only tokens that passed
 *   the check get in here, so this end is never further ahead than a token's
 *   life and two leeways, and a clock that went back is waited for no longer
 *   than it went back.
 *
 * Strangers get nothing in here: only a token with a right signature, whose
 * request was compared, is used.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "access_fields.h"
#include "crypto.h"
#include "replay.h"
#include "table.h"

enum {
	US = 1000 * 1000,
	/* Seconds of the wheel, more than a token is remembered: a life of 120
	 * s and two leeways of at most 300 s. */
	WHEEL = 1024
};

struct room {
	char name[ACCESS_NAME_MAX];
	size_t n;
	unsigned used; /* tokens; 0: this room is anyone's */
};

struct used {
	struct table_node node;
	LIST_ENTRY(used) entry; /* of those that end in the same second */
	struct ipc_hash key;
	uint64_t until_us;
	struct room *room;
};

struct replay {
	struct table by_key;
	LIST_HEAD(, used) wheel[WHEEL];
	struct room room[REPLAY_ISSUERS_MAX];
	uint64_t started_us;
	uint64_t turned_s;     /* the wheel's seconds up to here were seen */
	uint64_t forgotten_us; /* the latest end of a forgotten token */
};

struct replay *
replay_new(uint64_t started_us)
{
	struct replay *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	if (table_init(&r->by_key, REPLAY_ISSUER_MAX) == -1) {
		free(r);
		return NULL;
	}
	for (int i = 0; i < WHEEL; i++)
		LIST_INIT(&r->wheel[i]);
	r->started_us = started_us;
	r->turned_s = started_us / US;
	return r;
}

static void
forget(struct replay *r, struct used *u)
{
	table_del(&r->by_key, &u->node);
	LIST_REMOVE(u, entry);
	u->room->used--;
	free(u);
}

void
replay_free(struct replay *r)
{
	struct used *u;

	if (r == NULL)
		return;
	for (int i = 0; i < WHEEL; i++)
		while ((u = LIST_FIRST(&r->wheel[i])) != NULL)
			forget(r, u);
	table_free(&r->by_key);
	free(r);
}

/* Finds the room of an issuer, or a free one. NULL: all are used. */
static struct room *
room_of(struct replay *r, struct ipc_bytes name)
{
	struct room *free_one = NULL;

	for (int i = 0; i < REPLAY_ISSUERS_MAX; i++) {
		struct room *x = &r->room[i];

		if (x->used == 0)
			free_one = x;
		else if (x->n == name.n && memcmp(x->name, name.p, name.n) == 0)
			return x;
	}
	if (free_one == NULL || name.n == 0 || name.n > sizeof(free_one->name))
		return NULL;
	memcpy(free_one->name, name.p, name.n);
	free_one->n = name.n;
	return free_one;
}

/* Makes the key. A name has no NUL, so the digested bytes can be read in one
 * way only. */
static void
key_of(const struct replay_token *t, struct ipc_hash *key)
{
	char head[ACCESS_NAME_MAX + 1] = "";
	size_t n = t->issuer.n < sizeof(head) ? t->issuer.n : 0;

	memcpy(head, n > 0 ? (const char *)t->issuer.p : "", n);
	sha256_2(head, n + 1, t->id.p, t->id.n, key);
}

/* Adds without going over the largest number. */
static uint64_t
plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

enum replay_verdict
replay_use(struct replay *r, const struct replay_token *t, uint64_t now_us)
{
	struct ipc_hash key;
	struct room *room;
	struct used *u;

	key_of(t, &key);
	if (table_find(&r->by_key, &key, sizeof(key)) != NULL)
		return REPLAY_USED;
	if (t->until_us <= r->forgotten_us || t->until_us <= now_us)
		return REPLAY_PAST;
	if (t->iat_us < plus(r->started_us, t->leeway_us))
		return REPLAY_EARLY;
	/* The wheel would turn to it too early. Such a token passes no
	 * check. */
	if (t->until_us / US >= now_us / US + WHEEL)
		return REPLAY_FULL;
	room = room_of(r, t->issuer);
	if (room == NULL || room->used >= REPLAY_ISSUER_MAX ||
	    (u = calloc(1, sizeof(*u))) == NULL)
		return REPLAY_FULL;
	u->key = key;
	u->until_us = t->until_us;
	u->room = room;
	room->used++;
	table_add(&r->by_key, &u->node, &u->key, sizeof(u->key));
	LIST_INSERT_HEAD(&r->wheel[t->until_us / US % WHEEL], u, entry);
	return REPLAY_NEW;
}

/* Forgets the tokens of one second whose time is over. */
static void
turn(struct replay *r, uint64_t second, uint64_t now_us)
{
	struct used *u, *next;

	for (u = LIST_FIRST(&r->wheel[second % WHEEL]); u != NULL; u = next) {
		next = LIST_NEXT(u, entry);
		if (u->until_us > now_us)
			continue;
		if (u->until_us > r->forgotten_us)
			r->forgotten_us = u->until_us;
		forget(r, u);
	}
}

/* The present second is turned again the next time: some of its tokens may end
 * later in it. */
void
replay_tick(struct replay *r, uint64_t now_us)
{
	uint64_t now = now_us / US;
	uint64_t from = now >= r->turned_s && now - r->turned_s < WHEEL
	    ? r->turned_s
	    : now < WHEEL ? 0
			  : now - WHEEL + 1;

	for (uint64_t s = from; s <= now; s++)
		turn(r, s, now_us);
	r->turned_s = now;
}

unsigned
replay_count(const struct replay *r)
{
	return (unsigned)r->by_key.count;
}
