/*
 * Circuit breakers: a caller who calls too much, repeats the same call, or
 * fails without end is refused for a while (docs/decisions/0042). No I/O is
 * done here: callers bring the calls, the endings and the time.
 *
 * Breakers only protect and do not decide permissions. So if memory runs out,
 * calls are let through.
 */
#ifndef BREAKER_H
#define BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "failure.h"
#include "ipc.h"

enum breaker_scope { BREAKER_SESSION, BREAKER_PRINCIPAL, BREAKER_SCOPES };
enum breaker_kind { BREAKER_CALLS, BREAKER_REPEATS, BREAKER_ERRORS };

/* Limits. 0: no limit of that kind. */
struct breaker_limits {
	uint32_t calls;   /* calls within calls_ms */
	uint32_t repeats; /* repetitions of one call within repeats_ms */
	uint32_t errors;  /* errors in a row */
};

struct breaker_conf {
	struct breaker_limits of[BREAKER_SCOPES];
	uint64_t calls_ms, repeats_ms; /* windows */
	uint64_t reset_ms;             /* time for which a breaker stays open */
};

/* The keys of a caller: the session's random id, which is all zero without a
 * session, and the principal on its listener (breaker_principal()). */
struct breaker_who {
	struct ipc_id key[BREAKER_SCOPES];
};

struct breaker_trip {
	enum breaker_scope scope;
	enum breaker_kind kind;
	uint32_t limit;
	uint64_t window_ms; /* 0 for kind ERRORS */
	uint64_t wait_ms;   /* until the breaker lets calls through; at least
			     * 1 */
	bool fresh;         /* this call opened the breaker */
};

struct breakers;

struct breakers *breakers_new(void); /* NULL without memory */
void breakers_free(struct breakers *);
/* Closes all breakers and counts from zero. Returns how many were open. */
unsigned breakers_reset(struct breakers *, uint64_t now_ms);

void breaker_principal(
    unsigned listener, const char *principal, struct ipc_id *out);

/* Returns scope and kind: "session_repeats". */
const char *breaker_name(const struct breaker_trip *);

/*
 * Counts a call of the object `name` of this kind. arguments: their digest by
 * json_alike.h. Returns 0: the call was counted and may go on. Returns -1:
 * *trip names a breaker that is open. Such a call is not counted. now_ms must
 * never go back.
 */
int breaker_call(struct breakers *, const struct breaker_conf *,
    const struct breaker_who *, unsigned kind, const char *name,
    const struct ipc_id *arguments, uint64_t now_ms, struct breaker_trip *);

/* Takes back the repetition that breaker_call() counted, if the failure means
 * that the call could not be tried because a process or the database is away.
 * Otherwise an outage would lock out a caller who tries again as he was told.
 * Any other failure changes nothing. */
void breaker_untried(struct breakers *, const struct breaker_conf *,
    const struct breaker_who *, unsigned kind, const char *name,
    const struct ipc_id *arguments, enum failure, uint64_t now_ms);

/* Counts the ending of a call that breaker_call() let go on. FAILURE_NONE: a
 * success. Returns true if the ending opened a breaker; *trip names this
 * breaker. */
bool breaker_ended(struct breakers *, const struct breaker_conf *,
    const struct breaker_who *, enum failure, uint64_t now_ms,
    struct breaker_trip *);

/* Do what breaker_ended() does, for a call whose ending comes as a record.
 * breaker_under_way() notes the caller, breaker_record() counts the ending. An
 * unknown id, from before a restart or of another process, is ignored. */
void breaker_under_way(struct breakers *, const struct ipc_id *execution,
    const struct breaker_who *);
bool breaker_record(struct breakers *, const struct breaker_conf *,
    const struct ipc_id *execution, enum failure, uint64_t now_ms,
    struct breaker_trip *);

/* Calls cb for each open breaker, for a list that an administrator reads. key
 * tells whose breaker it is: the member of breaker_who.key for the trip's
 * scope. */
void breakers_each(struct breakers *, const struct breaker_conf *,
    uint64_t now_ms,
    void (*cb)(
	void *arg, const struct ipc_id *key, const struct breaker_trip *),
    void *arg);

#endif
