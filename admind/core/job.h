/* A job: one AUTHORISE that admind is answering. The code is in calls/. */
#ifndef ADMIND_JOB_H
#define ADMIND_JOB_H

#include "breaker.h"
#include "op.h"
#include "trace.h"

struct hold;
struct inner;
struct lack;
struct manage_tool;
struct rates;

enum job_state {
	JOB_NEW,      /* just arrived */
	JOB_LOOKUP,   /* reading the serving version */
	JOB_CHECKING, /* arguments are at admind-check */
	JOB_INTENT,   /* intent row and context are being made */
	JOB_SEALING,  /* the row is committed; sandboxd takes the context */
	JOB_WORKING,  /* a management tool does its steps */
	JOB_DONE      /* answered; about to be freed */
};

struct job {
	TAILQ_ENTRY(job) entry;
	struct admind *a;
	enum job_state state;
	struct link *link; /* the gateway */
	uint64_t request;  /* its number, for the answer */
	enum listener listener;
	struct ipc_id execution; /* random, also of management calls */
	uint64_t created_us;
	char principal[PRINCIPAL_MAX + 1];
	struct token *token; /* the caller's (token.h); NULL: none */
	size_t token_bytes;  /* bytes of the job counted against the token */
	char tool[EXPOSED_NAME_MAX + 1];
	char *client, *protocol; /* untrusted, for the record; may be NULL */
	struct buf arguments;    /* the JSON bytes, as received */
	struct buf kept;         /* the form for records; empty: unchanged */
	struct trace trace;      /* the client's trace, for the record */
	/* the form for records of the arguments that job_check_arguments()
	 * checked last; empty: unchanged */
	struct buf inner_kept;
	bool result_elsewhere; /* the result is kept in another record */
	struct ipc_hash args_sha256;
	struct ipc_hash verdict; /* key of a verdict (verdicts.h) */
	bool judge_once;         /* verdict is set */
	struct ipc_id session;   /* of a legacy client; all zero: none */
	struct ipc_id alike;     /* by json_alike.h; all zero: not told */
	bool has_intent;         /* an open row exists: it must be closed */
	enum call_method method; /* kind of object that the client asked for */

	/* --- breakers and rates, the first steps (limits.c, rate.c) --- */
	struct breaker_who who; /* its caller, for the breakers */
	bool counted;           /* the breakers wait for its ending */
	struct rates *rates;
	/* enum rate_scope: the next token to take, and the end of the range */
	unsigned rate_at, rate_end;
	TAILQ_ENTRY(job) rate_wait;
	void (*admitted)(struct job *);
	bool known;        /* the tokens of tool and listener were taken */
	uint64_t retry_ms; /* hint in a refusal; 0: the failure's default */
	const struct lack *lack; /* while it is refused for lack of a scope */

	/* --- calls of user tools (call.c) --- */
	struct ipc_id version_id, tool_id, server_id;
	struct ipc_hash version_hash;
	struct ipc_id epoch; /* epoch of the owner of the intent row */
	struct buf preimage, schema, seal, secrets; /* secrets: material TLV */
	bool is_static; /* kind static: admind answers (content.c) */
	bool has_secrets;
	uint64_t timeout_ms;
	uint64_t limits[LIMIT_COUNT]; /* 0: the configured default */
	uint64_t limits_at;           /* time of the server's limits; 0: never
				       * set */
	unsigned lookups;             /* number of lookups so far */
	bool parked;                  /* waits for call_started() */
	bool remembered;              /* the lookup's row is serving.c's */
	void (*intent_cb)(struct job *, const char *, const struct err *);
	struct hold *hold; /* its context, while sealed and held (hold.h) */
	uint8_t task_wish; /* enum task_wish */
	uint32_t declared; /* mask of enum client_capability */
	bool task;         /* the call becomes a task (tasks.h) */
	bool confirm;      /* a person must approve the call (confirm.c) */
	struct ipc_id approval;  /* the request that its client named; 0:
				  * none */
	struct ipc_id confirmed; /* the request that was approved */
	struct buf call_seal;    /* the vault's seal of `confirmed` */
	bool after_questions;    /* a task whose client is told after its first
				  * questions (task_run.c) */
	struct buf grants;       /* grants of its server, as context material */
	bool connects;           /* the version needs hosts */
	unsigned regrants;       /* a->regrants when `grants` was read */
	bool revoked;            /* the version or token was withdrawn */
	struct inner *inner;     /* admind's own call: inner.h; else NULL */
	bool fresh_tokens;       /* don't renew OAuth tokens (again): oauth.h */
	enum failure revoked_why;

	/* --- management tools (manage*.c) --- */
	const struct manage_tool *manage;
	struct buf fields; /* TLV from admind-check; tags: management_tools.h */
	struct buf out;    /* the result object, written through json */
	struct jsonw json;
	void *data; /* data of the tool, freed with free_data() */
	void (*free_data)(void *);
	union { /* continuation after the step in work */
		void (*rows)(struct job *, const struct pg_result *);
		void (*fields)(struct job *, struct ipc_bytes);
		void (*plain)(struct job *);
	} next;
	bool is_error;   /* whether it ended with an error, for the record */
	const char *fix; /* is_error: a sentence of fix.def */
	enum failure failure;
	struct buf body; /* the CallToolResult */
};

#endif
