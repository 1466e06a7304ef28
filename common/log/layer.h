/*
 * Layers of confinement, and advice about a layer that does not hold in full.
 * Processes report layers as lines "name=enforced|degraded|missing detail". The
 * advice is here once, for `mcpboxctl doctor` and for the log of a process that
 * refuses to start.
 */
#ifndef LAYER_H
#define LAYER_H

#include <stdbool.h>
#include <stddef.h>

/* Returns one static sentence, never "", that says how to mend the layer. name
 * has n bytes. */
const char *layer_fix(const char *name, size_t n);
/*
 * Tells whether a pool may run without this layer. True for layers that a
 * kernel or machine may lack because other layers do their work, for example
 * with an older Landlock or without a cgroup.
 */
bool layer_optional(const char *name, size_t n);
/*
 * Returns the first of the report's lines that says "missing" of a layer that
 * is not optional, or NULL. *n is the line's length.
 */
const char *layer_missing(const char *lines, size_t *n);

#endif
