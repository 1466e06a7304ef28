/* The references to an API token, and the objects that it may use. */
#include <stdlib.h>

#include "token.h"

struct token *
token_ref(struct token *t)
{
	if (t != NULL)
		t->refs++;
	return t;
}

void
token_unref(struct token *t)
{
	if (t == NULL || --t->refs > 0)
		return;
	free((char *)(uintptr_t)t->permit.allow);
	free((char *)(uintptr_t)t->permit.deny);
	free(t);
}

bool
token_permits(const struct token *t, const char *exposed,
    struct ipc_bytes server, struct ipc_bytes name)
{
	return t == NULL || permit_name(&t->permit, exposed, server, name);
}

void
token_params(const struct token *t, struct db_params *p)
{
	db_p_str(p, t != NULL ? t->permit.allow : NULL);
	db_p_str(p, t != NULL ? t->permit.deny : NULL);
}
