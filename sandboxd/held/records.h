/*
 * The ends of calls, kept until admind has committed them.
 *
 * A record is allocated when a context is accepted, so that the end of a call
 * can't fail for want of memory. The record moves from the held context to the
 * call, and then to this store. RECORD is sent again, after each reconnect and
 * each refusal, until admind answers OK. The output and the result of a tool
 * are worth less than the fact that it ran. So beyond a budget of bytes they
 * are dropped, which is logged.
 *
 * Before a call is answered, its record is in the ledger (common/ipc/ledger.h),
 * which outlives this process. A predecessor's records in the ledger are sent
 * first of all, under the predecessor's epoch. This process names its own epoch
 * only when admind has all those records. Then admind takes the predecessor's
 * other calls for lost.
 */
#ifndef RECORDS_H
#define RECORDS_H

#include <sys/queue.h>

#include "ipc_peer.h"
#include "ledger.h"
#include "table.h"

enum {
	/* Bytes of result or error body in a record. */
	RECORD_BODY_MAX = 64 * 1024,
	/* Bytes of all payloads: room for 512 of full size. */
	RECORD_BYTES_MAX = 64 * 1024 * 1024,
	/* RECORDs under way at once: 64 x 128 KiB is less than the bound of the
	 * connection's queue. */
	RECORD_WINDOW = 64,
	/* A record without an answer in this time is sent again. A commit takes
	 * milliseconds. */
	RECORD_ANSWER_MS = 10 * 1000,
	RECORD_RETRY_MS = 500,
	/* A predecessor's record is given up after admind has refused its
	 * contents this often. Until then this sandbox serves no client. */
	RECORD_REFUSALS_MAX = 4
};

struct event_base;
struct records;

struct record {
	struct table_node node; /* by the execution's id */
	struct ipc_id id;
	TAILQ_ENTRY(record) link;
	struct records *owner; /* once stored */
	struct ipc_id epoch;   /* the call's; set once kept or stored */
	struct ledger_note note;
	unsigned refusals; /* of a predecessor's record */
	enum outcome outcome;
	enum failure failure;
	bool delivered, sent;
	uint64_t started_us, ended_us, cpu_us, request;
	struct buf intent;  /* admind's TLV, given back unread */
	struct buf payload; /* stdout, body; of a task also whole body, _meta */
	uint32_t stdout_len, meta_len, kept_len;
	struct buf network; /* the call's connections: JSON, or empty */
	uint32_t connections, net_refused;
	uint64_t net_bytes;
};

/* Makes the record of an accepted execution. NULL without memory. */
struct record *record_new(const struct ipc_id *, struct ipc_bytes intent);
/* Appends the arguments of HELD to the intent, which has no arguments yet. 0,
 * or -1 if memory runs out, and then nothing has changed. */
int record_arguments(struct record *, struct ipc_bytes text);
void record_free(struct record *);
/* Keeps stdout, cut to its maximum, and body (JSON) in its kept form (kept.h),
 * of at most RECORD_BODY_MAX bytes. Keeps neither if memory runs out. */
void record_payload(
    struct record *, struct ipc_bytes stdout_text, struct ipc_bytes body);
/* Does the same for a task, and keeps body and _meta uncut for its client. */
void record_whole(struct record *, struct ipc_bytes stdout_text,
    struct ipc_bytes body, struct ipc_bytes meta);

struct records *records_new(
    struct event_base *, size_t max, const struct ipc_id *epoch);
void records_free(struct records *);
/* Opens the ledger in this process' folder of run_dir and takes over a
 * predecessor's records in it. settled is called when admind has all of these
 * records, and never if there are none. 0, or -1: the error says what to do. */
int records_ledger(struct records *, const char *run_dir,
    void (*settled)(void *arg), void *arg, struct err *);
/* Returns how many records of predecessors admind does not have yet. */
size_t records_inherited(const struct records *);
/*
 * Writes a call's record into the ledger, before the answer. A successor of
 * this process may read it. So values that are not known yet are written as
 * unknown. runs: the call still runs, and its CPU time is unknown. network:
 * unless empty, it is written in place of the record's connections. If the
 * ledger has too little room, the record is written without its text, or not at
 * all, which is logged.
 */
void records_keep(
    struct records *, struct record *, bool runs, struct ipc_bytes network);
/* Takes ownership of the record and sends it as soon as admind is connected. */
void records_add(struct records *, struct record *);
size_t records_count(const struct records *);
bool records_has(const struct records *, const struct ipc_id *);
void records_each(
    struct records *, void (*f)(struct table_node *, void *), void *);
/* Tells whether admind is connected. */
bool records_connected(const struct records *);
/* Sets the connection to admind (after EPOCH_END), or NULL if there is none. */
void records_peer(struct records *, struct ipc_peer *);

#endif
