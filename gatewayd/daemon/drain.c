/*
 * The end of a gateway in order (docs/decisions/0055).
 *
 *	at once		clients whose calls wait for a person's yes are told to
 *			call again (the request waits in admind); no client is
 *			asked anything more, and no event stream is opened
 *	until		calls are answered as always; an answer ends its
 *	drain_timeout	connection (httpd_drain)
 *	nothing else	event streams end, each with its last message; they
 *	is left		are last, since their clients come back at once
 *	drain_timeout	the links to admind and sandboxd close: calls still
 *	is over		under way end as after a broken link, with `lost` if
 *			the tool may have run, else `upgrading`
 *
 * A call that still runs in sandboxd has then lost its gateway, as after a
 * crash: the call goes on up to its own limit, and its record says undelivered.
 * The link closes before the client is told `lost`, because a result that came
 * later would be recorded as delivered.
 *
 * Calls and kept results whose clients are away do not delay the end. They end
 * with the process, and a tool that asks is told that no client can be asked
 * any more.
 */
#include <event2/event.h>

#include "call_internal.h"
#include "daemon.h"
#include "log.h"
#include "stream.h"

static void
late(void *arg)
{
	struct gateway *gw = arg;
	unsigned n = 0;
	struct call *c;

	TAILQ_FOREACH(c, &gw->calls, all)
		if (c->ex != NULL)
			n++;
	log_event(LOG_LV_WARN, "drain_timeout",
	    "%u calls are not waited for any longer", n);
	ipc_client_free(gw->sandboxd);
	gw->sandboxd = NULL;
	ipc_client_free(gw->admind);
	gw->admind = NULL;
	/* The link is gone, so a retry could send nothing. */
	if (gw->attach_retry != NULL)
		event_del(gw->attach_retry);
}

static void
streams(void *arg)
{
	stream_shutdown(arg);
}

static void
done(void *arg)
{
	struct gateway *gw = arg;

	proc_end(&gw->proc);
}

void
drain_start(void *arg)
{
	struct gateway *gw = arg;
	struct httpd_draining d = {
	    .ms = (uint64_t)conf_int(gw->proc.conf, "drain_timeout"),
	    .streams = streams,
	    .late = late,
	    .done = done,
	    .arg = gw,
	};

	gw->draining = true;
	call_confirm_all_later(gw);
	httpd_drain(gw->httpd, &d);
}
