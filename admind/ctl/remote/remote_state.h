/*
 * All remotes: the rows that this wizard keeps, the access document's issuers,
 * the API tokens.
 */
#ifndef REMOTE_STATE_H
#define REMOTE_STATE_H

#include "remote.h"

/* The things that a command reads at its start. */
struct remote_state {
	struct json_object *rows;     /* remotes.json */
	struct json_object *answer;   /* of access_holding() */
	struct json_object *document; /* borrowed from answer; may be NULL */
};

/* Reads them. CTL_DONE; otherwise stderr says why. remote_state_end()
 * frees in any case. */
enum ctl_status remote_state_begin(const struct ctl *, struct remote_state *);
void remote_state_end(struct remote_state *);

/* Says on standard error that the remote was not found. Returns CTL_REFUSED. */
enum ctl_status remote_state_unknown(const char *name);

/* Returns the kind of a remote, by its row or by its issuer; -1 if it was not
 * found. */
int remote_state_kind(const struct remote_state *, const char *name);

/* Returns the public URL of a remote. */
const char *remote_state_url(const struct remote_state *, const char *name);

/* Reads the API token of a remote, as tokens show does. The caller puts the
 * result. NULL: the remote has no token, or admind does not know it. */
struct json_object *remote_state_token(
    const struct ctl *, const struct remote_state *, const char *name);

/* Makes the object of a remote that list and show print. The caller puts it;
 * NULL without memory. */
struct json_object *remote_state_of(
    const struct ctl *, const struct remote_state *, const char *name);

#endif
