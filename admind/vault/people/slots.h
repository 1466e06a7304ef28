/*
 * Argon2id on a fixed set of threads, so that hashing a password (tens of
 * milliseconds, tens of megabytes) never delays a context for a tool call.
 *
 * Jobs wait in two bounded queues: one for strangers' jobs, one for all other
 * jobs. A full queue refuses jobs. Strangers' jobs go last, and one thread
 * always remains free of them, so a flood of guesses delays no browser that
 * logged in here before (decision 0040). The memory is at most that of
 * SLOTS_THREADS hashes (argon2_memory each), no matter how many logins arrive.
 * The functions below and the done callbacks run on the loop's thread.
 */
#ifndef SLOTS_H
#define SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

struct event_base;
struct slots;

enum {
	SLOTS_THREADS = 2,
	/* Jobs in each queue. At 0.1 s per job the last job waits 1.6 s. */
	SLOTS_QUEUE = 16,
	SLOTS_PASSWORD_MAX = 512, /* 128 characters of at most 4 bytes */
	SLOTS_ENCODED_MAX = 256   /* our PHC strings have about 100 */
};

enum slots_what {
	SLOTS_VERIFY, /* encoded is read, match is written */
	SLOTS_HASH    /* encoded is written */
};

/* The caller owns the job, keeps it until done() ran, and wipes it after
 * use. */
struct slots_job {
	enum slots_what what;
	char password[SLOTS_PASSWORD_MAX];
	size_t password_len;
	char encoded[SLOTS_ENCODED_MAX];
	bool stranger; /* a login of a browser that we don't know */
	bool match;
	bool failed; /* out of memory: neither match nor mismatch */
	void (*done)(struct slots_job *, void *arg);
	void *arg;
	struct slots_job *next;
};

/* Makes the queues and the decoy verifier, but no threads yet. memory_kib and
 * passes are parameters of Argon2 (RFC 9106), which uses one lane here. NULL
 * with err. */
struct slots *slots_new(
    struct event_base *, uint32_t memory_kib, uint32_t passes, struct err *);
/*
 * Starts the threads and then installs a filter: from then on no thread of this
 * process can make another thread, process or filter. Call it after
 * confine_self, so that the threads inherit its layers. 0 or -1.
 */
int slots_start(struct slots *, struct err *);
/* Waits for the threads to end; queued jobs are dropped, not answered. */
void slots_free(struct slots *);

/* Queues a job. 0: done() will run; -1: the queue is full, or there are no
 * threads. */
int slots_submit(struct slots *, struct slots_job *);

/* Returns a verifier that no password fits. A check against it costs as much as
 * against a real one, so that the time taken doesn't reveal unknown users. */
const char *slots_decoy(const struct slots *);

#endif
