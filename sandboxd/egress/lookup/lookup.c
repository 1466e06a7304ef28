#include "lookup.h"

#include <sys/socket.h>
#include <sys/time.h>

#include <netdb.h>

/* c-ares 1.28 deprecates functions for which 1.18 has no replacement. */
#define CARES_NO_DEPRECATED
#include <ares.h>
#include <event2/event.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* Time for one server, doubled in each round. c-ares 1.34 begins with
	 * 250 ms if the server is usually quick. So more tries are needed to
	 * wait long enough when such a server is slow for once. */
	LOOKUP_TRY_MS = 1000,
	LOOKUP_TRIES = 4,
	LOOKUP_SOCKETS_MAX = 256
};

struct watch {
	int fd;
	struct event *event; /* NULL: free */
};

struct lookup {
	struct event_base *base;
	ares_channel channel;
	struct event *timer;
	unsigned servers;
	struct watch watch[LOOKUP_SOCKETS_MAX];
};

struct lookup_request {
	struct lookup *owner;
	lookup_cb *cb; /* NULL: cancelled */
	void *arg;
	struct event *told; /* calls cb from the loop */
	enum lookup_status status;
	struct address address[LOOKUP_ADDRESSES_MAX];
	size_t n;
};

/* Sets the timer to the latest time at which c-ares wants to be called. */
static void
set_timer(struct lookup *l)
{
	struct timeval tv, *next = ares_timeout(l->channel, NULL, &tv);

	if (next == NULL)
		evtimer_del(l->timer);
	else
		evtimer_add(l->timer, next);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct lookup *l = arg;

	ares_process_fd(l->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_timer(l);
}

static void
on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct lookup *l = arg;

	ares_process_fd(l->channel,
	    (what & EV_READ) != 0 ? (ares_socket_t)fd : ARES_SOCKET_BAD,
	    (what & EV_WRITE) != 0 ? (ares_socket_t)fd : ARES_SOCKET_BAD);
	set_timer(l);
}

/* Watches a socket of c-ares, changes the watch, or ends it. A socket for which
 * l->watch has no place is served by the timer. */
static void
on_state(void *arg, ares_socket_t fd, int readable, int writable)
{
	struct lookup *l = arg;
	struct watch *w, *free_one = NULL;
	short what = (short)((readable ? EV_READ : 0) |
	    (writable ? EV_WRITE : 0) | EV_PERSIST);

	for (w = l->watch; w < l->watch + LOOKUP_SOCKETS_MAX; w++) {
		if (w->event == NULL)
			free_one = w;
		else if (w->fd == fd)
			break;
	}
	if (w < l->watch + LOOKUP_SOCKETS_MAX) {
		event_free(w->event);
		w->event = NULL;
		free_one = w;
	}
	if ((!readable && !writable) || free_one == NULL)
		return;
	free_one->event = event_new(l->base, fd, what, on_socket, l);
	free_one->fd = fd;
	if (free_one->event != NULL && event_add(free_one->event, NULL) != 0) {
		event_free(free_one->event);
		free_one->event = NULL;
	}
}

static unsigned
count_servers(ares_channel c)
{
	struct ares_addr_port_node *list = NULL;
	unsigned n = 0;

	if (ares_get_servers_ports(c, &list) != ARES_SUCCESS)
		return 0;
	for (const struct ares_addr_port_node *s = list; s != NULL; s = s->next)
		n++;
	ares_free_data(list);
	return n;
}

/*
 * Opens the resolver. c-ares reads all its files here. "b" means: name servers
 * only, no hosts file. There is no search list, because names are complete. The
 * cache of newer versions of c-ares is off: an answer is judged when it is
 * used, and used once.
 */
struct lookup *
lookup_open(struct event_base *base, const char *servers, struct err *e)
{
	struct ares_options o = {
	    .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
	    .timeout = LOOKUP_TRY_MS,
	    .tries = LOOKUP_TRIES,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
	    ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB;
	char lookups[] = "b";
	struct lookup *l = calloc(1, sizeof(*l));
	int rc;

	if (l == NULL) {
		err_set(e, FAILURE_BUSY, "no memory");
		return NULL;
	}
	l->base = base;
	o.lookups = lookups;
	o.sock_state_cb = on_state;
	o.sock_state_cb_data = l;
#ifdef ARES_OPT_QUERY_CACHE
	o.qcache_max_ttl = 0;
	mask |= ARES_OPT_QUERY_CACHE;
#endif
	if ((rc = ares_library_init(ARES_LIB_INIT_ALL)) != ARES_SUCCESS ||
	    (rc = ares_init_options(&l->channel, &o, mask)) != ARES_SUCCESS) {
		err_set(e, FAILURE_INTERNAL, "c-ares: %s", ares_strerror(rc));
		free(l);
		return NULL;
	}
	if ((l->timer = evtimer_new(base, on_timer, l)) == NULL) {
		err_set(e, FAILURE_BUSY, "no memory");
		goto fail;
	}
	if (*servers != '\0' &&
	    (rc = ares_set_servers_ports_csv(l->channel, servers)) !=
		ARES_SUCCESS) {
		err_set(e, FAILURE_INVALID_PARAMS, "dns_servers: %s",
		    ares_strerror(rc));
		goto fail;
	}
	l->servers = count_servers(l->channel);
	return l;
fail:
	lookup_close(l);
	return NULL;
}

void
lookup_close(struct lookup *l)
{
	if (l == NULL)
		return;
	ares_destroy(l->channel);
	for (size_t i = 0; i < LOOKUP_SOCKETS_MAX; i++)
		if (l->watch[i].event != NULL)
			event_free(l->watch[i].event);
	if (l->timer != NULL)
		event_free(l->timer);
	free(l);
	ares_library_cleanup();
}

unsigned
lookup_servers(const struct lookup *l)
{
	return l->servers;
}

/* Calls the callback from the loop, so that it never comes before lookup_start
 * has returned. */
static void
tell(evutil_socket_t fd, short what, void *arg)
{
	struct lookup_request *r = arg;

	if (r->cb != NULL)
		r->cb(r->arg, r->status, r->address, r->n);
	event_free(r->told);
	free(r);
}

static void
take(struct lookup_request *r, const struct ares_addrinfo *info)
{
	for (const struct ares_addrinfo_node *a = info->nodes; a != NULL;
	    a = a->ai_next) {
		struct address *out = &r->address[r->n];

		if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
			continue;
		if (r->n == LOOKUP_ADDRESSES_MAX) {
			r->status = LOOKUP_MANY;
			return;
		}
		out->family = (sa_family_t)a->ai_family;
		if (a->ai_family == AF_INET)
			memcpy(out->b,
			    &((const struct sockaddr_in *)(const void *)
				    a->ai_addr)
				->sin_addr,
			    4);
		else
			memcpy(out->b,
			    &((const struct sockaddr_in6 *)(const void *)
				    a->ai_addr)
				->sin6_addr,
			    16);
		r->n++;
	}
	r->status = r->n > 0 ? LOOKUP_OK : LOOKUP_NO_NAME;
}

static void
on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *info)
{
	static const struct timeval now = {0, 0};
	struct lookup_request *r = arg;

	if (status == ARES_SUCCESS && info != NULL)
		take(r, info);
	else if (status == ARES_ENOTFOUND || status == ARES_ENODATA ||
	    status == ARES_EBADNAME)
		r->status = LOOKUP_NO_NAME;
	else
		r->status = LOOKUP_NO_ANSWER;
	if (info != NULL)
		ares_freeaddrinfo(info);
	if (status == ARES_EDESTRUCTION) {
		event_free(r->told);
		free(r);
		return;
	}
	evtimer_add(r->told, &now);
}

struct lookup_request *
lookup_start(
    struct lookup *l, const char *name, int family, lookup_cb *cb, void *arg)
{
	const struct ares_addrinfo_hints hints = {
	    .ai_flags = ARES_AI_NOSORT,
	    .ai_family = family,
	    .ai_socktype = SOCK_STREAM,
	};
	struct lookup_request *r = calloc(1, sizeof(*r));

	if (r == NULL || (r->told = evtimer_new(l->base, tell, r)) == NULL) {
		free(r);
		return NULL;
	}
	r->owner = l;
	r->cb = cb;
	r->arg = arg;
	ares_getaddrinfo(l->channel, name, NULL, &hints, on_answer, r);
	set_timer(l);
	return r;
}

/* Cancels by dropping the callback: c-ares can't be told to forget one
 * question. */
void
lookup_cancel(struct lookup_request *r)
{
	if (r != NULL)
		r->cb = NULL;
}
