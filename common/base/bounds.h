/*
 * Every fixed limit of the suite, once, with its reason. Limits that an
 * administrator may change are rows of conf_keys.def instead.
 */
#ifndef BOUNDS_H
#define BOUNDS_H

enum {
	/* IPC: one SEQPACKET frame must fit the default socket buffer with room
	 * to spare (208 KiB), and be small enough to sit on a stack of buffers.
	 */
	IPC_FRAME_MAX = 64 * 1024,
	/* A request body: 100 kB of code, escaped at worst six-fold, fits in
	 * 1 MiB; 4 MiB leaves room for workspaces' uploads. */
	IPC_BLOB_MAX = 4 * 1024 * 1024,
	/* A result: an LLM can use far less. */
	RESULT_MAX = 1024 * 1024,
	/* Frames waiting for a slow peer before it counts as dead. */
	IPC_QUEUE_MAX = 16 * 1024 * 1024,
	/* Descriptors waiting for a slow peer (blobs travel as memfds): a peer
	 * that does not read must not use up the descriptors that all
	 * connections share. */
	IPC_QUEUE_FDS_MAX = 128,
	/* Requests of ours that one peer may leave unanswered; one more is
	 * `busy`. */
	IPC_WAITERS_MAX = 4096,
	/* Time for the other side's HELLO, in ms. Both send it at once; ten
	 * seconds allow for a machine that swaps. A peer that is silent for
	 * longer would otherwise hold one of the listener's few places for
	 * ever. */
	IPC_HELLO_MS = 10 * 1000,
	/* Pause of a listener that is out of descriptors, in ms. */
	IPC_ACCEPT_PAUSE_MS = 100,
	/* Reconnection back-off, in ms (INTERFACES: from 10 ms to 1 s). */
	IPC_BACKOFF_MIN_MS = 10,
	IPC_BACKOFF_MAX_MS = 1000,

	NAME_SERVER_MAX = 24,
	/* A name as clients see it, prefix included: Claude Desktop takes 64 at
	 * most. A name alone may be as long, on a server that exposes names
	 * without a prefix. */
	NAME_EXPOSED_MAX = 64,
	NAME_TOOL_MAX = NAME_EXPOSED_MAX,
	DESCRIPTION_MAX = 2000,      /* as the original's */
	CODE_MAX = 100 * 1000,       /* bytes of Python source */
	SCHEMA_MAX = 64 * 1024,      /* bytes of one JSON Schema */
	STATIC_MAX = 512 * 1024,     /* bytes of a static text, or its base64 */
	URI_MAX = 1024,              /* of a resource; a longer one is data */
	URI_VARIABLES_MAX = 8,       /* of a template; a person reviews it */
	NAME_VARIABLE_MAX = 38,      /* of a variable or a prompt's argument */
	ARGUMENTS_MAX = 1024 * 1024, /* bytes of one call's arguments */
	/* The arguments kept with an execution (context.h, INTENT_ARGUMENTS).
	 */
	ARGUMENTS_KEPT = 4096,
	SECRET_VALUE_MAX = 10000, /* as the original's */
	SECRETS_PER_CALL_MAX = 64,
	/* Module trees mounted for one call; each costs a mount. */
	MODULES_PER_CALL_MAX = 32,
	/* Time a call may wait for its client's answers in all, in ms: a person
	 * has that long, and a gateway may wait that much longer for a
	 * result. */
	PARK_TOTAL_MS = 600 * 1000,
	STDOUT_SHOWN_MAX = 64 * 1024, /* of a call's output, kept and shown */

	/* Connections in a call's record: some sixty of them fit, the rest is
	 * counted. */
	NET_REPORT_MAX = 16 * 1024,
	/* Hosts that one version declares, as in its row; grants of one server.
	 */
	NET_REQUIRES_MAX = 64,
	NET_GRANTS_MAX = 1024,

	/* Entries of the module store asked about at once: a frame of 32 bytes
	 * each, and as many stat(2) calls in one turn. */
	STORE_ASK_MAX = 256,

	JSON_DEPTH_MAX = 64,      /* containers inside containers */
	JSON_MEMBERS_MAX = 65536, /* members and elements in one text */

	HTTP_HEAD_MAX = 32 * 1024, /* request line and header fields together */
	HTTP_BODY_MAX = 4 * 1024 * 1024, /* = IPC_BLOB_MAX: it must travel on */

	TOKEN_BYTES = 32, /* random bytes of an API token */
	/* A login's token is cut in two halves; each leaves as much unknown as
	 * an API token has (docs/decisions/0067). */
	LOGIN_BYTES = 2 * TOKEN_BYTES,
	LOGIN_TEXT = 86, /* characters of base64url: 4/3 of 64, rounded up */
	LOGIN_HALF = LOGIN_TEXT / 2,
	/* Base64url of a SHA-256, by which admind asks about a login. */
	LOGIN_HASH_TEXT = 43,
};

#endif
