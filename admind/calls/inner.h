/*
 * A call of a source's approved version (decision 0050) that admind makes for
 * itself. It takes the path of any call (call.c), with a row, a context and a
 * record of its own, but admind runs it and a function gets the answer.
 *
 * Clients can't call a source by its name: a source is not a tool (object.c).
 * The code is exactly the approved one; the arguments are ours.
 */
#ifndef INNER_H
#define INNER_H

#include "admind.h"

struct inner_end {
	/* NONE: it ran, and body is a CallToolResult without error. Else text
	 * describes the failure; a body that describes it may be there, too. */
	enum failure failure;
	const char *text;
	struct ipc_bytes body;
	struct ipc_id execution;
	struct ipc_hash version;
};
/* Called once; everything borrowed lives until it returns. */
typedef void inner_cb(void *arg, const struct inner_end *);

struct inner;

enum inner_mode {
	INNER_LIST,  /* a source: tokens are refreshed first, if they must be */
	INNER_TOKENS /* makes or renews tokens: its secret may have no value */
};

/* name: the source's name for clients, as source_object() gives it. principal:
 * whoever caused it. May call cb before it returns. */
void inner_call(struct admind *, const char *name, const char *principal,
    enum inner_mode, struct ipc_bytes arguments, inner_cb *cb, void *arg);

/* For call.c and job.c: runs the held job and takes it over. */
void inner_run(struct job *);
/* Ends a call that has not run. The caller frees the job. */
void inner_refused(struct job *, enum failure, const char *text);
bool inner_may_lack_secrets(const struct job *);

/* What became of something that was done with a source: sources.h, oauth.h. */
struct sources_end {
	enum failure failure; /* NONE: json is the answer, an object */
	const char *text;
	struct ipc_bytes json;
};
/* Called once; everything borrowed lives until it returns. */
typedef void sources_cb(void *arg, const struct sources_end *);

#endif
