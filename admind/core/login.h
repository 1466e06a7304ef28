/* Finds out which administrator sent a request. */
#ifndef LOGIN_H
#define LOGIN_H

#include "op.h"

/* Has the vault look up a login token; a request of the ctl socket needs no
 * token. A script's key is looked up in the database instead: it needs
 * op->scope. If the role is at least op->least, calls then(op) with op->actor
 * and op->role filled. Else refuses and frees op. */
/* Tells whether this is the digest of a key, not of a login. */
bool login_is_key(struct ipc_bytes token);
void login_check(
    struct op *, struct ipc_bytes token, void (*then)(struct op *));

#endif
