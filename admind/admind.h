/*
 * admind: what its files share. Functions are grouped by the file that holds
 * them.
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
#include "ipc_peer.h"
#include "jsonw.h"
#include "limits.h"
#include "proc.h"
#include "tlv.h"

struct event;

enum {
	PRINCIPAL_MAX = 254,	/* an e-mail address, RFC 5321 */
	/* AUTHORISE and ADMIN_QUERY in work. Each may hold its arguments and a
	 * pre-image: at worst 8 MiB each, in practice a few kB. */
	JOBS_MAX = 512,
	EXPOSED_NAME_MAX = NAME_SERVER_MAX + 2 + NAME_TOOL_MAX,
	/* The arguments kept with an execution (context.h, INTENT_ARGUMENTS). */
	ARGUMENTS_KEPT = 4096,
	/* A management call that takes longer than this is counted as lost. */
	MANAGEMENT_DEADLINE_MS = 120 * 1000,
};

TAILQ_HEAD(job_list, job);
struct waiters;		/* catalogue.c */
struct close_list;	/* records.c */

struct admind {
	struct proc proc;
	struct db *db;
	struct ipc_client *check, *vault, *sandboxd;
	struct ipc_server *gw_local, *gw_tunnel, *http, *ctl;
	struct ipc_id epoch;	/* this process's own */
	bool epoch_stored;	/* its row is in the database */
	const char *node;	/* configuration: this machine's name */

	struct ipc_id sandbox_epoch;	/* valid while sandbox_ready */
	bool sandbox_ready;	/* EPOCH_END was seen on this connection */

	struct job_list jobs;
	unsigned njobs;
	uint8_t session_key[32];
	bool have_session_key;
	bool have_local_token;	/* local_token_file is set */
	struct ipc_hash local_token;	/* its SHA-256 */
	uint64_t revision;	/* catalogue, last one seen */
};

/* ---- job.c: one AUTHORISE on its way ---- */

enum job_state {
	JOB_NEW,	/* just arrived */
	JOB_LOOKUP,	/* reading the serving version */
	JOB_CHECKING,	/* arguments are at admind-check */
	JOB_INTENT,	/* the intent row is being committed */
	JOB_SEALING,	/* the vault makes the context */
	JOB_HOLDING,	/* sandboxd is taking it */
	JOB_WORKING,	/* a management tool does its steps */
	JOB_CLOSING,	/* its row is being closed */
	JOB_DONE	/* answered; freed by job_free */
};

struct job {
	TAILQ_ENTRY(job) entry;
	struct admind *a;
	enum job_state state;
	struct ipc_peer *peer;	/* the gateway; NULL once it went away */
	uint64_t request;	/* to answer */
	enum listener listener;
	struct ipc_id execution;	/* random, also of management calls */
	uint64_t created_us;
	char principal[PRINCIPAL_MAX + 1];
	char tool[EXPOSED_NAME_MAX + 1];
	char *client, *protocol;	/* untrusted, for the record; may be NULL */
	struct buf arguments;	/* the JSON bytes, as received */
	struct ipc_hash args_sha256;
	bool has_intent;	/* an open row exists: it must be closed */

	/* --- calls of user tools (call.c) --- */
	struct ipc_id version_id, tool_id, server_id;
	struct ipc_hash version_hash;
	struct buf preimage, seal, intent;
	uint64_t timeout_ms;
	bool revoked;		/* the version was withdrawn meanwhile */
	enum failure revoked_why;

	/* --- management tools (manage*.c) --- */
	const struct manage_tool *manage;
	struct buf fields;	/* TLV from admind-check, tags: management_tools.h */
	struct buf out;		/* the result object, written through json */
	struct jsonw json;
	void *data;		/* the tool's own, freed with free_data */
	void (*free_data)(void *);
	union {			/* continuation of the step in work */
		void (*rows)(struct job *, const struct pg_result *);
		void (*fields)(struct job *, struct ipc_bytes);
		void (*plain)(struct job *);
	} next;
	struct ipc_id inspection;	/* execution id of the inspection in work */
	bool is_error;		/* how it ended, for the record */
	enum failure failure;
	struct buf body;	/* the CallToolResult */
};

/*
 * The one function that changes a job's state; it knows the permitted
 * transitions and logs and aborts the job on any other. 0 or -1.
 */
int job_enter(struct job *, enum job_state);

/* ---- manage.c: management tools. This block is what a tool is written with.
 *
 * A tool is a function void run(struct job *) that is called once its
 * arguments passed admind-check; job->fields holds them as TLV. It works in
 * steps: each step function takes the continuation to run when it succeeded.
 * A step that fails ends the job with a typed isError result by itself, so
 * continuations see only success. Exactly one step may be in work; the last
 * one calls job_done or job_fail. Whether the client is still there is no
 * concern of the tool's.
 */
struct manage_tool {
	const char *name;	/* mcpbox_* */
	void (*run)(struct job *);
	bool destructive;	/* refused for local unless local_destructive */
};

/* One field of the arguments: 1 found, 0 absent. */
int job_field(const struct job *, uint8_t tag, struct ipc_bytes *out);
/* A number, or `absent`. */
uint64_t job_number(const struct job *, uint8_t tag, uint64_t absent);
/* A uuid field sent as text (36 characters, checked by admind-check) or as 16
 * bytes. 0, or -1 with the job already failed (NOT_FOUND). */
int job_uuid(struct job *, uint8_t tag, struct ipc_id *out);

/* Runs a statement. */
void job_query(struct job *, const struct db_stmt *, const struct db_params *,
    void (*next)(struct job *, const struct pg_result *));
/* Asks admind-check whether this is a JSON Schema of the closed subset. */
void job_check_schema(struct job *, struct ipc_bytes schema,
    void (*next)(struct job *));
/* Inspects Python source in a runner (seal, hold, run, check): next gets the
 * TLV of CHECK_INSPECTION. Broken code ends the job as BAD_CODE with line and
 * column. Recorded as an execution of its own. */
void job_inspect(struct job *, struct ipc_bytes code, const char *name,
    void (*next)(struct job *, struct ipc_bytes fields));

/* The result: write one JSON object to &job->json (already opened with
 * jsonw_obj; job_done closes it). It becomes structuredContent and, as text,
 * content[0]. */
void job_done(struct job *);
/* The same after a change to what tools/list shows: answers only once every
 * connected gateway dropped its cache (or 200 ms passed). */
void job_done_changed(struct job *);
/* An isError result; may be called at any step. */
void job_fail(struct job *, enum failure, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The tools, ended by a NULL name: manage_table.c. */
extern const struct manage_tool manage_tools[];
const struct manage_tool *manage_find(struct ipc_bytes name);
/* Takes over a job whose tool is a management tool. */
void manage_start(struct job *);

/* manage_servers.c, manage_tools.c, manage_requests.c */
void manage_list_servers(struct job *);
void manage_create_server(struct job *);
void manage_start_server(struct job *);
void manage_stop_server(struct job *);
void manage_list_tools(struct job *);
void manage_create_tool(struct job *);
void manage_update_tool(struct job *);
void manage_request_publish(struct job *);
void manage_get_tool_status(struct job *);
void manage_list_pending_requests(struct job *);

/* ---- json helpers of admind (adminq.c) ---- */
void json_kv_id(struct jsonw *, const char *name, const struct ipc_id *);
void json_kv_time(struct jsonw *, const char *name, uint64_t unix_us); /* 0: null */
void json_kv_bytes(struct jsonw *, const char *name, struct ipc_bytes);
void json_kv_hex(struct jsonw *, const char *name, struct ipc_bytes);

#endif
