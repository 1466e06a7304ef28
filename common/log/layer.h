/*
 * Layers of confinement, and advice about a layer that does not hold in full.
 * Processes report them as lines "name=enforced|degraded|missing detail". The
 * fixes are here once, for `mcpboxctl doctor` and for the log of a process that
 * refuses to start.
 */
#ifndef LAYER_H
#define LAYER_H

#include <stdbool.h>
#include <stddef.h>

/* Returns one sentence that says how to mend the layer; never "", static. name
 * has n bytes. */
const char *layer_fix(const char *name, size_t n);
/*
 * May a pool run without this layer? True for layers whose work others do if
 * the kernel lacks them, as with an older Landlock or without a cgroup.
 */
bool layer_optional(const char *name, size_t n);
/*
 * Returns the first of these lines that says "missing" of a layer that is not
 * optional; NULL if there is none. *n is the line's length.
 */
const char *layer_missing(const char *lines, size_t *n);

#endif
