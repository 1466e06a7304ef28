/*
 * IP addresses as values, and the foreign struct sockaddr that peek copied
 * out of a runner.
 */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <sys/socket.h>

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc.h"

enum { ADDRESS_TEXT = INET6_ADDRSTRLEN };

struct address {
	sa_family_t family; /* AF_INET or AF_INET6 */
	uint8_t b[16];      /* network order; 4 bytes of AF_INET */
};

/*
 * Reads the address that a runner gave connect(2) for a socket of `family`. An
 * IPv4-mapped address becomes the IPv4 address. A scope id (zone) is dropped,
 * because egress never connects to an address that needs one. 0, or
 * connect(2)'s own errno: EAFNOSUPPORT (above all for AF_UNSPEC, which would
 * undo a connection), EINVAL (too short). Fuzzed.
 */
int address_foreign(const uint8_t *p, size_t n, sa_family_t family,
    struct address *, uint16_t *port);

/* Reads an address in a spelling of inet_pton(3). 0 or -1. */
int address_read(struct ipc_bytes text, struct address *);
/* Writes the address as inet_ntop(3) does. */
void address_text(const struct address *, char text[ADDRESS_TEXT]);
/* Fills in ss for connect(2); returns its length. */
socklen_t address_sockaddr(
    const struct address *, uint16_t port, struct sockaddr_storage *);
bool address_equal(const struct address *, const struct address *);
/* Makes an IPv4 address from four bytes. */
struct address address_v4(const uint8_t *);
/* Tells whether the first `bits` bits of a and b are equal. */
bool address_prefix(const uint8_t *a, const uint8_t *b, unsigned bits);

#endif
