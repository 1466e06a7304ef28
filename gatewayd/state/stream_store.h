/*
 * Keeps the events sent to legacy sessions for a resume by Last-Event-ID (MCP
 * 2025-11-25, Streamable HTTP, Resumability). No I/O.
 *
 * There are two kinds of stream. The events of the answer to a POST are kept as
 * they are, because the last of them is the answer itself. The session's own
 * stream (GET) says only that something changed. So only the number of the last
 * event of each kind is kept, and a resume repeats each kind that was sent
 * after the event that the client names.
 *
 * An event's id is text, "EPOCH-STREAM-NUMBER" in hexadecimal. STREAM is 0 for
 * the session's own stream. EPOCH is random for each session's record. So an id
 * that was given out before the record was lost (a restart, a full table) names
 * nothing, and not another stream. EPOCH is no secret, because an id is looked
 * up only in the session that asks.
 *
 * The enum has the bounds. When they are reached, the principal with the most
 * bytes loses its oldest events, so that a client with many sessions loses only
 * its own. An answer that is too large by itself is replaced by an error that
 * says so.
 */
#ifndef STREAM_STORE_H
#define STREAM_STORE_H

#include <sys/queue.h>

#include "ipc.h"

enum {
	/* Upper bound on session records without an open stream or events. If
	 * there are more, the principal with the most such records loses the
	 * one used longest ago. A record has 200 bytes. */
	STREAM_STORE_SESSIONS_MAX = 4096,
	/* Events of one session: ten seconds of progress at full rate. */
	STREAM_STORE_EVENTS_MAX = 1024,
	/* Bytes of one session. The largest result (RESULT_MAX and its _meta)
	 * fits, in addition to some progress. */
	STREAM_STORE_BYTES_MAX = 4 * 1024 * 1024,
	/* Bytes of all sessions together. */
	STREAM_STORE_ALL_MAX = 64 * 1024 * 1024,
	/* How long an event is kept, in ms: a laptop that changes networks is
	 * back by then. */
	STREAM_STORE_KEEP_MS = 5 * 60 * 1000,
	STREAM_STORE_ID_MAX = 27, /* bytes of an id's text, with NUL */
	STREAM_STORE_KINDS = 4    /* of messages on a session's own stream */
};

struct stream_store;
struct stream_session;
struct stream_whose; /* one principal's part of the store */

struct stream_event {
	TAILQ_ENTRY(stream_event) all;   /* of the store, by age */
	TAILQ_ENTRY(stream_event) mine;  /* of its session, by age */
	TAILQ_ENTRY(stream_event) whose; /* of its principal, by age */
	struct stream_post *post;
	uint64_t at_ms;
	uint32_t number;
	size_t n;
	uint8_t data[];
};

/* The answer to one POST. */
struct stream_post {
	TAILQ_ENTRY(stream_post) mine;
	struct stream_session *session;
	uint32_t number; /* of the stream, from 1 */
	uint32_t last;   /* number of its newest event */
	unsigned events; /* kept */
	bool done;       /* its answer was added */
	void *owner;     /* its writer; NULL: it was closed */
};

TAILQ_HEAD(stream_event_list, stream_event);
TAILQ_HEAD(stream_post_list, stream_post);

struct stream_session {
	TAILQ_ENTRY(stream_session) chain;
	TAILQ_ENTRY(stream_session) used; /* list of droppable records */
	struct stream_store *store;
	struct stream_whose *whose;
	struct ipc_id id;
	uint32_t epoch;
	bool droppable; /* is in that list */
	/* The session's own stream. */
	void *get;     /* the stream that is open, or NULL */
	bool had;      /* it had a stream: remember missed messages */
	unsigned due;  /* mask of kinds to be sent */
	uint32_t last; /* number of its newest event */
	uint32_t
	    said[STREAM_STORE_KINDS]; /* number of the newest of each kind, or
				       * 0 */
	/* Answers to POSTs. */
	struct stream_post_list posts;
	struct stream_event_list events;
	uint32_t posts_made;
	unsigned nevents;
	size_t bytes;
};

struct stream_store *stream_store_new(void);
void stream_store_free(struct stream_store *);
size_t stream_store_bytes(const struct stream_store *);
unsigned stream_store_sessions(const struct stream_store *);

/* Return a session's record. find: NULL if there is none. take: makes it if
 * there is none; NULL without memory. principal: SHA-256 of its name, as in the
 * session's token. */
struct stream_session *stream_store_find(
    struct stream_store *, const struct ipc_id *);
struct stream_session *stream_store_take(struct stream_store *,
    const struct ipc_id *, const struct ipc_hash *principal);
/* Calls f on each record that had a stream of its own. */
void stream_store_each(struct stream_store *,
    void (*f)(struct stream_session *, void *), void *arg);
/* Notes that the session's own stream was opened. who: the stream; NULL: it was
 * closed. */
void stream_store_set_get(struct stream_session *, void *who);
/* Drops all that is kept for the session. An answer that is still being written
 * stays. */
void stream_store_forget(struct stream_session *);

/* Begins the answer to a POST; NULL without memory. */
struct stream_post *stream_store_open(struct stream_session *, void *owner);
/* Adds the answer's next event and writes its id. 0, or -1: the event could not
 * be kept, but has the id. */
int stream_store_add(struct stream_post *, const void *, size_t n, bool last,
    uint64_t now_ms, char id[STREAM_STORE_ID_MAX]);
/* Writes an event's id. Number 0 is for a client that has seen no event yet. */
void stream_store_id(const struct stream_session *, uint32_t post,
    uint32_t number, char id[STREAM_STORE_ID_MAX]);
/* Ends the writing of an answer. May free it. */
void stream_store_close(struct stream_post *);
/* Reads an id. 0, or -1: the text is no id. */
int stream_store_parse(
    const char *id, uint32_t *epoch, uint32_t *post, uint32_t *number);
/* Returns the answer with this stream number, or NULL. */
struct stream_post *stream_store_post(struct stream_session *, uint32_t number);
/* Returns the answer's first kept event after this number, or NULL. */
const struct stream_event *stream_store_next(
    const struct stream_post *, uint32_t after);
/* Drops events that are too old. */
void stream_store_tidy(struct stream_store *, uint64_t now_ms);

#endif
