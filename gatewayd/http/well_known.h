/*
 * The metadata of this protected resource (RFC 9728): which issuers' tokens
 * admit to /mcp.
 */
#ifndef WELL_KNOWN_H
#define WELL_KNOWN_H

#include "gateway.h"
#include "httpd.h"

/* True if the path is one of the two paths of the metadata. false, too, if
 * admind said that no issuer serves this listener: then they do not exist. */
bool well_known_is(const struct gateway *, const char *path);
/* Answers a request to such a path; Host and Origin were checked. */
void well_known_answer(const struct gateway *, struct httpd_req *);

#endif
