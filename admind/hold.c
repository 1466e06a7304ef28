/*
 * Seal at the vault, hold at the sandbox: the two steps that every run has in
 * common, whoever will RUN it.
 *
 * The sealed context is opaque here and goes only to sandboxd; a gateway
 * never gets it, so there is nothing to alter, replay or carry elsewhere.
 *
 * The vault may seal while the intent row is on its way to the disk: a sealed
 * context that no sandbox got is worth nothing. HELD goes out only after
 * hold_go(), which is called behind the commit: no row, no run.
 */
#include <stdlib.h>

#include "admind.h"
#include "log.h"

struct hold {
	struct admind *a;
	struct ipc_id execution;
	enum listener listener;
	bool asked;   /* the vault's answer is to come */
	bool failed;  /* err says how */
	bool go;      /* to be held as soon as it is sealed */
	bool dropped; /* nobody wants it: freed with the vault's answer */
	struct err err;
	struct buf context; /* sealed, while it waits for hold_go */
	hold_cb *cb;
	void *arg;
};

static void
hold_free(struct hold *h)
{
	buf_free(&h->context);
	free(h);
}

static void
finish(struct hold *h, const struct err *err)
{
	hold_cb *cb = h->cb;
	void *arg = h->arg;
	struct err copy;

	/* Whether sandboxd took it is unknown after silence: CANCEL of an id
	 * it does not have does nothing. */
	if (err != NULL) {
		hold_cancel(h->a, &h->execution, FAILURE_KILLED);
		copy = *err;
		err = &copy;
	}
	hold_free(h);
	cb(arg, err);
}

static void
held(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct hold *h = arg;
	struct err err;

	if (f != NULL && f->type == IPC_OK) {
		/* On this connection the sandbox now answers for it. Without
		 * memory for the set the sweep may call it lost too early;
		 * the record then says so: rather refuse. */
		if (idset_add(&h->a->live, &h->execution) == 0) {
			finish(h, NULL);
			return;
		}
		err_set(&err, FAILURE_BUSY, "out of memory");
	} else {
		answer_err(f, gone, &err);
		if (f == NULL)
			err_set(&err, FAILURE_SANDBOX_UNAVAILABLE,
			    "the sandbox did not take the call");
	}
	finish(h, &err);
}

static void
send_held(struct hold *h, struct ipc_bytes context)
{
	struct ipc_held m = {.execution = h->execution,
	    .listener = (uint8_t)h->listener,
	    .context = context};
	struct err err;

	if (ask(h->a->sandboxd, IPC_HELD, &m, held, h, &err) == -1)
		finish(h, &err);
}

static void
sealed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct hold *h = arg;
	struct ipc_sealed s = {0};

	h->asked = false;
	if (h->dropped) {
		hold_free(h);
		return;
	}
	if (f == NULL) {
		h->failed = true;
		err_set(&h->err, FAILURE_VAULT_UNAVAILABLE,
		    "the vault did not answer");
	} else if (f->type != IPC_SEALED) {
		h->failed = true;
		answer_err(f, gone, &h->err);
	} else {
		h->failed = ipc_decode(f, &s, &h->err) == -1;
	}
	if (h->go && h->failed) {
		finish(h, &h->err);
	} else if (h->go) {
		send_held(h, s.context);
	} else if (!h->failed) {
		buf_put(&h->context, s.context.p, s.context.n);
		if (h->context.failed) {
			h->failed = true;
			err_set(&h->err, FAILURE_BUSY, "out of memory");
		}
	}
}

struct hold *
hold_seal(struct admind *a, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener listener, enum context_kind kind,
    struct ipc_bytes material, hold_cb *cb, void *arg)
{
	struct ipc_seal_context m = {.execution = *execution,
	    .epoch = *epoch,
	    .listener = (uint8_t)listener,
	    .kind = (uint8_t)kind,
	    .material = material};
	struct hold *h = calloc(1, sizeof(*h));

	if (h == NULL)
		return NULL;
	h->a = a;
	h->execution = *execution;
	h->listener = listener;
	h->cb = cb;
	h->arg = arg;
	buf_init(&h->context, IPC_BLOB_MAX);
	if (ask(a->vault, IPC_SEAL_CONTEXT, &m, sealed, h, &h->err) == -1)
		h->failed = true;
	else
		h->asked = true;
	return h;
}

void
hold_go(struct hold *h)
{
	h->go = true;
	if (h->failed)
		finish(h, &h->err);
	else if (!h->asked)
		send_held(h, ipc_bytes(h->context.p, h->context.len));
}

void
hold_drop(struct hold *h)
{
	if (h == NULL)
		return;
	h->dropped = true;
	if (!h->asked)
		hold_free(h);
}

void
hold_start(struct admind *a, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener listener, enum context_kind kind,
    struct ipc_bytes material, hold_cb *cb, void *arg)
{
	struct hold *h =
	    hold_seal(a, execution, epoch, listener, kind, material, cb, arg);
	struct err err;

	if (h != NULL) {
		hold_go(h);
		return;
	}
	err_set(&err, FAILURE_BUSY, "out of memory");
	cb(arg, &err);
}

void
hold_cancel(struct admind *a, const struct ipc_id *execution, enum failure why)
{
	struct ipc_peer *peer = ipc_client_peer(a->sandboxd);
	struct ipc_cancel m = {
	    .execution = *execution, .failure = (uint16_t)why};

	if (peer != NULL)
		(void)ipc_send(peer, IPC_CANCEL, &m);
}
