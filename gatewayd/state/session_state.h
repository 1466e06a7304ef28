/*
 * What legacy sessions asked this process to remember: their log level and the
 * resources they want to be told of. No I/O.
 *
 * A session's token says all that matters, so nothing here is needed to serve
 * one: it is lost with the process, and when the tables are full the session
 * used longest ago of whoever has most is forgotten. The client then hears logs
 * from `info` on, and of no resource, until it asks again.
 */
#ifndef SESSION_STATE_H
#define SESSION_STATE_H

#include "session.h"

enum {
	SESSION_STATES_MAX = 4096,
	SESSION_SUBSCRIPTIONS_MAX = 64,               /* of one session */
	SESSION_SUBSCRIPTION_BYTES = 8 * 1024 * 1024, /* of all, their URIs */
	SESSION_LEVEL_DEFAULT = 1                     /* info */
};

/* A resource that is watched: version of what served it when that was looked
 * at last; due: its client is yet to be told that it changed. */
struct session_watch {
	char *uri;
	struct ipc_hash version;
	bool due;
};

struct session_states;

struct session_states *session_state_new(void);
void session_state_free(struct session_states *);
/* 0 debug to 7 emergency. 0, or -1 without memory. */
int session_state_set_level(
    struct session_states *, const struct session *, int level);
int session_state_level(const struct session_states *, const struct ipc_id *);
/* version: of what serves the URI now. 0; -1: too many, or no memory. Twice is
 * once. */
int session_state_subscribe(struct session_states *, const struct session *,
    const char *uri, const struct ipc_hash *version);
void session_state_unsubscribe(
    struct session_states *, const struct session *, const char *uri);
/* Does this session want to be told of the resource? */
bool session_state_subscribed(
    const struct session_states *, const struct ipc_id *, const char *uri);
/* All it wants to be told of, *n of them; valid until one is added or goes. */
struct session_watch *session_state_watches(
    struct session_states *, const struct ipc_id *, unsigned *n);
void session_state_forget(struct session_states *, const struct ipc_id *);

#endif
