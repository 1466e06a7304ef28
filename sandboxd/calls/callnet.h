/*
 * A call and the network: opened before its arguments go out, told what egress
 * refused to it, closed and reported when it ended (net.h).
 *
 * A call that declares no host never comes here.
 *
 * What was refused is a warning to its client at once; a call that fails
 * afterwards says it in its error, too, and is `missing_grant` if a grant or a
 * declaration would have helped. egress' word
 * comes by another socket than the tool's error, so a call that failed waits
 * (REPORTING) until egress has reported: what it said before is here by then.
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
	/* Warnings that a call's client gets in all: whoever tries a hundred
	 * hosts in a loop knows by then. */
	CALLNET_LINES_MAX = 32
};

struct call;
struct callnet;

/* It has to be opened first, which is under way now (or the call has ended:
 * it may be gone). false: it may run. */
bool callnet_begin(struct call *);
/* A tool of RUNNING failed with this body. true: the call is REPORTING. */
bool callnet_failed(struct call *, enum failure, struct ipc_bytes body);
/* What was printed until then. */
void callnet_printed(
    const struct call *, struct result_dropped *, struct buf *out);
/* The body of a call that failed, with what was refused to it if anything was;
 * room holds it then. */
struct ipc_bytes callnet_words(
    const struct call *, struct ipc_bytes body, struct buf *room);
/* REPORTING took too long: the call ends without the report. */
void callnet_expired(struct call *);
/* Its runner is gone. true: the record waits for the report. */
bool callnet_close(struct call *);
/* Its record's words on its connections while egress has not reported: that
 * they are not known, or nothing (n = 0), if there can be none. */
struct ipc_bytes callnet_unknown(const struct call *);
/* Its server is granted other hosts now. */
void callnet_regrant(struct call *);
/* The call is freed, or begins anew with another runner. */
void callnet_forget(struct call *);

#endif
