/*
 * The orderly end of admind (docs/decisions/0055). For DRAIN_MS at most,
 * requests of clients that are in work are still answered. New requests are
 * refused as `upgrading`, so a client knows that its request has not begun.
 * Last, admind stops listening to clients. All bytes that were sent before that
 * moment are read and refused; later bytes fail at once on the client's side.
 * So every client without an answer knows why.
 *
 * Requests of other processes of the suite are still served, because sandboxd's
 * records and the vault's questions are parts of the work. Tails (follow.c)
 * never end by themselves and are not waited for. Tasks are not waited for
 * either: they run in sandboxd, and the next process of admind finds their rows
 * and listens to the tasks again. A call that may become a task
 * (after_questions) becomes one now.
 */
#include <event2/event.h>

#include "access.h"
#include "activity.h"
#include "daemon.h"
#include "ids.h"
#include "log.h"
#include "tasks.h"

enum {
	/* A statement takes milliseconds, and a commit that waits for the disk
	 * takes some hundred. Slower requests (a run of a draft, another
	 * server's answer) are cut off. Their clients are told that the work
	 * may have been done. */
	DRAIN_MS = 2000,
	DRAIN_TURN_MS = 10
};

static struct event *turn;
static uint64_t until_ms;
static bool flushed; /* nothing was in work one turn ago, so the answers were
		      * sent */

/* Tells each of the four servers to finish, even if an earlier one is not done.
 * Returns whether all are done. */
static bool
clients_gone(struct admind *a)
{
	bool local = ipc_server_finish(a->gw_local);
	bool tunnel = ipc_server_finish(a->gw_tunnel);
	bool http = ipc_server_finish(a->http);

	return ipc_server_finish(a->ctl) && local && tunnel && http;
}

static void
on_turn(evutil_socket_t fd, short what, void *arg)
{
	struct admind *a = arg;
	unsigned ops = a->nops - follow_count(a) + judging_count(a);
	bool late = now_boot_ms() >= until_ms;

	if (a->njobs > 0 || ops > 0 || a->ncloses > 0 ||
	    task_run_tell_all(a) > 0)
		flushed = false;
	else if (!flushed) {
		flushed = true;
		return;
	}
	if (!late && (!flushed || !clients_gone(a)))
		return;
	if (!flushed)
		log_event(LOG_LV_WARN, "drain_timeout",
		    "%u calls, %u requests and %u endings are left", a->njobs,
		    ops, a->ncloses);
	proc_end(&a->proc);
}

static void
begin(void *arg)
{
	static const struct timeval tv = {.tv_usec = DRAIN_TURN_MS * 1000};
	struct admind *a = arg;

	until_ms = now_boot_ms() + DRAIN_MS;
	turn = event_new(a->proc.base, -1, EV_PERSIST, on_turn, a);
	if (turn == NULL || event_add(turn, &tv) != 0)
		proc_end(&a->proc);
}

void
drain_start(struct admind *a)
{
	proc_on_stop(&a->proc, begin, a);
}

bool
drain_refuses(struct link *l, const struct ipc_frame *f)
{
	if (!l->a->proc.stopping || f->type == IPC_ACTIVITY_LEAVE ||
	    (l->role != IPC_ROLE_GATEWAY && l->role != IPC_ROLE_WEB &&
		l->role != IPC_ROLE_CTL))
		return false;
	link_refuse(
	    l, f->request, FAILURE_UPGRADING, "admind is being restarted");
	return true;
}
