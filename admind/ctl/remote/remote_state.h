/*
 * What is known of all remotes: the rows that this wizard keeps, and what the
 * access document and API tokens say of each.
 */
#ifndef REMOTE_STATE_H
#define REMOTE_STATE_H

#include "remote.h"

/* What one command reads at its begin. */
struct remote_state {
	struct json_object *rows;     /* remotes.json */
	struct json_object *answer;   /* of access_holding() */
	struct json_object *document; /* borrowed from answer; may be NULL */
};

/* Reads all of it. CTL_DONE; otherwise stderr says why. remote_state_end()
 * frees in any case. */
enum ctl_status remote_state_begin(const struct ctl *, struct remote_state *);
void remote_state_end(struct remote_state *);

/* Says on standard error that there is no such remote. Returns CTL_REFUSED. */
enum ctl_status remote_state_unknown(const char *name);

/* Returns the kind of a remote, by its row or by its issuer; -1: there is no
 * such remote. */
int remote_state_kind(const struct remote_state *, const char *name);

/* Returns the public URL of a remote. */
const char *remote_state_url(const struct remote_state *, const char *name);

/* Reads the API token of a remote, as tokens show does. The caller puts the
 * result; NULL: it has none, or admind has none of that id. */
struct json_object *remote_state_token(
    const struct ctl *, const struct remote_state *, const char *name);

/* Makes the object of a remote that list and show print. The caller puts it;
 * NULL without memory. */
struct json_object *remote_state_of(
    const struct ctl *, const struct remote_state *, const char *name);

#endif
