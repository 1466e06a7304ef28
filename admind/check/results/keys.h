/* The answer of a run that fetched an issuer's public keys. No I/O. The bytes
 * are hostile. */
#ifndef KEYS_H
#define KEYS_H

#include "check.h"
#include "doc.h"

/* Checks the answer of mcpbox_keys.py, a CallToolResult. Fills c, which
 * check_free() empties. Ok: c->fields has enum keys_field and a record
 * ISSUER_KEY for each usable key, at least one. Else c->summary has the fault
 * of the answer, or the run's own words. */
void check_keys(struct check *c, struct ipc_bytes result);
/* Sets err to the run's own words, if its answer is an error (isError). Returns
 * -1. */
int keys_run_failed(const struct doc *, struct err *);

#endif
