#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "log.h"
#include "problem.h"
#include "web.h"

static void
refused(struct call *c, struct ipc_frame *f)
{
	struct ipc_refused r;
	struct err e;
	char *message;

	if (ipc_decode(f, &r, &e) < 0 ||
	    (message = ipc_strdup(r.message)) == NULL) {
		problem_send(
		    c, FAILURE_INTERNAL, "an answer was unreadable", NULL);
		return;
	}
	if (r.retry_after_ms > 0)
		problem_retry(
		    c, (enum failure)r.failure, message, r.retry_after_ms);
	else
		problem_send(c, (enum failure)r.failure, message, NULL);
	free(message);
}

/* Takes the final answer. f is NULL if there is none; `gone` says why. The
 * failure names the process that did not answer, since the client's next step
 * depends on the process. */
static void
answered(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct call *c = arg;
	bool vault = strcmp(c->unreachable, "admind-vault") == 0;

	if (c->req == NULL) {
		call_free(c);
		return;
	}
	if (f == NULL) {
		log_event(LOG_LV_WARN, "no_answer", "%s: %s", c->unreachable,
		    failure_info(gone)->name);
		if (gone == FAILURE_UPGRADING)
			problem_retry(c, FAILURE_UPGRADING,
			    "it was stopped before it read this; nothing was "
			    "done",
			    1000);
		else if (gone == FAILURE_BUSY)
			problem_retry(c, FAILURE_BUSY,
			    "no answer in time; what was asked for may still "
			    "happen",
			    1000);
		else
			problem_away(c, vault,
			    "the connection ended before the answer; what was "
			    "asked for may have happened");
		return;
	}
	if (f->type == IPC_REFUSED && !c->takes_refusals)
		refused(c, f);
	else
		c->then(c, f);
}

static void
ask(struct call *c, struct ipc_client *client, enum ipc_type type,
    const void *msg, void (*then)(struct call *, struct ipc_frame *))
{
	struct ipc_peer *peer = ipc_client_peer(client);
	bool vault = strcmp(c->unreachable, "admind-vault") == 0;
	uint64_t id;

	c->then = then;
	if (peer == NULL ||
	    ipc_request(peer, type, msg, c->slow ? WEB_SLOW_MS : WEB_TIMEOUT_MS,
		answered, c, &id) < 0)
		problem_away(c, vault,
		    vault ? "admind-vault is not reachable"
			  : "admind is not reachable");
}

void
ask_vault(struct call *c, enum ipc_type type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *))
{
	/* routes.def lets no key come to a handler that asks the vault. If a
	 * row were wrong, the vault would still get nothing of a key. */
	if (c->by_key) {
		problem_send(c, FAILURE_FORBIDDEN,
		    "no key may do this: a person does it, with a login", NULL);
		return;
	}
	c->unreachable = "admind-vault";
	ask(c, c->web->vault, type, msg, then);
}

void
ask_admind(struct call *c, enum ipc_type type, const void *msg,
    void (*then)(struct call *, struct ipc_frame *))
{
	c->unreachable = "admind";
	ask(c, c->web->admind, type, msg, then);
}
