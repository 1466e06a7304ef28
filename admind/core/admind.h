/*
 * admind: what its rooms share, and their bounds. What a room offers says its
 * own headers; which room may use which, meson.build.
 */
#ifndef ADMIND_H
#define ADMIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "buf.h"
#include "conf.h"
#include "db.h"
#include "err.h"
#include "ipc.h"
#include "idset.h"
#include "ipc_peer.h"
#include "jsonw.h"
#include "ledger.h"
#include "limit.h"
#include "bounds.h"
#include "proc.h"
#include "serving.h"
#include "verdicts.h"

struct event;
struct job;
struct link;

enum {
	PRINCIPAL_MAX = 254, /* an e-mail address, RFC 5321 */
	/* AUTHORISE in work. Each may hold its arguments and a pre-image: at
	 * worst 8 MiB each, in practice a few kB. */
	JOBS_MAX = 512,
	/* Bytes of arguments of all of them: a gateway, or one client of it,
	 * must not make this process the largest of the machine. */
	JOBS_BYTES_MAX = 64 * 1024 * 1024,
	OPS_MAX = 512, /* other requests in work, mostly one statement */
	/* Of them for gateways of the tunnel, which whoever sends them bytes
	 * may have taken over: a gateway that does not read keeps its lists in
	 * work, and records and administrators need room too. */
	TUNNEL_OPS_MAX = OPS_MAX / 4,
	/* A peer's answer on the call path; it is an admind-check step budget,
	 * an AES pass, a table insert. */
	ASK_MS = 5000,
	HOLD_MS = 30 * 1000,  /* a gateway must RUN within this */
	QUEUE_MS = 60 * 1000, /* sandboxd's queue_wait at most */
	EXPOSED_NAME_MAX = NAME_EXPOSED_MAX,
	/* A management call that takes longer than this is counted as lost. */
	MANAGEMENT_DEADLINE_MS = 120 * 1000,
	/* INTENT_KIND of management calls. It stands in no context: only in
	 * endings of admind's own. */
	INTENT_KIND_MANAGEMENT = 4,
};

TAILQ_HEAD(job_list, job);
TAILQ_HEAD(announce_list, announce); /* catalogue.c */
TAILQ_HEAD(close_list, close_item);  /* ending.c */
TAILQ_HEAD(task_list, task);         /* task_run.c */

struct upkeep {           /* upkeep.c */
	uint64_t closed;  /* rows, since the last tick */
	uint64_t backlog; /* not yet counted, about */
	uint64_t share;   /* of it, that this second may still take */
	uint64_t asked;   /* of the statement under way */
	bool idle, working, expiring, more_to_expire;
};

struct admind {
	struct proc proc;
	struct db *db;
	struct ipc_client *check, *vault, *sandboxd;
	struct ipc_server *gw_local, *gw_tunnel, *http, *ctl;
	struct ipc_id epoch; /* this process's own */
	bool epoch_stored;   /* its row is in the database */
	bool storing_epoch;
	const char *node; /* configuration: this machine's name */
	char *layers;     /* own confinement, for doctor */

	struct ipc_id sandbox_epoch; /* of the present connection */
	bool sandbox_named;          /* EPOCH_END came on it */
	bool sandbox_ready;          /* and its epoch is in the database */
	uint64_t started_us;         /* Unix time: when this process began */
	bool started;                /* calls begin at once: call_started() */
	struct idset live;           /* ids that sandbox answers for */

	/* Takes over a job whose tool is a management tool: manage_start(), set
	 * by main, since calls know nothing of what is above them. */
	void (*manage)(struct job *);
	struct job_list jobs;
	unsigned njobs; /* AUTHORISE in work */
	size_t job_bytes;
	unsigned token_jobs; /* of them, those of tokens */
	size_t token_bytes;
	unsigned nops;       /* other requests in work */
	unsigned tunnel_ops; /* of them, of the tunnel's gateways */
	uint8_t session_key[32];
	bool have_session_key;
	bool have_local_token;       /* local_token_file is set */
	struct ipc_hash local_token; /* its SHA-256 */

	struct serving_list serving;
	struct verdicts verdicts; /* of admind-check's present connection */
	uint64_t revision;        /* catalogue, newest announced to gateways */
	struct announce_list announces;
	struct close_list closes; /* endings not yet committed */
	unsigned ncloses;
	unsigned inherited; /* of closes: an earlier life's */
	void (*inherited_closed)(struct admind *); /* when they are */
	struct ledger *ledger;     /* what of closes was answered */
	unsigned nresults;         /* results.c: passed on to admind-check */
	unsigned regrants;         /* regrant.c: how often it was begun */
	bool regrant_again;        /* no memory for it: the tick does it */
	struct gather *gather;     /* records on their way: gather.c */
	struct activity *activity; /* activity.h, with the next three */
	struct follow *follow;
	struct metrics *metrics;
	struct upkeep upkeep;
	struct task_list tasks; /* calls of tasks that are listened to */
	bool sweeping_tasks, resuming_tasks; /* a statement is under way */
	bool sweeping_calls;
	struct event *tick; /* once a second: tick.c */
	unsigned ticks;
	bool sweeping;
	struct tokens *tokens; /* API tokens: tokens.h */
	uint64_t anchored_seq; /* audit head last signed */
	bool signing;
	struct limits *limits; /* limits.c */
};

#endif
