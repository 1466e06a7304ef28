/*
 * A row of the audit chain as bytes, the way PostgreSQL's audit_row() makes
 * them: "mcpbox audit 1" NUL, u64 number, u64 Unix time in ms, then actor,
 * action, subject and detail, each u32 length and UTF-8 bytes, all big endian.
 * A row's hash is SHA-256 over the hash before it and these bytes; the first is
 * preceded by 32 zero bytes.
 *
 * And the stream that AUDIT_ROWS carries: for each row u64 number, 32 bytes
 * previous hash, 32 bytes hash, u32 length, the bytes above, u8 1 and the
 * anchor (32 bytes head, 32 bytes signature) if the database has one for it,
 * else u8 0.
 */
#ifndef AUDIT_ROW_H
#define AUDIT_ROW_H

#include "bytes.h"

enum {
	/* u64 row number, 32 bytes head, 32 bytes signature: AUDIT_CHECK's */
	AUDIT_ANCHOR_LEN = 8 + 32 + 32,
	AUDIT_CHECK_MAX = 800, /* of them in one frame (IPC_FRAME_MAX) */
	AUDIT_ROWS_MAX = 1000  /* rows in one AUDIT_ROWS */
};

struct audit_row {
	uint64_t seq, at_ms;
	struct ipc_bytes actor, action, subject, detail; /* borrowed */
	/* As the database has them, and what the bytes really give. */
	struct ipc_hash prev, hash, computed;
	bool anchored;
	struct ipc_hash anchor_head, anchor_signature;
};

/* Takes the next row off rows. 1; 0 at the end; -1: malformed, which is not
 * what admind sends: nothing behind it can be read. The bytes may also say
 * something else than the number beside them: -1 as well. */
int audit_row_next(struct ipc_bytes *rows, struct audit_row *);

#endif
