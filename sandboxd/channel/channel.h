/*
 * The channel to one runner: sends it the call, and takes what it sends as
 * the bytes of a stranger, which they are: the tool's code runs in the same
 * process as the code that writes the frames.
 *
 * So each frame is checked by the IPC table, each JSON text by json_scan and
 * by its form, sizes and rates against the call's limits; then
 * secrets are replaced. A frame that breaks a rule ends the call. What a tool
 * gains by forging frames is to choose its own result, which it can anyway.
 */
#ifndef CHANNEL_H
#define CHANNEL_H

#include "held.h"
#include "ipc_peer.h"
#include "result.h"

enum {
	/* Frames taken before others get their turn, and the turn's length:
	 * a runner that floods waits in its own send. */
	CHANNEL_BURST = 256,
	CHANNEL_TURN_MS = 10,
	/* Bytes likewise, or a few large frames would cost what thousands of
	 * small ones may not. The largest result, the output beside it and
	 * their headers pass in one turn. */
	CHANNEL_TURN_BYTES = RESULT_MAX + 2 * STDOUT_SHOWN_MAX,
	/* What a runner keeps of its stdout_max for a note (output.c). */
	CHANNEL_NOTE_MAX = 64,
	/* One of them; the rest of the frame is its envelope. */
	CHANNEL_EVENT_MAX = 48 * 1024
};

struct event_base;
struct channel;

struct channel_events {
	/* kind as in CALL_EVENT; json is scanned and redacted. */
	void (*event)(void *, uint8_t kind, struct ipc_bytes json);
	/* The result; failure is NONE unless the runner sent RUN_ERROR. body
	 * is redacted. */
	void (*result)(void *, enum failure, struct ipc_bytes body);
	/* A rule was broken; the runner must be killed. */
	void (*violation)(void *, enum failure, const char *text);
	/* Questions to the client, numbered from 1 in the call: answered by
	 * channel_answer, now or later; none comes before that. json is
	 * scanned, written anew and redacted (ask.h). NULL: there is no
	 * client, a question is a violation. */
	void (*ask)(void *, uint32_t number, struct ipc_bytes json);
	/* A piece for the module store, from whatever kind of call. NULL: it
	 * is a violation. */
	void (*part)(void *, bool last, struct ipc_bytes);
	/* Closed by the other side without a result. */
	void (*down)(void *);
};

/* Takes over the connection to a runner that said READY (closed on failure
 * too). h must live until channel_close. */
struct channel *channel_new(struct event_base *, struct ipc_peer *,
    const struct held *h, const struct channel_events *, void *arg,
    struct err *);
/* No event comes after this. */
void channel_close(struct channel *);
/* Events are this one's from now on. */
void channel_owner(struct channel *, const struct channel_events *, void *arg);
/* What to run and its limits (all of x but stdout_max and result_max). Nothing
 * runs yet. -1 if it could not be sent. */
int channel_execute(struct channel *, const struct ipc_execute *x);
/* Arguments and secrets: then it runs. -1 if not all could be sent, which ran
 * nothing. */
int channel_start(struct channel *, struct ipc_bytes arguments);
/* Answers the open question; json as ask_answers or ask_refuse made it. -1 if
 * it could not be sent: `down` follows. */
int channel_answer(struct channel *, struct ipc_bytes json);
/* Answers a piece. Is the connection gone, `down` follows. */
void channel_next(struct channel *, const struct ipc_module_next *);
/* Tells, as a log line, how many log lines and progress reports were dropped
 * above their rates, if any were: once, when the call ends. */
void channel_notice(struct channel *, struct result_dropped *);
/* What the tool printed so far, redacted and cut to its limit. */
void channel_stdout(struct channel *, struct buf *out);

#endif
