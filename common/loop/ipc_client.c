/*
 * A connection that is kept up: when it ends, another attempt follows after a
 * pause that doubles from IPC_BACKOFF_MIN_MS to IPC_BACKOFF_MAX_MS and returns
 * to the minimum once a HELLO came. Start order of the daemons never matters.
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

static void
schedule(struct ipc_client *c)
{
	struct timeval tv;

	if (c->backoff_ms == 0)
		c->backoff_ms = IPC_BACKOFF_MIN_MS;
	else if (c->backoff_ms < IPC_BACKOFF_MAX_MS)
		c->backoff_ms *= 2;
	if (c->backoff_ms > IPC_BACKOFF_MAX_MS)
		c->backoff_ms = IPC_BACKOFF_MAX_MS;
	tv.tv_sec = c->backoff_ms / 1000;
	tv.tv_usec = c->backoff_ms % 1000 * 1000;
	evtimer_add(c->retry, &tv);
}

static void
connect_cb(evutil_socket_t fd, short what, void *arg)
{
	struct ipc_client *c = arg;
	struct err e;
	int sock;

	if ((sock = ipc_connect_path(c->path, true, &e)) == -1) {
		log_event(
		    LOG_LV_DEBUG, "ipc_connect", "%s: %s", c->name, e.text);
		c->other_build = false;
		schedule(c);
		return;
	}
	c->conn = ipc_peer_adopt(c->base, sock, c->name, c->local, c->peer,
	    true, IPC_STATE_NEW, &c->handlers, c->arg, &e);
	if (c->conn == NULL) {
		close(sock);
		schedule(c);
		return;
	}
	c->conn->client = c;
}

struct ipc_client *
ipc_client_new(struct event_base *base, const char *path, const char *name,
    enum ipc_role local, enum ipc_role peer,
    const struct ipc_handlers *handlers, void *arg, struct err *e)
{
	struct timeval now = {0, 0};
	struct ipc_client *c;

	if ((c = calloc(1, sizeof(*c))) == NULL)
		goto nomem;
	c->base = base;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->local = local;
	c->peer = peer;
	c->handlers = *handlers;
	c->arg = arg;
	if ((c->path = strdup(path)) == NULL ||
	    (c->retry = evtimer_new(base, connect_cb, c)) == NULL ||
	    evtimer_add(c->retry, &now) == -1)
		goto nomem;
	return c;
nomem:
	if (c != NULL) {
		if (c->retry != NULL)
			event_free(c->retry);
		free(c->path);
		free(c);
	}
	err_set(e, FAILURE_BUSY, "no memory for a connection");
	return NULL;
}

void
ipc_client_free(struct ipc_client *c)
{
	if (c == NULL)
		return;
	event_free(c->retry);
	if (c->conn != NULL) {
		c->conn->client = NULL;
		ipc_peer_close(c->conn);
	}
	free(c->path);
	free(c);
}

struct ipc_peer *
ipc_client_peer(struct ipc_client *c)
{
	if (c == NULL || c->conn == NULL || c->conn->closing || c->conn->deaf ||
	    c->conn->state != IPC_STATE_OPEN)
		return NULL;
	return c->conn;
}

unsigned
ipc_client_role(const struct ipc_client *c)
{
	return c != NULL ? (unsigned)c->peer : 0;
}

bool
ipc_client_other_build(const struct ipc_client *c)
{
	return c != NULL && c->other_build;
}

void
ipc_client_forget(struct ipc_client *c, struct ipc_peer *p)
{
	if (c->conn == p)
		c->conn = NULL;
	schedule(c);
}
