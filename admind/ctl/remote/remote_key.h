/*
 * The key pair of a Worker.
 */
#ifndef REMOTE_KEY_H
#define REMOTE_KEY_H

#include "buf.h"
#include "err.h"

struct json_object;

enum { REMOTE_JWK_MAX = 512 };

/*
 * Makes an Ed25519 key pair as JWKs (RFC 8037 section 2), whose kid is the
 * thumbprint (RFC 7638). *set, which the caller puts, is a JWK set with the
 * public key. *private, initialised with REMOTE_JWK_MAX, gets the private JWK
 * as one line; buf_free() wipes it. Nothing keeps the private key. 0, or -1
 * with err.
 */
int remote_key_make(
    struct json_object **set, struct buf *private, struct err *);

#endif
