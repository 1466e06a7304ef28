/* Names of the outcomes of executions. */
#include "outcome.h"

const char *
outcome_name(enum outcome o)
{
	static const char *const names[] = {
	    NULL, "done", "failed", "killed", "refused", "lost"};

	return o >= OUTCOME_DONE && o <= OUTCOME_LOST ? names[o] : NULL;
}
