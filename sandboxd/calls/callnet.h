/*
 * The network of a call (net.h). It is opened at egress before the call's
 * arguments are sent. It is closed when the call ended; egress then reports the
 * connections. A call that declares no host has no network.
 *
 * The client gets a warning of each refused connection at once. If the call
 * fails afterwards, its error names the refusals, too, and its failure is
 * `missing_grant` if a grant or a declaration would have helped. egress tells
 * of a refusal by another socket than the one by which the tool's error comes.
 * So a call that failed waits (REPORTING) until egress has reported: all
 * refusals have arrived by then.
 */
#ifndef CALLNET_H
#define CALLNET_H

#include "net.h"
#include "result.h"

enum {
	/* Different hosts and ports that one error names at most. A client that
	 * was told of four mends those first. */
	CALLNET_NOTES = 4,
	/* Bytes of the text on one refusal. */
	CALLNET_NOTE_MAX = 512,
	/* Warnings that a call's client gets in all. After so many a client
	 * whose tool tries a hundred hosts in a loop knows the problem. */
	CALLNET_LINES_MAX = 32
};

struct call;
struct callnet;

/* Opens the call's network. true: the opening is under way, and call_go follows
 * it; or the call has ended and may be gone. false: the call may run now. */
bool callnet_begin(struct call *);
/* Takes the error of a tool in RUNNING that failed. true: the call is
 * REPORTING, or has ended and may be gone. false: nothing was done, and the
 * caller ends the call. */
bool callnet_failed(struct call *, enum failure, struct ipc_bytes body);
/* Appends the output that the tool printed before REPORTING, and sets the
 * dropped counts. Does nothing in other states. */
void callnet_printed(
    const struct call *, struct result_dropped *, struct buf *out);
/* Returns the failed call's body. If connections were refused, they are added
 * to it, and the result is stored in room. */
struct ipc_bytes callnet_words(
    const struct call *, struct ipc_bytes body, struct buf *room);
/* Ends a call in REPORTING without the report, which took too long. */
void callnet_expired(struct call *);
/* Closes the network of a call whose runner is gone. true: the call must wait
 * for the report, which ends it. false: there is none to wait for. */
bool callnet_close(struct call *);
/* Returns the JSON that says in a record that the call's connections are not
 * known, because egress has not reported. n = 0: the call has no open net, so
 * the record needs no such words. */
struct ipc_bytes callnet_unknown(const struct call *);
/* Sends the server's new grants to egress. */
void callnet_regrant(struct call *);
/* Forgets a call that is freed or that gets another runner. */
void callnet_forget(struct call *);

#endif
