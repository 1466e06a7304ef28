/*
 * Values that fields of messages have, where the table says "enum". They go
 * over the wire, and into records and the database, so a number never changes
 * its meaning.
 */
#ifndef IPC_VALUES_H
#define IPC_VALUES_H

#include <stdint.h>

#include "listener.h"

/* Purpose of a context. Only TOOL may carry secrets, and TOOL needs a seal. */
enum context_kind {
	CONTEXT_TOOL = 1,    /* call main() of an approved version */
	CONTEXT_INSPECT = 2, /* read the signature of main() */
	CONTEXT_TEST = 3, /* call main() of a draft: no secrets, no network */
	CONTEXT_COMPILE = 4, /* of sandboxd itself: compile, run nothing */
	CONTEXT_GRANTS = 5,  /* no call: a server's current grants (REGRANT) */
	/* From here on, our code alone runs. */
	CONTEXT_MODULE = 6, /* our code fetches a wheel for the module store,
			     * from the configured index alone: no secrets */
	CONTEXT_KEYS = 7,   /* our code fetches the public keys of an issuer,
			     * from hosts of the access document: no secrets */
	CONTEXT_TELEMETRY =
	    8,             /* our code sends spans and metrics to the
			    * collector of the access document: no secrets */
	CONTEXT_NOTIFY = 9 /* our code tells a target of the access document
			    * which requests wait: the target's secret */
};

/* Kinds of NET_EVENT. */
enum net_event {
	NET_EVENT_REFUSED = 1, /* a grant or a declaration is missing: the call
				* goes on */
	NET_EVENT_FAILED = 2,  /* no such name, or no answer: the call goes
				* on */
	NET_EVENT_BYTES = 3,   /* network_bytes is used up: the call ends */
	NET_EVENT_RATE = 4,    /* network_rate is used up: the call ends */
	NET_EVENT_NEVER = 5,   /* an address that no grant can open: the call
				* goes on */
	NET_EVENT_LINK = 6     /* net is 0: peek's connection is lost */
};

/* Purpose of a runner; a part of its profile (FORK). */
enum runner_kind { RUNNER_PYTHON = 0, RUNNER_COMMAND = 1 };

/* The code that makes the result in a runner of kind PYTHON (EXECUTE): the
 * tool's own code, or a module of ours that reads a specification. */
enum runner_driver {
	DRIVER_CODE = 0,      /* the source is Python, its main is called */
	DRIVER_HTTP = 1,      /* a declared REST call: version kind http */
	DRIVER_MCP = 2,       /* version kind mcp: calls a tool of another MCP
			       * server, or lists that server's tools */
	DRIVER_MODULE = 3,    /* fetches and unpacks a wheel */
	DRIVER_KEYS = 4,      /* fetches the public keys of an issuer */
	DRIVER_TELEMETRY = 5, /* sends spans and metrics */
	DRIVER_NOTIFY = 6     /* sends a notification */
};

/* Operations of SOURCE_RUN. */
enum source_op { SOURCE_DISCOVER = 1, SOURCE_IMPORT = 2, SOURCE_AUTHORISE = 3 };

/* The header that a credential came in. admind must know it: a signed token is
 * good only in the header that its issuer is configured for. */
enum credential_via {
	VIA_AUTHORIZATION = 0, /* Authorization: Bearer (RFC 6750) */
	VIA_ASSERTION = 1,     /* Cf-Access-Jwt-Assertion */
	VIA_TICKET = 2 /* no header: a ticket of IDENTITY (decision 0098) */
};

/* The kind of object that is called; also the form of a runner's result. */
enum call_method {
	CALL_TOOL = 0,    /* tools/call: CallToolResult */
	CALL_PROMPT = 1,  /* prompts/get: GetPromptResult */
	CALL_RESOURCE = 2 /* resources/read: ReadResourceResult */
};

/* One more form of a result, for a tool with an output schema: its main returns
 * structured content of any type. */
enum { CALL_STRUCTURED = CALL_RESOURCE + 1 };

/* Kinds of CALL_EVENT. */
enum call_event {
	CALL_EVENT_PROGRESS = 1,
	CALL_EVENT_LOG = 2,
	CALL_EVENT_ASK = 3,
	CALL_EVENT_PAUSE = 4 /* {"retry": ms}: the client may come back later */
};

/* The lists of MCP that make up a catalogue, and one list that no client sees:
 * resources that somebody stopped, so that no template answers for their URIs
 * (docs/decisions/0092). A change of the list of stopped resources counts as a
 * change of MCP_LIST_RESOURCES. */
enum mcp_list {
	MCP_LIST_TOOLS = 0,
	MCP_LIST_PROMPTS = 1,
	MCP_LIST_RESOURCES = 2,
	MCP_LIST_TEMPLATES = 3,
	MCP_LIST_STOPPED = 4
};

/* GW_ENDPOINTS. */
enum gw_endpoint_field {
	GW_ENDPOINT = 1,             /* a record of these */
	GW_ENDPOINT_NAME = 2,        /* 1 to ENDPOINT_NAME_MAX of a-z 0-9 - */
	GW_ENDPOINT_DIGEST = 3,      /* 32 bytes: changes with its content */
	GW_ENDPOINT_METADATA = 4,    /* JSON of RFC 9728, or absent */
	GW_ENDPOINT_INSTRUCTIONS = 5 /* text for its clients, or absent */
};

/* Client capabilities (MCP 2026-07-28) that mcpbox depends on. */
enum client_capability {
	CLIENT_ELICITATION = 1,     /* elicitation or elicitation.form */
	CLIENT_ELICITATION_URL = 2, /* elicitation.url */
	CLIENT_SAMPLING = 4,
	CLIENT_SAMPLING_TOOLS = 8, /* sampling.tools */
	CLIENT_ROOTS = 16,
	CLIENT_TASKS = 32 /* extension io.modelcontextprotocol/tasks */
};

/* Whether a call may become a task. */
enum task_wish {
	TASK_NEVER = 0, /* the client did not declare the extension */
	TASK_MAY = 1    /* the version's task mode is not forbidden */
};

enum task_status {
	TASK_WORKING = 1,
	TASK_INPUT_REQUIRED = 2,
	TASK_COMPLETED = 3, /* an isError result, too */
	TASK_FAILED = 4,    /* a JSON-RPC error */
	TASK_CANCELLED = 5
};

/* The end of an authorised call: exactly one of these per execution. */
enum outcome {
	OUTCOME_DONE = 1,
	OUTCOME_FAILED = 2,  /* the tool raised, or broke a limit */
	OUTCOME_KILLED = 3,  /* cancelled or ended from outside */
	OUTCOME_REFUSED = 4, /* held, but never run */
	OUTCOME_LOST = 5     /* its sandbox ended; it may have run */
};

/* Value of cpu_us in a RECORD that was written before its runner was reaped, if
 * the sandbox died in between. */
#define RECORD_CPU_UNKNOWN UINT64_MAX

#endif
