/* See listener.h. */
#include <stddef.h>
#include <string.h>

#include "listener.h"

static const char *const names[] = {
    [LISTENER_NONE] = "",
    [LISTENER_LOCAL] = "local",
    [LISTENER_TUNNEL] = "tunnel",
    [LISTENER_ADMIND] = "admind",
};

enum listener
listener_of(const char *name)
{
	for (int i = LISTENER_LOCAL; i <= LISTENER_ADMIND; i++)
		if (strcmp(name, names[i]) == 0)
			return (enum listener)i;
	return LISTENER_NONE;
}

const char *
listener_name(unsigned listener)
{
	return listener <= LISTENER_ADMIND ? names[listener] : "";
}
