/*
 * What legacy sessions were sent on event streams, kept for a resume by
 * Last-Event-ID (MCP 2025-11-25, Streamable HTTP, Resumability). No I/O.
 *
 * Two kinds of stream. The answer to a POST: its events are kept as they are,
 * the answer itself being the one that matters. The session's own stream (GET):
 * all it says is "this changed", so only the number of the last event of each
 * sort is kept, and a resume says again whatever was said after the event the
 * client knows.
 *
 * An event's id is text, "EPOCH-STREAM-NUMBER" in hexadecimal. STREAM is 0 for
 * the session's own. EPOCH is random for each session's record, so that an id
 * given out before the record was lost (a restart, a full table) names nothing
 * now instead of another stream. It is no secret: ids are looked up within the
 * session that asks, and nowhere else.
 *
 * Bounds: see the enum. What is over them is dropped oldest first of whoever
 * has most, so that a client with many sessions loses its own, and an
 * answer that is too large by itself is replaced by an error that says so.
 */
#ifndef STREAM_STORE_H
#define STREAM_STORE_H

#include <sys/queue.h>

#include "ipc.h"

enum {
	/* Records of sessions in all that have neither a stream nor events: the
	 * one used longest ago goes. 200 bytes each. */
	STREAM_STORE_SESSIONS_MAX = 4096,
	/* Events of one session: ten seconds of progress at full rate. */
	STREAM_STORE_EVENTS_MAX = 1024,
	/* Bytes of one session: the largest result there is (RESULT_MAX, and
	 * its _meta) fits, and some progress beside it. */
	STREAM_STORE_BYTES_MAX = 4 * 1024 * 1024,
	/* Bytes of all of them. */
	STREAM_STORE_ALL_MAX = 64 * 1024 * 1024,
	/* How long an event is kept, in ms: a laptop that changes networks is
	 * back by then. */
	STREAM_STORE_KEEP_MS = 5 * 60 * 1000,
	STREAM_STORE_ID_MAX = 27, /* bytes of an id's text, with NUL */
	STREAM_STORE_KINDS = 4    /* of what a session's own stream says */
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
	void *owner;     /* who writes it; NULL: nobody any more */
};

TAILQ_HEAD(stream_event_list, stream_event);
TAILQ_HEAD(stream_post_list, stream_post);

struct stream_session {
	TAILQ_ENTRY(stream_session) chain;
	TAILQ_ENTRY(stream_session) used; /* of those that may be dropped */
	struct stream_store *store;
	struct stream_whose *whose;
	struct ipc_id id;
	uint32_t epoch;
	bool droppable; /* in that list */
	/* Its own stream. */
	void *get;     /* who has it open, or NULL */
	bool had;      /* there was one: remember what it missed */
	unsigned due;  /* mask of kinds to be said */
	uint32_t last; /* number of its newest event */
	uint32_t
	    said[STREAM_STORE_KINDS]; /* of the newest of each kind, or 0 */
	/* Answers. */
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

/* The record of a session, or NULL; taking makes it if there is none (NULL
 * without memory). principal: SHA-256 of its name, as in the session's token.
 */
struct stream_session *stream_store_find(
    struct stream_store *, const struct ipc_id *);
struct stream_session *stream_store_take(struct stream_store *,
    const struct ipc_id *, const struct ipc_hash *principal);
/* Calls f on each record that had a stream of its own. */
void stream_store_each(struct stream_store *,
    void (*f)(struct stream_session *, void *), void *arg);
/* The session's own stream was opened by who; NULL: closed. */
void stream_store_set_get(struct stream_session *, void *who);
/* Forgets what is kept; a record that someone still writes to stays. */
void stream_store_forget(struct stream_session *);

/* The answer to a POST begins; NULL without memory. */
struct stream_post *stream_store_open(struct stream_session *, void *owner);
/* Its next event: 0 and its id, which the event has even if it could not be
 * kept (-1). */
int stream_store_add(struct stream_post *, const void *, size_t n, bool last,
    uint64_t now_ms, char id[STREAM_STORE_ID_MAX]);
/* The id of no event: what a client names that has seen none. */
void stream_store_id(const struct stream_session *, uint32_t post,
    uint32_t number, char id[STREAM_STORE_ID_MAX]);
/* Nobody writes to it any more. It may be freed by this. */
void stream_store_close(struct stream_post *);
/* Reads an id. 0, or -1: no such text. */
int stream_store_parse(
    const char *id, uint32_t *epoch, uint32_t *post, uint32_t *number);
/* The stream with this number, or NULL. */
struct stream_post *stream_store_post(struct stream_session *, uint32_t number);
/* The first kept event of it after this number, or NULL. */
const struct stream_event *stream_store_next(
    const struct stream_post *, uint32_t after);
/* Drops what is too old. */
void stream_store_tidy(struct stream_store *, uint64_t now_ms);

#endif
