/*
 * Calls that admind withdrew before their RUN came: the tool was stopped or
 * revoked while the gateway's RUN was on its way. The client is told this
 * reason, not that some id is unknown. The reason is kept here, because the
 * call's record may have been acknowledged and forgotten by then.
 */
#ifndef WITHDRAWN_H
#define WITHDRAWN_H

#include "ipc.h"

enum {
	/* A RUN follows its RUN_ID within ms, so no more calls than this are
	 * withdrawn in between. */
	WITHDRAWN_KEPT = 256
};

/* A ring; zeroed: empty. */
struct withdrawn {
	struct {
		struct ipc_id id;
		enum failure failure; /* FAILURE_NONE: unused */
	} row[WITHDRAWN_KEPT];
	unsigned next;
};

void withdrawn_add(struct withdrawn *, const struct ipc_id *, enum failure);
/* Returns why the call was withdrawn, or FAILURE_NONE. */
enum failure withdrawn_why(const struct withdrawn *, const struct ipc_id *);

#endif
