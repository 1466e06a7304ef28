/*
 * The header of the PROXY protocol, version 2, by which a TCP balancer names
 * the client whose connection it passes on (haproxy.org: "The PROXY protocol",
 * section 2.2). Bytes in, a struct out. Version 1 is refused: it is text that
 * an HTTP client could write by itself.
 */
#ifndef PROXYV2_H
#define PROXYV2_H

#include <sys/socket.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "err.h"

enum {
	PROXYV2_HEAD = 16,
	/* Bytes of addresses and TLVs. Balancers send some hundred, and more
	 * with names of a TLS client's certificate. The TLVs are skipped
	 * unread. */
	PROXYV2_REST_MAX = 2048,
	PROXYV2_MAX = PROXYV2_HEAD + PROXYV2_REST_MAX
};

struct proxyv2 {
	bool local;  /* the balancer connects itself, to check that we live */
	bool client; /* from is set; false: the client has no IP address */
	struct sockaddr_storage from; /* AF_INET or AF_INET6 */
};

/* Reads a header at the beginning of n bytes. Returns its length; 0: more bytes
 * are needed (never with PROXYV2_MAX bytes); -1: not a header, with the
 * reason. */
int proxyv2_read(const uint8_t *, size_t n, struct proxyv2 *, struct err *);

/* The balancers that may send a header: addresses and blocks. */
enum { PROXYV2_FROM_MAX = 32 };
struct proxyv2_from {
	size_t n;
	struct {
		sa_family_t family;
		uint8_t b[16], bits;
	} entry[PROXYV2_FROM_MAX];
};

/* Reads a comma-separated list, "192.0.2.1, 2001:db8::/64". 0, or -1 with err,
 * which names the wrong entry. "" is an empty list. */
int proxyv2_from_read(const char *text, struct proxyv2_from *, struct err *);
/* Tells whether this peer may send a header. An IPv4-mapped address counts as
 * IPv4. */
bool proxyv2_from_has(const struct proxyv2_from *, const struct sockaddr *);

#endif
