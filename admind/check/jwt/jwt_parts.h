/* The three parts of a signed token in the compact form (RFC 7515 section
 * 7.1). */
#ifndef JWT_PARTS_H
#define JWT_PARTS_H

#include "access_fields.h"
#include "bytes.h"
#include "err.h"

struct jwt_parts {
	struct ipc_bytes text; /* as sent, up to the second dot: is signed */
	struct ipc_bytes header, claims, signature; /* decoded, in room */
	uint8_t room[JWT_MAX];
};

/* Cuts and decodes a token, which must outlive the parts. 0, or -1 with err
 * (UNAUTHENTICATED). */
int jwt_parts_cut(struct jwt_parts *, struct ipc_bytes token, struct err *);

#endif
