/*
 * The token of a login.
 */
#ifndef TOKEN_H
#define TOKEN_H

#include "web.h"

/* Reads both halves of a login's token into the call. -1: a half is missing or
 * malformed, and the request is answered. */
int token_read(struct call *);

#endif
