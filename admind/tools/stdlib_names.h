/*
 * The modules of Python's standard library, from sys.stdlib_module_names of the
 * interpreter version that runners embed (stdlib.py, at build time). Private
 * modules, which begin with an underscore, are left out.
 */
#ifndef STDLIB_NAMES_H
#define STDLIB_NAMES_H

#include <stddef.h>

extern const char *const stdlib_names[]; /* ascending */
extern const size_t stdlib_count;

#endif
