/*
 * IPC messages as C types, and their codec: bytes in, structs out, no I/O.
 * Everything here is derived from ipc_table.h.
 *
 * A frame is a 16-byte header {u16 type, u16 flags, u32 payload length, u64
 * request id} and the payload, all big endian, sent as one SOCK_SEQPACKET
 * packet. Strings, bytes and blobs of a decoded message point into the frame
 * and live until the frame is freed.
 */
#ifndef IPC_H
#define IPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bounds.h"
#include "buf.h"
#include "bytes.h"
#include "err.h"
#include "ipc_table.h"
#include "listener.h"
#include "utf8.h"

enum ipc_type {
#define M(number, UPPER, lower, kind, s, r, state, blob, doc) \
	IPC_##UPPER = number,
	IPC_MESSAGES(M)
#undef M
	    IPC_TYPE_MAX = 511
};

/* Roles, as bits. A connection has one local and one peer role. */
enum ipc_role {
	IPC_ROLE_GATEWAY = 1 << 0,
	IPC_ROLE_ADMIND = 1 << 1,
	IPC_ROLE_WEB = 1 << 2,
	IPC_ROLE_CTL = 1 << 3,
	IPC_ROLE_CHECK = 1 << 4,
	IPC_ROLE_VAULT = 1 << 5,
	IPC_ROLE_SANDBOXD = 1 << 6,
	IPC_ROLE_SPAWN = 1 << 7,
	IPC_ROLE_POOL = 1 << 8,
	IPC_ROLE_ZYGOTE = 1 << 9,
	IPC_ROLE_RUNNER = 1 << 10,
	IPC_ROLE_EGRESS = 1 << 11,
	IPC_ROLE_PEEK = 1 << 12,
	IPC_ROLE_STORE = 1 << 13,
	IPC_ROLE_ANY = (1 << 14) - 1
};

enum ipc_kind { IPC_KIND_REQ, IPC_KIND_ANS, IPC_KIND_PART, IPC_KIND_EVT };

enum ipc_state {
	IPC_STATE_NEW = 1, /* HELLO not yet seen */
	IPC_STATE_OPEN = 2,
	IPC_STATE_WAITING = 4, /* runner channel, before READY */
	IPC_STATE_RUNNING = 8  /* runner channel, after READY */
};

/* Purpose of a context. Only TOOL may carry secrets, and TOOL needs a seal. */
enum context_kind {
	CONTEXT_TOOL = 1,    /* call main() of an approved version */
	CONTEXT_INSPECT = 2, /* read the signature of main() */
	CONTEXT_TEST = 3, /* call main() of a draft: no secrets, no network */
	CONTEXT_COMPILE = 4, /* sandboxd's own: compile, run nothing */
	CONTEXT_GRANTS = 5,  /* no call: a server's grants of now (REGRANT) */
	CONTEXT_MODULE = 6 /* fetch a wheel for the module store: our code, the
			    * configured index alone, no secrets */
};

/* Kinds of NET_EVENT. */
enum net_event {
	NET_EVENT_REFUSED = 1, /* a grant or a declaration is missing: the call
				* goes on */
	NET_EVENT_FAILED = 2,  /* no such name, no answer: likewise */
	NET_EVENT_BYTES = 3,   /* a limit is used up: the call ends */
	NET_EVENT_RATE = 4,    /* likewise */
	NET_EVENT_NEVER = 5,   /* an address that no grant can open: the call
				* goes on */
	NET_EVENT_LINK = 6     /* net 0: peek has no connection any more */
};

/* Purpose of a runner; a part of its profile (FORK). */
enum runner_kind { RUNNER_PYTHON = 0, RUNNER_COMMAND = 1 };

/* The maker of the result in a runner of kind PYTHON (EXECUTE): the tool's own
 * code, or a module of ours that reads a specification. */
enum runner_driver {
	DRIVER_CODE = 0,  /* the source is Python, its main is called */
	DRIVER_HTTP = 1,  /* a declared REST call: version kind http */
	DRIVER_MCP = 2,   /* another MCP server's tool, or its list: kind mcp */
	DRIVER_MODULE = 3 /* fetches and unpacks a wheel */
};

/* Operations of SOURCE_RUN. */
enum source_op { SOURCE_DISCOVER = 1, SOURCE_IMPORT = 2, SOURCE_AUTHORISE = 3 };

/* The kind of object that is called; also the form of a runner's result. */
enum call_method {
	CALL_TOOL = 0,    /* tools/call: CallToolResult */
	CALL_PROMPT = 1,  /* prompts/get: GetPromptResult */
	CALL_RESOURCE = 2 /* resources/read: ReadResourceResult */
};

/* A form that no method has: a tool with an output schema, whose main returns
 * structured content of any type. */
enum { CALL_STRUCTURED = CALL_RESOURCE + 1 };

/* Kinds of CALL_EVENT. */
enum call_event {
	CALL_EVENT_PROGRESS = 1,
	CALL_EVENT_LOG = 2,
	CALL_EVENT_ASK = 3,
	CALL_EVENT_PAUSE = 4 /* {"retry": ms}: the client may come back later */
};

/* The lists of MCP that make up a catalogue, and one that no client sees:
 * resources that somebody stopped, so that no template answers for their URIs
 * (docs/decisions/0092). A change of it is one of MCP_LIST_RESOURCES. */
enum mcp_list {
	MCP_LIST_TOOLS = 0,
	MCP_LIST_PROMPTS = 1,
	MCP_LIST_RESOURCES = 2,
	MCP_LIST_TEMPLATES = 3,
	MCP_LIST_STOPPED = 4
};

/* Client capabilities (MCP 2026-07-28) that something here depends on. */
enum client_capability {
	CLIENT_ELICITATION = 1,     /* elicitation or elicitation.form */
	CLIENT_ELICITATION_URL = 2, /* elicitation.url */
	CLIENT_SAMPLING = 4,
	CLIENT_SAMPLING_TOOLS = 8, /* sampling.tools */
	CLIENT_ROOTS = 16,
	CLIENT_TASKS = 32 /* extension io.modelcontextprotocol/tasks */
};

/* May a call become a task? */
enum task_wish {
	TASK_NEVER = 0, /* the client did not declare the extension */
	TASK_MAY = 1    /* if the tool's version says optional or required */
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

/* cpu_us of a RECORD that was written before its runner was reaped, and whose
 * sandbox died then. */
#define RECORD_CPU_UNKNOWN UINT64_MAX

#define IPC_CTYPE_u8    uint8_t
#define IPC_CTYPE_u16   uint16_t
#define IPC_CTYPE_u32   uint32_t
#define IPC_CTYPE_u64   uint64_t
#define IPC_CTYPE_id    struct ipc_id
#define IPC_CTYPE_hash  struct ipc_hash
#define IPC_CTYPE_str   struct ipc_bytes
#define IPC_CTYPE_bytes struct ipc_bytes
#define IPC_CTYPE_blob  struct ipc_bytes
#define IPC_CTYPE_fd    int

/* struct ipc_run { uint64_t request; struct ipc_id execution; ... } and so on.
 * `request` is the header's request id: set by the codec when decoding, by the
 * transport when sending. An fd field is -1 unless set; a decoded one belongs
 * to the receiver, a sent one stays with the sender. */
#define F(S, type, name, doc) IPC_CTYPE_##type name;
#define M(number, UPPER, lower, kind, s, r, state, blob, doc) \
	struct ipc_##lower {                                  \
		uint64_t request;                             \
		IPC_FIELDS_##lower(F, ipc_##lower)            \
	};
IPC_MESSAGES(M)
#undef M
#undef F

enum ipc_ftype {
	IPC_F_u8,
	IPC_F_u16,
	IPC_F_u32,
	IPC_F_u64,
	IPC_F_id,
	IPC_F_hash,
	IPC_F_str,
	IPC_F_bytes,
	IPC_F_blob,
	IPC_F_fd
};

struct ipc_field {
	enum ipc_ftype type;
	const char *name;
	size_t offset; /* in the message's struct */
	const char *doc;
};

/* One row of the table. */
struct ipc_info {
	enum ipc_type type;
	const char *name; /* "RUN_ID" */
	enum ipc_kind kind;
	unsigned senders, receivers; /* masks of enum ipc_role */
	unsigned states;             /* mask of enum ipc_state */
	size_t max_blob;
	const struct ipc_field *fields;
	size_t nfields;
	unsigned nfds; /* descriptors, not counting a blob's memfd */
	size_t size;   /* of the struct */
	const char *doc;
};

enum { IPC_HEADER_LEN = 16 };
enum {
	IPC_FLAG_MEMFD = 1
}; /* the blob is in the sealed memfd of the same packet */

/* A frame as it arrived. The transport fills it, ipc_decode reads it. */
struct ipc_frame {
	enum ipc_type type;
	uint16_t flags;
	uint64_t request;
	uint8_t *payload; /* owned */
	size_t payload_len;
	uint8_t *blob; /* owned copy of the memfd's bytes, or NULL */
	size_t blob_len;
	int fd; /* passed descriptor or -1; see ipc_take_fd */
};

/* Returns the row of a type, or NULL for a number the table does not have. */
const struct ipc_info *ipc_info(unsigned type);
/* Returns all rows, in order of number, and sets *n. For docs and tests. */
const struct ipc_info *ipc_table(size_t *n);
/* Returns "RUN_ID", or "message 99". Valid until the next call. */
const char *ipc_name(unsigned type);
/* SHA-256 of the canonical text of the table. */
extern const struct ipc_hash ipc_table_hash;

/*
 * May `type` pass from a peer of role `sender` to one of role `receiver` in
 * this connection state? 0, or -1 with the rule that was broken in err.
 */
int ipc_permit(unsigned type, enum ipc_role sender, enum ipc_role receiver,
    enum ipc_state, struct err *);

/*
 * Encodes header and payload of msg (a struct ipc_<lower>) into out, which
 * is cleared first. If the frame would pass IPC_FRAME_MAX and the message
 * has a blob, *spill is set to that blob, which must travel in a memfd;
 * otherwise spill->p is NULL. *fd is the descriptor to pass, or -1.
 * 0, or -1 when a limit is exceeded or memory is out.
 */
int ipc_encode(enum ipc_type, uint64_t request, const void *msg,
    struct buf *out, struct ipc_bytes *spill, int *fd, struct err *);

/*
 * Parses the 16 header bytes into f. 0, or -1: unknown type, unknown flag,
 * length that is not the packet's.
 */
int ipc_decode_header(
    const uint8_t *packet, size_t n, struct ipc_frame *f, struct err *);

/*
 * Decodes f into msg, a struct of the right type for f->type. Strict: every
 * field present, strings UTF-8 without NUL, blob within its limit, nothing
 * left over. A descriptor moves into msg. 0 or -1.
 */
int ipc_decode(struct ipc_frame *f, void *msg, struct err *);

/* Frees the frame's memory and closes an untaken descriptor. */
void ipc_frame_free(struct ipc_frame *);

#endif
