/* The head of the audit chain, signed by the vault. */
#ifndef AUDIT_H
#define AUDIT_H

#include "op.h"

void audit_sign(struct admind *); /* if the head moved */
/* op_db_ok, and the head is signed at once: what was signed can't be another
 * row's later. For what wrote an audit row. */
void audit_db_ok(void *op, const struct pg_result *, const struct err *);
int audit_message(struct link *, struct ipc_frame *); /* AUDIT_READ */

#endif
