/*
 * Checks results against an output schema: a tool's structured content is
 * judged before any client gets it. sandboxd parses no foreign JSON, so
 * admind-check judges: RESULT_CHECK goes to admind, which passes it on.
 *
 * During the check the runner is killed and its slot becomes free. Only the
 * result, the printed output and the call's context are kept: at most
 * VERIFY_BYTES_MAX for all calls together. At most VERIFY_OPEN_MAX results are
 * under check at once: admind-check also checks the arguments of other calls,
 * which a flood of large results must not delay. If admind is away or busy, the
 * question is repeated until VERIFY_MS have passed. Then the call ends as lost:
 * the tool ran, but no client gets its result.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include "result.h"

enum {
	/* Time for the whole check: asking, waiting for other results, asking
	 * again. */
	VERIFY_MS = 15 * 1000,
	/* Time for one question. A check takes at most 50 ms of processor time.
	 */
	VERIFY_ASK_MS = 5 * 1000,
	VERIFY_RETRY_MS = 100,
	/* Results under check at once: while one is checked, the next is on its
	 * way. */
	VERIFY_OPEN_MAX = 2,
	/* Bytes of all results that wait: 32 of the largest. The number of
	 * slots does not bound the results, because a result has no slot. */
	VERIFY_BYTES_MAX = 32 * 1024 * 1024
};

struct call;
struct calls;
struct event_base;
struct verifies;

struct verifies *verify_new(struct event_base *);
void verify_free(struct verifies *);
/* Sets the connection to admind, or NULL if there is none. */
void verify_peer(struct verifies *, struct ipc_peer *);

/*
 * Begins the check of the body that a tool in RUNNING returned. The body is
 * scanned and redacted. true: the version has an output schema, and the call is
 * CHECKING or has ended. false: nothing was done, since there is no output
 * schema, or the result is the tool's own error.
 */
bool verify_begin(struct call *, struct ipc_bytes body);
/* Appends the tool's printed output, which is kept while the result is under
 * check. */
void verify_printed(
    const struct call *, struct result_dropped *, struct buf *out);
/* Ends the call when VERIFY_MS have passed. */
void verify_expired(struct call *);
/* Forgets the call when it is freed. */
void verify_forget(struct call *);

#endif
