/*
 * One call from RUN to its record.
 *
 *	WAITING		queued until a runner of its	timer: queue_wait
 *			profile is ready
 *	STARTING	the runner's cgroup gets the	timer: CALL_LIMIT_MS
 *			call's limits if it has others;
 *			egress opens a net for a call	timer: NET_OPEN_MS
 *			that may connect
 *	RUNNING		has code, arguments, secrets	timer: the wall clock
 *	PARKED		the tool asked its client and	timer: ask_timeout; the
 *			waits (park.c)			wall clock is stopped
 *	CHECKING	waits for admind's verdict on	timer: VERIFY_MS
 *			the result (verify.c)
 *	REPORTING	the tool failed, and had a net;	timer: CALL_REPORT_MS
 *			the call waits for egress to
 *			report refusals (callnet.c)
 *	ENDING		answered; the runner is killed,	CALL_LINGER_US, then
 *			a moment later if no call waits	the runner's deadline
 *	ENDED		record handed on; freed
 *
 * The first event that ends a call decides its outcome, and no later event
 * changes it. The answer goes to the waiting client at that moment. The record,
 * which holds the CPU time, follows when the runner was reaped. A call whose
 * runner or pool dies before RUNNING waits for another runner: no code of the
 * tool ran. Only call_change() in call.c changes a call's state.
 */
#ifndef CALL_H
#define CALL_H

#include "depot.h"
#include "held.h"
#include "net.h"
#include "records.h"
#include "runners.h"

enum {
	/* The wait for a cgroup's limits. Writing them takes less than a ms. */
	CALL_LIMIT_MS = 5000,
	/* A little more than the time that egress has for its report. */
	CALL_REPORT_MS = NET_CLOSE_MS + 500,
	/* The wait before an answered call's runner is killed. The answer
	 * arrives first, so the fork of the next runner (ms) can't delay it. */
	CALL_LINGER_US = 300,
	/* The wait for the end of a channel after its process was reaped. */
	CALL_REAP_MS = 5000,
	/* The wait until a process is reaped after its channel ended. */
	CALL_HANGUP_MS = 250,
	/* Bytes that may wait for a slow gateway. Later events are dropped. */
	CALL_EVENT_QUEUE_MAX = 1024 * 1024,
	/* How long a client is told to wait: MIN to MAX by the load if the
	 * failure is `busy` (calls_retry_ms), otherwise CALL_RETRY_MS. */
	CALL_RETRY_MIN_MS = 100,
	CALL_RETRY_MAX_MS = 30 * 1000,
	CALL_RETRY_MS = 500,

	/* The memory budget leaves a call at least this many processes: two of
	 * the runner and six of the tool. */
	CALL_PROCESSES_MIN = 8,
	/* Files in a call's /tmp. Their number is bounded, because each takes
	 * kernel memory that does not count as space in /tmp. */
	CALL_TMP_INODES = 8192
};

enum call_state {
	CALL_NEW,
	CALL_WAITING,
	CALL_STARTING,
	CALL_RUNNING,
	CALL_PARKED,
	CALL_CHECKING,
	CALL_REPORTING,
	CALL_ENDING,
	CALL_ENDED
};

struct calls_conf {
	unsigned queue; /* calls that may wait for a slot */
	uint64_t queue_wait_ms;
	uint64_t limit[LIMIT_COUNT]; /* defaults of a call */
	uint32_t cpu_percent;        /* of a call, where there is a cgroup */
	uint64_t memory_budget;      /* of a call's processes together */
	unsigned waiting_min, waiting_max; /* runners, see runners_conf */
	uint64_t waiting_memory;
	unsigned forks;
	unsigned parked_max;     /* calls that may wait for their clients */
	uint64_t ask_timeout_ms; /* each question */
};

struct calls;

struct calls *calls_new(
    struct event_base *, const struct calls_conf *, struct records *);
/* Returns the calls' nets (net.h), for the code that connects to egress. */
struct nets *calls_nets(struct calls *);
/* Returns sandboxd's side of the module store (depot.h). */
struct depot *calls_depot(struct calls *);
/* Replaces a server's granted hosts: from now on the server's calls may connect
 * to the new hosts, and to no others. */
void calls_regrant(struct calls *, const struct regrant *);
/* Returns the runners of the calls: the arg for runners_pool_events. */
struct runners *calls_runners(struct calls *);
void calls_pool(struct calls *, struct pool *);
void calls_free(struct calls *);
/* Takes a context over and runs it for the client that waits at peer with
 * request. -1: no memory, and the context is still the caller's. */
int calls_run(struct calls *, struct ipc_peer *, uint64_t request,
    struct held *, struct ipc_bytes arguments);
/* Frees a context that is not held any more and will not run, and sends its
 * record with this outcome and failure. */
void calls_refuse_held(
    struct calls *, struct held *, enum outcome, enum failure);
/* Ends all calls before this process ends: kills the calls that run, refuses
 * those that did not begin, and leaves those that are ENDING. */
void calls_stop(struct calls *);
/* Cancels the call with this id if `by` started it or is NULL (admind). Returns
 * true if this ended the call. */
bool calls_cancel(
    struct calls *, const struct ipc_id *, struct ipc_peer *by, enum failure);
/* Takes the client's answer to question `number` of a call that `by` started.
 * Ignores an answer to any other call or question. json is foreign. */
void park_answer(struct calls *, const struct ipc_id *, struct ipc_peer *by,
    uint32_t number, struct ipc_bytes json);
/* Attaches admind, which has connected again, to this task's call. admind gets
 * an open question and all later events. false: no such call. */
bool calls_attach(
    struct calls *, const struct ipc_id *, struct ipc_peer *, uint64_t request);
/* Sets the connection to admind, which judges results (verify.h), or NULL. */
void calls_admind(struct calls *, struct ipc_peer *);
/* Forgets a peer that has gone; its calls go on. */
void calls_peer_gone(struct calls *, struct ipc_peer *);
/* Fires the deadlines (CLOCK_BOOTTIME) that passed while the machine slept. */
void calls_sweep(struct calls *, uint64_t now_ms);
size_t calls_count(const struct calls *);
uint64_t calls_ended(const struct calls *); /* since the start */
bool calls_has(const struct calls *, const struct ipc_id *);
/* Returns the ms after which a client refused as `busy` may try again. */
uint64_t calls_retry_ms(const struct calls *);
/* Writes the calls' state, then the text `more`, in one line for `systemctl
 * status`. */
void calls_status(const struct calls *, char *out, size_t, const char *more);
/* Writes "name=state detail" lines on the runners and the code cache, for
 * doctor. */
void calls_layers(const struct calls *, struct buf *);
/* Writes "call_memory=state detail": whether the memory of a call is limited as
 * a whole. */
void calls_memory_layer(const struct calls *, char *out, size_t len);
void calls_each(struct calls *, void (*f)(struct table_node *, void *), void *);

#endif
