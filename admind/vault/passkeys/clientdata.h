/*
 * The client data of a passkey's answer (WebAuthn Level 3, section 5.8.1): the
 * browser's own words about the request and the page.
 *
 * They are JSON, but the vault parses no JSON. WebAuthn prescribes how browsers
 * write them, and a limited verification that compares bytes (sections 5.8.1.1
 * and 5.8.1.2). This is it, a little stricter: nothing may say crossOrigin or
 * topOrigin after the members that are compared.
 */
#ifndef CLIENTDATA_H
#define CLIENTDATA_H

#include <stdbool.h>

#include "bytes.h"
#include "err.h"

enum {
	CLIENTDATA_CHALLENGE = 32, /* bytes of a challenge */
	/* Browsers write some 300 bytes. */
	CLIENTDATA_MAX = 4096,
	CLIENTDATA_ORIGIN_MAX = 255, /* scheme, a domain name of 253, a port */
	CLIENTDATA_ORIGINS_MAX = 8   /* pages that people use for one vault */
};

/* Checks that the client data are of a registration (or else of an assertion),
 * for this challenge, of a page of one of the origins (separated by commas, in
 * the form of clientdata_origins_ok). 0, or -1 with PASSKEY_REFUSED and the
 * reason. */
int clientdata_check(struct ipc_bytes, bool registers,
    const uint8_t challenge[CLIENTDATA_CHALLENGE], const char *origins,
    struct err *);
/* Returns whether this is a list of 1 to CLIENTDATA_ORIGINS_MAX origins: each
 * https:// and characters that JSON does not escape. With `localhost` also
 * http:// of the name localhost or of one that ends with .localhost. */
bool clientdata_origins_ok(const char *origins, bool localhost);

#endif
