/*
 * The two steps before every run, whichever process sends the RUN: the vault
 * seals the run's context, and sandboxd holds the sealed context.
 *
 * The sealed context is opaque here and goes only to sandboxd. A gateway never
 * gets it, so a gateway has nothing to alter, replay or carry elsewhere.
 *
 * Both steps may be made while the intent row is on its way to the disk. A held
 * context does not run before a RUN names its execution: 128 random bits that
 * leave this process in RUN_ID alone. RUN_ID follows hold_go(), which is called
 * after the commit. So no process gets the id without a row, and nothing runs
 * without the id. A held context that gets no row is dropped again (hold_drop).
 * sandboxd then forgets it without a record, since there is no row that a
 * record could close.
 *
 * Sealing may even begin before the call's arguments are known to be valid
 * (hold_wait). The sealed context then waits here, and goes to sandboxd when
 * the arguments are known to be valid (hold_may). For a refused call the vault
 * has worked in vain, but within the caller's rate, so no other caller pays.
 */
#include <stdlib.h>

#include "hold.h"
#include "log.h"
#include "op.h"

struct hold {
	struct admind *a;
	struct ipc_id execution;
	enum listener listener;
	bool waits; /* HELD must wait for hold_may() */
	/* the answer of the vault or the sandbox is outstanding */
	bool asked;
	bool sent;    /* HELD was sent: the sandbox may have the context */
	bool held;    /* the sandbox has the context */
	bool failed;  /* err says why */
	bool go;      /* the row is committed: cb may be called */
	bool dropped; /* no longer wanted: freed when the answer comes */
	struct err err;
	hold_cb *cb;
	void *arg;
	struct buf context;   /* the sealed context, while it waits */
	struct buf arguments; /* the arguments for HELD */
};

static void
hold_free(struct hold *h)
{
	buf_free(&h->context);
	buf_free(&h->arguments);
	free(h);
}

/* Tells the caller the outcome. Called after hold_go() only. */
static void
finish(struct hold *h)
{
	hold_cb *cb = h->cb;
	void *arg = h->arg;
	struct err err = h->err;
	bool failed = h->failed;

	/* If sandboxd did not answer, it may hold the context nevertheless.
	 * CANCEL of an id that sandboxd does not have does nothing. */
	if (failed)
		hold_cancel(h->a, &h->execution, FAILURE_KILLED);
	hold_free(h);
	cb(arg, failed ? &err : NULL);
}

static void
fail(struct hold *h, const struct err *err)
{
	h->failed = true;
	h->err = *err;
	if (h->go)
		finish(h);
}

static void
held(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct hold *h = arg;
	struct err err;

	h->asked = false;
	if (h->dropped) {
		hold_free(h);
		return;
	}
	if (f != NULL && f->type == IPC_OK) {
		/*
		 * From now on the sandbox answers for this execution. If the
		 * execution were not in `live` for lack of memory, the sweep
		 * might call it lost too early, and the record would say so. So
		 * refuse the call instead.
		 */
		if (idset_add(&h->a->live, &h->execution) == 0) {
			h->held = true;
			if (h->go)
				finish(h);
			return;
		}
		err_set(&err, FAILURE_BUSY, "out of memory");
	} else {
		answer_err(f, gone, &err);
		if (f == NULL)
			err_set(&err, FAILURE_SANDBOX_UNAVAILABLE,
			    "the sandbox did not take the call");
	}
	fail(h, &err);
}

static void
send_held(struct hold *h, struct ipc_bytes context)
{
	struct ipc_held m = {.execution = h->execution,
	    .listener = (uint8_t)h->listener,
	    .arguments = ipc_bytes(h->arguments.p, h->arguments.len),
	    .context = context};
	struct err err;

	if (ask(h->a->sandboxd, IPC_HELD, &m, held, h, &err) == -1) {
		fail(h, &err);
		return;
	}
	h->asked = true;
	h->sent = true;
}

static void
sealed(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct hold *h = arg;
	struct ipc_sealed s = {0};
	struct err err;

	h->asked = false;
	if (h->dropped) {
		hold_free(h);
		return;
	}
	if (f == NULL)
		err_set(&err, FAILURE_VAULT_UNAVAILABLE,
		    "the vault did not answer");
	else if (f->type != IPC_SEALED)
		answer_err(f, gone, &err);
	else if (ipc_decode(f, &s, &err) == 0) {
		if (!h->waits) {
			send_held(h, s.context);
			return;
		}
		buf_put(&h->context, s.context.p, s.context.n);
		if (!h->context.failed)
			return;
		err_set(&err, FAILURE_BUSY, "out of memory");
	}
	fail(h, &err);
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
	buf_init(&h->arguments, ARGUMENTS_KEPT);
	if (ask(a->vault, IPC_SEAL_CONTEXT, &m, sealed, h, &h->err) == -1)
		h->failed = true;
	else
		h->asked = true;
	return h;
}

void
hold_wait(struct hold *h)
{
	h->waits = true;
}

void
hold_may(struct hold *h, struct ipc_bytes arguments)
{
	struct err err;

	h->waits = false;
	buf_put(&h->arguments, arguments.p, arguments.n);
	if (h->arguments.failed) {
		err_set(&err, FAILURE_BUSY, "out of memory");
		if (!h->failed)
			fail(h, &err);
	} else if (h->context.len > 0 && !h->failed) {
		send_held(h, ipc_bytes(h->context.p, h->context.len));
	}
}

void
hold_go(struct hold *h)
{
	h->go = true;
	if (h->failed || h->held)
		finish(h);
}

/* Takes the execution out of `live` even if no OK to HELD came: if sandboxd
 * named the execution after a reconnection, it is in `live` all the same
 * (records.c). */
void
hold_drop(struct hold *h)
{
	if (h == NULL)
		return;
	if (h->sent) {
		hold_cancel(h->a, &h->execution, FAILURE_NONE);
		idset_del(&h->a->live, &h->execution);
	}
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
