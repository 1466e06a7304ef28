/*
 * Refuses code that no version may hold, from any author: code whose lines are
 * not the lines that its reviewer reads. docs/decisions/0065.
 */
#ifndef VERSION_GATE_H
#define VERSION_GATE_H

#include <stddef.h>
#include <stdint.h>

#include "err.h"

/*
 * Judges Python code that is not (yet) a field of a version. Every control
 * character must be a newline or a tab, and no character may be one that other
 * programs take for an end of line. 0, or -1 with FAILURE_INVALID_PARAMS and a
 * sentence that names the first such character, its line, its place in the
 * line, and the replacement.
 */
int version_gate_code(const void *code, size_t n, struct err *);

/* Judges the code of a version's fields (from version_check) in the same
 * way. */
int version_gate(const uint8_t *fields, size_t n, struct err *);

#endif
