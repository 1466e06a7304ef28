/* See bytes.h. */
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

struct ipc_bytes
ipc_str(const char *s)
{
	return ipc_bytes(s, s != NULL ? strlen(s) : 0);
}

struct ipc_bytes
ipc_bytes(const void *p, size_t n)
{
	struct ipc_bytes b = {p, n};

	return b;
}

char *
ipc_strdup(struct ipc_bytes b)
{
	char *s = malloc(b.n + 1);

	if (s == NULL)
		return NULL;
	if (b.n > 0)
		memcpy(s, b.p, b.n);
	s[b.n] = '\0';
	return s;
}

bool
ipc_streq(struct ipc_bytes b, const char *s)
{
	return b.n == strlen(s) && (b.n == 0 || memcmp(b.p, s, b.n) == 0);
}
