/*
 * OAuth tokens of sources (decision 0051). An administrator's consent makes the
 * tokens, and they are renewed before a call. Only the vault, sandboxd and the
 * run can read them.
 */
#ifndef OAUTH_H
#define OAUTH_H

#include "inner.h"

/* Begins an authorisation (decision 0051). The answer has the URL for the
 * browser. */
void oauth_authorise(struct admind *, const struct ipc_id *source,
    const char *actor, struct ipc_bytes redirect, sources_cb *cb, void *arg);
/* Takes the parameters that the browser brought back. Only the OAuth state says
 * for which source they are. A state can be used once. */
void oauth_callback(struct admind *, const struct ipc_oauth_callback *,
    sources_cb *cb, void *arg);
/* Renews a source's tokens if they are about to end. If a renewal is under way,
 * waits for that renewal. cb is called in any case, so that the caller can go
 * on. A failure is kept with the source, and the call that then fails reports
 * it. */
void oauth_refresh(
    struct admind *, const struct ipc_id *source, sources_cb *cb, void *arg);

#endif
