/*
 * The modules that Python itself has, by sys.stdlib_module_names of the
 * interpreter version that runners embed (stdlib.py, when built). Private ones,
 * which begin with an underscore, are left out.
 */
#ifndef STDLIB_NAMES_H
#define STDLIB_NAMES_H

#include <stddef.h>

extern const char *const stdlib_names[]; /* ascending */
extern const size_t stdlib_count;

#endif
