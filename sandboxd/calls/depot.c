/* See depot.h. */
#include <event2/event.h>

#include <stdlib.h>
#include <string.h>

#include "call_internal.h"
#include "depot.h"
#include "log.h"

struct depot {
	struct event_base *base;
	struct ipc_client *client;
	struct ipc_peer *adopted; /* in tests only */
	bool asking;              /* STORE_ASK is under way */
	struct ipc_peer *asker;   /* NULL: the asker's connection ended */
	uint64_t request;
};

struct install {
	struct call *call; /* NULL: the call is gone; on_answer frees this */
	struct depot *depot;
	bool asked; /* a piece was sent and is not answered */
	bool over;  /* stored, or refused: no more pieces */
};

static int
on_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	return -1; /* the store only answers */
}

static const struct ipc_handlers handlers = {.message = on_message};

struct depot *
depot_new(struct event_base *base)
{
	struct depot *d = calloc(1, sizeof(*d));

	if (d != NULL)
		d->base = base;
	return d;
}

int
depot_connect(struct depot *d, const char *path, struct err *e)
{
	d->client = ipc_client_new(d->base, path, "sandboxd-store",
	    IPC_ROLE_SANDBOXD, IPC_ROLE_STORE, &handlers, d, e);
	return d->client == NULL ? -1 : 0;
}

void
depot_adopt(struct depot *d, struct ipc_peer *p)
{
	d->adopted = p;
}

void
depot_free(struct depot *d)
{
	if (d == NULL)
		return;
	ipc_client_free(d->client);
	free(d);
}

static struct ipc_peer *
store(const struct depot *d)
{
	return d->adopted != NULL ? d->adopted : ipc_client_peer(d->client);
}

const char *
depot_layers(const struct depot *d)
{
	struct ipc_peer *p = store(d);

	return p == NULL ? "" : ipc_peer_layers(p);
}

/* ---- pieces ---- */

static void
next(struct install *i, struct ipc_module_next *m)
{
	i->over = m->state != 0;
	/* The call was answered before, and waits for its runner's end. */
	if (i->call->channel == NULL)
		return;
	channel_next(i->call->channel, m);
}

static void
refused(struct install *i, const char *text)
{
	struct ipc_module_next m = {.state = 2, .text = ipc_str(text)};

	next(i, &m);
}

/* Tells admind and the runner that the module is stored. admind gets the digest
 * from sandboxd, not from the runner, so the digest that will be approved never
 * passes through a process that has read a wheel. */
static void
stored(struct install *i, const struct ipc_stored *s)
{
	struct call *c = i->call;
	struct ipc_module_stored told = {.execution = c->id,
	    .digest = s->digest,
	    .files = s->files,
	    .size = s->size};
	struct ipc_module_next m = {.state = 1,
	    .digest = s->digest,
	    .files = s->files,
	    .size = s->size,
	    .text = ipc_str("")};

	if (c->peer != NULL)
		(void)ipc_answer(c->peer, c->request, IPC_MODULE_STORED, &told);
	next(i, &m);
}

static void
on_answer(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct ipc_module_next more = {.text = ipc_str("")};
	struct install *i = arg;
	struct ipc_refused no;
	struct ipc_stored s;
	struct err e;
	char *text;

	i->asked = false;
	if (i->call == NULL) {
		free(i);
		return;
	}
	if (f != NULL && f->type == IPC_OK) {
		next(i, &more);
		return;
	}
	if (f != NULL && f->type == IPC_STORED && ipc_decode(f, &s, &e) == 0) {
		stored(i, &s);
		return;
	}
	if (f != NULL && f->type == IPC_REFUSED &&
	    ipc_decode(f, &no, &e) == 0 &&
	    (text = ipc_strdup(no.message)) != NULL) {
		refused(i, text);
		free(text);
		return;
	}
	refused(i, "mcpbox-sandboxd-store ended, or did not answer in time");
}

/*
 * Takes a piece. The piece comes from the process of an installer, which has
 * read a wheel and is no more trusted than the wheel. So the process may send
 * nothing but pieces of bytes, the next one only after the answer to the last
 * one. A piece out of turn ends the call.
 */
void
depot_part(struct call *c, bool last, struct ipc_bytes data)
{
	struct depot *d = c->all->depot;
	struct ipc_store_put m = {
	    .execution = c->id, .last = last, .data = data};
	struct install *i = c->install;
	struct ipc_peer *p = store(d);

	if (c->held->kind != CONTEXT_MODULE) {
		call_finish(c, OUTCOME_KILLED, FAILURE_KILLED,
		    "The tool was ended: it sent files, and is no installer.",
		    NULL);
		return;
	}
	if (i == NULL) {
		if ((i = calloc(1, sizeof(*i))) == NULL) {
			call_finish(c, OUTCOME_FAILED, FAILURE_BUSY,
			    "no memory for an installation", NULL);
			return;
		}
		i->call = c;
		i->depot = d;
		c->install = i;
	}
	if (i->asked || i->over) {
		call_finish(c, OUTCOME_KILLED, FAILURE_KILLED,
		    "The installer was ended: it sent out of turn.", NULL);
		return;
	}
	if (p == NULL ||
	    ipc_request(
		p, IPC_STORE_PUT, &m, DEPOT_PUT_MS, on_answer, i, NULL) != 0)
		refused(i, "mcpbox-sandboxd-store is not there");
	else
		i->asked = true;
}

void
depot_forget(struct call *c)
{
	struct install *i = c->install;
	struct ipc_store_drop m = {.execution = c->id};
	struct ipc_peer *p;

	c->install = NULL;
	if (i == NULL)
		return;
	if (!i->over && (p = store(i->depot)) != NULL)
		(void)ipc_send(p, IPC_STORE_DROP, &m);
	i->call = NULL;
	if (!i->asked)
		free(i);
}

/* ---- admind's question ---- */

static void
on_says(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct depot *d = arg;
	struct ipc_peer *p = d->asker;
	struct ipc_store_says m;
	struct err e;

	d->asker = NULL;
	d->asking = false;
	if (p == NULL)
		return;
	if (f != NULL && f->type == IPC_STORE_SAYS &&
	    ipc_decode(f, &m, &e) == 0)
		(void)ipc_answer(p, d->request, IPC_STORE_SAYS, &m);
	else
		(void)ipc_refuse(p, d->request, FAILURE_SANDBOX_UNAVAILABLE,
		    "mcpbox-sandboxd-store did not answer", 0);
}

int
depot_ask(struct depot *d, struct ipc_peer *asker, struct ipc_frame *f)
{
	struct ipc_peer *p = store(d);
	struct ipc_store_ask m;
	struct err e;

	if (ipc_decode(f, &m, &e) != 0 ||
	    m.digests.n > STORE_ASK_MAX * sizeof(struct ipc_hash))
		return -1;
	if (d->asking) {
		(void)ipc_refuse(asker, m.request, FAILURE_BUSY,
		    "the store is being asked already", 0);
	} else if (p == NULL ||
	    ipc_request(p, IPC_STORE_ASK, &m, DEPOT_ASK_MS, on_says, d, NULL) !=
		0) {
		(void)ipc_refuse(asker, m.request, FAILURE_SANDBOX_UNAVAILABLE,
		    "mcpbox-sandboxd-store is not there", 0);
	} else {
		d->asking = true;
		d->asker = asker;
		d->request = m.request;
	}
	return 0;
}

void
depot_gone(struct depot *d, const struct ipc_peer *p)
{
	if (d->asker == p)
		d->asker = NULL;
}
