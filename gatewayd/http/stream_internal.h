/*
 * What stream.c and stream_tell.c share. Nobody else includes this.
 *
 * One open stream costs: its connection without a parser (httpd_stream_lean),
 * this struct with its texts, and for a session's stream a record in the
 * store. Ten thousand of them are a goal, at most 10 KiB each.
 */
#ifndef STREAM_INTERNAL_H
#define STREAM_INTERNAL_H

#include <event2/event.h>

#include "session_state.h"
#include "stream.h"
#include "stream_store.h"

/* What a stream has yet to say; the first four are the store's kinds. */
enum {
	DUE_TOOLS = 1,
	DUE_PROMPTS = 2,
	DUE_RESOURCES = 4,
	DUE_UPDATES = 8, /* watched resources that are marked due */
	DUE_LOOK = 16,   /* first compare the versions of watched resources */
	DUE_ALL = 32,    /* say all watched resources: some word was lost */
	KIND_UPDATES = 3
};

enum {
	PRINCIPAL_CHAINS = 256,
	/* Questions to admind for the sake of streams at the same time, so that
	 * those of requests find room (IPC_WAITERS_MAX) and no long queue. */
	STREAMS_ASKING_MAX = 256
};

/* How many streams one principal has. */
struct stream_owner {
	SLIST_ENTRY(stream_owner) chain;
	unsigned streams, at; /* at: its chain */
	char name[];
};

struct stream {
	TAILQ_ENTRY(stream) all;
	TAILQ_ENTRY(stream) turn; /* in streams.due */
	struct gateway *gw;
	struct httpd_req *req; /* NULL: ended; freed when nobody asks for it */
	struct stream_session *session; /* legacy; NULL: subscriptions/listen */
	struct stream_owner *owner;
	uint64_t expires_ms; /* of the session, Unix time */
	bool queued, asking;
	unsigned want, due; /* masks of DUE_*; a session's: all it may say */
	/* Of subscriptions/listen; a session's are in gw->states. */
	struct session_watch *watches;
	unsigned nwatches, ntasks;
	const char *id;    /* of the listen request, raw JSON */
	const char *tasks; /* ntasks texts, each with its NUL */
	/* Asked for again before anything is told; then the id, the tasks. */
	char credential[];
};

TAILQ_HEAD(stream_list, stream);

struct streams {
	struct gateway *gw;
	struct stream_list all, due;
	struct event *turn, *tidy;
	struct stream_store *store;
	SLIST_HEAD(, stream_owner) owners[PRINCIPAL_CHAINS];
	unsigned count, max, principal_max, asking;
};

/* stream.c. Is there room for one more? Otherwise *no says why. */
bool stream_room(struct gateway *, const char *principal, struct refusal *no);
/* One without a request yet; id: of the listen request; tasks: texts, each with
 * its NUL, tasks_len bytes. NULL without memory. */
struct stream *stream_new(const struct exchange *, struct ipc_bytes id,
    const char *tasks, size_t tasks_len);
/* From here on the request is the stream's: its head is sent. */
void stream_begin(struct stream *, struct httpd_req *);
/* For httpd_stream_lean: its client left. */
void stream_gone(struct httpd_req *, void *);
/* Takes it out of everything; whoever still asks for its sake frees it. */
void stream_unlink(struct stream *);
void stream_refuse_memory(struct exchange *);
/* It is over. final: its last message says so. */
void stream_close(struct stream *, bool final);
/* Frees one that is in nothing any more. */
void stream_release(struct stream *);
/* Its watched resources. */
struct session_watch *stream_watches(struct stream *, unsigned *n);

/* stream_tell.c */
void stream_tell_queue(struct stream *);
/* Writes one event; method and what follows _meta in params, or "". */
bool stream_tell_event(
    struct stream *, int kind, const char *method, const char *params);
void stream_tell_turn(evutil_socket_t, short, void *);

#endif
