/*
 * The activity log and its live tail, counters for /metrics, and upkeep.c: the
 * work on records in the pauses between calls. Decision 0041.
 */
#ifndef ACTIVITY_H
#define ACTIVITY_H

#include "admind.h"

enum activity_kind {
#define A(NAME, name, level, doc) ACTIVITY_##NAME,
#include "activity.def"
#undef A
	ACTIVITY_KINDS
};

enum {
	/* Different entries of one second. Equal entries become one entry with
	 * a count. */
	ACTIVITY_PENDING_MAX = 256,
	ACTIVITY_SUBJECT_MAX = 128, /* characters of its column */
	/* Followers: administrators' pages and terminals. */
	ACTIVITY_FOLLOWERS_MAX = 16,
	/* A follower must ask again after this time, so its login is checked
	 * again. */
	ACTIVITY_FOLLOW_MS = 60 * 1000,
	ACTIVITY_GATHER_MS = 100, /* how long lines wait for more lines */
	ACTIVITY_LINES_MAX = IPC_FRAME_MAX / 2, /* bytes of lines in a PART */
	/* A follower with so many unsent bytes on its connection gets no
	 * lines. */
	ACTIVITY_QUEUED_MAX = 1024 * 1024
};

/* ---- activity.c: entries ---- */
int activity_start(struct admind *, struct err *);
/* Notes n equal events. principal, subject: "" or NULL if unknown. */
void activity_note(struct admind *, enum activity_kind, const char *principal,
    enum listener, const char *subject, enum failure, uint64_t n);
void activity_tick(struct admind *); /* writes the noted entries */

/* ---- follow.c: the live tail ---- */
int follow_start(struct admind *, struct err *);
int follow_message(struct link *, struct ipc_frame *); /* ACTIVITY_* */
/* Returns whether any follower wants calls. If not, callers need not make a
 * struct follow_call. */
bool follow_calls(const struct admind *);
struct follow_call {
	struct ipc_id id;
	const char *kind;
	struct ipc_bytes tool, principal, trace; /* untrusted bytes */
	uint64_t listener;
	enum outcome outcome;
	enum failure failure;
	uint64_t started_us, ended_us, cpu_us;
	uint32_t connections, net_refused; /* the call's use of the network */
	uint64_t net_bytes;
};
void follow_call(struct admind *, const struct follow_call *);
/* Does what follow_call() does, for a record. The intent TLV names the tool. */
void follow_record(
    struct admind *, struct ipc_bytes intent, struct follow_call *);
/* Sends a line to all followers. json: one whole object, without a line
 * feed. */
void follow_line(struct admind *, const struct buf *json);
void follow_tick(struct admind *);
unsigned follow_count(const struct admind *);

/* ---- metrics.c ---- */
enum { METRICS_BUCKETS = 13 };
struct metrics {
	uint64_t outcome[OUTCOME_LOST + 1]; /* of executions that ended here */
	uint64_t failure[FAILURE_COUNT];    /* of these executions */
	uint64_t refused[FAILURE_COUNT];    /* calls that did not run */
	uint64_t bucket[METRICS_BUCKETS + 1];
	uint64_t duration_us, cpu_us;
	uint64_t connections, net_refused, net_bytes; /* of executions */
	uint64_t judged, remembered; /* arguments found valid, verdicts.h */
	uint64_t auth_failed, activity_dropped, lines_dropped;
};
/* Counts an execution that ended. This is cheap: only memory is written.
 * started_us 0: it never ran. */
void metrics_ended(struct admind *, enum outcome, enum failure,
    uint64_t started_us, uint64_t ended_us, uint64_t cpu_us);
/* Counts an execution's use of the network, as its record tells. */
void metrics_network(
    struct admind *, uint32_t connections, uint32_t refused, uint64_t bytes);
int metrics_message(struct link *, struct ipc_frame *); /* METRICS_GET */

/* ---- upkeep.c: counting, searching, forgetting ---- */
void upkeep_closed(struct admind *, unsigned n); /* n rows were closed */
void upkeep_tick(struct admind *);

#endif
