#include "admin_action.h"

#include <string.h>

const struct admin_action admin_actions[] = {
#define A(name, role, scope, method, path, seen, members, doc) \
	{#name, ADMIN_##role, SCRIPT_##scope, #method, path,   \
	    ADMIN_SEEN_##seen, members, doc},
#define U(name, members, doc)                                               \
	{#name, ADMIN_ROOT, SCRIPT_NEVER, "", "", ADMIN_SEEN_NONE, members, \
	    doc},
#include "admin_action.def"
#undef A
#undef U
    {NULL, ADMIN_ADMINISTRATOR, SCRIPT_NEVER, NULL, NULL, ADMIN_SEEN_NONE, NULL,
	NULL},
};

const struct admin_action *
admin_action_find(struct ipc_bytes name)
{
	for (const struct admin_action *a = admin_actions; a->name != NULL; a++)
		if (ipc_streq(name, a->name))
			return a;
	return NULL;
}

int
admin_action_role(struct ipc_bytes name, enum admin_role *role)
{
	static const char *const names[] = {
	    "viewer", "reviewer", "administrator"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (ipc_streq(name, names[i])) {
			*role = (enum admin_role)i;
			return 0;
		}
	return -1;
}

bool
admin_action_key(struct ipc_bytes key)
{
	if (key.n == 0 || key.n > ADMIN_KEY_MAX)
		return false;
	for (size_t i = 0; i < key.n; i++)
		if (key.p[i] <= 0x20 || key.p[i] >= 0x7f)
			return false;
	return true;
}

bool
admin_action_member(const char **at, struct admin_member *m)
{
	*at += strspn(*at, " ");
	if (**at == '\0')
		return false;
	m->name = *at;
	m->len = strcspn(*at, ":");
	m->type = (*at)[m->len + 1];
	*at += m->len + 2;
	m->required = **at == '!';
	*at += m->required;
	return true;
}
