/*
 * Obstacles that keep a call from going on after its lookup, and the answers
 * that name them.
 */
#include <stdio.h>

#include "call.h"
#include "jobs.h"
#include "object.h"

void
obstacle_unknown(struct job *j)
{
	const char *sentence;
	enum failure f = object_unknown(j->method, &sentence);

	job_refuse(j, f, sentence);
}

void
obstacle_quarantine(struct job *j, struct ipc_bytes words)
{
	char text[400];

	snprintf(text, sizeof(text), "Error: %.*s",
	    words.n < 380 ? (int)words.n : 380, (const char *)words.p);
	job_error(j, FAILURE_UPSTREAM_CHANGED, text, ipc_bytes(NULL, 0));
}

bool
obstacle_mendable(struct job *j, struct ipc_bytes missing)
{
	uint64_t max = j->limits[LIMIT_ARGUMENT_BYTES];
	char text[400];

	if (missing.n > 0) {
		snprintf(text, sizeof(text), "Error: %.*s",
		    missing.n < 380 ? (int)missing.n : 380,
		    (const char *)missing.p);
		job_error(j, FAILURE_MISSING_GRANT, text, ipc_bytes(NULL, 0));
		return true;
	}
	if (max != 0 && j->arguments.len > max) {
		snprintf(text, sizeof(text),
		    "Error: the arguments have %zu bytes; the limit "
		    "argument_bytes is %llu bytes.",
		    j->arguments.len, (unsigned long long)max);
		job_error(j, FAILURE_LIMIT, text, ipc_bytes(NULL, 0));
		return true;
	}
	return false;
}

/* The mask in j->declared comes from gatewayd, which has it from the client. A
 * false mask does no harm: the client only gets questions that it can't
 * answer. */
bool
obstacle_undeclared(struct job *j, uint32_t required)
{
	struct buf data;

	if ((required & ~j->declared) == 0)
		return false;
	buf_init(&data, IPC_FRAME_MAX);
	object_required(required, &data);
	job_refuse_data(j, FAILURE_CAPABILITY_REQUIRED,
	    "the client lacks a capability that this needs",
	    data.failed ? "" : (const char *)data.p);
	buf_free(&data);
	return true;
}
