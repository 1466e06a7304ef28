#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "vault.h"

/* A connected peer. The list begins with the newest peer, so that the newest
 * admind is found first. */
struct caller {
	uint64_t id;
	struct ipc_peer *peer;
	enum ipc_role role;
	struct caller *next;
};

int
callers_add(struct port *port, struct ipc_peer *peer)
{
	struct caller *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -1;
	c->id = ++port->v->next_caller;
	c->peer = peer;
	c->role = port->role;
	c->next = port->v->callers;
	port->v->callers = c;
	ipc_peer_set_data(peer, c);
	return 0;
}

void
callers_remove(struct vault *v, struct ipc_peer *peer)
{
	struct caller **p, *c;

	for (p = &v->callers; (c = *p) != NULL; p = &c->next)
		if (c->peer == peer) {
			*p = c->next;
			free(c);
			return;
		}
}

void
callers_free(struct vault *v)
{
	struct caller *c;

	while ((c = v->callers) != NULL) {
		v->callers = c->next;
		free(c);
	}
}

struct vault_ref
callers_ref(const struct port *port, struct ipc_peer *peer, uint64_t request)
{
	const struct caller *c = ipc_peer_data(peer);
	struct vault_ref ref = {c != NULL ? c->id : 0, request, port->role};

	return ref;
}

bool
callers_room(const struct port *port)
{
	size_t max = VAULT_OPS_MAX;

	if (port->role == IPC_ROLE_CTL)
		max += VAULT_OPS_ROOT;
	return port->v->ops < max;
}

static struct ipc_peer *
peer_of(struct vault *v, struct vault_ref ref)
{
	for (struct caller *c = v->callers; c != NULL; c = c->next)
		if (c->id == ref.caller)
			return c->peer;
	return NULL;
}

void
callers_answer(
    struct vault *v, struct vault_ref ref, enum ipc_type type, const void *msg)
{
	struct ipc_peer *p = peer_of(v, ref);

	if (p != NULL)
		(void)ipc_answer(p, ref.request, type, msg);
}

void
callers_ok(struct vault *v, struct vault_ref ref)
{
	struct ipc_peer *p = peer_of(v, ref);

	if (p != NULL)
		(void)ipc_answer_ok(p, ref.request);
}

void
callers_refuse_later(struct vault *v, struct vault_ref ref,
    enum failure failure, const char *message, uint64_t retry_ms)
{
	struct ipc_peer *p = peer_of(v, ref);

	if (p != NULL)
		(void)ipc_refuse(p, ref.request, failure, message, retry_ms);
}

void
callers_refuse(struct vault *v, struct vault_ref ref, enum failure failure,
    const char *message)
{
	callers_refuse_later(
	    v, ref, failure, message, failure == FAILURE_BUSY ? 1000 : 0);
}

void
callers_refuse_as(struct vault *v, struct vault_ref ref, struct ipc_frame *f,
    enum failure gone)
{
	struct ipc_refused r;
	char *text;

	if (f == NULL) {
		callers_refuse(v, ref, gone,
		    "admind did not answer; nothing was changed as far as the "
		    "vault knows");
		return;
	}
	if (f->type != IPC_REFUSED || ipc_decode(f, &r, NULL) == -1) {
		log_event(LOG_LV_WARN, "admind_answer",
		    "unexpected answer %s from admind", ipc_name(f->type));
		callers_refuse(v, ref, FAILURE_INTERNAL,
		    "admind gave an answer that makes no sense");
		return;
	}
	text = ipc_strdup(r.message);
	callers_refuse(v, ref,
	    r.failure < FAILURE_COUNT ? r.failure : FAILURE_INTERNAL,
	    text != NULL ? text : "admind refused");
	free(text);
}

int
callers_ask(struct vault *v, enum ipc_type type, const void *msg,
    ipc_answer_cb *cb, void *arg)
{
	for (struct caller *c = v->callers; c != NULL; c = c->next)
		if (c->role == IPC_ROLE_ADMIND)
			return ipc_request(
			    c->peer, type, msg, VAULT_ASK_MS, cb, arg, NULL);
	return -1;
}
