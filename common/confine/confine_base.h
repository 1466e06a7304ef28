/*
 * The system calls that every confined daemon may make. The list is a part of
 * confine.c, in a file of its own so that a reader sees all of it.
 */
#ifndef CONFINE_BASE_H
#define CONFINE_BASE_H

#include <stddef.h>
#include <stdint.h>

struct confine_base_rule {
	int syscall;
	int error;             /* 0: allowed; else it fails with this errno */
	int arg;               /* -1: any arguments */
	uint64_t mask, equals; /* as in struct confine_rule */
};

/* arg of a rule whose argument 0 must be this process's own pid. */
enum { CONFINE_ARG0_SELF = -2 };

/* Returns the list; *n is its length. */
const struct confine_base_rule *confine_base_rules(size_t *n);

#endif
