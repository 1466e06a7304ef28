/*
 * Turns the bytes of one HTTP request into classified MCP messages. No I/O.
 *
 * The checks come in the order of the TypeScript server's inbound ladder, which
 * clients and the conformance suite expect: 4 JSON-RPC shape, 5 era, 6 envelope
 * types, then header against body (-32020), 7 version (-32022), 8 method (404
 * -32601), 9 Mcp-Name (-32020), 12 parameters (200 -32602). Steps 1 to 3 are in
 * front.c (Host, Origin, HTTP method) and exchange.c (the credential). Steps 10
 * and 11 need the tool: call.c.
 *
 * The era is decided by the body alone. A header only confirms or contradicts:
 * mcp-remote sends Mcp-Method on legacy requests, so a header's presence proves
 * nothing.
 */
#ifndef MCP_REQUEST_H
#define MCP_REQUEST_H

#include <stdbool.h>

#include "failure.h"
#include "mcp_json.h"
#include "mcp_method.h"

enum {
	MCP_BATCH_MAX = 16,   /* members of a 2025-03-26 array (INTERFACES) */
	MCP_NAME_MAX = 128,   /* bytes of a tool's name (MCP 2025-11-25) */
	MCP_URI_MAX = 2048,   /* bytes of a resource's URI. RFC 9110 asks
			       * servers for 8000, but no resource here has so
			       * many */
	MCP_CLIENT_MAX = 128, /* bytes of clientInfo kept for the record */
	MCP_CAPABILITIES_MAX = 8 * 1024, /* as AUTHORISE says */
	MCP_MESSAGE_MAX = 320,           /* one sentence */
	MCP_MORE_MAX = 48,               /* bytes of a message for "7 more" */
	MCP_DATA_MAX = 1536,             /* JSON members of error.data */
	MCP_MEMBER_MAX = 64, /* bytes of a member's name in a fault */
	MCP_FIX_MAX = 192    /* bytes of a fault's correction */
};

enum mcp_kind { MCP_REQUEST, MCP_NOTIFICATION, MCP_RESPONSE };

/* Deviations of known clients that an administrator may let pass. */
enum mcp_quirk {
	MCP_QUIRK_HEADER_VERSION,
	MCP_QUIRK_INITIALIZE,
	MCP_QUIRK_ACCEPT,
	MCP_QUIRKS
};

/* The fields of the HTTP request that the ladder looks at; NULL: absent. */
struct mcp_headers {
	const char *version; /* MCP-Protocol-Version */
	const char *method;  /* Mcp-Method */
	const char *name;    /* Mcp-Name */
	unsigned quirks;     /* allowed: mask of 1 << enum mcp_quirk */
	/* The revision of the request's session, for a request that names none.
	 * Without a session it is the oldest, which is 0 (MCP, protocol version
	 * header). */
	enum mcp_rev session;
};

struct mcp_error {
	enum failure failure; /* NONE: no error; else its JSON-RPC code */
	int status;           /* HTTP */
	char message[MCP_MESSAGE_MAX]; /* of the client: printable ASCII only */
	char data[MCP_DATA_MAX]; /* further members of error.data, or "" */
	/* Kept by mcp_fault: the number of faults, the number of those not in
	 * data, and the bytes used of message and data. */
	unsigned faults, left_out;
	size_t message_used, data_used;
};

/* One JSON-RPC message. Slices point into the body. */
struct mcp_message {
	enum mcp_kind kind;
	bool modern;
	enum mcp_rev rev; /* of the request; legacy: by header or session */
	bool rev_named;   /* the header named the revision */
	enum mcp_method method;
	struct ipc_bytes id;     /* raw JSON, string or integer; n = 0: null */
	struct ipc_bytes params; /* raw JSON object; n = 0: absent */
	struct mcp_error error;  /* failure NONE: no error so far */
	unsigned quirks;         /* let pass: mask of 1 << enum mcp_quirk */

	/* initialize */
	char offered[32]; /* protocolVersion, "" if too long */
	/* tools/call, prompts/get: params.name. resources/read: the name of the
	 * resource or template, once the catalogue was asked */
	char tool[MCP_NAME_MAX + 1];
	struct ipc_bytes arguments; /* raw JSON object, "{}" if absent */
	bool by_name;               /* tool and arguments came from the
				     * arguments of mcpbox_call_tool */
	/* the lists */
	struct ipc_bytes cursor; /* raw JSON string, n = 0: first page */
	/* resources/read, subscribe, unsubscribe */
	struct ipc_bytes uri; /* raw JSON string */
	/* retries of tools/call, prompts/get, resources/read; tasks/update */
	struct ipc_bytes input_responses; /* raw JSON object, n = 0: none */
	struct ipc_bytes request_state;   /* raw JSON string, n = 0: none */
	/* tasks/get, tasks/update, tasks/cancel */
	struct ipc_bytes task_id; /* raw JSON string */
	/* completion/complete: params.ref's name or uri, and the argument */
	struct {
		bool prompt;          /* ref/prompt; else ref/resource */
		struct ipc_bytes ref; /* raw JSON string */
		struct ipc_bytes name, value; /* raw JSON strings */
	} complete;
	/* logging/setLevel: 0 debug to 7 emergency */
	int level;
	/* subscriptions/listen: the changes that the client wants to know */
	struct {
		bool tools, prompts, resources;
		struct ipc_bytes uris;  /* raw JSON array, n = 0: none */
		struct ipc_bytes tasks; /* raw JSON array, n = 0: none */
	} listen;
	/* notifications/cancelled */
	struct ipc_bytes cancel_id; /* raw JSON */
	/* a response (kind MCP_RESPONSE): one of the two has n > 0 */
	struct ipc_bytes result, response_error;
	/* _meta, or initialize */
	struct ipc_bytes meta; /* params._meta as given, n = 0: none */
	struct ipc_bytes progress_token; /* raw JSON, n = 0: none */
	struct ipc_bytes
	    trace; /* traceparent, without its quotes; n = 0: none */
	struct ipc_bytes capabilities; /* raw JSON object, n = 0: none given */
	uint32_t declared; /* mask of enum client_capability; legacy requests:
			    * exchange.c takes it from the session */
	char client[MCP_CLIENT_MAX + 1]; /* "name version", untrusted */
	int log_level; /* 0 debug to 7 emergency, -1: none asked for */
};

/* A request body: one message, or the members of an array. */
struct mcp_body {
	bool array;
	size_t n;
	struct ipc_bytes member[MCP_BATCH_MAX];
};

/*
 * Scans and splits a body. session: the revision of the request's session, or
 * -1. Unless a header names a revision, session decides whether an array may be
 * sent. 0, or -1 with *e. *id: the message's id, or n = 0.
 */
int mcp_request_split(const uint8_t *, size_t, const struct mcp_headers *,
    int session, struct mcp_body *, struct ipc_bytes *id, struct mcp_error *e);

/* Classifies one member; its faults are in m->error. */
void mcp_request_read(struct ipc_bytes member, const struct mcp_headers *,
    bool in_array, struct mcp_message *m);

#endif
