/*
 * Remembers for legacy sessions their log level and the resources they watch.
 * No I/O.
 *
 * A session's token says all that matters, so a session can be served without
 * this state. The state is lost with the process. When the tables are
 * full, the principal with the most sessions, or bytes, loses the session that
 * it used longest ago. The client of that session then gets logs from `info`
 * on, and is told of no resource, until it asks again.
 */
#ifndef SESSION_STATE_H
#define SESSION_STATE_H

#include "session.h"

enum {
	SESSION_STATES_MAX = 4096,
	SESSION_SUBSCRIPTIONS_MAX = 64,               /* of one session */
	SESSION_SUBSCRIPTION_BYTES = 8 * 1024 * 1024, /* of URIs, in all */
	SESSION_LEVEL_DEFAULT = 1                     /* info */
};

/* A watched resource. version: of the object that served it at the last look.
 * due: the client has yet to be told that the resource changed. */
struct session_watch {
	char *uri;
	struct ipc_hash version;
	bool due;
};

struct session_states;

struct session_states *session_state_new(void);
void session_state_free(struct session_states *);
/* Sets a session's log level: 0 debug to 7 emergency. 0, or -1 without
 * memory. */
int session_state_set_level(
    struct session_states *, const struct session *, int level);
int session_state_level(const struct session_states *, const struct ipc_id *);
/* Adds a watched resource; adding one twice changes nothing. version: of the
 * object that serves the URI now. 0, or -1: too many, or no memory. */
int session_state_subscribe(struct session_states *, const struct session *,
    const char *uri, const struct ipc_hash *version);
void session_state_unsubscribe(
    struct session_states *, const struct session *, const char *uri);
/* True if this session watches the resource. */
bool session_state_subscribed(
    const struct session_states *, const struct ipc_id *, const char *uri);
/* Returns the session's *n watched resources, valid until one is added or
 * dropped. */
struct session_watch *session_state_watches(
    struct session_states *, const struct ipc_id *, unsigned *n);
void session_state_forget(struct session_states *, const struct ipc_id *);

#endif
