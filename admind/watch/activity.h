/*
 * The activity log and its live tail; counters for /metrics; the work on
 * records in the pauses (upkeep.c). Decision 0041.
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
	/* Different entries of one second; equal ones become one with a
	 * count. */
	ACTIVITY_PENDING_MAX = 256,
	ACTIVITY_SUBJECT_MAX = 128, /* characters of its column */
	/* Followers: administrators' pages and terminals. */
	ACTIVITY_FOLLOWERS_MAX = 16,
	/* Followers renew after this time, which rechecks the login. */
	ACTIVITY_FOLLOW_MS = 60 * 1000,
	ACTIVITY_GATHER_MS = 100, /* lines wait so long for others */
	ACTIVITY_LINES_MAX = IPC_FRAME_MAX / 2, /* bytes of one sending */
	/* A follower whose connection has this much waiting gets no more. */
	ACTIVITY_QUEUED_MAX = 1024 * 1024
};

/* ---- activity.c: entries ---- */
int activity_start(struct admind *, struct err *);
/* principal "" or NULL: unknown; subject likewise; n: how often. */
void activity_note(struct admind *, enum activity_kind, const char *principal,
    enum listener, const char *subject, enum failure, uint64_t n);
void activity_tick(struct admind *); /* writes them */

/* ---- follow.c: the live tail ---- */
int follow_start(struct admind *, struct err *);
int follow_message(struct link *, struct ipc_frame *); /* ACTIVITY_* */
/* Returns whether any follower listens to calls. Ask before making anything for
 * it. */
bool follow_calls(const struct admind *);
struct follow_call {
	struct ipc_id id;
	const char *kind;
	struct ipc_bytes tool, principal, trace; /* untrusted bytes */
	uint64_t listener;
	enum outcome outcome;
	enum failure failure;
	uint64_t started_us, ended_us, cpu_us;
	uint32_t connections, net_refused; /* of its network */
	uint64_t net_bytes;
};
void follow_call(struct admind *, const struct follow_call *);
/* The same for a record; its intent TLV names the called tool. */
void follow_record(
    struct admind *, struct ipc_bytes intent, struct follow_call *);
/* Sends a line of JSON, an open object that this closes. If `log` is false,
 * only followers of calls get it. */
void follow_line(struct admind *, const struct buf *json);
void follow_tick(struct admind *);
unsigned follow_count(const struct admind *);

/* ---- metrics.c ---- */
enum { METRICS_BUCKETS = 13 };
struct metrics {
	uint64_t outcome[OUTCOME_LOST + 1]; /* of executions that ended here */
	uint64_t failure[FAILURE_COUNT];    /* of those */
	uint64_t refused[FAILURE_COUNT];    /* that became no execution */
	uint64_t bucket[METRICS_BUCKETS + 1];
	uint64_t duration_us, cpu_us;
	uint64_t connections, net_refused, net_bytes; /* of their network */
	uint64_t judged, remembered; /* arguments found valid, verdicts.h */
	uint64_t auth_failed, activity_dropped, lines_dropped;
};
/* Counts an execution that ended. Cheap: counters of this process. started_us
 * 0: it never ran. */
void metrics_ended(struct admind *, enum outcome, enum failure,
    uint64_t started_us, uint64_t ended_us, uint64_t cpu_us);
/* Counts its use of the network, as its record tells it. */
void metrics_network(
    struct admind *, uint32_t connections, uint32_t refused, uint64_t bytes);
int metrics_message(struct link *, struct ipc_frame *); /* METRICS_GET */

/* ---- upkeep.c: counting, searching, forgetting ---- */
void upkeep_closed(struct admind *, unsigned n); /* so many rows closed */
void upkeep_tick(struct admind *);

#endif
