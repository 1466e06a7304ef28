/*
 * Argon2id on a fixed set of threads, so that hashing a password (tens of
 * milliseconds, tens of megabytes) never delays a context for a tool call.
 *
 * Jobs wait in two bounded queues, strangers' and others'; a full one refuses.
 * Others go first, and one thread never takes a stranger's job: a flood of
 * guesses delays no browser that was here before (decision 0040). The number of
 * threads bounds memory: SLOTS_THREADS * argon2_memory, however many logins
 * arrive. All functions but the threads' own run on the loop's thread, and so
 * do the done callbacks.
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
	/* For each class; at 0.1 s each, 1.6 s of waiting at most. */
	SLOTS_QUEUE = 16,
	SLOTS_PASSWORD_MAX = 512, /* 128 characters of at most 4 bytes */
	SLOTS_ENCODED_MAX = 256   /* a PHC string of ours has about 100 */
};

enum slots_what {
	SLOTS_VERIFY, /* encoded is read, match is written */
	SLOTS_HASH    /* encoded is written */
};

/* Owned by the caller, until done ran. Wipe after use. */
struct slots_job {
	enum slots_what what;
	char password[SLOTS_PASSWORD_MAX];
	size_t password_len;
	char encoded[SLOTS_ENCODED_MAX];
	bool stranger; /* a login of a browser that we don't know */
	bool match;
	bool failed; /* memory was out: neither match nor mismatch */
	void (*done)(struct slots_job *, void *arg);
	void *arg;
	struct slots_job *next;
};

/* Memory in KiB and passes as Argon2 counts them (RFC 9106); one lane. Also
 * makes the decoy verifier. No threads yet. NULL with err. */
struct slots *slots_new(
    struct event_base *, uint32_t memory_kib, uint32_t passes, struct err *);
/*
 * Starts the threads, then closes the door: from then on no thread of this
 * process can make another thread, process or filter. Call after confine_self,
 * so that the threads inherit its layers. 0 or -1.
 */
int slots_start(struct slots *, struct err *);
/* Waits for the threads to end; queued jobs are dropped, not answered. */
void slots_free(struct slots *);

/* 0: done will run; -1: its queue is full (or there are no threads). */
int slots_submit(struct slots *, struct slots_job *);

/* Returns a verifier that no password fits, at the cost of a real one. Unknown
 * users are verified against it, so that time doesn't reveal them. */
const char *slots_decoy(const struct slots *);

#endif
