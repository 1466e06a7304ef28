/*
 * Seal at the vault, hold at the sandbox: the two steps that every run has in
 * common, whoever will RUN it.
 *
 * The sealed context is opaque here and goes only to sandboxd; a gateway
 * never gets it, so there is nothing to alter, replay or carry elsewhere.
 */
#include <stdlib.h>

#include "admind.h"
#include "log.h"

struct hold {
	struct admind *a;
	struct ipc_id execution;
	enum listener listener;
	hold_cb *cb;
	void *arg;
};

static void
finish(struct hold *h, const struct err *err)
{
	hold_cb *cb = h->cb;
	void *arg = h->arg;

	/* Whether sandboxd took it is unknown after silence: CANCEL of an id
	 * it does not have does nothing. */
	if (err != NULL)
		hold_cancel(h->a, &h->execution, FAILURE_KILLED);
	free(h);
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
sealed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct hold *h = arg;
	struct ipc_sealed s;
	struct ipc_held m = {0};
	struct err err;

	if (f == NULL || f->type != IPC_SEALED) {
		answer_err(f, gone, &err);
		if (f == NULL)
			err_set(&err, FAILURE_VAULT_UNAVAILABLE,
			    "the vault did not answer");
		finish(h, &err);
		return;
	}
	if (ipc_decode(f, &s, &err) == -1) {
		finish(h, &err);
		return;
	}
	m.execution = h->execution;
	m.listener = (uint8_t)h->listener;
	m.context = s.context;
	if (ask(h->a->sandboxd, IPC_HELD, &m, held, h, &err) == -1)
		finish(h, &err);
}

void
hold_start(struct admind *a, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener listener, enum context_kind kind,
    struct ipc_bytes material, hold_cb *cb, void *arg)
{
	struct ipc_seal_context m = {.execution = *execution,
	    .epoch = *epoch,
	    .listener = (uint8_t)listener,
	    .kind = (uint8_t)kind,
	    .material = material};
	struct hold *h = calloc(1, sizeof(*h));
	struct err err;

	if (h == NULL) {
		err_set(&err, FAILURE_BUSY, "out of memory");
		cb(arg, &err);
		return;
	}
	h->a = a;
	h->execution = *execution;
	h->listener = listener;
	h->cb = cb;
	h->arg = arg;
	if (ask(a->vault, IPC_SEAL_CONTEXT, &m, sealed, h, &err) == -1)
		finish(h, &err);
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
