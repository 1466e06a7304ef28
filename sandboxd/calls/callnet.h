/*
 * A call and the network: opened before its arguments go out, told what egress
 * refused, closed and reported when the call ended (net.h).
 *
 * A call that declares no host never comes here.
 *
 * The client gets a warning of each refusal at once. A call that fails
 * afterwards names the refusals in its error, too, and is `missing_grant` if a
 * grant or a declaration would have helped. egress' word comes by another
 * socket than the tool's error, so a call that failed waits (REPORTING) until
 * egress has reported: its earlier messages are here by then.
 */
#ifndef CALLNET_H
#define CALLNET_H

#include "net.h"
#include "result.h"

enum {
	/* Different hosts and ports that one error names; a client that was
	 * told of four mends those first. */
	CALLNET_NOTES = 4,
	/* Bytes of one of them. */
	CALLNET_NOTE_MAX = 512,
	/* Warnings that a call's client gets in all: a client whose tool tries
	 * a hundred hosts in a loop knows by then. */
	CALLNET_LINES_MAX = 32
};

struct call;
struct callnet;

/* Opens the call's network. true: opening is under way (or the call has ended
 * and may be gone). false: the call may run. */
bool callnet_begin(struct call *);
/* Takes the body of a tool in RUNNING that failed. true: the call is
 * REPORTING. */
bool callnet_failed(struct call *, enum failure, struct ipc_bytes body);
/* Appends the output printed until REPORTING. */
void callnet_printed(
    const struct call *, struct result_dropped *, struct buf *out);
/* Returns the failed call's body, with the refused connections added if there
 * are any (then stored in room). */
struct ipc_bytes callnet_words(
    const struct call *, struct ipc_bytes body, struct buf *room);
/* Ends the call without the report: REPORTING took too long. */
void callnet_expired(struct call *);
/* Closes the network of a call whose runner is gone. true: the record waits for
 * the report. */
bool callnet_close(struct call *);
/* Returns the record's words on its connections while egress has not reported:
 * that they are not known, or nothing (n = 0) if there can be none. */
struct ipc_bytes callnet_unknown(const struct call *);
/* Passes on the server's new hosts. */
void callnet_regrant(struct call *);
/* Forgets a call that is freed or that gets another runner. */
void callnet_forget(struct call *);

#endif
