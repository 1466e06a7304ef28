/* See name.h. */
#include <string.h>

#include "name.h"

bool
name_valid(const char *s, size_t n, size_t max)
{
	bool start = true; /* a group of letters and digits begins here */

	if (n == 0 || n > max || !(s[0] >= 'a' && s[0] <= 'z'))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] == '_') {
			if (start)
				return false;
			start = true;
		} else if ((s[i] >= 'a' && s[i] <= 'z') ||
		    (s[i] >= '0' && s[i] <= '9'))
			start = false;
		else
			return false;
	}
	return !start;
}

bool
name_is_management(const char *name)
{
	return strncmp(name, NAME_MANAGEMENT, sizeof(NAME_MANAGEMENT) - 1) == 0;
}

bool
name_is_local(const char *principal)
{
	return strcmp(principal, NAME_LOCAL) == 0;
}
