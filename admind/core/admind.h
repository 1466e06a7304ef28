/*
 * State and bounds that all rooms (folders) of admind share. meson.build says
 * which room may use which.
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
struct ipc_frame;
struct job;
struct link;

enum {
	PRINCIPAL_MAX = 254, /* an e-mail address, RFC 5321 */
	/* The most jobs (AUTHORISE in work). Each job may hold its arguments
	 * and a pre-image. Each of these two has at worst 8 MiB, in practice a
	 * few kB. */
	JOBS_MAX = 512,
	/* Bytes of the arguments of all jobs. They are limited, because neither
	 * a gateway nor a client of a gateway may make this process the largest
	 * on the machine. */
	JOBS_BYTES_MAX = 64 * 1024 * 1024,
	OPS_MAX = 512, /* other requests in work; mostly a statement each */
	/* The part of OPS_MAX for the tunnel's gateways. Anyone who can send
	 * bytes to such a gateway may have taken it over, and if a gateway does
	 * not read its answers, its requests for lists stay in work. Records
	 * and administrators need room, too. */
	TUNNEL_OPS_MAX = OPS_MAX / 4,
	/* Time for a peer's answer on the path of a call. The longest work
	 * before an answer is admind-check's step budget, an AES pass or a
	 * table insert. */
	ASK_MS = 5000,
	HOLD_MS = 30 * 1000,  /* a gateway must RUN within this */
	QUEUE_MS = 60 * 1000, /* the most that sandboxd's queue_wait may be */
	EXPOSED_NAME_MAX = NAME_EXPOSED_MAX,
	/* A management call that takes longer than this is counted as lost. */
	MANAGEMENT_DEADLINE_MS = 120 * 1000,
	/* INTENT_KIND of management calls. No context has this kind. Only
	 * endings that admind itself closes have it. */
	INTENT_KIND_MANAGEMENT = 4,
};

TAILQ_HEAD(job_list, job);
TAILQ_HEAD(announce_list, announce); /* catalogue.c */
TAILQ_HEAD(close_list, close_item);  /* ending.c */
TAILQ_HEAD(task_list, task);         /* task_run.c */

struct upkeep {           /* upkeep.c */
	uint64_t closed;  /* rows closed since the last tick */
	uint64_t backlog; /* rows not yet counted, estimated */
	uint64_t share;   /* rows of backlog still to be done this second */
	uint64_t asked;   /* rows that the statement under way takes */
	bool idle, working, expiring, more_to_expire;
};

struct admind {
	struct proc proc;
	struct db *db;
	struct ipc_client *check, *vault, *sandboxd;
	struct ipc_server *gw_local, *gw_tunnel, *http, *ctl;
	struct ipc_id epoch; /* of this process */
	bool epoch_stored;   /* the row of `epoch` is in the database */
	bool storing_epoch;
	const char *node;    /* configuration: this machine's name */
	const char *mcp_url; /* configuration: shown, never connected to */
	char *layers;        /* confinement of this process, for doctor */

	struct ipc_id sandbox_epoch; /* of the present connection to sandboxd */
	bool sandbox_named;          /* EPOCH_END came on that connection */
	bool sandbox_ready;          /* also: sandbox_epoch is in the
				      * database */
	uint64_t started_us;         /* Unix time: when this process began */
	bool started;                /* false: new jobs wait */
	struct idset live;           /* executions that sandboxd answers for */

	/* Takes over a job whose tool is a management tool. main() sets this to
	 * manage_start(), because calls/ may not include the folder of
	 * manage_start(). */
	void (*manage)(struct job *);
	/* Calls the handler of a frame (links.c). access/ may not include the
	 * folders of the handlers. Returns 0, or -1: malformed. */
	int (*dispatch)(struct link *, struct ipc_frame *);
	struct job_list jobs;
	unsigned njobs; /* number of jobs */
	size_t job_bytes;
	unsigned token_jobs; /* the part of njobs that belongs to tokens */
	size_t token_bytes;
	unsigned nops;       /* other requests in work */
	unsigned tunnel_ops; /* the part of nops for the tunnel's gateways */
	uint8_t session_key[32];
	bool have_session_key;
	bool have_local_token;       /* local_token_file is set */
	struct ipc_hash local_token; /* the token's SHA-256 */

	struct serving_list serving;
	struct verdicts verdicts; /* of the present admind-check */
	uint64_t revision;        /* of the catalogue: newest announced */
	struct announce_list announces;
	bool announce_again;      /* the tick must announce a change */
	struct close_list closes; /* endings not yet committed */
	unsigned ncloses;
	unsigned inherited; /* those of `closes` that an earlier admind left */
	void (*inherited_closed)(struct admind *); /* when none is left */
	struct ledger *ledger;     /* keeps closes in a file (ledger.h) */
	unsigned nresults;         /* results.c: being checked */
	unsigned regrants;         /* regrant.c: number of runs begun */
	bool regrant_again;        /* the tick must begin a run */
	struct gather *gather;     /* records being committed: gather.c */
	struct activity *activity; /* this and the next three: activity.h */
	struct follow *follow;
	struct metrics *metrics;
	struct upkeep upkeep;
	struct task_list tasks; /* task calls that admind listens to */
	bool sweeping_tasks, resuming_tasks; /* a statement is under way */
	bool sweeping_calls;
	struct event *tick; /* once a second: tick.c */
	unsigned ticks;
	bool sweeping;
	struct tokens *tokens;         /* API tokens: tokens.h */
	struct access *access;         /* signed tokens: access.h */
	struct identities *identities; /* identities.h */
	struct signin *signin;         /* signin.h */
	struct judging *judging;       /* judging.c */
	uint64_t anchored_seq;         /* audit head last signed */
	bool signing;
	struct limits *limits; /* limits.c */
};

#endif
