/* Connections, and answers to their peers. See op.h. */
#include <stdlib.h>

#include "lack.h"
#include "op.h"

struct link *
link_ref(struct link *l)
{
	l->refs++;
	return l;
}

void
link_unref(struct link *l)
{
	if (l != NULL && --l->refs == 0)
		free(l);
}

void
link_answer(
    struct link *l, uint64_t request, enum ipc_type type, const void *msg)
{
	if (l->peer != NULL)
		(void)ipc_answer(l->peer, request, type, msg);
}

void
link_ok(struct link *l, uint64_t request)
{
	if (l->peer != NULL)
		(void)ipc_answer_ok(l->peer, request);
}

/* Returns the time in ms that a client should wait before it tries again, or
 * 0. */
static uint64_t
retry_after(enum failure f)
{
	switch (f) {
	case FAILURE_BUSY:
		return 200;
	case FAILURE_STORAGE_UNAVAILABLE:
	case FAILURE_SANDBOX_UNAVAILABLE:
	case FAILURE_VAULT_UNAVAILABLE:
	case FAILURE_UPGRADING:
		return 1000;
	case FAILURE_ISSUER_UNAVAILABLE:
		return 2000;
	default:
		return 0;
	}
}

void
link_refuse(
    struct link *l, uint64_t request, enum failure f, const char *message)
{
	if (l->peer != NULL)
		(void)ipc_refuse(l->peer, request, f, message, retry_after(f));
}

void
link_refuse_later(struct link *l, uint64_t request, enum failure f,
    const char *message, uint64_t retry_ms, const char *data)
{
	struct ipc_refused m = {.failure = (uint16_t)f,
	    .message = ipc_str(message),
	    .retry_after_ms = retry_ms != 0 ? retry_ms : retry_after(f),
	    .data = ipc_str(data)};

	if (l->peer != NULL)
		(void)ipc_answer(l->peer, request, IPC_REFUSED, &m);
}

void
link_refuse_lack(struct link *l, uint64_t request, const struct lack *lack)
{
	struct ipc_refused m = {.failure = FAILURE_FORBIDDEN,
	    .message = ipc_str(lack->text),
	    .scope = ipc_str(lack->scope)};

	if (l->peer != NULL)
		(void)ipc_answer(l->peer, request, IPC_REFUSED, &m);
}
