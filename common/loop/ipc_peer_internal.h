/* Shared by ipc_peer.c, ipc_server.c and ipc_client.c only. */
#ifndef IPC_PEER_INTERNAL_H
#define IPC_PEER_INTERNAL_H

#include <sys/queue.h>

#include "ipc_io.h"
#include "ipc_peer.h"

/* A listener serves a handful of processes. More than this is an attack or a
 * leak. */
enum { IPC_PEERS_MAX = 64 };
/* A daemon needs one connection, or two while it reconnects. Some three hundred
 * descriptors may be on their way in each connection's socket buffer. These
 * count against our RLIMIT_NOFILE (proc.c raises it). */
enum { IPC_DAEMON_PEERS_MAX = 24 };
/* Chains of waiters, by id. With IPC_WAITERS_MAX waiters each chain has 16. */
enum { IPC_CHAINS = 256 };
/* Frames taken from one peer before others get their turn. */
enum { IPC_BURST = 32 };

/* Time, in ms, in which a peer that has stopped listening may answer the
 * requests that it has read, and close. A daemon needs less to end
 * (admind/daemon/drain.c). */
enum { IPC_DEAF_MS = 3000 };

struct event;

struct ipc_out {
	TAILQ_ENTRY(ipc_out) link;
	struct ipc_packet packet;
	uint64_t waiter; /* id of the waiter for its answer; 0: none */
};

struct ipc_waiter {
	TAILQ_ENTRY(ipc_waiter) link;
	LIST_ENTRY(ipc_waiter) chain;
	bool late;   /* its time passed */
	bool unsent; /* the request never left */
	uint64_t id;
	ipc_answer_cb *cb; /* NULL: forgotten, its answer is dropped */
	void *arg;
	struct ipc_peer *peer;
	struct event *timer;
};

struct ipc_peer {
	LIST_ENTRY(ipc_peer) link; /* in its server's list */
	struct event_base *base;
	int fd;
	char name[64];
	enum ipc_role local, peer;
	enum ipc_state state;
	pid_t pid;
	struct ipc_handlers handlers;
	void *arg, *data;
	struct event *readable, *writable, *again, *reap;
	struct event *hello_timer; /* until HELLO came; NULL: none is due */
	TAILQ_HEAD(ipc_out_list, ipc_out) out;
	size_t queued;       /* bytes in out */
	unsigned queued_fds; /* descriptors in out */
	TAILQ_HEAD(ipc_waiter_list, ipc_waiter) waiters;
	LIST_HEAD(ipc_chain, ipc_waiter) chains[IPC_CHAINS];
	size_t nwaiters, nlate;
	uint64_t next_id;
	bool hello, was_up, closing, paused;
	bool guarded;   /* a runner's: rights.h */
	bool finishing; /* we have stopped listening (ipc_peer_finish) */
	bool ended;     /* finishing, and everything was read */
	bool deaf;      /* the other side has stopped listening */
	struct ipc_id epoch;
	char *layers;
	struct ipc_server *server; /* NULL unless accepted */
	struct ipc_client *client; /* NULL unless connected by one */
};

struct ipc_server {
	struct event_base *base;
	int fd;
	char name[64], *path;
	enum ipc_role local, peer;
	uid_t *allowed;
	size_t nallowed, npeers;
	struct ipc_handlers handlers;
	void *arg;
	struct event *acceptable, *resume;
	bool starved; /* no descriptors were left; this was logged */
	LIST_HEAD(ipc_peer_list, ipc_peer) peers;
};

struct ipc_client {
	struct event_base *base;
	char name[64], *path;
	enum ipc_role local, peer;
	struct ipc_handlers handlers;
	void *arg;
	struct event *retry;
	int backoff_ms;
	struct ipc_peer *conn;
	bool other_build; /* the last HELLO was of another table */
};

/* IPC_HELLO_MS; tests shorten it. */
extern int ipc_peer_hello_ms;

/* ipc_send.c: queues one frame, and sends it at once if no frame is before it.
 * 0, or -1: the frame was not sent and never will be. */
int ipc_peer_enqueue(
    struct ipc_peer *, enum ipc_type, uint64_t request, const void *msg);
/* Event callback: sends as much as the socket takes. */
void ipc_peer_writable(int fd, short what, void *peer);
/* Drops unsent frames; the loop tells the waiters of unsent requests. */
void ipc_peer_drop_out(struct ipc_peer *);
/* ipc_peer.c: makes the loop tell the waiter of this id, if there is one, that
 * its request failed with UPGRADING. */
void ipc_peer_unsent(struct ipc_peer *, uint64_t waiter);

/* Make the owner of a peer forget it, because the peer was reaped. */
void ipc_server_forget(struct ipc_server *, struct ipc_peer *);
void ipc_client_forget(struct ipc_client *, struct ipc_peer *);

#endif
