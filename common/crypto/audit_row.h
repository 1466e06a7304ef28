/*
 * A row of the audit chain as bytes, as PostgreSQL's audit_row() makes them:
 * "mcpbox audit 1" NUL, u64 number, u64 Unix time in ms, then actor, action,
 * subject and detail, each u32 length and UTF-8 bytes, all big endian. A row's
 * hash is SHA-256 over the hash of the row before and these bytes. For the
 * first row the hash before is 32 zero bytes.
 *
 * AUDIT_ROWS carries this stream: for each row u64 number, 32 bytes previous
 * hash, 32 bytes hash, u32 length, the bytes above, u8 1 and the anchor (32
 * bytes head, 32 bytes signature) if the database has one for the row, else u8
 * 0.
 */
#ifndef AUDIT_ROW_H
#define AUDIT_ROW_H

#include "bytes.h"

enum {
	/* one anchor of AUDIT_CHECK: u64 row number, 32 bytes head, 32 bytes
	 * signature */
	AUDIT_ANCHOR_LEN = 8 + 32 + 32,
	AUDIT_CHECK_MAX = 800, /* anchors in one frame (IPC_FRAME_MAX) */
	AUDIT_ROWS_MAX = 1000  /* rows in one AUDIT_ROWS */
};

struct audit_row {
	uint64_t seq, at_ms;
	struct ipc_bytes actor, action, subject, detail; /* borrowed */
	/* prev and hash are the database's; computed is made here from prev and
	 * the row's bytes. */
	struct ipc_hash prev, hash, computed;
	bool anchored;
	struct ipc_hash anchor_head, anchor_signature;
};

/* Takes the next row off rows. Returns 1; 0 at the end; -1 if the row is
 * malformed, or if the row number in its hashed bytes differs from the one
 * before them. admind never sends such a row, and nothing after it can be
 * read. */
int audit_row_next(struct ipc_bytes *rows, struct audit_row *);

#endif
