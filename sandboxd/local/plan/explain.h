/*
 * A plan and a report, for people and for programs (explain.c).
 */
#ifndef EXPLAIN_H
#define EXPLAIN_H

#include "plan.h"

/* The layers that depend on the machine. */
struct plan_layers {
	int landlock; /* ABI; 0: none */
	bool cgroup;  /* a cgroup will limit memory and processes */
};
/* Prints the plan to standard output, as text or as JSON. */
void explain_print(const struct plan *, const struct plan_layers *);

/* A connection that was not allowed; port 0: a name that was asked for. */
struct plan_denied {
	char host[256];
	uint16_t port;
	char why[256];
};

/* The end of a run. */
struct plan_report {
	int status; /* of mcpbox-run */
	int signal; /* that ended the program; 0: it exited */
	/* Paths that were set aside: each a path and its new name ("" if it
	 * could not be renamed), with a zero byte after each. */
	const struct buf *aside;
	const struct plan_denied *denied;
	size_t ndenied;
};
/* Prints the report to standard error as one line of JSON. */
void explain_report(const struct plan *, const struct plan_report *);

#endif
