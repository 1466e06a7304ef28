/* Names of the outcomes of executions. */
#ifndef OUTCOME_H
#define OUTCOME_H

#include "ipc.h"

/* Returns the name of an outcome ("done"), or NULL for any other number. */
const char *outcome_name(enum outcome);

#endif
