/*
 * The channel to one runner: sends the call, and takes the runner's frames as
 * the bytes of a stranger, which they are: the tool's code runs in the same
 * process as the code that writes the frames.
 *
 * So each frame is checked by the IPC table, each JSON text by json_scan and by
 * its form, sizes and rates against the call's limits; then secrets are
 * replaced. A frame that breaks a rule ends the call. By forging frames a tool
 * gains only the choice of its own result, which it has anyway.
 */
#ifndef CHANNEL_H
#define CHANNEL_H

#include "held.h"
#include "ipc_peer.h"
#include "result.h"

enum {
	/* Frames taken from a runner in a turn, and the turn's length. After
	 * the turn other runners are read, so a runner that floods waits in
	 * send(2). */
	CHANNEL_BURST = 256,
	CHANNEL_TURN_MS = 10,
	/* Bytes taken from a runner in a turn. Without this bound a few large
	 * frames would cost more than CHANNEL_BURST small frames. The largest
	 * result, its output and their headers pass in one turn. */
	CHANNEL_TURN_BYTES = RESULT_MAX + 2 * STDOUT_SHOWN_MAX,
	/* The part of stdout_max that a runner keeps free for its note about
	 * dropped bytes (output.c). */
	CHANNEL_NOTE_MAX = 64,
	/* Bytes of one event; the rest of the frame is its envelope. */
	CHANNEL_EVENT_MAX = 48 * 1024
};

struct event_base;
struct channel;

struct channel_events {
	/* An event. kind as in CALL_EVENT; json is scanned and redacted. */
	void (*event)(void *, uint8_t kind, struct ipc_bytes json);
	/* The result; failure is NONE unless the runner sent RUN_ERROR. body
	 * is redacted. */
	void (*result)(void *, enum failure, struct ipc_bytes body);
	/* A rule was broken; the runner must be killed. */
	void (*violation)(void *, enum failure, const char *text);
	/* Questions to the client, numbered from 1 in the call. The owner
	 * answers with channel_answer, now or later; no other question comes
	 * before that. json is scanned, written again and redacted (ask.h).
	 * NULL: there is no client, so a question is a violation. */
	void (*ask)(void *, uint32_t number, struct ipc_bytes json);
	/* A piece for the module store. A call of any kind can send a piece, so
	 * the owner judges it. NULL: a piece is a violation. */
	void (*part)(void *, bool last, struct ipc_bytes);
	/* The other side closed the channel without a result. */
	void (*down)(void *);
};

/* Takes over the connection to a runner that said READY. Closes the connection
 * on failure. h must live until channel_close. */
struct channel *channel_new(struct event_base *, struct ipc_peer *,
    const struct held *h, const struct channel_events *, void *arg,
    struct err *);
/* Closes the channel. No event comes after this. */
void channel_close(struct channel *);
/* Sends the events to this owner from now on. */
void channel_owner(struct channel *, const struct channel_events *, void *arg);
/* Sends the code and its limits. The channel itself sets stdout_max and
 * result_max; the caller sets the rest of x. Nothing runs yet. -1 if it could
 * not be sent. */
int channel_execute(struct channel *, const struct ipc_execute *x);
/* Sends arguments and secrets, after which the tool runs. -1: not all could be
 * sent, so nothing ran. */
int channel_start(struct channel *, struct ipc_bytes arguments);
/* Answers the open question; json as ask_answers or ask_refuse made it. -1 if
 * it could not be sent: `down` follows. */
int channel_answer(struct channel *, struct ipc_bytes json);
/* Answers a piece. If the connection is gone, `down` follows. */
void channel_next(struct channel *, const struct ipc_module_next *);
/* Sends a log line that says how many log lines and progress reports were
 * dropped, because they came too fast. Sends none if none was dropped. Called
 * once, when the call ends. */
void channel_notice(struct channel *, struct result_dropped *);
/* Appends the tool's output so far, redacted and cut to its limit. */
void channel_stdout(struct channel *, struct buf *out);

#endif
