/*
 * Event streams that live longer than one answer.
 *
 *	stream.c        opening, counting and ending them; GET
 *	stream_listen.c subscriptions/listen
 *	stream_tell.c   tells streams: list_changed, resources/updated, tasks
 *	stream_post.c   answers on event streams that can be resumed by GET
 *	stream_store.c  events sent to a session, for a resume; no I/O
 *
 * Nothing here decides what a client may see. A stream says only that something
 * changed, or passes on a task's state that admind gave for the stream's
 * credential. Before a stream says anything its credential is checked again.
 */
#ifndef STREAM_H
#define STREAM_H

#include "exchange.h"

enum {
	STREAM_ALL_LISTS = 15, /* of enum mcp_list */
	STREAM_URIS_MAX = 64,  /* resources that one listen watches */
	STREAM_TASKS_MAX = 64, /* tasks that one listen watches */
	STREAM_TASK_ID_MAX = 128,
	/* Streams written to before other clients have their turn: at some 10
	 * us each, other clients wait less than a millisecond. */
	STREAM_SLICE = 32,
	/* Time that a client waits after it lost a stream, in ms: long enough
	 * for a restart of this process, short enough to miss little. */
	STREAM_RETRY_MS = 1000,
	/* The longest wait a tool may ask of a client by pause_stream. */
	STREAM_RETRY_MAX_MS = 60 * 1000,
	/* Interval for dropping events that no client resumed. */
	STREAM_TIDY_MS = 30 * 1000
};

struct streams;

/* Makes gw->streams. 0, or -1 without memory. */
int stream_init(struct gateway *);
/* Ends all streams, each with its last message. Call it before httpd_free. */
void stream_shutdown(struct gateway *);
/* Frees gw->streams after httpd_free, when no stream may be left. */
void stream_free(struct gateway *);

/* Serves subscriptions/listen of the modern era. Takes over the exchange. */
void stream_listen(struct exchange *);
/* Serves a GET of the legacy era: opens the session's own stream, or goes on
 * with the broken stream that Last-Event-ID names. The exchange is identified
 * and its session checked. Takes over the exchange. */
void stream_get(struct exchange *);
/* Ends the stream of a deleted session and drops all that is kept for it. */
void stream_session_ended(struct gateway *, const struct ipc_id *);

/* Ends all streams of a credential that ended, named by its credential_hash().
 * NULL: all streams of the principal. */
void stream_credential_ended(
    struct gateway *, const struct ipc_hash *, const char *principal);

/* Marks every stream that wants to know of changes in these lists (mask of 1 <<
 * enum mcp_list). Marked streams are told of the changes soon. */
void stream_notify_lists(struct gateway *, unsigned lists);
/* Marks the streams that watch this URI, whose content changed without a new
 * version. */
void stream_notify_resource(struct gateway *, const char *uri);
/* Tells the streams the changes that waited while admind was away. */
void stream_admind_up(struct gateway *);
/* Asks for each stream whether its credential is good still. Streams whose
 * clients may not come in any more end. */
void stream_check_all(struct gateway *);
/* Tells the streams of an endpoint that its lists may have changed. They end if
 * it is gone. */
void stream_endpoint_changed(struct gateway *, const char *endpoint);
/* Calls f once with each credential by which this principal opened streams that
 * watch the task. The credential is valid during the call. f must not open or
 * end a stream. */
void stream_task_each(struct gateway *, const char *principal, const char *task,
    void (*f)(void *arg, const struct credential *), void *arg);
/* Sends notifications/tasks to the streams that were opened by just this
 * credential. params: a JSON object without _meta. */
void stream_notify_task(struct gateway *, const char *principal,
    const char *task, const struct credential *, struct ipc_bytes params);
/* Ends the streams that stream_notify_task would tell, because their credential
 * has ended. */
void stream_task_refused(struct gateway *, const char *principal,
    const char *task, const struct credential *);

/* An answer that is an event stream of a legacy session. Its events have ids,
 * and each is kept for a while, so that a client that lost the connection, or
 * was told to come back later, gets the later events by GET. */
struct stream_post;
/* Begins to keep the answer's events; the stream was begun on ex->req. Does
 * nothing without a session. */
void stream_post_begin(struct exchange *);
/* Sends one event. last: the event is the answer. After stream_post_begin the
 * event is kept, also while no client is connected. false: the client reads
 * slowly. */
bool stream_post_event(
    struct exchange *, const void *json, size_t n, bool last);
/* True if the answer is kept for a client that comes back. */
bool stream_post_kept(const struct exchange *);
/* Answers a GET that names an event of the answer: sends all later events, now
 * and as they come. Takes over the exchange, which is the GET's. */
void stream_post_resume(
    struct exchange *, struct stream_post *, uint32_t number);
/* Detaches the exchange from the kept answer. Events that were sent stay, for a
 * GET that resumes the answer. */
void stream_post_end(struct exchange *);
/* Takes a tool's hint that the client can wait without a connection (SEP-1699).
 * Closes the connection if the answer can be resumed; otherwise does
 * nothing. */
void stream_post_pause(struct exchange *, struct ipc_bytes json);

#endif
