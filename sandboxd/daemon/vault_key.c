#include <event2/event.h>

#include <string.h>

#include "ids.h"
#include "ipc_peer.h"
#include "log.h"
#include "vault_key.h"

static void ask(struct vault_key *);

static void
on_retry(evutil_socket_t fd, short what, void *arg)
{
	ask(arg);
}

static void
later(struct vault_key *v)
{
	static const struct timeval tv = {.tv_usec = VAULT_KEY_RETRY_MS * 1000};

	(void)evtimer_add(v->retry, &tv);
}

static void
on_key(void *arg, struct ipc_frame *f, enum failure gone)
{
	struct vault_key *v = arg;
	struct ipc_context_key m;
	struct err e;

	if (f == NULL || f->type != IPC_CONTEXT_KEY ||
	    ipc_decode(f, &m, &e) != 0 || m.key.n != KEY_LEN) {
		log_event(LOG_LV_WARN, "context_key", "no key from the vault");
		if (ipc_client_peer(v->vault) != NULL)
			later(v);
		return;
	}
	held_key(v->held, m.key.p);
	/* Wiped here, because the transport only frees the frame. */
	explicit_bzero((void *)(uintptr_t)m.key.p, m.key.n);
	log_event(LOG_LV_INFO, "context_key", "a fresh key from the vault");
}

static void
ask(struct vault_key *v)
{
	struct ipc_context_key_get m = {.epoch = *ipc_hello_epoch()};
	struct ipc_peer *p = ipc_client_peer(v->vault);

	if (p != NULL &&
	    ipc_request(p, IPC_CONTEXT_KEY_GET, &m, VAULT_KEY_ANSWER_MS, on_key,
		v, NULL) != 0)
		later(v);
}

static void
on_up(struct ipc_peer *p, void *arg)
{
	ask(arg);
}

static int
on_message(struct ipc_peer *p, struct ipc_frame *f, void *arg)
{
	return -1; /* the vault only answers */
}

int
vault_key_connect(struct vault_key *v, const struct proc *proc,
    struct held_set *held, struct err *e)
{
	static const struct ipc_handlers handlers = {
	    .up = on_up, .message = on_message};
	char path[128];

	v->held = held;
	if ((v->retry = evtimer_new(proc->base, on_retry, v)) == NULL)
		return err_set(e, FAILURE_INTERNAL, "no memory");
	if (proc_socket_path(
		proc, "admind-vault", "sandboxd", path, sizeof(path), e) != 0)
		return -1;
	v->vault = ipc_client_new(proc->base, path, "admind-vault",
	    IPC_ROLE_SANDBOXD, IPC_ROLE_VAULT, &handlers, v, e);
	return v->vault == NULL ? -1 : 0;
}
