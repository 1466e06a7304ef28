/*
 * The origin of a web address, as browsers write it in the field Origin (RFC
 * 6454 section 6.2) and in a content security policy. No I/O.
 */
#ifndef ORIGIN_H
#define ORIGIN_H

#include <stddef.h>

enum {
	ORIGIN_HOST_MAX = 253, /* octets of a domain name (RFC 1035) */
	/* "https://", a host, ":" and a port of five digits, and NUL. */
	ORIGIN_MAX = 8 + ORIGIN_HOST_MAX + 6 + 1
};

/* Reads the origin at the beginning of an address: http or https, a host in
 * lower case (a name, an IPv4 address, or [::1]), and a port, which is left out
 * where it is the scheme's own. Accepts only the form that a browser writes, so
 * that texts can be compared, and no byte that has a meaning in a header or in
 * a policy. Returns the length of the origin, or 0 for another text. */
size_t origin_read(const char *address);

#endif
