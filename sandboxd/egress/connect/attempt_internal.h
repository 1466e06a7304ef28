/*
 * An attempt as its two files see it: attempt.c has its life, dial.c its work.
 */
#ifndef ATTEMPT_INTERNAL_H
#define ATTEMPT_INTERNAL_H

#include "attempt.h"
#include "lookup.h"
#include "nat64.h"
#include "policy.h"

enum {
	/* Bytes of answers that may wait for peek: 64 answers. The connection
	 * would be closed at IPC_QUEUE_FDS_MAX descriptors. */
	ATTEMPT_UNREAD_BYTES = 64 * 20
};

/* One socket that connects. */
struct dial {
	struct attempt *attempt;
	struct event *writable; /* NULL: it does not connect */
	int fd;
	size_t address;
};

struct attempt {
	TAILQ_ENTRY(attempt) link;
	struct net *net;
	struct ipc_peer *peek;
	uint64_t request;
	bool udp, nonblocking, running, by_name;
	char host[NAMES_NAME_MAX + 1];
	uint16_t port;
	struct record *record;
	struct lookup_request *lookup;
	struct nat64_wait nat64;
	struct address address[LOOKUP_ADDRESSES_MAX];
	size_t n, next;
	struct dial dials[LOOKUP_ADDRESSES_MAX];
	unsigned trying;
	int error; /* of a failed address, see failed() in dial.c */
	struct event *deadline, *stagger;
	int ready, ready_error; /* the socket to be handed over, or -1 */
};

/* attempt.c. These end and free an attempt: a refusal by policy, for which
 * connect(2) fails with EACCES; a failure; or an attempt that was answered. A
 * refusal or failure is told to sandboxd and recorded. */
void attempt_refuse(struct attempt *, enum policy, const char *reason);
void attempt_fail(struct attempt *, int error, const char *reason);
void attempt_fail_errno(struct attempt *, int error);
void attempt_finish(struct attempt *);

/* dial.c: looks up, judges, connects, hands over. */
void dial_start(struct attempt *);
/* Hands over the socket if one is ready when a->deadline fires. false: none is
 * ready. */
bool dial_late(struct attempt *);
/* Frees the things that dial_start made. */
void dial_end(struct attempt *);
enum netgrant_proto dial_proto(const struct attempt *);

#endif
