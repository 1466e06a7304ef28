/*
 * sandboxd's report to `mcpboxctl doctor`: the layers of itself, of spawn, of
 * the pool, of egress and of the module store, as a JSON array of {process,
 * layer, state, detail, fix}.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>

#include "buf.h"

/* Writes the report. own, memory and work (all three sandboxd's), spawn, pool,
 * egress, store: "name=state" lines, where a detail may follow after a space. A
 * text is "" if its process is not there, which is reported as missing. */
void doctor_report(struct buf *out, const char *own, const char *memory,
    const char *work, const char *spawn, const char *pool, const char *egress,
    const char *store, bool have_key);

#endif
