/* One AUTHORISE on its way: what is known of it. calls/ takes it through. */
#ifndef ADMIND_JOB_H
#define ADMIND_JOB_H

#include "breaker.h"
#include "op.h"
#include "trace.h"

struct hold;
struct inner;
struct manage_tool;
struct rates;

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
	bool is_error;   /* how it ended, for the record */
	const char *fix; /* is_error: a sentence of fix.def */
	enum failure failure;
	struct buf body; /* the CallToolResult */
};

#endif
