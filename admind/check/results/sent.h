/* The answer of a run that sent telemetry. No I/O. The bytes are hostile. */
#ifndef SENT_H
#define SENT_H

#include "check.h"

/* Checks the answer of mcpbox_telemetry.py, a CallToolResult. Fills c, which
 * check_free() empties. Ok: c->fields has enum sent_field. Else c->summary has
 * the fault of the answer, or the run's own words. */
void check_sent(struct check *c, struct ipc_bytes result);

#endif
