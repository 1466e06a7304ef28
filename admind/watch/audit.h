/* The head of the audit chain, signed by the vault. */
#ifndef AUDIT_H
#define AUDIT_H

#include "op.h"

void audit_sign(struct admind *); /* has the head signed if it moved */
/* Does what op_db_ok does, and has the head signed at once. After the signature
 * no other row can take the place of the signed row. For statements that write
 * an audit row. */
void audit_db_ok(void *op, const struct pg_result *, const struct err *);
int audit_message(struct link *, struct ipc_frame *); /* AUDIT_READ */
int audit_verified_message(struct link *, struct ipc_frame *);

#endif
