/* The https origins at which a proxy serves the panel: the setting
 * panel_origins (docs/decisions/0115). */
#ifndef ORIGINS_H
#define ORIGINS_H

#include <stdbool.h>

#include "err.h"

enum {
	ORIGINS_COUNT_MAX = 8,    /* as the vault's passkey_origins */
	ORIGINS_HOST_MAX = 253,   /* octets of a domain name (RFC 1035) */
	ORIGINS_LABEL_MAX = 63,   /* octets of a label, likewise */
	ORIGINS_PORT_MAX = 65535, /* RFC 9293 */
	ORIGINS_HTTPS_PORT = 443  /* browsers leave it out (RFC 6454) */
};

/* Checks a list, separated by commas; "" is the empty list. Each origin is
 * https:// and a domain name, as browsers write it: lower case, a port only if
 * it is not 443, no path. An address and names of localhost are refused. 0, or
 * -1 with INVALID_PARAMS and the reason. */
int origins_check(const char *list, struct err *);
/* Returns whether this Host value is that of one of the origins. The list has
 * passed origins_check. */
bool origins_have(const char *list, const char *host);

#endif
