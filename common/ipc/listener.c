/* The side that a gateway serves, by its name. See ipc_values.h. */
#include <string.h>

#include "ipc_values.h"

enum listener
listener_of(const char *name)
{
	static const char *const names[] = {"", "local", "tunnel", "admind"};

	for (int i = LISTENER_LOCAL; i <= LISTENER_ADMIND; i++)
		if (strcmp(name, names[i]) == 0)
			return (enum listener)i;
	return LISTENER_NONE;
}
