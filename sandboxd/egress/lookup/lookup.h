/*
 * The real look-up of a name: A and AAAA by c-ares, without search domains, the
 * hosts file or a cache. Each connect asks again. The caller judges the answer
 * and connects to the judged addresses.
 */
#ifndef LOOKUP_H
#define LOOKUP_H

#include "address.h"
#include "err.h"

struct event_base;
struct lookup;         /* the resolver */
struct lookup_request; /* one question */

/* The most addresses of an answer. The caller refuses an answer with more. */
enum { LOOKUP_ADDRESSES_MAX = 32 };

enum lookup_status {
	LOOKUP_OK = 0,        /* there is at least one address */
	LOOKUP_NO_NAME = 1,   /* the name does not exist, or has no address */
	LOOKUP_NO_ANSWER = 2, /* no name server answered usefully */
	LOOKUP_MANY = 3       /* more than LOOKUP_ADDRESSES_MAX */
};

/* Opens the resolver. servers: comma-separated addresses with optional ports,
 * or "": those of /etc/resolv.conf, read now. NULL with why. */
struct lookup *lookup_open(
    struct event_base *, const char *servers, struct err *);
void lookup_close(struct lookup *);
unsigned lookup_servers(const struct lookup *);

typedef void lookup_cb(
    void *arg, enum lookup_status, const struct address *, size_t n);
/*
 * Asks for the addresses of a family: AF_UNSPEC (IPv4 and IPv6) or AF_INET6. If
 * the IPv6 answer is lost, the status is LOOKUP_NO_ANSWER for AF_INET6; for
 * AF_UNSPEC an IPv4 answer hides the loss. cb is called once, from the loop,
 * unless the request is cancelled. NULL without memory.
 */
struct lookup_request *lookup_start(
    struct lookup *, const char *name, int family, lookup_cb *, void *arg);
void lookup_cancel(struct lookup_request *);

#endif
