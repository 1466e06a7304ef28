/*
 * Limits on connections, in all and of one source, and the choice of the
 * connection that is closed to make room.
 *
 * A connection costs its client nothing, so with limits alone 256 silent
 * connections would shut out all other clients of their address. At a limit the
 * connection that has been idle for longest is closed for the new one. Every
 * client copes with that, since idle_timeout closes idle connections as well
 * (RFC 9112 section 9.5). A connection whose request has begun to arrive, or
 * waits in the socket, or is being answered, is never closed for another. So an
 * attacker who wants to keep others out has to keep requests under way, and
 * requests have times and limits of their own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "httpd_internal.h"

static struct httpd_source *
find(struct httpd *h, const uint8_t key[16])
{
	return TABLE_OBJECT(
	    struct httpd_source, node, table_find(&h->sources, key, 16));
}

/*
 * Closes the connection that has been idle for longest. r is the first of an
 * idle list: the list of one source if `here` is true, else the list of all.
 * Skips connections that have input to read. They are few, because the loop
 * reads them next. While the server drains, nothing is closed here, since
 * httpd_drain.c decides.
 */
static bool
make_room(struct httpd *h, struct httpd_req *r, bool here)
{
	enum { TRIES = 64 };
	struct httpd_req *next;

	for (int i = 0; i < TRIES && r != NULL && !h->draining; i++, r = next) {
		next =
		    here ? TAILQ_NEXT(r, idle_here) : TAILQ_NEXT(r, idle_all);
		if (httpd_drain_has_input(r))
			continue;
		httpd_kill_now(r);
		return true;
	}
	return false;
}

/* Tells whether the source may have one more connection. Closes an idle
 * connection of the source if need be. false: why names the limit. */
static bool
room_here(struct httpd *h, const uint8_t key[16], char *why, size_t len)
{
	struct httpd_source *s = find(h, key);

	if (s == NULL || s->count < h->limits.connections_per_source ||
	    make_room(h, TAILQ_FIRST(&s->idle), true))
		return true;
	snprintf(why, len,
	    "%u connections of your address have requests under way, which is "
	    "the limit max_connections_per_source",
	    s->count);
	return false;
}

/* Counts the connection at its source. false: no memory. */
static bool
count_here(struct httpd_req *r, const uint8_t key[16], char *why, size_t len)
{
	struct httpd *h = r->h;
	struct httpd_source *s = find(h, key);

	if (s == NULL) {
		s = calloc(1, sizeof(*s));
		if (s == NULL) {
			snprintf(why, len, "out of memory");
			return false;
		}
		memcpy(s->key, key, 16);
		TAILQ_INIT(&s->idle);
		table_add(&h->sources, &s->node, s->key, 16);
	}
	s->count++;
	r->counted = s;
	return true;
}

bool
httpd_admit(struct httpd *h, struct httpd_req *r, const uint8_t key[16],
    char *why, size_t len)
{
	if (key != NULL && !room_here(h, key, why, len))
		return false;
	if (h->count >= h->limits.connections &&
	    !make_room(h, TAILQ_FIRST(&h->idle), false)) {
		snprintf(why, len,
		    "%u connections have requests under way, which is the "
		    "limit max_connections",
		    h->count);
		return false;
	}
	/* make_room may have freed the source with its last connection, so
	 * count_here looks it up again. */
	return key == NULL || count_here(r, key, why, len);
}

bool
httpd_admit_source(
    struct httpd_req *r, const uint8_t key[16], char *why, size_t len)
{
	const bool idle = r->idle;
	bool ok;

	httpd_admit_idle(r, false); /* so that r itself is not closed */
	ok = room_here(r->h, key, why, len) && count_here(r, key, why, len);
	httpd_admit_idle(r, idle);
	return ok;
}

void
httpd_admit_leave(struct httpd_req *r)
{
	httpd_admit_idle(r, false);
	if (r->counted == NULL || --r->counted->count > 0)
		return;
	table_del(&r->h->sources, &r->counted->node);
	free(r->counted);
}

void
httpd_admit_idle(struct httpd_req *r, bool idle)
{
	struct httpd_source *s = r->counted;

	if (r->idle) {
		TAILQ_REMOVE(&r->h->idle, r, idle_all);
		if (s != NULL)
			TAILQ_REMOVE(&s->idle, r, idle_here);
	}
	r->idle = idle;
	if (idle) {
		TAILQ_INSERT_TAIL(&r->h->idle, r, idle_all);
		if (s != NULL)
			TAILQ_INSERT_TAIL(&s->idle, r, idle_here);
	}
}
