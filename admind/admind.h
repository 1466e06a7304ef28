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

#include "admin_action.h"
#include "breaker.h"
#include "buf.h"
#include "conf.h"
#include "db.h"
#include "err.h"
#include "ipc.h"
#include "ipc_peer.h"
#include "jsonw.h"
#include "ledger.h"
#include "limit.h"
#include "bounds.h"
#include "proc.h"
#include "tlv.h"
#include "trace.h"
#include "verdicts.h"

struct event;

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
};

TAILQ_HEAD(job_list, job);
TAILQ_HEAD(announce_list, announce); /* catalogue.c */
TAILQ_HEAD(close_list, close_item);  /* records.c */
TAILQ_HEAD(task_list, task);         /* task_run.c */

struct serving_list { /* serving.c */
	TAILQ_HEAD(serving_head, serving) list;
	unsigned n;
	size_t bytes;
};

/* 16-byte ids in a hash set (idset.c). */
struct idset {
	struct ipc_id *slot;
	uint8_t *used; /* 0 free, 1 used, 2 deleted */
	size_t size, count, filled;
};

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
	struct event *tick; /* once a second: sweep.c */
	unsigned ticks;
	bool sweeping;
	struct tokens *tokens; /* API tokens: tokens.h */
	uint64_t anchored_seq; /* audit head last signed */
	bool signing;
	struct limits *limits; /* limits.c */
};

/* ---- links.c: connections, and requests whose answer comes later ---- */

/* One connection. Requests in work hold a reference, since the peer may go
 * before the answer is there; peer is NULL from then on. */
struct link {
	struct admind *a;
	struct ipc_peer *peer;
	enum ipc_role role;
	enum listener listener; /* of a gateway, else 0 */
	unsigned refs;
};

/* drain.c: SIGTERM and SIGHUP wait for what is in work. */
void drain_start(struct admind *);
/* It ends, and this is new work of a client: refused. */
bool drain_refuses(struct link *, const struct ipc_frame *);

/* The four listeners (before confinement), the three clients (after it). */
int links_listen(struct admind *, struct err *);
int links_connect(struct admind *, struct err *);
struct link *link_ref(struct link *);
void link_unref(struct link *);
/* These do nothing when the peer is gone. */
void link_answer(
    struct link *, uint64_t request, enum ipc_type, const void *msg);
void link_ok(struct link *, uint64_t request);
void link_refuse(
    struct link *, uint64_t request, enum failure, const char *message);
/* The same; retry_ms: when to come again, 0: as usual with this failure; data:
 * further members of the JSON-RPC error's data. */
void link_refuse_later(struct link *, uint64_t request, enum failure,
    const char *message, uint64_t retry_ms, const char *data);

/* A request in work that is not a job. */
struct op {
	struct admind *a;
	struct link *link;
	uint64_t request;
	struct token *token;       /* of a gateway's client: it counts there */
	void (*then)(struct op *); /* for continuations */
	struct ipc_id id;
	struct ipc_hash hash;
	char text[EXPOSED_NAME_MAX + 1];
	struct buf buf; /* kept between steps */
	uint64_t number;
	enum admin_role least;         /* for login_check: who may this */
	enum admin_role role;          /* by login_check: of who asks */
	char actor[PRINCIPAL_MAX + 1]; /* by login_check: who asks */
};
/* NULL when OPS_MAX are in work: already refused as busy. */
struct op *op_new(struct link *, uint64_t request);
void op_free(struct op *);
/* It is of this token's client (NULL: of none). -1: too many are in work. */
int op_count(struct op *, struct token *, struct err *);
/* Answer and free. */
void op_answer(struct op *, enum ipc_type, const void *msg);
void op_ok(struct op *);
void op_refuse(struct op *, enum failure, const char *message);
void op_refuse_err(struct op *, const struct err *);
/* A db_cb for statements whose success is OK and nothing more. */
void op_db_ok(void *op, const struct pg_result *, const struct err *);

/* Sends a request to a client connection. 0; -1 when it is down (cb never
 * runs), with err naming the failure. */
int ask(struct ipc_client *, enum ipc_type, const void *msg, ipc_answer_cb *cb,
    void *arg, struct err *);
/* What an unexpected answer means: a REFUSED's own failure and message, the
 * connection's end or silence as `gone`, anything else INTERNAL. */
void answer_err(struct ipc_frame *, enum failure gone, struct err *);

/* ---- idset.c ---- */
int idset_add(struct idset *, const struct ipc_id *); /* -1 without memory */
bool idset_has(const struct idset *, const struct ipc_id *);
void idset_del(struct idset *, const struct ipc_id *);
void idset_clear(struct idset *);

/* ---- auth.c ---- */
/* Who is this? 0 with principal filled (PRINCIPAL_MAX + 1), or -1. *token:
 * what it may (tokens.h), not referenced; NULL: everything. */
int auth_principal(struct admind *, enum listener, struct ipc_bytes credential,
    char *principal, struct token **token, struct err *);
int auth_load_token(struct admind *, struct err *); /* at start */
/* For the activity log: a credential, or a call (its name), was refused. */
void auth_refused(struct link *, struct ipc_bytes name, enum failure);
int auth_message(struct link *,
    struct ipc_frame *); /* AUTHENTICATE, GW_ATTACH, SESSION_END */
void auth_vault_up(struct admind *);
void auth_session_ended(struct admind *, const char *payload);

/* ---- catalogue.c ---- */
int catalogue_message(struct link *, struct ipc_frame *); /* CATALOGUE_GET */
void catalogue_notified(struct admind *, const char *payload);
/* Reads the revision, tells all gateways, calls cb once they dropped their
 * caches or CATALOGUE_ACK_MS passed. cb may be NULL. */
void catalogue_announce(struct admind *, void (*cb)(void *), void *arg);

/* ---- intent.c ---- */
/* The intent TLV (context.h) of a job: of its call of a tool, or of its
 * management call. */
void intent_tlv(const struct job *, struct buf *);
/* Without what is kept of the arguments: hold_may() brings that. */
void intent_tlv_bare(const struct job *, struct buf *);
/*
 * Commits the intent row of a tool's call. why: "ok"; "stale", the server's
 * limits are not those of j->limits_at; else the name of the failure that
 * forbids the call. With err, a STORAGE_UNAVAILABLE means: perhaps it is there.
 */
typedef void intent_cb(struct job *, const char *why, const struct err *);
/* call_open()'s parameters of a job; text (initialised) keeps their bytes. */
struct db_params;
void intent_params(const struct job *, struct db_params *, struct buf *text);
/* The arguments as the record keeps them, appended to text (initialised). */
void intent_arguments(const struct job *, struct buf *text);
/* Three more parameters: trace id, span id, session; each may be null. */
void intent_marks(const struct job *, struct db_params *);
void intent_open(struct job *, intent_cb *);

/* ---- lookup.c ---- */
/* Fills what the job needs to know of the version that serves; then
 * call_check(), or the job ends. May come again for the same job. */
void lookup_run(struct job *);

/* ---- call.c, hold.c ---- */
void call_check(struct job *); /* its arguments, then its intent */
int call_message(struct link *, struct ipc_frame *); /* AUTHORISE */
/* The database and the sandbox are there for the first time, or have not come
 * for a second: what was asked until now, and waited, begins. */
void call_started(struct admind *);
/* The same way for a call of admind's own (inner.h). */
void call_inner(struct job *);
/*
 * Seals material at the vault and has sandboxd hold it. cb(arg, NULL) on
 * success; with err otherwise, and then sandboxd was told to drop it.
 */
typedef void hold_cb(void *arg, const struct err *err);
/*
 * The same in two steps: seal and hold now; cb comes behind hold_go(), which
 * the caller may say only once the intent row is committed, since what cb
 * tells lets it run. hold_drop() instead: there is no row that sandboxd could
 * answer for, so it forgets the context without a record; cb is not called
 * (NULL is harmless). A failure is told by cb behind hold_go(), perhaps from
 * inside it. NULL without memory.
 */
struct hold;
struct hold *hold_seal(struct admind *, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener, enum context_kind,
    struct ipc_bytes material, hold_cb *cb, void *arg);
/*
 * Right behind hold_seal(): what is sealed waits for hold_may(), which gives
 * what records keep of the arguments, of an intent that was sealed without it.
 */
void hold_wait(struct hold *);
void hold_may(struct hold *, struct ipc_bytes arguments);
void hold_go(struct hold *);
void hold_drop(struct hold *);
void hold_start(struct admind *, const struct ipc_id *execution,
    const struct ipc_id *epoch, enum listener, enum context_kind,
    struct ipc_bytes material, hold_cb *cb, void *arg);
/* CANCEL to sandboxd, if it is there. FAILURE_NONE: it has no row. */
void hold_cancel(struct admind *, const struct ipc_id *execution, enum failure);

/* ---- confirm.c: calls that a person must have said yes to ---- */
/*
 * How it stands with the job's call. Approved: then(j) goes on. Else the job is
 * answered: PENDING, or an error. Arguments were checked before: nobody is
 * asked about a call that would fail by itself.
 */
void confirm_start(struct job *, void (*then)(struct job *));
/* intent_open() of a job that is confirmed: the yes is used up in the same
 * transaction. why may also be "not_confirmed". */
void confirm_open(struct job *, intent_cb *);
/* Setting or decision, by NOTIFY mcpbox_call. */
void confirm_notified(struct admind *, const char *payload);
void confirm_tick(struct admind *); /* what nobody decided about in time */

/* ---- object.c: tools, prompts, resources and templates ---- */
/* Is this object (its name in the database) what the method calls? */
bool object_fits(struct ipc_bytes object, enum call_method);
/* The failure of a name that the method does not have, and its sentence. */
enum failure object_unknown(enum call_method, const char **sentence);
/* `"requiredCapabilities":{...}`, MCP's ClientCapabilities: for the data of a
 * -32021 error. mask: of enum client_capability. The text ends in a NUL. */
void object_required(uint32_t mask, struct buf *out);

/* ---- obstacle.c. Each ends the job, the latter two if they say true ---- */
void obstacle_unknown(struct job *); /* no object has this name */
/* Its definition at the other server changed (decision 0083): the sentence. */
void obstacle_quarantine(struct job *, struct ipc_bytes words);
/* What the caller or the author can mend: a grant that is missing (the sentence
 * that says so, or empty), too long arguments. */
bool obstacle_mendable(struct job *, struct ipc_bytes missing);
/* The client can't do what the version asks of it: enum client_capability. */
bool obstacle_undeclared(struct job *, uint32_t required);

/* ---- content.c: static prompts and resources, answered here ---- */
/* Makes the result in j->body, then the intent row; cb as intent_open's. Behind
 * its "ok" the caller answers with job_result(). Failures end the job. */
void content_start(struct job *, intent_cb *cb);

/* ---- withdraw.c ---- */
/* Versions stopped being callable: cancels what runs or is about to. */
void withdraw_calls(struct admind *);

/* ---- regrant.c ---- */
/*
 * Servers' network grants may have changed: tells the sandbox what servers of
 * its open calls are granted now, for their next connect. done(arg) once it
 * knows, or the calls it could not be told for are cancelled; may be NULL.
 * Without calls at the sandbox nothing is asked, and done is called from
 * inside.
 */
void regrant_run(struct admind *, void (*done)(void *), void *arg);

/* ---- serving.c: rows of call.c's lookup, by exposed name ---- */
const struct pg_result *serving_find(struct serving_list *, const char *tool);
/* bytes: about what the row takes. Without memory it is not remembered. */
void serving_add(struct serving_list *, const char *tool,
    const struct pg_result *row, size_t bytes);
void serving_drop(struct serving_list *, const char *tool);
void serving_clear(struct serving_list *);

/* ---- gather.c, records.c, sweep.c ---- */
int gather_start(struct admind *, struct err *);
int gather_message(struct link *, struct ipc_frame *); /* RECORD */
enum { STORED_RESULT_MAX = 64 * 1024 }; /* of a result, in its row */
extern const struct db_stmt ending_row; /* execution_close() */
/* Its last ten parameters, from an intent TLV; clean keeps their bytes. */
void ending_intent_params(struct db_params *, struct ipc_bytes intent,
    uint64_t kind_max, struct buf *clean);
int records_message(struct link *, struct ipc_frame *); /* RECORD, EPOCH_* */
int results_message(struct link *, struct ipc_frame *); /* RESULT_CHECK */
/* How an execution of ours ended; retried until it is committed. */
struct ending {
	struct ipc_id id, epoch;
	enum outcome outcome;
	enum failure failure;
	bool delivered;
	uint64_t started_us, ended_us;
	struct ipc_bytes result; /* text, or empty */
	/* TLV (context.h, INTENT_*): the whole row again, should a crash of
	 * PostgreSQL have lost it. Or empty. */
	struct ipc_bytes intent;
};
/* INTENT_KIND of management calls. It stands in no context: only in endings
 * of admind's own. */
enum { INTENT_KIND_MANAGEMENT = 4 };
void ending_close(struct admind *, const struct ending *);
/* Opens the ledger and takes over what an earlier life of this process left
 * in it; done runs once all of that is committed. 0, or -1: the error says
 * what to do. Before confinement. */
int ending_ledger(
    struct admind *, void (*done)(struct admind *), struct err *);
bool ending_full(const struct admind *); /* too many uncommitted endings */
void ending_retry(struct admind *);      /* from the tick */
void records_sandbox_down(struct admind *);
void records_store_epoch(struct admind *); /* sandboxd's, if it named all */
const char *outcome_name(enum outcome);
/* Has our own epoch stored, once no earlier life's ending is uncommitted. */
void sweep_own_epoch(struct admind *);
void sweep_run(struct admind *);
/* Says that this node is there; closes what nodes that are gone left open. */
void sweep_nodes(struct admind *);

/* ---- tick.c ---- */
int tick_start(struct admind *, struct err *);
void tick_db_up(struct admind *);

/* ---- approvals.c, audit.c, adminq.c, adminact.c, adminset.c, doctor.c ---- */
int approvals_message(struct link *, struct ipc_frame *);
/* policies.c */
int policies_message(struct link *, struct ipc_frame *);
/* Asks the vault to approve a request by the sealed policy; next hears whether
 * it did (when not, a person will decide; that is no failure). */
void policies_approve(struct job *, const struct ipc_id *request,
    void (*next)(
	struct job *, bool approved)); /* from the vault, APPROVAL_GET */
void audit_sign(struct admind *);      /* if the head moved */
/* op_db_ok, and the head is signed at once: what was signed can't be another
 * row's later. For what wrote an audit row. */
void audit_db_ok(void *op, const struct pg_result *, const struct err *);
int audit_message(struct link *, struct ipc_frame *);    /* AUDIT_READ */
int adminq_message(struct link *, struct ipc_frame *);   /* ADMIN_QUERY */
int adminact_message(struct link *, struct ipc_frame *); /* ADMIN_ACTION */
int transfer_message(struct link *, struct ipc_frame *); /* EXPORT, IMPORT */
/* What rests under the master key, for its rotation (renew.c). */
int renew_message(struct link *, struct ipc_frame *);
int adminset_message(
    struct link *, struct ipc_frame *); /* LIMITS_SET and the other _SETs */
/* Checks a login token at the vault (CTL: none needed) and its role against
 * op->least, then runs then(op) with actor and role filled; else refuses and
 * frees op. */
void login_check(
    struct op *, struct ipc_bytes token, void (*then)(struct op *));
int doctor_message(struct link *, struct ipc_frame *);
void doctor_json(struct admind *, struct jsonw *); /* of GET /api/health */
void status_json(struct admind *, struct jsonw *);

/* ---- job.c: one AUTHORISE on its way ---- */

enum job_state {
	JOB_NEW,      /* just arrived */
	JOB_LOOKUP,   /* reading the serving version */
	JOB_CHECKING, /* arguments are at admind-check */
	JOB_INTENT,   /* the intent row is being committed, the context made */
	JOB_SEALING,  /* it is: the context is made, sandboxd takes it */
	JOB_WORKING,  /* a management tool does its steps */
	JOB_DONE      /* answered; about to be freed */
};

struct job {
	TAILQ_ENTRY(job) entry;
	struct admind *a;
	enum job_state state;
	struct link *link; /* the gateway */
	uint64_t request;  /* to answer */
	enum listener listener;
	struct ipc_id execution; /* random, also of management calls */
	uint64_t created_us;
	char principal[PRINCIPAL_MAX + 1];
	struct token *token; /* what it may (tokens.h); NULL: everything */
	size_t token_bytes;  /* counted against it */
	char tool[EXPOSED_NAME_MAX + 1];
	char *client, *protocol; /* untrusted, for the record; may be NULL */
	struct buf arguments;    /* the JSON bytes, as received */
	struct buf kept;         /* as records keep them; empty: as they are */
	struct trace trace;      /* its client's, for the record */
	/* of the last job_check_arguments: those, as records keep them; empty:
	 * as they are */
	struct buf inner_kept;
	bool result_elsewhere; /* another record has it: not in this one */
	struct ipc_hash args_sha256;
	struct ipc_hash verdict; /* their key, if to be remembered */
	bool judge_once;         /* verdict is set */
	struct ipc_id session;   /* of a legacy client; 0: none */
	struct ipc_id alike;     /* what its arguments say; 0: not told */
	bool has_intent;         /* an open row exists: it must be closed */
	enum call_method method; /* what the client takes the name for */

	/* --- before anything is done for it (limits.c, rate.c) --- */
	struct breaker_who who; /* whose breakers count it */
	bool counted;           /* they wait to hear how it ends */
	struct rates *rates;
	/* enum rate_scope: whose token is next, and before whose it ends */
	unsigned rate_at, rate_end;
	TAILQ_ENTRY(job) rate_wait;
	void (*admitted)(struct job *);
	bool known;        /* its tool's token and its listener's were taken */
	uint64_t retry_ms; /* a refusal's hint; 0: the failure's own */

	/* --- calls of user tools (call.c) --- */
	struct ipc_id version_id, tool_id, server_id;
	struct ipc_hash version_hash;
	struct ipc_id epoch; /* that the intent row is owned by */
	struct buf preimage, schema, seal, secrets; /* secrets: material TLV */
	bool is_static; /* of kind static: answered here (content.c) */
	bool has_secrets;
	uint64_t timeout_ms;
	uint64_t limits[LIMIT_COUNT]; /* 0: the configured default */
	uint64_t limits_at;           /* when the server's were set; 0: never */
	unsigned lookups;             /* so far */
	bool parked;                  /* came before call_started() */
	bool remembered;              /* this one is serving.c's */
	void (*intent_cb)(struct job *, const char *, const struct err *);
	struct hold *hold; /* sealing, or waiting for the intent row */
	uint8_t task_wish; /* enum task_wish */
	uint32_t declared; /* mask of enum client_capability */
	bool task;         /* it becomes one (tasks.h) */
	bool confirm;      /* a person must have said yes to it (confirm.c) */
	struct ipc_id approval;  /* the request its client named; 0: none */
	struct ipc_id confirmed; /* the request that was approved */
	struct buf call_seal;    /* the vault's seal of that */
	bool after_questions;    /* and its client hears so behind the first */
	struct buf grants;       /* of its server, as context material */
	bool connects;           /* the version needs hosts */
	unsigned regrants;       /* a->regrants when they were read */
	bool revoked;            /* the version was withdrawn meanwhile */
	struct inner *inner;     /* admind's own call: inner.h; else NULL */
	bool fresh_tokens;       /* OAuth tokens were looked after: oauth.h */
	enum failure revoked_why;

	/* --- management tools (manage*.c) --- */
	const struct manage_tool *manage;
	struct buf fields; /* TLV from admind-check, tags: management_tools.h */
	struct buf out;    /* the result object, written through json */
	struct jsonw json;
	void *data; /* the tool's own, freed with free_data */
	void (*free_data)(void *);
	union { /* continuation of the step in work */
		void (*rows)(struct job *, const struct pg_result *);
		void (*fields)(struct job *, struct ipc_bytes);
		void (*plain)(struct job *);
	} next;
	struct ipc_id inspection; /* execution id of the inspection in work */
	bool is_error;            /* how it ended, for the record */
	const char *fix;          /* is_error: a sentence of fix.def */
	enum failure failure;
	struct buf body; /* the CallToolResult */
};

/*
 * The one function that changes a job's state; it knows the permitted
 * transitions and logs and aborts the job on any other. 0 or -1.
 */
int job_enter(struct job *, enum job_state);
struct job *job_new(struct link *, const struct ipc_authorise *, struct err *);
/* One of admind's own (inner.h), without a gateway. NULL: err says why. */
struct job *job_inner(struct admind *, const char *tool, const char *principal,
    struct ipc_bytes arguments, struct err *);
void job_free(struct job *);
/* Answers REFUSED and ends the job, closing its row if it has one. */
void job_refuse(struct job *, enum failure, const char *message);
/* The same; data: further members of the JSON-RPC error's data. */
void job_refuse_data(
    struct job *, enum failure, const char *message, const char *data);
/* Answers an isError result and ends the job; list: JSON text or empty. Prompts
 * and resources have no such results: a REFUSED with the list as data. */
void job_error(
    struct job *, enum failure, const char *summary, struct ipc_bytes list);
void job_body(struct job *, struct jsonw *, const void *text, size_t n);
void job_result(struct job *);
void job_close(struct job *);

#include "manage.h" /* management tools */

/* ---- json_kv.c ---- */
void json_kv_id(struct jsonw *, const char *name, const struct ipc_id *);
void json_kv_time(
    struct jsonw *, const char *name, uint64_t unix_us); /* 0: null */
void json_kv_bytes(struct jsonw *, const char *name, struct ipc_bytes);
void json_kv_hex(struct jsonw *, const char *name, struct ipc_bytes);

#endif
