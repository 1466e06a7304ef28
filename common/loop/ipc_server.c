/*
 * A listening socket. Only processes of the given uids may connect; the kernel
 * reports the uid (SO_PEERCRED of the connecting process; unix(7)). Other
 * connections are closed before a byte of theirs is read.
 */
#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "ipc_peer_internal.h"
#include "log.h"

static bool
uid_allowed(const struct ipc_server *s, uid_t uid)
{
	for (size_t i = 0; i < s->nallowed; i++)
		if (s->allowed[i] == uid)
			return true;
	return false;
}

/* Pauses accepting. The listener stays readable as long as no connection is
 * accepted, so the loop looks again after a moment instead of at once. */
static void
pause_accepting(struct ipc_server *s)
{
	static const struct timeval tv = {
	    .tv_usec = IPC_ACCEPT_PAUSE_MS * 1000};

	if (!s->starved)
		log_event(LOG_LV_WARN, "ipc_accept", "%s: %m", s->name);
	s->starved = true;
	event_del(s->acceptable);
	evtimer_add(s->resume, &tv);
}

static void
resume_cb(evutil_socket_t fd, short what, void *arg)
{
	struct ipc_server *s = arg;

	event_add(s->acceptable, NULL);
}

static void
accept_cb(evutil_socket_t fd, short what, void *arg)
{
	struct ipc_server *s = arg;
	struct ipc_peer *p;
	struct err e;
	size_t max;
	uid_t uid;
	pid_t pid;
	int sock;

	sock = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (sock == -1) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
		    errno == ENOMEM)
			pause_accepting(s);
		return;
	}
	s->starved = false;
	if (ipc_peer_cred(sock, &uid, &pid, &e) == -1 || !uid_allowed(s, uid)) {
		log_event(LOG_LV_WARN, "ipc_refused_user",
		    "%s: uid %u (pid %d) may not connect", s->name,
		    (unsigned)uid, (int)pid);
		close(sock);
		return;
	}
	max = s->peer == IPC_ROLE_CTL ? IPC_PEERS_MAX : IPC_DAEMON_PEERS_MAX;
	if (s->npeers >= max) {
		log_event(LOG_LV_WARN, "ipc_full", "%s: more than %zu peers",
		    s->name, max);
		close(sock);
		return;
	}
	p = ipc_peer_adopt(s->base, sock, s->name, s->local, s->peer, true,
	    IPC_STATE_NEW, &s->handlers, s->arg, &e);
	if (p == NULL) {
		log_event(LOG_LV_WARN, "ipc_accept", "%s: %s", s->name, e.text);
		close(sock);
		return;
	}
	p->server = s;
	s->npeers++;
	LIST_INSERT_HEAD(&s->peers, p, link);
}

struct ipc_server *
ipc_server_new(struct event_base *base, const char *path, const char *name,
    enum ipc_role local, enum ipc_role peer, const uid_t *allowed,
    size_t nallowed, const struct ipc_handlers *handlers, void *arg,
    struct err *e)
{
	struct ipc_server *s;

	if ((s = calloc(1, sizeof(*s))) == NULL ||
	    (s->allowed = calloc(nallowed, sizeof(*allowed))) == NULL) {
		free(s);
		err_set(e, FAILURE_BUSY, "no memory for a listener");
		return NULL;
	}
	memcpy(s->allowed, allowed, nallowed * sizeof(*allowed));
	s->nallowed = nallowed;
	s->base = base;
	snprintf(s->name, sizeof(s->name), "%s", name);
	s->local = local;
	s->peer = peer;
	s->handlers = *handlers;
	s->arg = arg;
	LIST_INIT(&s->peers);
	if ((s->fd = ipc_listen_path(path, e)) == -1)
		goto fail;
	s->acceptable =
	    event_new(base, s->fd, EV_READ | EV_PERSIST, accept_cb, s);
	s->resume = evtimer_new(base, resume_cb, s);
	if (s->acceptable == NULL || s->resume == NULL ||
	    event_add(s->acceptable, NULL) == -1) {
		err_set(e, FAILURE_BUSY, "no memory for a listener");
		goto fail;
	}
	return s;
fail:
	if (s->acceptable != NULL)
		event_free(s->acceptable);
	if (s->resume != NULL)
		event_free(s->resume);
	if (s->fd >= 0)
		close(s->fd);
	free(s->allowed);
	free(s);
	return NULL;
}

void
ipc_server_free(struct ipc_server *s)
{
	struct ipc_peer *p, *next;

	if (s == NULL)
		return;
	event_free(s->acceptable);
	event_free(s->resume);
	close(s->fd);
	for (p = LIST_FIRST(&s->peers); p != NULL; p = next) {
		next = LIST_NEXT(p, link);
		LIST_REMOVE(p, link);
		p->server = NULL;
		ipc_peer_close(p);
	}
	free(s->allowed);
	free(s);
}

bool
ipc_server_finish(struct ipc_server *s)
{
	struct ipc_peer *p;

	event_del(s->acceptable);
	event_del(s->resume);
	LIST_FOREACH(p, &s->peers, link)
		ipc_peer_finish(p);
	return s->npeers == 0;
}

void
ipc_server_each(
    struct ipc_server *s, void (*f)(struct ipc_peer *, void *), void *arg)
{
	struct ipc_peer *p, *next;

	for (p = LIST_FIRST(&s->peers); p != NULL; p = next) {
		next = LIST_NEXT(p, link);
		if (!p->closing && p->state == IPC_STATE_OPEN)
			f(p, arg);
	}
}

void
ipc_server_forget(struct ipc_server *s, struct ipc_peer *p)
{
	LIST_REMOVE(p, link);
	s->npeers--;
}
