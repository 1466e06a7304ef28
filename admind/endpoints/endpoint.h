/*
 * An endpoint of the access document: a part of the catalogue with an address
 * of its own (docs/decisions/0102). It gives no right. No I/O.
 *
 * Its patterns speak of a tool's own names, as a token's do. A rename then
 * gives the tool another name there. The new name means this tool and nothing
 * else, also while the tool is not there, so no other tool takes it over. The
 * tool's own name is unknown there.
 *
 * admind-check reads hostile bytes, so its fields are read strictly.
 */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <stdbool.h>

#include "buf.h"
#include "bytes.h"
#include "endpoint_fields.h"
#include "err.h"
#include "permit.h"

struct endpoint_rename {
	struct ipc_bytes tool, as;
	struct ipc_bytes description; /* empty: the tool's own */
};

/* All bytes point into `record`. */
struct endpoint {
	unsigned refs;
	struct buf record;
	struct ipc_bytes name, set, instructions; /* set, instructions: or
						   * empty */
	char *allow, *deny; /* one pattern a line; owned */
	bool search;        /* lists the search and the call tool alone */
	unsigned listeners; /* mask of 1 << enum listener */
	struct endpoint_rename rename[ENDPOINT_RENAMES_MAX];
	unsigned nrenames;
};

/* Reads a record ACCESS_ENDPOINT, which is copied. Returns NULL with err if it
 * is malformed, or without memory. */
struct endpoint *endpoint_new(struct ipc_bytes record, struct err *);
struct endpoint *endpoint_ref(struct endpoint *); /* NULL is harmless */
void endpoint_unref(struct endpoint *);           /* NULL is harmless */

/* Returns the own name of the tool that clients of the endpoint call `name`,
 * or nothing: the name is unknown there. NULL: of no endpoint. */
struct ipc_bytes endpoint_own(const struct endpoint *, struct ipc_bytes name);
/* Returns the name by which clients of the endpoint call this tool, or nothing:
 * another tool has its name there. *rename: the entry, or NULL. */
struct ipc_bytes endpoint_shown(const struct endpoint *, struct ipc_bytes own,
    const struct endpoint_rename **rename);

/* Narrows the rights `own` by a set and by the endpoint. The scopes and
 * patterns are those of the set. Without a set, allow is NULL. The caller frees
 * the texts. 0, or -1 without memory. */
int endpoint_narrow(const struct endpoint *, const struct permit *own,
    unsigned scopes, const char *allow, const char *deny, struct permit *out);
/* Returns whether all that was seen and called at `was` is so at `is`, by the
 * same names. Patterns are compared as they are written. */
bool endpoint_covers(const struct endpoint *is, const struct endpoint *was);

#endif
