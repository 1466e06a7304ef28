/* See listener.h. */
#include <string.h>

#include "listener.h"

enum listener
listener_of(const char *name)
{
	static const char *const names[] = {"", "local", "tunnel", "admind"};

	for (int i = LISTENER_LOCAL; i <= LISTENER_ADMIND; i++)
		if (strcmp(name, names[i]) == 0)
			return (enum listener)i;
	return LISTENER_NONE;
}
