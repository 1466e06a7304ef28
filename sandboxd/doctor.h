/*
 * What `mcpboxctl doctor` is told by sandboxd: the layers of itself, of spawn
 * and of the pool, as a JSON array of {process, layer, state, detail, fix}.
 */
#ifndef DOCTOR_H
#define DOCTOR_H

#include <stdbool.h>

#include "buf.h"

/* own, memory and work (sandboxd's too), spawn, pool: "name=state" lines, a
 * detail may follow behind a space; "" where that process is not there, which
 * is reported as missing. */
void doctor_report(struct buf *out, const char *own, const char *memory,
    const char *work, const char *spawn, const char *pool, bool have_key);

#endif
