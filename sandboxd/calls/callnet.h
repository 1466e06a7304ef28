/*
 * The network of a call (net.h). The network is opened at egress before the
 * call's arguments are sent, and closed when the call ended. Then egress
 * reports the connections. A call that declares no host has no network.
 *
 * The client gets a warning of each refused connection at once. If the call
 * fails afterwards, its error names the refusals, too, and its failure is
 * `missing_grant` if a grant or a declaration would have helped. A refusal
 * comes from egress, and the tool's error from the runner, on another socket.
 * So a call that failed waits (REPORTING) until egress has reported: all
 * refusals have arrived by then.
 */
#ifndef CALLNET_H
#define CALLNET_H

#include "net.h"
#include "result.h"

enum {
	/* The most refused places (host and port) that one error names. More
	 * would not help: a client works on these four first. */
	CALLNET_NOTES = 4,
	/* Bytes of the text on one refusal. */
	CALLNET_NOTE_MAX = 512,
	/* The most warnings that a call's client gets. A client whose tool
	 * tries a hundred hosts in a loop knows the problem by then. */
	CALLNET_LINES_MAX = 32
};

struct call;
struct callnet;

/* Opens the call's network. true: the network is being opened, and call_go
 * follows; or the call has ended and may be gone. false: the call may run now.
 */
bool callnet_begin(struct call *);
/* Takes the error of a tool in RUNNING that failed. true: the call is
 * REPORTING, or has ended and may be gone. false: nothing was done, and the
 * caller ends the call. */
bool callnet_failed(struct call *, enum failure, struct ipc_bytes body);
/* Appends the output that the tool printed before REPORTING, and sets the
 * numbers of dropped messages. Does nothing in other states. */
void callnet_printed(
    const struct call *, struct result_dropped *, struct buf *out);
/* Returns the failed call's body. If connections were refused, the returned
 * body also names the refusals, and is stored in room. */
struct ipc_bytes callnet_words(
    const struct call *, struct ipc_bytes body, struct buf *room);
/* Ends a call in REPORTING without the report, which took too long. */
void callnet_expired(struct call *);
/* Closes the network of a call whose runner is gone. true: the call must wait
 * for the report, which ends the call. false: no report will come. */
bool callnet_close(struct call *);
/* Returns the JSON that says in a record that the call's connections are not
 * known, because egress has not reported. The JSON is empty if no net is open
 * for the call: the record needs no such words. */
struct ipc_bytes callnet_unknown(const struct call *);
/* Sends the server's new grants to egress. */
void callnet_regrant(struct call *);
/* Forgets a call that is freed or that gets another runner. */
void callnet_forget(struct call *);

#endif
