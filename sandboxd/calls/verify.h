/*
 * Results that an output schema promises something about: what a tool returned
 * as structured content is judged before anybody gets it. sandboxd parses no
 * foreign JSON, so admind-check does it: RESULT_CHECK goes to admind, which
 * passes it on.
 *
 * The runner is dead by then, and its slot free: nothing of the machine is held
 * but the result itself, what was printed and the call's context, and of those
 * at most VERIFY_BYTES_MAX and one more. VERIFY_OPEN_MAX
 * are asked about at once, so that a flood of large results takes its turns
 * with the arguments of other calls, which the same process checks. Where
 * admind is away or busy it is asked again until VERIFY_MS have passed; then
 * the call ends as lost: it ran, but what it said can't be told.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include "result.h"

enum {
	/* All of it: asking, waiting for others, asking again. */
	VERIFY_MS = 15 * 1000,
	/* One question; a check takes at most 50 ms of processor time. */
	VERIFY_ASK_MS = 5 * 1000,
	VERIFY_RETRY_MS = 100,
	/* Asked about at once: one is checked, one is on its way. */
	VERIFY_OPEN_MAX = 2,
	/* Of all that wait: 32 of the largest results. Slots do not bound them.
	 */
	VERIFY_BYTES_MAX = 32 * 1024 * 1024
};

struct call;
struct calls;
struct event_base;
struct verifies;

struct verifies *verify_new(struct event_base *);
void verify_free(struct verifies *);
/* admind is there, or not (NULL). */
void verify_peer(struct verifies *, struct ipc_peer *);

/*
 * A tool of RUNNING returned this body, scanned and redacted. If its version
 * has an output schema the call is CHECKING or has ended: true. Else, or if the
 * result is an error of the tool's own, nothing happens: false.
 */
bool verify_begin(struct call *, struct ipc_bytes body);
/* What the tool printed, kept since its runner is gone. */
void verify_printed(
    const struct call *, struct result_dropped *, struct buf *out);
/* VERIFY_MS passed. */
void verify_expired(struct call *);
/* The call is freed. */
void verify_forget(struct call *);

#endif
