/*
 * Shared by stream.c and stream_*.c only.
 *
 * One open stream costs: its connection without a parser (httpd_stream_lean), a
 * struct stream with its texts, and for a session's stream a record in the
 * store. The goal is ten thousand streams, at most 10 KiB each.
 */
#ifndef STREAM_INTERNAL_H
#define STREAM_INTERNAL_H

#include <event2/event.h>

#include "httpd_stream.h"
#include "session_state.h"
#include "stream.h"
#include "stream_store.h"
#include "table.h"

/* Bits for the messages that a stream has yet to send. The first four are 1 <<
 * a kind of event (stream_store.h). */
enum {
	DUE_TOOLS = 1,
	DUE_PROMPTS = 2,
	DUE_RESOURCES = 4,
	DUE_UPDATES = 8, /* watched resources that are marked due */
	DUE_LOOK = 16,   /* first compare the versions of watched resources */
	DUE_ALL = 32,    /* tell of all watched resources: a message was lost */
	DUE_CHECK = 64,  /* only ask whether its credential is good still */
	KIND_UPDATES = 3
};

enum {
	STREAM_OWNERS = 256, /* usual principals with streams: table size */
	/* Upper bound on questions to admind that are open for streams, so that
	 * questions for requests find room (IPC_WAITERS_MAX) and don't wait
	 * long. */
	STREAMS_ASKING_MAX = 256,
	/* Ends of credentials are looked at so often at most, in ms. One look
	 * goes through all streams, which takes less than a millisecond. */
	STREAMS_ENDS_MS = 1000
};

/* Counts one principal's streams. */
struct stream_owner {
	struct table_node node; /* by name */
	unsigned streams;
	char name[];
};

struct stream {
	TAILQ_ENTRY(stream) all;
	TAILQ_ENTRY(stream) turn; /* in streams.due */
	struct gateway *gw;
	struct httpd_req *req;          /* NULL: ended, and asked() will free
					 * it */
	struct stream_session *session; /* legacy; NULL: subscriptions/listen */
	struct stream_owner *owner;
	uint64_t expires_ms; /* of the session, Unix time */
	uint64_t until_ms;   /* end of its credential, since boot; 0: none */
	bool queued, asking;
	unsigned want, due; /* masks of DUE_*; a session wants all */
	/* For subscriptions/listen. The watches of a session are in
	 * gw->states. */
	struct session_watch *watches;
	unsigned nwatches, ntasks;
	const char *id;    /* of the listen request, raw JSON */
	const char *tasks; /* ntasks texts, each with its NUL */
	/* Checked again before the stream says anything. */
	struct credential credential;
	char texts[]; /* of credential, id and tasks */
};

TAILQ_HEAD(stream_list, stream);

struct streams {
	struct gateway *gw;
	struct stream_list all, due;
	struct event *turn, *tidy, *ends;
	uint64_t look_ms; /* when `ends` runs, since boot; 0: it does not */
	struct stream_store *store;
	struct table owners;
	unsigned count, max, principal_max, asking;
};

/* stream.c. True if there is room for one more stream; otherwise *no says
 * why. */
bool stream_room(struct gateway *, const char *principal, struct refusal *no);
/* Makes a stream, which gets its HTTP request in stream_begin. id: the id of
 * the message subscriptions/listen (n = 0: there is none). tasks: ids of tasks,
 * each with its NUL, tasks_len bytes in all. NULL: no memory. */
struct stream *stream_new(const struct exchange *, struct ipc_bytes id,
    const char *tasks, size_t tasks_len);
/* Gives the request to the stream and sends the stream's head. */
void stream_begin(struct stream *, struct httpd_req *);
/* Unlinks a stream whose client left. A callback for httpd_stream_lean. */
void stream_gone(struct httpd_req *, void *);
/* Takes the stream out of all lists and frees it. If the stream waits for an
 * answer of admind (`asking`), it is freed when the answer comes. */
void stream_unlink(struct stream *);
void stream_refuse_memory(struct exchange *);
/* Ends a stream. final: a listen stream sends its last message first. */
void stream_close(struct stream *, bool final);
/* Frees a stream that is in no list any more. */
void stream_release(struct stream *);
/* Notes when the stream's credential is over; 0: never. The stream ends then.
 */
void stream_until(struct stream *, uint64_t until_ms);
/* Returns the stream's watched resources. */
struct session_watch *stream_watches(struct stream *, unsigned *n);

/* stream_tell.c */
void stream_tell_queue(struct stream *);
/* Writes one event. params: the members after _meta, or "". */
bool stream_tell_event(
    struct stream *, int kind, const char *method, const char *params);
void stream_tell_turn(evutil_socket_t, short, void *);

#endif
