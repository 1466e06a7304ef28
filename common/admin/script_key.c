#include "script_key.h"

#include <string.h>

static const char *const names[SCRIPT_SCOPES] = {
    [SCRIPT_NEVER] = "never",
    [SCRIPT_READ] = "read",
    [SCRIPT_METRICS] = "metrics",
    [SCRIPT_OPERATE] = "operate",
    [SCRIPT_EXPORT] = "export",
};

static const char base64url[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

const char *
script_scope_name(enum script_scope s)
{
	return names[s];
}

int
script_scope_find(struct ipc_bytes name, enum script_scope *s)
{
	for (int i = SCRIPT_NEVER + 1; i < SCRIPT_SCOPES; i++)
		if (ipc_streq(name, names[i])) {
			*s = (enum script_scope)i;
			return 0;
		}
	return -1;
}

bool
script_key_form(const char *text, size_t n)
{
	size_t prefix = strlen(SCRIPT_KEY_PREFIX);

	return n == SCRIPT_KEY_TEXT &&
	    strncmp(text, SCRIPT_KEY_PREFIX, prefix) == 0 &&
	    strspn(text + prefix, base64url) >= n - prefix;
}

bool
script_key_inside(const char *text)
{
	while ((text = strstr(text, SCRIPT_KEY_PREFIX)) != NULL) {
		if (strlen(text) >= SCRIPT_KEY_TEXT &&
		    script_key_form(text, SCRIPT_KEY_TEXT))
			return true;
		text++;
	}
	return false;
}
