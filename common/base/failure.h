/*
 * Failure modes: the closed list in failure.def as an enum and a table.
 * An unknown number maps to FAILURE_INTERNAL, so a table row always exists.
 */
#ifndef FAILURE_H
#define FAILURE_H

#include <stddef.h>

enum failure_side { FAILURE_PROTOCOL, FAILURE_PLATFORM, FAILURE_TOOL };

enum failure {
#define F(symbol, name, code, status, side, fix) FAILURE_##symbol,
#include "failure.def"
#undef F
	FAILURE_COUNT
};

struct failure_info {
	const char *name; /* as clients see it */
	int jsonrpc_code; /* 0: never a JSON-RPC error */
	int http_status;
	enum failure_side side;
	const char *fix; /* one sentence, for cases without a row in fix.def */
};

/* Returns the row of one failure; never NULL. */
const struct failure_info *failure_info(enum failure);

/*
 * Returns advice for the reader of this case: the fix of the first row of
 * fix.def that fits the message (n bytes; NULL: none), else the failure's own
 * fix; never NULL. A stranger who can write into a message can at most choose
 * one of the sentences of fix.def.
 */
const char *failure_fix(enum failure, const char *message, size_t n);

/* Returns the failure with this name, or FAILURE_INTERNAL. */
enum failure failure_by_name(const char *name);

#endif
