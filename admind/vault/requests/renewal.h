/*
 * Seals or signs stored values again with the newest master key, for rotate.c.
 * No I/O.
 *
 * A hostile admind that brings rows of its choice gains nothing. A row is
 * renewed only if it opens at its place, or verifies for its purpose. A renewed
 * row has the same content, place and purpose.
 */
#ifndef RENEWAL_H
#define RENEWAL_H

#include "buf.h"
#include "err.h"
#include "ipc.h"
#include "tlv.h"

struct vault;

/* The kinds, in the order in which a rotation renews them: K(kind, its name in
 * the database's view `resting`, its name for a reader). */
#define RENEWAL_KINDS(K)                            \
	K(SECRET, "secret", "secret")               \
	K(VERIFIER, "verifier", "administrator")    \
	K(PASSKEYS, "passkeys", "passkeys of")      \
	K(SEAL, "seal", "approval")                 \
	K(FIRST, "first", "first of two approvals") \
	K(POLICY, "policy", "policy")               \
	K(ACCESS, "access", "access document")      \
	K(ANCHOR, "anchor", "signature of audit row")

enum renewal_kind {
#define K(NAME, name, shown) RENEWAL_##NAME,
	RENEWAL_KINDS(K)
#undef K
	    RENEWAL_COUNT
};

const char *renewal_name(enum renewal_kind);

/* A row of RENEW_ROWS (renew.h); slices borrow from the frame. */
struct renewal_row {
	struct ipc_bytes id, place, column, value;
};
/* Reads the next row: 1, 0 at the list's end, -1 malformed. */
int renewal_next(struct tlv_reader *, struct renewal_row *);

/*
 * Seals or signs a row's value again with the newest key, and replaces the
 * content of out. 0; -1: no valid key opens the value, or it is not of this
 * kind (FORBIDDEN, NOT_APPROVED), or there is no memory (BUSY, TOO_LARGE).
 */
int renewal_make(struct vault *, enum renewal_kind, const struct renewal_row *,
    struct buf *out, struct err *);

/* Writes a line such as "secret demo/TOKEN: why" with its newline, cut to
 * size. */
void renewal_tell(enum renewal_kind, const struct renewal_row *,
    const struct err *, char *line, size_t size);

#endif
