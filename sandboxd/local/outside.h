/*
 * The part of a run that stays outside: starts pid 1 in new namespaces, passes
 * signals and the terminal on, and waits.
 */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include "plan.h"

/* Runs the plan. 0 with the report, or -1 with err: nothing was run. */
int outside_run(const struct plan *, struct plan_report *, struct err *);

#endif
