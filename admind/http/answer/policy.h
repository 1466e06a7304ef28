/* The policy of the panel's files, which names the gateway that they may ask.
 */
#ifndef POLICY_H
#define POLICY_H

#include "err.h"

/* Checks mcp_url: "-", or an address with a path and without a query. 0, or -1
 * with INVALID_PARAMS and the form that it must have. */
int policy_check(const char *mcp_url, struct err *);
/* Makes the policy, once, at the start. mcp_url has passed policy_check. */
void policy_make(const char *mcp_url);
/* Returns the policy of a file of the panel (Content Security Policy Level 3).
 * Without policy_make it lets the files ask their own origin alone. */
const char *policy_of_panel(void);

#endif
