/*
 * The credential of a request: the token of a login, or a script's key.
 */
#ifndef TOKEN_H
#define TOKEN_H

#include "web.h"

/* Reads both halves of a login's token into the call; or the digest of a key,
 * and by_key. -1: it is missing or malformed, or the route takes no key;
 * the request is answered. */
int token_read(struct call *);
/* Asks admind whether the key of this call may be used on its route. then()
 * runs if so; else the request is answered. */
void token_key_check(
    struct call *, void (*then)(struct call *, struct ipc_frame *));

#endif
