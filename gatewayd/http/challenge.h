/*
 * WWW-Authenticate: tells a client how to get a credential, or why the one it
 * sent was not enough (RFC 9110 section 11.6.1, RFC 6750 section 3, RFC 9728
 * section 5.1).
 */
#ifndef CHALLENGE_H
#define CHALLENGE_H

#include "gateway.h"
#include "httpd.h"

enum challenge {
	CHALLENGE_NONE,    /* 401: no credential was shown */
	CHALLENGE_INVALID, /* 401: the credential is not valid here */
	CHALLENGE_SCOPE,   /* 403: an API token that is not for this request */
	CHALLENGE_MORE,    /* 403: a token with more scopes is enough */
	CHALLENGE_NEVER    /* 403: no token of this client's is */
};

/* Bytes of error_description; a sentence fits. */
enum { CHALLENGE_TEXT_MAX = 256 };

/* Adds the field to the answer to come. why: the sentence for
 * CHALLENGE_INVALID and CHALLENGE_MORE, which may have any character. scope:
 * all scopes to ask for, for CHALLENGE_MORE. */
void challenge_add(const struct gateway *, struct httpd_req *, enum challenge,
    const char *why, const char *scope);
/* Copies a sentence as error_description may have it; cuts a longer one. */
void challenge_text(const char *why, char out[CHALLENGE_TEXT_MAX + 1]);

#endif
