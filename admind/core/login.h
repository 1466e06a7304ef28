/* Tells whose an administrator's request is. */
#ifndef LOGIN_H
#define LOGIN_H

#include "op.h"

/* Checks a login token at the vault (CTL: none needed) and its role against
 * op->least, then runs then(op) with actor and role filled; else refuses and
 * frees op. */
void login_check(
    struct op *, struct ipc_bytes token, void (*then)(struct op *));

#endif
