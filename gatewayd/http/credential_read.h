/*
 * Takes the credential out of a request's header fields: the only place that
 * reads them.
 */
#ifndef CREDENTIAL_READ_H
#define CREDENTIAL_READ_H

#include "gateway.h"
#include "http1.h"
#include "identity.h"
#include "refusal.h"

/* Finds the credential. *text lives as long as the request; "": the request
 * shows no credential. 0, or -1 with the reason: the request shows one that is
 * not read here, so it has no sender, not even `local`. A refusal
 * UNAUTHENTICATED means 401, INVALID_REQUEST means 400; any other one passes by
 * itself. */
int credential_read(const struct gateway *, const struct http1_request *,
    const char **text, enum credential_via *via, struct refusal *);

/* Tells whether this has the form of an API token. */
bool credential_is_api_token(const char *);

/* Tells whether the request lacks every field that is read at this listener.
 * If a credential is required, such a request is refused without a question
 * to admind. An assertion counts until admind has said that this listener reads
 * no assertions. */
bool credential_read_none(const struct gateway *, const struct http1_request *);

#endif
