/*
 * The part of a run that stays outside: starts pid 1 in new namespaces, passes
 * signals and the terminal on, and waits.
 */
#ifndef OUTSIDE_H
#define OUTSIDE_H

#include "explain.h"
#include "plan.h"

/* Runs the plan; the helper is open, and is closed at the end, when it has the
 * connections that were not allowed. 0 with the report, or -1 with err: nothing
 * was run. */
struct helper;
int outside_run(
    const struct plan *, struct helper *, struct plan_report *, struct err *);

#endif
