/* Finds out which administrator sent a request. */
#ifndef LOGIN_H
#define LOGIN_H

#include "op.h"

/* Has the vault look up a login token; a request of the ctl socket needs no
 * token. If the login's role is at least op->least, calls then(op) with
 * op->actor and op->role filled. Else refuses and frees op. */
void login_check(
    struct op *, struct ipc_bytes token, void (*then)(struct op *));

#endif
