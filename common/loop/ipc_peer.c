/*
 * One connection on the loop. Each frame is checked before any of its content
 * is looked at: first whether the peer's role may send this type to us in this
 * state (the table), then the frame's shape (ipc_read, ipc_decode). A violation
 * closes the connection. The service manager or the back-off brings an honest
 * peer back, and a taken-over peer has gained nothing but its own end.
 */
#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "ids.h"
#include "ipc_peer_internal.h"
#include "log.h"
#include "rights.h"
#include "waits.h"

int ipc_peer_hello_ms = IPC_HELLO_MS;
static char *hello_process, *hello_layers;
static struct ipc_id hello_epoch;
static bool hello_epoch_set;

void
ipc_hello_set(const char *process, const char *layers)
{
	free(hello_process);
	free(hello_layers);
	hello_process = strdup(process);
	hello_layers = strdup(layers != NULL ? layers : "");
}

const struct ipc_id *
ipc_hello_epoch(void)
{
	if (!hello_epoch_set) {
		id_random(&hello_epoch);
		hello_epoch_set = true;
	}
	return &hello_epoch;
}

/* Returns the failure that our requests get when this peer is gone. */
static enum failure
gone_failure(const struct ipc_peer *p)
{
	switch (p->peer) {
	case IPC_ROLE_SANDBOXD:
	case IPC_ROLE_SPAWN:
	case IPC_ROLE_POOL:
	case IPC_ROLE_EGRESS:
		return FAILURE_SANDBOX_UNAVAILABLE;
	case IPC_ROLE_VAULT:
		return FAILURE_VAULT_UNAVAILABLE;
	default:
		return FAILURE_BUSY;
	}
}

static void
waiter_free(struct ipc_peer *p, struct ipc_waiter *w)
{
	TAILQ_REMOVE(&p->waiters, w, link);
	LIST_REMOVE(w, chain);
	p->nwaiters--;
	if (w->late)
		p->nlate--;
	if (w->timer != NULL)
		event_free(w->timer);
	free(w);
}

/* Finds a waiter. Ids are handed out in sequence, so all chains are short. */
static struct ipc_waiter *
waiter_find(struct ipc_peer *p, uint64_t id)
{
	struct ipc_waiter *w;

	LIST_FOREACH(w, &p->chains[id % IPC_CHAINS], chain)
		if (w->id == id)
			return w;
	return NULL;
}

static void
hello_timer_stop(struct ipc_peer *p)
{
	if (p->hello_timer != NULL)
		event_free(p->hello_timer);
	p->hello_timer = NULL;
}

/*
 * Ends a closed peer: tells the waiters and the owner, and frees the memory.
 * The loop calls this, so the function that closed the peer has returned by
 * now.
 */
static void
reap_cb(evutil_socket_t fd, short what, void *arg)
{
	struct ipc_peer *p = arg;
	struct ipc_waiter *w;

	ipc_peer_drop_out(p);
	while ((w = TAILQ_FIRST(&p->waiters)) != NULL) {
		ipc_answer_cb *cb = w->cb;
		void *cbarg = w->arg;
		enum failure gone =
		    w->unsent ? FAILURE_UPGRADING : gone_failure(p);

		waiter_free(p, w);
		if (cb != NULL)
			cb(cbarg, NULL, gone);
	}
	if (p->was_up && p->handlers.down != NULL)
		p->handlers.down(p, p->arg);
	if (p->server != NULL)
		ipc_server_forget(p->server, p);
	if (p->client != NULL)
		ipc_client_forget(p->client, p);
	event_free(p->readable);
	event_free(p->writable);
	event_free(p->again);
	event_free(p->reap);
	hello_timer_stop(p);
	free(p->layers);
	free(p);
}

void
ipc_peer_close(struct ipc_peer *p)
{
	if (p->closing)
		return;
	p->closing = true;
	event_del(p->readable);
	event_del(p->writable);
	event_del(p->again);
	hello_timer_stop(p);
	if (p->guarded)
		rights_close(p->fd);
	else
		close(p->fd);
	p->fd = -1;
	event_active(p->reap, EV_TIMEOUT, 0);
}

/* Logs a broken rule and closes. */
static void
violation(struct ipc_peer *p, const struct err *e)
{
	log_event(LOG_LV_WARN, "ipc_violation", "%s (pid %d): %s", p->name,
	    (int)p->pid, e->text);
	ipc_peer_close(p);
}

/* Takes the first frame of the other side. */
static void
take_hello(struct ipc_peer *p, struct ipc_frame *f)
{
	struct ipc_hello h;
	struct err e;

	if (ipc_decode(f, &h, &e) == -1) {
		violation(p, &e);
		return;
	}
	if (memcmp(&h.table, &ipc_table_hash, sizeof(h.table)) != 0) {
		log_event(LOG_LV_WARN, "ipc_other_build",
		    "%s is of another build; closing until both are alike",
		    p->name);
		if (p->client != NULL)
			p->client->other_build = true;
		ipc_peer_close(p);
		return;
	}
	hello_timer_stop(p);
	p->epoch = h.epoch;
	free(p->layers);
	p->layers = ipc_strdup(h.layers);
	p->state = IPC_STATE_OPEN;
	p->was_up = true;
	if (p->client != NULL) {
		p->client->backoff_ms = 0;
		p->client->other_build = false;
	}
	log_event(LOG_LV_DEBUG, "ipc_up", "%s (pid %d)", p->name, (int)p->pid);
	if (p->handlers.up != NULL)
		p->handlers.up(p, p->arg);
}

/* Gives an answer or part to its waiter. An answer without a waiter is a
 * violation. An answer to a forgotten waiter is dropped. */
static void
take_answer(struct ipc_peer *p, struct ipc_frame *f, bool final)
{
	struct ipc_waiter *w;
	ipc_answer_cb *cb;
	void *arg;
	struct err e;

	w = waiter_find(p, f->request);
	if (w == NULL) {
		err_set(&e, FAILURE_INVALID_REQUEST, "%s answers nothing",
		    ipc_name(f->type));
		violation(p, &e);
		return;
	}
	cb = w->cb;
	arg = w->arg;
	if (final)
		waiter_free(p, w);
	if (cb != NULL)
		cb(arg, f, FAILURE_NONE);
}

static void
take_frame(struct ipc_peer *p, struct ipc_frame *f)
{
	const struct ipc_info *info = ipc_info(f->type);
	struct err e;

	if (ipc_permit(f->type, p->peer, p->local, p->state, &e) == -1) {
		violation(p, &e);
		return;
	}
	log_event(LOG_LV_DEBUG, "ipc_recv", "%s: %s #%llu %zu bytes", p->name,
	    info->name, (unsigned long long)f->request,
	    f->payload_len + f->blob_len);
	if (f->type == IPC_HELLO)
		take_hello(p, f);
	else if (info->kind == IPC_KIND_ANS || info->kind == IPC_KIND_PART)
		take_answer(p, f, info->kind == IPC_KIND_ANS);
	else if (p->handlers.message(p, f, p->arg) == -1)
		ipc_peer_close(p);
}

/* Handles the end of input. If we stopped listening to the peer before, the
 * frames that are queued for it are sent first. */
static void
end_of_input(struct ipc_peer *p)
{
	if (!p->finishing || TAILQ_EMPTY(&p->out)) {
		ipc_peer_close(p);
		return;
	}
	p->ended = true;
	event_del(p->readable);
}

static void
readable_cb(evutil_socket_t fd, short what, void *arg)
{
	struct ipc_peer *p = arg;

	for (int i = 0; i < IPC_BURST && !p->closing && !p->paused; i++) {
		struct ipc_frame f;
		struct err e;
		int rc;

		if (p->guarded && rights_come(p->fd)) {
			(void)err_set(&e, FAILURE_INVALID_REQUEST,
			    "descriptors, of which a runner sends none");
			violation(p, &e);
			return;
		}
		rc = ipc_read(p->fd, &f, &e);
		if (rc == -1 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (rc == -1) {
			violation(p, &e);
			return;
		}
		if (rc == 0) {
			end_of_input(p);
			return;
		}
		take_frame(p, &f);
		ipc_frame_free(&f);
	}
}

static void
hello_late_cb(evutil_socket_t fd, short what, void *arg)
{
	struct ipc_peer *p = arg;

	log_event(LOG_LV_WARN, "ipc_no_hello", "%s (pid %d) says nothing",
	    p->name, (int)p->pid);
	ipc_peer_close(p);
}

static int
hello_timer_start(struct ipc_peer *p)
{
	struct timeval tv = {
	    ipc_peer_hello_ms / 1000, ipc_peer_hello_ms % 1000 * 1000};

	p->hello_timer = evtimer_new(p->base, hello_late_cb, p);
	return p->hello_timer != NULL ? evtimer_add(p->hello_timer, &tv) : -1;
}

struct ipc_peer *
ipc_peer_adopt(struct event_base *base, int sock, const char *name,
    enum ipc_role local, enum ipc_role peer, bool hello, enum ipc_state state,
    const struct ipc_handlers *handlers, void *arg, struct err *e)
{
	struct ipc_peer *p;
	uid_t uid;

	if ((p = calloc(1, sizeof(*p))) == NULL)
		goto nomem;
	p->base = base;
	p->fd = sock;
	snprintf(p->name, sizeof(p->name), "%s", name);
	p->local = local;
	p->peer = peer;
	p->hello = hello;
	p->state = hello ? IPC_STATE_NEW : state;
	p->was_up = !hello;
	p->handlers = *handlers;
	p->arg = arg;
	p->next_id = 1;
	TAILQ_INIT(&p->out);
	TAILQ_INIT(&p->waiters);
	if (ipc_peer_cred(sock, &uid, &p->pid, NULL) == -1)
		p->pid = -1;
	evutil_make_socket_nonblocking(sock);
	/* A tool's code in a runner may write these packets, and no message of
	 * a runner carries a descriptor (messages/runner.h): refuse
	 * descriptors. */
	if (peer == IPC_ROLE_RUNNER) {
		if (rights_guard(sock) == -1)
			goto unguarded;
		p->guarded = true;
	}
	p->readable =
	    event_new(base, sock, EV_READ | EV_PERSIST, readable_cb, p);
	p->writable = event_new(base, sock, EV_WRITE, ipc_peer_writable, p);
	p->again = evtimer_new(base, ipc_peer_writable, p);
	p->reap = event_new(base, -1, 0, reap_cb, p);
	if (p->readable == NULL || p->writable == NULL || p->again == NULL ||
	    p->reap == NULL || (hello && hello_timer_start(p) == -1) ||
	    event_add(p->readable, NULL) == -1)
		goto nomem;
	if (hello) {
		struct ipc_hello h = {.table = ipc_table_hash,
		    .process = ipc_str(hello_process),
		    .build = ipc_str(MCPBOX_VERSION),
		    .epoch = *ipc_hello_epoch(),
		    .layers = ipc_str(hello_layers)};

		/* Without HELLO the other side takes nothing from us, though
		 * its own HELLO would open this peer. If the socket is dead,
		 * the peer is closing, and the loop reaps it. */
		if (ipc_peer_enqueue(p, IPC_HELLO, 0, &h) == -1 && !p->closing)
			goto nomem;
	}
	return p;

nomem:
	if (p != NULL) {
		if (p->readable != NULL)
			event_free(p->readable);
		if (p->writable != NULL)
			event_free(p->writable);
		if (p->again != NULL)
			event_free(p->again);
		if (p->reap != NULL)
			event_free(p->reap);
		hello_timer_stop(p);
		free(p);
	}
	err_set(e, FAILURE_BUSY, "no memory for a connection");
	return NULL;
unguarded:
	free(p);
	err_sys(e, FAILURE_INTERNAL, "SO_PASSRIGHTS, without a closer");
	return NULL;
}

void
ipc_peer_handlers(
    struct ipc_peer *p, const struct ipc_handlers *handlers, void *arg)
{
	p->handlers = *handlers;
	p->arg = arg;
}

void
ipc_peer_set_state(struct ipc_peer *p, enum ipc_state state)
{
	p->state = state;
}

/* Tells a waiter that no answer came in time. The waiter stays as a tombstone,
 * so that a late answer is not taken for an answer without a waiter. Also runs
 * for a request that never left (ipc_peer_unsent), which no process will
 * answer. */
static void
waiter_timeout_cb(evutil_socket_t fd, short what, void *arg)
{
	struct ipc_waiter *w = arg;
	ipc_answer_cb *cb = w->cb;

	w->cb = NULL;
	w->late = true;
	w->peer->nlate++;
	if (cb != NULL)
		cb(w->arg, NULL, w->unsent ? FAILURE_UPGRADING : FAILURE_BUSY);
}

void
ipc_peer_unsent(struct ipc_peer *p, uint64_t waiter)
{
	struct ipc_waiter *w = waiter_find(p, waiter);

	if (w == NULL || w->late)
		return;
	w->unsent = true;
	event_active(w->timer, EV_TIMEOUT, 0);
}

int
ipc_request(struct ipc_peer *p, enum ipc_type type, const void *msg,
    int timeout_ms, ipc_answer_cb *cb, void *arg, uint64_t *id)
{
	int ms = wait_ms(timeout_ms);
	struct timeval tv = {ms / 1000, ms % 1000 * 1000};
	struct ipc_waiter *w;

	if (p->closing)
		return -1;
	if (p->nwaiters >= IPC_WAITERS_MAX) {
		/* A peer that has left this many requests unanswered past their
		 * time will never answer them. Only a new connection helps. */
		if (p->nlate > IPC_WAITERS_MAX / 2) {
			log_event(LOG_LV_WARN, "ipc_silent",
			    "%s left %zu requests unanswered; closing it",
			    p->name, p->nlate);
			ipc_peer_close(p);
		}
		return -1;
	}
	if ((w = calloc(1, sizeof(*w))) == NULL)
		return -1;
	w->id = p->next_id++;
	w->cb = cb;
	w->arg = arg;
	w->peer = p;
	w->timer = evtimer_new(p->base, waiter_timeout_cb, w);
	if (w->timer == NULL || evtimer_add(w->timer, &tv) == -1) {
		if (w->timer != NULL)
			event_free(w->timer);
		free(w);
		return -1;
	}
	TAILQ_INSERT_TAIL(&p->waiters, w, link);
	LIST_INSERT_HEAD(&p->chains[w->id % IPC_CHAINS], w, chain);
	p->nwaiters++;
	if (ipc_peer_enqueue(p, type, w->id, msg) == -1) {
		waiter_free(p, w);
		return -1;
	}
	if (id != NULL)
		*id = w->id;
	return 0;
}

void
ipc_forget(struct ipc_peer *p, uint64_t id)
{
	struct ipc_waiter *w = waiter_find(p, id);

	if (w != NULL)
		w->cb = NULL;
}

void
ipc_peer_finish(struct ipc_peer *p)
{
	if (p->closing || p->finishing)
		return;
	p->finishing = true;
	/* Packets that the peer sends from now on fail with EPIPE. Packets that
	 * it sent before are still read, and then comes the end of input
	 * (unix(7) sockets keep their queue at shutdown(2)). */
	(void)shutdown(p->fd, SHUT_RD);
	ipc_peer_resume(p);
}

void
ipc_peer_pause(struct ipc_peer *p)
{
	if (p->closing || p->paused)
		return;
	p->paused = true;
	event_del(p->readable);
}

void
ipc_peer_resume(struct ipc_peer *p)
{
	if (p->closing || !p->paused)
		return;
	p->paused = false;
	event_add(p->readable, NULL);
}

size_t
ipc_peer_queued(const struct ipc_peer *p)
{
	return p->queued;
}

void *
ipc_peer_data(const struct ipc_peer *p)
{
	return p->data;
}

void
ipc_peer_set_data(struct ipc_peer *p, void *data)
{
	p->data = data;
}

const char *
ipc_peer_name(const struct ipc_peer *p)
{
	return p->name;
}

struct ipc_id
ipc_peer_epoch(const struct ipc_peer *p)
{
	return p->epoch;
}

const char *
ipc_peer_layers(const struct ipc_peer *p)
{
	return p->layers != NULL ? p->layers : "";
}
