/*
 * A call that waits for a person's yes, in both eras.
 *
 * admind answered AUTHORISE with PENDING. DECIDED comes when a person decided.
 * Then AUTHORISE is sent again and names the approval request: admind lets the
 * call run, refuses it with the reason, or answers PENDING again.
 *
 * Modern: the request is answered "input_required" with requestState only
 * (parked.h); the client calls again. A retry that comes before the decision is
 * kept waiting for HOLD_MS, so that a client that retries at once does not
 * retry thousands of times.
 *
 * Legacy: the request waits on its event stream. Comments keep the stream open.
 * A client without an event stream is told to call again later. admind then
 * finds the same approval request by principal, tool and arguments.
 *
 * A hostile gatewayd could ask for calls here, which fills a bounded queue. It
 * can't approve, and without another principal's credential it can't run a call
 * approved for that principal.
 */
#include <stdio.h>
#include <string.h>

#include <event2/event.h>

#include "call_internal.h"
#include "ids.h"
#include "log.h"
#include "stream.h"

enum {
	HOLD_MS = 20 * 1000,  /* below other programs' time-outs: 60 s */
	AGAIN_MS = 30 * 1000, /* asks again in case DECIDED was lost */
	/* A requestState is valid for this long after its approval request
	 * ended, so that a late client learns how the request ended. */
	GRACE_MS = 60 * 1000,
	AFTER_MS = 100 /* wait past the expiry: clocks may differ */
};

static bool
is_gone(const struct call *c)
{
	return c->ex->req == NULL && !stream_post_kept(c->ex);
}

static void
end(struct call *c, enum failure f, const char *text)
{
	struct refusal r;

	refusal_set(&r, f, 0, text);
	call_end_refused(c, &r);
}

/* ---- modern ---- */

static void
resume(void *arg, struct exchange *ex)
{
	struct call *c = arg;

	c->ex = ex;
	ex->call = c;
	c->held = true;
	call_authorise(c);
}

static void
expired(void *arg)
{
	struct call *c = arg;

	c->parked = NULL;
	call_drop(c);
}

/* Tells the approval request's id and expiry to a client that can't wait. */
static void
tell_later(struct call *c)
{
	char id[UUID_TEXT_LEN + 1], when[TIME_TEXT_LEN + 1];
	char text[MCP_MESSAGE_MAX];

	uuid_text(&c->approval, id);
	time_text(c->expires_ms * 1000, when);
	snprintf(text, sizeof(text),
	    "Error: this call must be approved by an administrator first "
	    "(request %s, until %s). Call again with the same arguments once "
	    "it is.",
	    id, when);
	end(c, FAILURE_CONFIRMATION_PENDING, text);
}

static void
park(struct call *c)
{
	static const struct parked_owner owner = {
	    .resume = resume, .expired = expired};
	struct exchange *ex = c->ex;
	struct refusal no;

	if (c->parked == NULL)
		c->parked = parked_new(c->gw, ex, &owner, c, &no);
	if (c->parked == NULL) {
		tell_later(c);
		return;
	}
	c->ex = NULL;
	parked_answer(
	    c->parked, ex, c->expires_ms + GRACE_MS, ipc_bytes(NULL, 0));
}

/* ---- both ---- */

static void
again(struct call *c)
{
	if (is_gone(c))
		end(c, FAILURE_KILLED, "The client went away.");
	else
		call_authorise(c);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct call *c = arg;

	(void)fd;
	(void)what;
	if (c->state != CALL_CONFIRMING || c->ex == NULL)
		return;
	/* After the approval request's expiry, again() asks admind how the
	 * request ended. Before that, a modern client's call is parked. */
	if (c->ex->m.modern && now_us() / 1000 < c->expires_ms)
		park(c);
	else
		again(c);
}

static void
wait_for(struct call *c, uint64_t ms)
{
	uint64_t now = now_us() / 1000;
	uint64_t left = c->expires_ms > now ? c->expires_ms - now : 0;
	struct timeval tv;

	if (ms > left + AFTER_MS)
		ms = left + AFTER_MS;
	tv.tv_sec = (time_t)(ms / 1000);
	tv.tv_usec = (suseconds_t)(ms % 1000 * 1000);
	if (c->again == NULL)
		c->again = evtimer_new(c->gw->proc.base, on_timer, c);
	if (c->again == NULL || evtimer_add(c->again, &tv) != 0)
		tell_later(c);
}

void
call_confirm(struct call *c, const struct ipc_pending *m)
{
	bool decided = c->decided;

	c->approval = m->approval;
	c->expires_ms = m->expires_ms;
	c->decided = false;
	call_set_state(c, CALL_CONFIRMING);
	if (c->cancelled) {
		end(c, FAILURE_KILLED, call_why_cancelled(c));
	} else if (decided) {
		/* DECIDED came before this PENDING was read. */
		again(c);
	} else if (c->gw->draining) {
		tell_later(c); /* this process ends soon, so a requestState
				* would be useless */
	} else if (c->ex->m.modern) {
		if (c->held)
			wait_for(c, HOLD_MS);
		else
			park(c);
	} else if (c->ex->members.array || !c->ex->names_sse) {
		tell_later(c);
	} else {
		exchange_quiet(c->ex);
		wait_for(c, AGAIN_MS);
	}
}

int
call_decided(struct gateway *gw, struct ipc_frame *f)
{
	struct ipc_decided m;
	struct call *c, *next;

	if (ipc_decode(f, &m, NULL) < 0)
		return -1;
	for (c = TAILQ_FIRST(&gw->calls); c != NULL; c = next) {
		next = TAILQ_NEXT(c, all);
		if (memcmp(&c->approval, &m.approval, sizeof(m.approval)) != 0)
			continue;
		if (c->state == CALL_AUTHORISING)
			c->decided = true;
		else if (c->state == CALL_CONFIRMING && c->ex != NULL)
			again(c); /* may free c */
	}
	return 0;
}

void
call_confirm_all_later(struct gateway *gw)
{
	struct call *c, *next;

	for (c = TAILQ_FIRST(&gw->calls); c != NULL; c = next) {
		next = TAILQ_NEXT(c, all);
		if (c->state == CALL_CONFIRMING && c->ex != NULL)
			tell_later(c);
	}
}

/* Ends a call that no client waits for any more. The approval request stays in
 * the queue until it expires, because the same call may come again. */
void
call_confirm_end(struct call *c)
{
	if (c->ex == NULL)
		call_drop(c);
	else if (c->gw->admind == NULL)
		end(c, FAILURE_UPGRADING,
		    "The server was stopped before the tool was run.");
	else
		end(c, FAILURE_KILLED, call_why_cancelled(c));
}
