/*
 * A call that admind makes without a gateway: of a source's approved version
 * (decision 0050), for itself, or of a tool, for an administrator (decision
 * 0111). It takes the path of any call (call.c), with a row, a context and a
 * record of its own. But admind, not a gateway, sends RUN to sandboxd, and a
 * callback gets the answer.
 *
 * Clients can't call a source by its name, because a source is not a tool
 * (object.c), and an administrator can't either. The code is exactly the
 * approved code. A source's arguments come from admind.
 */
#ifndef INNER_H
#define INNER_H

#include "admind.h"

struct inner_end {
	/* FAILURE_NONE: the call ran, and body is a CallToolResult without
	 * error. Else text describes the failure, and perhaps body does so,
	 * too. */
	enum failure failure;
	const char *text;
	struct ipc_bytes body;
	struct ipc_id execution;
	struct ipc_hash version;
};
/* Called once. The pointers in inner_end are valid until inner_cb returns. */
typedef void inner_cb(void *arg, const struct inner_end *);

struct inner;

enum inner_mode {
	INNER_LIST,   /* lists tools of a source; renews tokens first */
	INNER_TOKENS, /* makes or renews tokens; a secret may lack a value */
	INNER_PERSON  /* an administrator's call of a tool */
};

/* Makes the call. name: the source's name for clients, as SQL source_object()
 * returns it, or the tool's. principal: the person or token that caused the
 * call. May call cb before it returns. */
void inner_call(struct admind *, const char *name, const char *principal,
    enum inner_mode, struct ipc_bytes arguments, inner_cb *cb, void *arg);

/* Makes the call of an administrator. seen: the hash of the version that he
 * read and that a draft is made from; zero: none was given. login: the SHA-256
 * of his login's token. When that login ends, the call ends, too. */
void inner_person(struct admind *, const char *name, const char *principal,
    struct ipc_bytes arguments, const struct ipc_hash *seen,
    const struct ipc_hash *login, inner_cb *cb, void *arg);

/* Ends the calls of administrators whose logins have ended, or may call no
 * more. To be called after each answer to the vault about people and logins. */
void inner_judge(struct admind *);

/* For call.c and job.c: runs the held job and takes it over. */
void inner_run(struct job *);
/* Ends a call that has not run. The caller frees the job. */
void inner_refused(struct job *, enum failure, const char *text);
bool inner_may_lack_secrets(const struct job *);
/* True for a call that an administrator makes. */
bool inner_is_person(const struct job *);
/* Returns change_source of a version that the call makes: manual or llm. */
const char *inner_change_source(const struct job *);
/* Returns the hash of the version that the administrator read, or NULL if none
 * was given. */
const struct ipc_hash *inner_seen(const struct job *);
/* Ends an administrator's call with the job's body, which this process made: a
 * management tool's answer, a static object, or an error that the caller can
 * mend. The caller frees the job. */
void inner_answered(struct job *);

/* The result of an action on a source: sources.h, oauth.h. */
struct sources_end {
	enum failure failure; /* FAILURE_NONE: json is the answer, an object */
	const char *text;
	struct ipc_bytes json;
};
/* Called once. The pointers in sources_end are valid until sources_cb returns.
 */
typedef void sources_cb(void *arg, const struct sources_end *);

#endif
