/* What cmocka wants included before itself, and itself. */
#ifndef UNIT_H
#define UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Beside the measured factor: two tests run at once, beside other jobs. As
 * SLACK of tests/harness/patience.py. */
enum { UNIT_SLACK = 4 };

/* Returns the milliseconds after which a wait is a hang, where a quiet machine
 * takes ms at most. tests/run measures the machine and sets MCPBOX_PATIENCE. */
static inline int
unit_patience(int ms)
{
	const char *s = getenv("MCPBOX_PATIENCE");
	double factor = s == NULL ? 1 : strtod(s, NULL);

	return (int)(ms * UNIT_SLACK * (factor > 1 ? factor : 1));
}

#endif
