/*
 * Execution contexts that wait for their RUN: opened, bounded in number,
 * used once, dropped when their time is over.
 *
 * No I/O and no clock here: the caller gives the time (CLOCK_BOOTTIME, ms).
 */
#ifndef HELD_H
#define HELD_H

#include "context.h"
#include "limit.h"
#include "records.h"
#include "replay.h"
#include "table.h"

enum {
	/* No call runs longer than this, whatever its version says. */
	HELD_TIMEOUT_MAX_MS = 600 * 1000,
	/* A context for which no RUN comes is dropped within this time,
	 * whatever the context says. */
	HELD_HOLD_MAX_MS = 60 * 1000
};

/* The contents of one call's context. The ipc_bytes point into plain. */
struct held {
	struct table_node node; /* by the execution's id */
	struct ipc_id id;
	struct record *record; /* owned until records_add(); then NULL */
	uint64_t expires_ms;
	uint8_t listener;   /* enum listener: who may RUN it */
	uint8_t kind;       /* enum context_kind */
	struct buf plain;   /* the opened context: holds secrets */
	struct buf secrets; /* TLV for SECRETS: name (1), value (2), ... */
	struct buf modules; /* digests, 32 bytes each, ascending */
	enum runner_kind runner;
	enum runner_driver driver; /* form of `code`; a command: DRIVER_CODE */
	bool task; /* the call outlives RUN's connection; recorded whole */
	enum call_method method;        /* the form of its result */
	struct ipc_bytes output_schema; /* n = 0: the result has no schema */
	struct ipc_bytes code;          /* source, or a specification */
	struct ipc_bytes name;
	struct ipc_bytes principal; /* of the intent; n = 0: it names none */
	struct ipc_bytes executable, executable_digest; /* of a command */
	/* requires: hosts that the call's version declares. grants: hosts that
	 * its server is granted. Both are lines of common/request/netgrant.h. A
	 * call that declares no host has no network and pays nothing for it. */
	struct buf
		requires,
	grants;
	/* number of the context that brought the grants: a later context has a
	 * larger number (order_of() in held.c) */
	uint64_t granted_by;
	bool has_server;
	struct ipc_id server; /* the server that the grants are for */
	bool
	    has_version; /* TOOL only: version is the approved version's hash */
	struct ipc_hash version;
	struct ipc_hash args;
	uint64_t timeout_ms;
	/* The call's limits, by enum limit: never 0 if the sandbox has a
	 * default. LIMIT_TIMEOUT_MS is timeout_ms; the limits that admind
	 * enforces (arguments, code) are 0 here. */
	uint64_t limit[LIMIT_COUNT];
};

struct depot_conf; /* depot_conf.h */

struct held_set {
	struct table by_id;
	size_t max;
	uint64_t limit[LIMIT_COUNT]; /* the configured defaults */
	bool have_key;
	uint8_t key[KEY_LEN]; /* this epoch's context key */
	struct replay used;
	uint64_t keys; /* how many keys there were */
	struct ipc_id epoch;
	const struct depot_conf
	    *installer; /* NULL: this sandbox installs nothing */
};

enum held_verdict {
	HELD_OK,
	HELD_UNKNOWN,        /* never held, used, or expired */
	HELD_WRONG_LISTENER, /* the context is used up */
	HELD_WRONG_DIGEST    /* the context is used up */
};

int held_init(struct held_set *, size_t max, const struct ipc_id *epoch);
/* Sets the default limits, by enum limit, for calls whose context names
 * none. */
void held_defaults(struct held_set *, const uint64_t limit[LIMIT_COUNT]);
void held_clear(struct held_set *); /* frees all, wipes the key */
void held_free(struct held *);      /* frees one, with all that it owns */
/* Takes a fresh key from the vault; contexts opened before stay held. */
void held_key(struct held_set *, const uint8_t key[KEY_LEN]);

/* Returns the form that the call's result must have: enum call_method, or
 * CALL_STRUCTURED. */
unsigned held_form(const struct held *);

/* Tells whether the call may connect to any host. */
static inline bool
held_connects(const struct held *h)
{
	return h->
		requires
	    .len > 0;
}

/* A server's grants as they are now. */
struct regrant {
	struct ipc_id server;
	uint64_t number; /* as granted_by */
	struct buf grants;
};
/* Opens grants into a regrant, which held_regrant_free() must free, also after
 * a failure. Does not change held contexts. 0, or -1 with the failure. */
int held_regrant(struct held_set *, const struct ipc_id *server,
    struct ipc_bytes sealed, struct regrant *, struct err *);
void held_regrant_free(struct regrant *);
/* Replaces h's grants if the new ones are for h's server and later than the old
 * ones. Returns true if it replaced them. If memory runs out, h has no grants
 * at all, which is safe. */
bool held_take_grants(struct held *, const struct regrant *);
/* Gives the grants to all contexts that wait for their RUN. */
void held_grant_all(struct held_set *, const struct regrant *);

/* Opens and keeps a sealed context. 0, or -1 with the failure to answer. */
int held_add(struct held_set *, const struct ipc_id *execution,
    uint8_t listener, struct ipc_bytes sealed, uint64_t now_ms, struct err *);
/* Keeps the arguments that HELD brought (text.n = 0: none) for the record. 0,
 * or -1: then the context is not held any more. */
int held_arguments(struct held_set *, const struct ipc_id *execution,
    struct ipc_bytes text, struct err *);
/* Returns a held context, or NULL. */
struct held *held_find(const struct held_set *, const struct ipc_id *);
/*
 * Uses a context. In every case but HELD_UNKNOWN the context leaves the set,
 * even if listener or digest are wrong, and *out is then the caller's.
 */
enum held_verdict held_take(struct held_set *, const struct ipc_id *,
    uint8_t listener, struct ipc_bytes arguments, struct held **out);
/* Removes a context by id, if it is of this listener (0: of any). Returns it,
 * or NULL. */
struct held *held_remove(
    struct held_set *, const struct ipc_id *, uint8_t listener);
/* Removes a context whose time is over. Returns it, or NULL. */
struct held *held_expired(struct held_set *, uint64_t now_ms);

#endif
