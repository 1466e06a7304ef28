/*
 * Shared by the two files of an attempt: attempt.c (start, turns and end) and
 * dial.c (look-up and connecting).
 */
#ifndef ATTEMPT_INTERNAL_H
#define ATTEMPT_INTERNAL_H

#include "attempt.h"
#include "lookup.h"
#include "nat64.h"
#include "policy.h"

enum {
	/* Bytes of 64 answers, the most that may wait for peek. If
	 * IPC_QUEUE_FDS_MAX descriptors waited, the connection would be closed.
	 */
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

/* attempt.c. These functions end and free an attempt: attempt_refuse by policy,
 * so connect(2) fails with EACCES; attempt_fail by an error; attempt_finish
 * when the attempt was answered. A refusal or failure is reported to sandboxd
 * and recorded. */
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
