/* How an execution ended, in words. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "ipc.h"

/* "done"; NULL: not an outcome. */
const char *outcome_name(enum outcome);

#endif
