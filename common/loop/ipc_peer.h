/*
 * Connections to other processes on a libevent loop: listening, connecting with
 * back-off, HELLO, the permission check of the IPC table, requests and their
 * answers.
 *
 * A peer that breaks a rule (wrong role, state, size, descriptor count, a
 * trailing byte, an answer without a request) is logged once and closed; its
 * message has no effect. Callbacks run on the loop; a callback may close any
 * peer, its own included.
 */
#ifndef IPC_PEER_H
#define IPC_PEER_H

#include <sys/types.h>

#include "ipc.h"

struct event_base;
struct ipc_peer;   /* one connection */
struct ipc_server; /* one listening socket */
struct ipc_client; /* one outgoing connection that is kept up */

struct ipc_handlers {
	/* HELLO was exchanged. May be NULL. */
	void (*up)(struct ipc_peer *, void *arg);
	/* A request or event, already permitted by the table. Decode it with
	 * ipc_decode; answer requests with ipc_answer. -1 closes the peer. */
	int (*message)(struct ipc_peer *, struct ipc_frame *, void *arg);
	/* The connection ended; its waiters were already called. The peer is
	 * freed after this returns. May be NULL. */
	void (*down)(struct ipc_peer *, void *arg);
};

/* A uid that may connect; the listener refuses others by SO_PEERCRED. */
struct ipc_allowed {
	uid_t uid;
};

/*
 * Listens on `path` for peers of one role. `name` is for logs. The uid check
 * happens at accept, before a byte is read. NULL with err on failure.
 */
struct ipc_server *ipc_server_new(struct event_base *, const char *path,
    const char *name, enum ipc_role local, enum ipc_role peer,
    const uid_t *allowed, size_t nallowed, const struct ipc_handlers *,
    void *arg, struct err *);
void ipc_server_free(struct ipc_server *); /* closes its peers too */
/*
 * Stops listening, at the end of a process: no connection is accepted, and the
 * peers can't send (a message fails at once, so its sender knows that it was
 * never read). Messages that were sent before are still read and may be
 * answered; then the peer is closed. Call this function again until it returns
 * true: then no peers are left.
 */
bool ipc_server_finish(struct ipc_server *);
/* Calls f for each open peer of the server. */
void ipc_server_each(
    struct ipc_server *, void (*f)(struct ipc_peer *, void *), void *);

/*
 * Keeps one connection to `path` up, with back-off from IPC_BACKOFF_MIN_MS to
 * IPC_BACKOFF_MAX_MS. The listener's directory is owned by its process, so
 * reaching the path proves which process answers (docs/decisions).
 */
struct ipc_client *ipc_client_new(struct event_base *, const char *path,
    const char *name, enum ipc_role local, enum ipc_role peer,
    const struct ipc_handlers *, void *arg, struct err *);
void ipc_client_free(struct ipc_client *);
/* Returns the open peer, or NULL while the connection is down or the other side
 * has stopped listening. */
struct ipc_peer *ipc_client_peer(struct ipc_client *);
/* Returns the enum ipc_role that the client connects to. For a NULL client
 * returns 0, which is no role. */
unsigned ipc_client_role(const struct ipc_client *);
/* Tells whether the connection is down because the other side has another IPC
 * table. Then an upgrade is under way (failure UPGRADING). */
bool ipc_client_other_build(const struct ipc_client *);

/* Adopts a connected socket (one end of a socketpair: holding it is the right
 * to use it). With hello=false the peer starts in `state` without HELLO. NULL
 * with err: no memory, also for HELLO; the socket stays the caller's. */
struct ipc_peer *ipc_peer_adopt(struct event_base *, int sock, const char *name,
    enum ipc_role local, enum ipc_role peer, bool hello, enum ipc_state state,
    const struct ipc_handlers *, void *arg, struct err *);
/* Gives the connection to another owner, which gets all messages that come from
 * now on. */
void ipc_peer_handlers(
    struct ipc_peer *, const struct ipc_handlers *, void *arg);
/* Changes the state of a runner channel: WAITING to RUNNING. */
void ipc_peer_set_state(struct ipc_peer *, enum ipc_state);

/* Queues an event. 0; -1 if the queue is full or the peer is down (the peer
 * is then closed, its down callback runs from the loop). */
int ipc_send(struct ipc_peer *, enum ipc_type, const void *msg);
/* Queues an answer or part to request id `request`. 0, or -1 if it could not be
 * sent. If -1 and the peer is not down, a final answer is replaced by REFUSED
 * (lost). */
int ipc_answer(
    struct ipc_peer *, uint64_t request, enum ipc_type, const void *msg);
/* Answers REFUSED. */
int ipc_refuse(struct ipc_peer *, uint64_t request, enum failure,
    const char *message, uint64_t retry_after_ms);
int ipc_answer_ok(struct ipc_peer *, uint64_t request);

/*
 * Sends a request. cb runs once for each PART and once for the final answer
 * (any ANS type, REFUSED included). If no final answer comes, cb runs with
 * frame NULL, and `gone` tells why:
 *  - the peer went down;
 *  - FAILURE_BUSY: wait_ms(timeout_ms) passed (waits.h);
 *  - FAILURE_UPGRADING: the other side stopped listening while the request was
 *    still in our queue. No process has read it, so asking again is safe.
 * cb always runs from the loop, never inside ipc_request. It never runs if
 * ipc_request returned -1, nor after ipc_forget(peer, id). Until cb runs, the
 * caller may keep the peer's pointer and the request's id: a closing peer is
 * freed only after all its waiters were called. ipc_client_peer, however,
 * returns NULL for a closing peer.
 */
typedef void ipc_answer_cb(
    void *arg, struct ipc_frame *frame, enum failure gone);
int ipc_request(struct ipc_peer *, enum ipc_type, const void *msg,
    int timeout_ms, ipc_answer_cb *cb, void *arg, uint64_t *id);
void ipc_forget(struct ipc_peer *, uint64_t id);

void ipc_peer_close(struct ipc_peer *);  /* safe inside callbacks */
void ipc_peer_finish(struct ipc_peer *); /* see ipc_server_finish */
/* Stop and resume reading: backpressure. */
void ipc_peer_pause(struct ipc_peer *);
void ipc_peer_resume(struct ipc_peer *);
size_t ipc_peer_queued(const struct ipc_peer *); /* bytes waiting to go out */
void *ipc_peer_data(const struct ipc_peer *);    /* the owner's pointer */
void ipc_peer_set_data(struct ipc_peer *, void *);
const char *ipc_peer_name(const struct ipc_peer *);
struct ipc_id ipc_peer_epoch(const struct ipc_peer *); /* from its HELLO */
const char *ipc_peer_layers(const struct ipc_peer *);  /* from its HELLO */

/* Sets the content of this process's HELLOs. Called once at start. `layers` may
 * be replaced later for new connections. Strings are copied. */
void ipc_hello_set(const char *process, const char *layers);
const struct ipc_id *ipc_hello_epoch(void); /* random, made at first use */

#endif
