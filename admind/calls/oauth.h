/*
 * OAuth tokens of sources (decision 0051): made by an administrator's consent,
 * renewed before a call. Readable by the vault, sandboxd and the run alone.
 */
#ifndef OAUTH_H
#define OAUTH_H

#include "inner.h"

/* Begins an authorisation (decision 0051): the answer has the URL for the
 * browser. */
void oauth_authorise(struct admind *, const struct ipc_id *source,
    const char *actor, struct ipc_bytes redirect, sources_cb *cb, void *arg);
/* Takes the parameters that the browser brought back. Only the state, which is
 * used once, says which source they are for. */
void oauth_callback(struct admind *, const struct ipc_oauth_callback *,
    sources_cb *cb, void *arg);
/* Renews a source's tokens if they are about to end. If a renewal is under way,
 * waits for it. cb only hears that it may go on; a failure is kept with the
 * source, and reported by the call that then fails. */
void oauth_refresh(
    struct admind *, const struct ipc_id *source, sources_cb *cb, void *arg);

#endif
