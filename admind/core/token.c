/* The references to a token, its share, and the objects that it may use. */
#include <stdlib.h>

#include "endpoint.h"
#include "token.h"

struct share *
token_share_new(void)
{
	struct share *s = calloc(1, sizeof(*s));

	if (s != NULL)
		s->refs = 1;
	return s;
}

void
token_share_unref(struct share *s)
{
	if (s != NULL && --s->refs == 0)
		free(s);
}

struct token *
token_new(struct share *share)
{
	struct token *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return NULL;
	if (share != NULL)
		share->refs++;
	else
		share = token_share_new();
	t->refs = 1;
	t->share = share;
	if (share == NULL) {
		free(t);
		return NULL;
	}
	return t;
}

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
	token_share_unref(t->share);
	endpoint_unref(t->endpoint);
	free(t);
}

struct ipc_bytes
token_shown(const struct token *t, struct ipc_bytes tool,
    const struct endpoint_rename **rename)
{
	return endpoint_shown(t != NULL ? t->endpoint : NULL, tool, rename);
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
