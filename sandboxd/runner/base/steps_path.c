/* See steps_path.h. */
#include <stdio.h>

#include "runner.h"
#include "steps_path.h"

static char failed_path[RUNNER_PATH_MAX];

void
steps_path(const char *path)
{
	(void)snprintf(failed_path, sizeof(failed_path), "%s", path);
}

const char *
steps_failed_path(void)
{
	return failed_path;
}
