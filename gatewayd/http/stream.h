/*
 * Event streams that live longer than one answer.
 *
 *	stream.c        opening, counting and ending them; GET
 *	stream_listen.c subscriptions/listen
 *	stream_tell.c   who is told what: list_changed, resources/updated, tasks
 *	stream_post.c   answers on event streams that can be resumed by GET
 *	stream_store.c  what was sent to a session, for a resume; no I/O
 *
 * Nothing here decides what a client may see: a stream says only that
 * something changed, and before it says so its credential is asked for again.
 */
#ifndef STREAM_H
#define STREAM_H

#include "exchange.h"

enum {
	STREAM_ALL_LISTS = 15, /* of enum mcp_list */
	STREAM_URIS_MAX = 64,  /* resources one listen watches, as a session */
	STREAM_TASKS_MAX = 64, /* tasks it watches */
	STREAM_TASK_ID_MAX = 128,
	/* Streams written to before other clients have their turn: at some
	 * 10 us each, none of those waits for a millisecond. */
	STREAM_SLICE = 32,
	/* How long a client that lost a stream waits, in ms: long enough for a
	 * restart of this process, short enough to miss little. */
	STREAM_RETRY_MS = 1000,
	/* The longest wait a tool may ask of a client by pause_stream. */
	STREAM_RETRY_MAX_MS = 60 * 1000,
	/* How often what nobody resumed is thrown away. */
	STREAM_TIDY_MS = 30 * 1000
};

struct streams;

/* gw->streams. 0 or -1 without memory. */
int stream_init(struct gateway *);
/* Ends all of them, each by its last message; before httpd_free. */
void stream_shutdown(struct gateway *);
/* After httpd_free: nothing may be left of them. */
void stream_free(struct gateway *);

/* subscriptions/listen of the modern era. Takes the exchange. */
void stream_listen(struct exchange *);
/* GET of the legacy era: the session's own stream, or, with a Last-Event-ID, a
 * broken one goes on. Identified, its session checked; takes the exchange. */
void stream_get(struct exchange *);
/* A session was deleted: its stream ends, what is kept for it is dropped. */
void stream_session_ended(struct gateway *, const struct ipc_id *);

/* This credential is good no more: all its streams end. */
void stream_credential_ended(struct gateway *, const struct ipc_hash *);

/* These lists changed (mask of 1 << enum mcp_list): tells every stream that
 * wants to know, soon. */
void stream_notify_lists(struct gateway *, unsigned lists);
/* The content behind this URI changed, though no version did. */
void stream_notify_resource(struct gateway *, const char *uri);
/* What could not be told while admind was away. */
void stream_admind_up(struct gateway *);
/* Calls f with each credential by which streams of this principal that watch
 * the task were opened, once; it is valid during the call. f opens and ends no
 * stream. */
void stream_task_each(struct gateway *, const char *principal, const char *task,
    void (*f)(void *arg, const char *credential), void *arg);
/* Sends notifications/tasks to those that were opened by just this credential;
 * params: a JSON object without _meta. */
void stream_notify_task(struct gateway *, const char *principal,
    const char *task, const char *credential, struct ipc_bytes params);
/* The credential is good no more: these streams end. */
void stream_task_refused(struct gateway *, const char *principal,
    const char *task, const char *credential);

/*
 * An answer that is an event stream of a legacy session. Beginning it gives
 * its events ids, and keeps each for a while: a client that lost the
 * connection, or was told to come back later, has the rest by GET.
 */
struct stream_post;
/* The stream was begun on ex->req. Does nothing without a session. */
void stream_post_begin(struct exchange *);
/* One event; last: it is the answer. false: the client reads slowly. What was
 * begun by stream_post_begin is kept also while nobody is connected. */
bool stream_post_event(
    struct exchange *, const void *json, size_t n, bool last);
/* Is the answer kept for a client that comes back? */
bool stream_post_kept(const struct exchange *);
/* A GET that names an event of the answer: all after it, and what is yet to
 * come. Takes ex, the GET's exchange. */
void stream_post_resume(
    struct exchange *, struct stream_post *, uint32_t number);
/* The exchange ends: what was sent stays for a resume. */
void stream_post_end(struct exchange *);
/* A tool's hint that the client may as well wait unconnected (SEP-1699):
 * closes the connection if it can be resumed, otherwise does nothing. */
void stream_post_pause(struct exchange *, struct ipc_bytes json);

#endif
