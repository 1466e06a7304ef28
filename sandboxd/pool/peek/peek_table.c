/* See peek_table.h. */
#include <string.h>
#include <unistd.h>

#include "peek_table.h"

/* The longest wait of one poll(2). After it the time left is computed again. */
enum { PAUSE_MAX_MS = 60 * 1000 };

void
peek_table_init(struct peek_table *t)
{
	/* Places from index `end` on are not read before they are taken, so
	 * that unused places take no memory. */
	t->end = 0;
	t->serial = 0;
}

struct peek_listener *
peek_table_add(struct peek_table *t, uint64_t net, int fd, uint64_t now_ms)
{
	struct peek_listener *l = NULL;

	for (unsigned i = t->end; i-- > 0;) {
		if (t->listener[i].fd < 0)
			l = &t->listener[i];
		else if (t->listener[i].net == net)
			return NULL;
	}
	if (l == NULL && t->end == PEEK_LISTENERS_MAX)
		return NULL;
	if (l == NULL)
		l = &t->listener[t->end++];
	memset(l, 0, sizeof(*l));
	l->fd = fd;
	l->net = net;
	l->tokens = PEEK_BURST;
	l->tokens_ms = now_ms;
	for (unsigned i = 0; i < PEEK_WAITS_MAX; i++)
		l->wait[i].socket = -1;
	return l;
}

void
peek_table_remove(struct peek_table *t, struct peek_listener *l)
{
	for (unsigned i = 0; i < PEEK_WAITS_MAX; i++)
		if (l->wait[i].state != PEEK_FREE)
			peek_table_done(l, &l->wait[i]);
	close(l->fd);
	l->fd = -1;
	while (t->end > 0 && t->listener[t->end - 1].fd < 0)
		t->end--;
}

struct peek_wait *
peek_table_wait(struct peek_listener *l, uint64_t deadline_ms)
{
	struct peek_wait *w;

	for (unsigned i = 0; i < PEEK_WAITS_MAX; i++) {
		w = &l->wait[i];
		if (w->state != PEEK_FREE)
			continue;
		w->state = PEEK_ASKING;
		w->deadline_ms = deadline_ms;
		w->error = 0;
		l->waiting++;
		return w;
	}
	return NULL;
}

void
peek_table_done(struct peek_listener *l, struct peek_wait *w)
{
	if (w->socket >= 0)
		close(w->socket);
	w->socket = -1;
	w->state = PEEK_FREE;
	l->waiting--;
}

/* Makes serial << 16 | index. No number is given twice, so a late answer finds
 * no wait, even if another wait has the place by then. */
uint64_t
peek_table_request(struct peek_table *t, const struct peek_listener *l,
    const struct peek_wait *w)
{
	const uint64_t index = (uint64_t)(l - t->listener) * PEEK_WAITS_MAX +
	    (uint64_t)(w - l->wait);

	_Static_assert(PEEK_LISTENERS_MAX * PEEK_WAITS_MAX <= 1 << 16,
	    "an index has 16 bits");
	return ++t->serial << 16 | index;
}

struct peek_wait *
peek_table_asked(
    struct peek_table *t, uint64_t request, struct peek_listener **out)
{
	const size_t index = request & 0xffff;
	struct peek_listener *l;
	struct peek_wait *w;

	if (index >= (size_t)t->end * PEEK_WAITS_MAX)
		return NULL;
	l = &t->listener[index / PEEK_WAITS_MAX];
	w = &l->wait[index % PEEK_WAITS_MAX];
	if (l->fd < 0 || w->state != PEEK_ASKED || w->request != request)
		return NULL;
	*out = l;
	return w;
}

bool
peek_table_may_read(struct peek_listener *l, uint64_t now_ms, int *wait_ms)
{
	const uint64_t flown = (now_ms - l->tokens_ms) * PEEK_PER_SECOND / 1000;

	if (flown > 0) {
		l->tokens = flown < PEEK_BURST - l->tokens
		    ? l->tokens + (unsigned)flown
		    : PEEK_BURST;
		l->tokens_ms = now_ms;
	}
	if (l->waiting == PEEK_WAITS_MAX)
		return false;
	if (l->paused_ms > now_ms) {
		const uint64_t pause = l->paused_ms - now_ms;

		if (*wait_ms < 0 || pause < (uint64_t)*wait_ms)
			*wait_ms =
			    (int)(pause < PAUSE_MAX_MS ? pause : PAUSE_MAX_MS);
		return false;
	}
	if (l->tokens > 0)
		return true;
	if (*wait_ms < 0 || *wait_ms > 1)
		*wait_ms = 1; /* one token is added in each ms */
	return false;
}

void
peek_table_spend(struct peek_listener *l)
{
	l->tokens--;
}

void
peek_table_took(struct peek_listener *l, uint64_t from_ms, uint64_t now_ms)
{
	const uint64_t took = now_ms - from_ms;

	if (took >= PEEK_SLOW_MS)
		l->paused_ms = now_ms + took * PEEK_SLOW_PAUSE;
}
