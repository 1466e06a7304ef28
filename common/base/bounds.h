/*
 * All fixed limits of the suite, with their reasons. Limits that an
 * administrator may change are rows of conf_keys.def instead.
 */
#ifndef BOUNDS_H
#define BOUNDS_H

enum {
	/* Bytes of one SEQPACKET frame of IPC. A frame must fit into the
	 * default socket buffer (208 KiB) with room to spare, and buffers of
	 * this size must be cheap. */
	IPC_FRAME_MAX = 64 * 1024,
	/* Bytes of a request body. 100 kB of code, escaped at worst six-fold,
	 * fits in 1 MiB; 4 MiB leaves room for larger requests. */
	IPC_BLOB_MAX = 4 * 1024 * 1024,
	/* Bytes of a call's result: far more than an LLM can use. */
	RESULT_MAX = 1024 * 1024,
	/* Bytes of frames that wait for a slow peer before it counts as
	 * dead. */
	IPC_QUEUE_MAX = 16 * 1024 * 1024,
	/* Descriptors waiting for a slow peer (blobs travel as memfds): a peer
	 * that does not read must not use up the descriptors that all
	 * connections share. */
	IPC_QUEUE_FDS_MAX = 128,
	/* Requests of ours that one peer may leave unanswered; a further
	 * request fails as `busy`. */
	IPC_WAITERS_MAX = 4096,
	/* Time for the other side's HELLO, in ms. Both sides send it at once;
	 * ten seconds allow for a machine that swaps. A peer that is silent for
	 * longer would otherwise hold one of the listener's few places for
	 * ever. */
	IPC_HELLO_MS = 10 * 1000,
	/* Pause of a listener that is out of descriptors, in ms. */
	IPC_ACCEPT_PAUSE_MS = 100,
	/* Reconnection back-off, in ms (INTERFACES: from 10 ms to 1 s). */
	IPC_BACKOFF_MIN_MS = 10,
	IPC_BACKOFF_MAX_MS = 1000,

	NAME_SERVER_MAX = 24,
	/* Bytes of a name as clients see it, prefix included: Claude Desktop
	 * takes 64 at most. A name without a prefix may be as long, since some
	 * servers expose names without a prefix. */
	NAME_EXPOSED_MAX = 64,
	NAME_TOOL_MAX = NAME_EXPOSED_MAX,
	DESCRIPTION_MAX = 2000,      /* as in the original mcpbox */
	CODE_MAX = 100 * 1000,       /* bytes of Python source */
	SCHEMA_MAX = 64 * 1024,      /* bytes of one JSON Schema */
	STATIC_MAX = 512 * 1024,     /* bytes of a static text, or its base64 */
	URI_MAX = 1024,              /* of a resource; a longer URI would
				      * carry data */
	URI_VARIABLES_MAX = 8,       /* in a template, which a person reviews */
	NAME_VARIABLE_MAX = 38,      /* of the name of a variable, or of a
				      * prompt's argument */
	ARGUMENTS_MAX = 1024 * 1024, /* bytes of one call's arguments */
	/* Bytes of the arguments that are kept with an execution (context.h,
	 * INTENT_ARGUMENTS). */
	ARGUMENTS_KEPT = 4096,
	/* Bytes of the access document: 16 issuers with 16 keys of 4096 bits
	 * each have about 200 kB. */
	ACCESS_DOCUMENT_MAX = 256 * 1024,
	/* Endpoints of an access document. Each gateway keeps them. */
	ENDPOINTS_MAX = 32,
	/* Bytes of an endpoint's name, a part of its path. */
	ENDPOINT_NAME_MAX = 32,
	/* Bytes of its instructions; some clients cut them at 2 KB. */
	ENDPOINT_INSTRUCTIONS_MAX = 2048,
	SECRET_VALUE_MAX = 10000, /* as in the original mcpbox */
	SECRETS_PER_CALL_MAX = 64,
	/* Module trees mounted for one call; each costs a mount. */
	MODULES_PER_CALL_MAX = 32,
	/* Time that a call may wait for its client's answers in all, in ms. A
	 * person has this long to answer, so a gateway waits this much longer
	 * for a result. */
	PARK_TOTAL_MS = 600 * 1000,
	STDOUT_SHOWN_MAX = 64 * 1024, /* bytes of a call's output kept and
				       * shown */

	/* Bytes of the connections in a call's record: some sixty connections
	 * fit, and further connections are only counted. */
	NET_REPORT_MAX = 16 * 1024,
	/* Hosts that one version declares (sql/schema/versions.sql has the same
	 * limit), and network grants of one server. */
	NET_REQUIRES_MAX = 64,
	NET_GRANTS_MAX = 1024,
	/* Longest connect_timeout of egress, in ms. Linux gives up on a silent
	 * address after about two minutes (tcp_syn_retries, tcp(7)). */
	NET_CONNECT_MAX_MS = 120 * 1000,

	/* Entries of the module store in one question. Each entry takes 32
	 * bytes of a frame, and one stat(2) call in the same turn of the
	 * loop. */
	STORE_ASK_MAX = 256,

	JSON_DEPTH_MAX = 64,      /* containers inside containers */
	JSON_MEMBERS_MAX = 65536, /* members and elements in one text */

	HTTP_HEAD_MAX = 32 * 1024, /* request line and header fields together */
	HTTP_BODY_MAX = 4 * 1024 * 1024, /* = IPC_BLOB_MAX: IPC carries it on */

	TOKEN_BYTES = 32, /* random bytes of an API token */
	/* A login's token is cut in two halves. A thief of one half still has
	 * to guess about as many bits as for an API token
	 * (docs/decisions/0067). */
	LOGIN_BYTES = 2 * TOKEN_BYTES,
	LOGIN_TEXT = 86, /* characters of base64url: 4/3 of 64, rounded up */
	LOGIN_HALF = LOGIN_TEXT / 2,
	/* Characters of a login's SHA-256 in base64url. admind asks about a
	 * login by this text. */
	LOGIN_HASH_TEXT = 43,
};

#endif
