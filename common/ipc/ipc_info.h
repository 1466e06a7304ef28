/*
 * The table of messages at run time: number, roles, states, fields of each. The
 * codec and the permission check read it.
 */
#ifndef IPC_INFO_H
#define IPC_INFO_H

#include <stddef.h>

#include "bytes.h"
#include "ipc_table.h"

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

/* Returns the row of a type, or NULL for a number the table does not have. */
const struct ipc_info *ipc_info(unsigned type);
/* Returns all rows, in the table's order, and sets *n. For docs and tests. */
const struct ipc_info *ipc_table(size_t *n);
/* Returns a name like "RUN_ID", or "message 99" if 99 is unknown. Valid until
 * the next call. */
const char *ipc_name(unsigned type);
/* SHA-256 of the canonical text of the table. */
extern const struct ipc_hash ipc_table_hash;

#endif
