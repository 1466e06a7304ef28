/*
 * The process of the network, seen from outside: its descriptors until it
 * starts, and its report.
 */
#ifndef HELPER_H
#define HELPER_H

#include <sys/types.h>

#include "net.h"

struct helper {
	struct net_setup setup; /* owned descriptors */
	int report;             /* owned; reads struct plan_denied */
	pid_t pid;              /* 0: not started */
	struct plan_denied denied[NET_DENIED_MAX];
	size_t ndenied;
};

/* Opens the published ports. 0, or -1 with err: a port is taken. */
int helper_open(struct helper *, const struct plan *, struct err *);
/* Starts the process. 0, or -1 with err. */
int helper_start(struct helper *, struct err *);
/* Takes a record of the report; ends reading when the process is gone. */
void helper_report(struct helper *);
/* Takes the rest of the report, ends the process, closes all. */
void helper_close(struct helper *);

#endif
